"""Asking the solvers: one condition, one fresh solver, limited by work (`rlimit`) and not by time.

Each condition is solved from its SMT-LIB text, which is also what is exported for a second solver; so its verdict
depends neither on the machine's load nor on what was asked before.
"""

import time
from dataclasses import dataclass
from enum import StrEnum

import z3

# The triggers were found with this version; another one may need others, and then says "not proved".
PINNED_Z3 = "5.4.1"
WORK_LIMIT = 2_000_000  # the hardest condition needs less than a tenth


class Verdict(StrEnum):
    """What is said of a condition."""

    PROVED = "proved for all sizes"
    PROVED_BOUNDED = "proved for the stated bounds"
    REFUTED = "refuted"
    WITNESS = "witness found"
    NO_COUNTEREXAMPLE = "no counterexample within a budget"
    NOT_PROVED = "not proved"
    MISSING = "missing"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Answer:
    """What a solver said (`unsat`: the condition is proved), the work and the processor time that it took."""

    said: str
    work: int
    seconds: float


def versions() -> str:
    """Which z3 this is, and whether it is the one that the triggers were found with."""
    found = z3.get_version_string()
    if found == PINNED_Z3:
        return f"z3 {found}"
    return (
        f"z3 {found}; the triggers were found with {PINNED_Z3}, so a condition that is not proved may be this version's"
    )


def solve(script: str, work_limit: int = WORK_LIMIT, quantified: bool = True) -> Answer:
    """Solve an SMT-LIB text with z3, in a context of its own."""
    begun = time.process_time()
    solver = z3.SimpleSolver(ctx=z3.Context())
    if quantified:
        solver.set("mbqi", False)  # triggers only: no search for models, which would not end
    solver.set("rlimit", work_limit)
    solver.from_string(script)
    said = str(solver.check())
    spent = solver.statistics()
    work = spent.get_key_value("rlimit count") if "rlimit count" in spent.keys() else 0  # noqa: SIM118
    return Answer(said, work, time.process_time() - begun)
