"""The shortest program to one clause: what a shrinker asks for before it shrinks."""

import time

from kvspec.conformance.explorer.copies import NotFaithful
from kvspec.conformance.explorer.defaults import SEARCHED, fitted
from kvspec.conformance.explorer.search import explore
from kvspec.conformance.explorer.world import SmallWorld
from kvspec.conformance.lockstep import CannotCreate
from kvspec.conformance.program import Counterexample, others_muted
from kvspec.impl.adapter import Implementation


def shortest(
    implementation: Implementation, clause: str, seconds: float, worlds: tuple[SmallWorld, ...] = SEARCHED
) -> Counterexample | None:
    """The shortest program that breaks `clause` in one of several small worlds, or None if none is found in time.

    The worlds share the time; each later one is searched only for something shorter.  All other clauses that the judge
    survives are muted; one that it does not survive may come first, and ends the search of its world.
    """
    best: Counterexample | None = None
    deadline = time.monotonic() + seconds
    waiting = fitted(worlds, implementation.declaration)
    while waiting:
        world = waiting.pop(0)
        share = (deadline - time.monotonic()) / (len(waiting) + 1)
        found = _search(implementation, world, clause, share)
        if found and (best is None or len(found.program.operations) < len(best.program.operations)):
            best = found
    return best


def _search(implementation: Implementation, world: SmallWorld, clause: str, seconds: float) -> Counterexample | None:
    if seconds <= 0:
        return None
    try:
        exploration = explore(implementation, world, others_muted(clause), limit_seconds=seconds)
    except (CannotCreate, NotFaithful):
        return None
    found = exploration.counterexample
    return found if found and found.violation.clause == clause else None
