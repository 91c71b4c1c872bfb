"""The result for one known-bad manager."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One known-bad manager under one seed.

    `caught`: its own clause was found, and counts as found by itself (``counts``).  `caught_by`: the clauses found up to
    then, in the order in which they were found.  `operations`: length of the shrunk counterexample, or None where only a
    scenario shows the fault.
    """

    slug: str
    clause: str
    caught: bool
    caught_by: tuple[str, ...]
    operations: int | None
    seconds: float
    seed: int = 0
