"""The shortest program to one clause: what a shrinker asks for before it shrinks."""

import time

from kvspec.conformance.explorer.copies import NotFaithful
from kvspec.conformance.explorer.defaults import SEARCHED, fitted
from kvspec.conformance.explorer.search import explore
from kvspec.conformance.explorer.world import SmallWorld
from kvspec.conformance.lockstep import CannotCreate
from kvspec.conformance.program import Counterexample, others_muted
from kvspec.impl.adapter import Implementation
from kvspec.spec.clauses import CLAUSES


def shortest(
    implementation: Implementation, clause: str, seconds: float, worlds: tuple[SmallWorld, ...] = SEARCHED
) -> Counterexample | None:
    """The shortest program that breaks `clause` in one of several small worlds, or None if none is found in time.

    The worlds share the time; each later one is searched only for something shorter.  All other clauses are dead ends, or
    muted where the judge survives them.  Clauses that no program of operations breaks by itself (those of the profiles
    hash and robust, NANO-ORDER) are not looked for.
    """
    if CLAUSES[clause].profile in ("hash", "robust") or clause == "NANO-ORDER":
        return None
    best: Counterexample | None = None
    deadline = time.monotonic() + seconds
    waiting = fitted(worlds, implementation.declaration)
    while waiting:
        world = waiting.pop(0)
        share = (deadline - time.monotonic()) / (len(waiting) + 1)
        shorter = len(best.program.operations) - 1 if best else None
        best = _search(implementation, world, clause, share, shorter) or best
    return best


def _search(
    implementation: Implementation, world: SmallWorld, clause: str, seconds: float, most: int | None
) -> Counterexample | None:
    if seconds <= 0:
        return None
    muted = others_muted(clause)
    try:
        return explore(
            implementation, world, muted, limit_seconds=seconds, limit_depth=most, wanted=clause
        ).counterexample
    except (CannotCreate, NotFaithful):
        return None
