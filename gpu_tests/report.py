"""The result as data, table and drawing: ``python -m kvspec.gpu_tests.report FOLDER [SEEDS]``."""

import json
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np

from .drawing import draw
from .faults import FAULTS
from .installed import TORCH
from .schedulers import SCHEDULERS
from .sensitivity import CORRECT, Cell, Matrix, measure


def write(matrix: Matrix, folder: str | Path) -> Path:
    """Write ``attention.json``, ``.md``, ``.txt`` and ``.svg`` into `folder`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    data = {"environment": environment(), **matrix.data()}
    (folder / "attention.json").write_text(json.dumps(data, indent=1) + "\n")
    (folder / "attention.md").write_text(table(matrix) + "\n")
    (folder / "attention.txt").write_text(plain(matrix) + "\n")
    (folder / "attention.svg").write_text(draw(matrix))
    return folder


def environment() -> dict[str, Any]:
    """What the numbers depend on."""
    versions = {"python": platform.python_version(), "numpy": np.__version__, "machine": platform.machine()}
    if TORCH:
        import torch

        versions |= {"torch": torch.__version__, "threads": str(torch.get_num_threads())}
    return versions


def table(matrix: Matrix) -> str:
    """The matrix as a Markdown table: one row a fault, one column a lane, both schedulers in a cell."""
    lanes = list(matrix.tolerances)
    headings = " | ".join(_heading(matrix, lane) for lane in lanes)
    lines = [f"| planted fault | {headings} |", "|---" * (len(lanes) + 1) + "|"]
    for fault in (CORRECT, *FAULTS):
        lines.append(f"| {fault} | " + " | ".join(_both(matrix, lane, fault) for lane in lanes) + " |")
    return "\n".join(lines)


def plain(matrix: Matrix) -> str:
    """The matrix for a terminal: runs that detected the fault under each scheduler, and the largest difference."""
    lanes = list(matrix.tolerances)
    legend = [f"{number}  {_heading(matrix, lane)}" for number, lane in enumerate(lanes, 1)]
    rows = [_aligned("detected fifo+adversarial, size", [str(number) for number in range(1, len(lanes) + 1)])]
    for fault in (CORRECT, *FAULTS):
        cells = [[matrix.cell(lane, fault, scheduler) for scheduler in SCHEDULERS] for lane in lanes]
        rows.append(_aligned(fault, [_short(pair) for pair in cells]))
    return "\n".join([*legend, *rows])


def _aligned(first: str, columns: list[str]) -> str:
    return (f"{first:33}" + "".join(f"{column:13}" for column in columns)).rstrip()


def _short(cells: list[Cell]) -> str:
    counts = "+".join(str(cell.detected) for cell in cells)
    detected = max(cell.largest if cell.smallest else 0.0 for cell in cells)
    if any(cell.poisoned for cell in cells) and not detected:
        return f"{counts} NaN"
    largest = detected or max(cell.largest for cell in cells)
    return f"{counts} {largest:.2g}" if largest else counts


def _heading(matrix: Matrix, lane: str) -> str:
    limit = matrix.tolerances[lane]
    return f"{lane} ({'exact' if limit is None else f'within {limit:.2g}'})"


def _both(matrix: Matrix, lane: str, fault: str) -> str:
    cells = [matrix.cell(lane, fault, scheduler) for scheduler in SCHEDULERS]
    return " / ".join(f"{cell.detected}" for cell in cells) + f" of {cells[0].runs}" + _size(cells)


def _size(cells: list[Cell]) -> str:
    """Sizes of the differences: what was detected, or the noise below the tolerance."""
    smallest = [cell.smallest for cell in cells if cell.smallest]
    largest = max(cell.largest for cell in cells)
    poison = ", NaN" if any(cell.poisoned for cell in cells) else ""
    if smallest:
        return f" ({min(smallest):.2g} to {largest:.2g}{poison})"
    return f" ({largest:.2g}{poison})" if largest or poison else ""


def main(arguments: list[str]) -> None:
    """Measure with as many seeds as asked for (default 4) and write."""
    if TORCH:
        import torch

        torch.set_num_threads(1)
    matrix = measure(range(int(arguments[1]) if len(arguments) > 1 else 4))
    print(plain(matrix))
    print("written to", write(matrix, arguments[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
