"""The matrix lane by fault: which lanes see which planted fault, and how large the difference is.

A lane that can't fail proves nothing, so this table belongs to the result: a clean run of a lane counts for the faults
in its row, and for no others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .catalogue import Lane, exact_lanes, one_layer_lane, tolerance_lanes
from .engine import Run
from .faults import FAULTS, implementation
from .findings import Findings
from .schedulers import SCHEDULERS, drive

CORRECT = "correct"


@dataclass(slots=True)
class Cell:
    """What one lane saw of one fault under one scheduler.

    `detected` of `runs`: runs in which it objected.  `largest`: the largest finite logit difference of any run;
    `smallest`: each detecting run has a largest one that the lane did not accept, and this is the smallest of them.
    `rows`, `unequal`, `poisoned`, `flips`: rows compared, with other bits, not a number, with another greedy token.
    """

    lane: str
    fault: str
    scheduler: str
    runs: int = 0
    detected: int = 0
    largest: float = 0.0
    smallest: float | None = None
    rows: int = 0
    unequal: int = 0
    poisoned: int = 0
    flips: int = 0

    def add(self, findings: Findings) -> None:
        """One more run."""
        self.runs += 1
        self.detected += not findings.clean
        self.largest = max(self.largest, findings.largest)
        if findings.wrong:
            self.smallest = min(findings.wrong, self.smallest or findings.wrong)
        for name in ("rows", "unequal", "poisoned", "flips"):
            setattr(self, name, getattr(self, name) + getattr(findings, name))


@dataclass(slots=True)
class Matrix:
    """All cells, the seeds they were made with, and the tolerance of each lane (None: exact)."""

    seeds: tuple[int, ...]
    tolerances: dict[str, float | None]
    cells: dict[tuple[str, str, str], Cell] = field(default_factory=dict)

    def cell(self, lane: str, fault: str, scheduler: str) -> Cell:
        """The cell, new if there is none."""
        return self.cells.setdefault((lane, fault, scheduler), Cell(lane, fault, scheduler))

    def detected(self, lane: str, fault: str) -> int:
        """Runs under any scheduler in which the lane saw the fault."""
        return sum(cell.detected for cell in self.cells.values() if (cell.lane, cell.fault) == (lane, fault))

    def data(self) -> dict[str, Any]:
        """For JSON."""
        cells = [asdict(cell) for cell in self.cells.values()]
        return {"seeds": list(self.seeds), "tolerances": self.tolerances, "cells": cells}


def measure(seeds: Sequence[int], lanes: Iterable[Lane] | None = None, faults: Iterable[str] | None = None) -> Matrix:
    """Run every fault, and the correct base, under both schedulers through every lane."""
    chosen = tuple(lanes or (*exact_lanes(), one_layer_lane(), *tolerance_lanes()))
    matrix = Matrix(tuple(seeds), {lane.name: getattr(lane, "tolerance", None) for lane in chosen})
    for fault in faults or (CORRECT, *FAULTS):
        for run in _runs(fault, seeds):
            for lane in chosen:
                matrix.cell(lane.name, fault, run.scheduler).add(lane.replay(run))
    return matrix


def _runs(fault: str, seeds: Sequence[int]) -> list[Run]:
    runs = [drive(implementation(fault), scheduler, seed) for scheduler in SCHEDULERS for seed in seeds]
    if fault == CORRECT:
        for run in runs:
            run.require_everything()
    return runs
