"""Run known-bad managers: is each caught, for its own clause, and how short is the counterexample?"""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from kvspec.conformance.campaign import run_campaign
from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.effort import EFFORTS
from kvspec.conformance.hash_check import check_hash
from kvspec.conformance.program import Counterexample
from kvspec.conformance.robustness import check_robust
from kvspec.conformance.shrink import shrink
from kvspec.impl.known_bad import KNOWN_BAD, KnownBad
from kvspec.spec.clauses import CLAUSES, clauses_of

SCENARIOS = ("robust", "hash")  # contexts without programs
WORKERS = 2

Progress = Callable[["Row"], None]


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


def run_known_bad(
    slugs: Iterable[str] = (),
    seeds: Iterable[int] = (0,),
    effort: str = "default",
    progress: Progress | None = None,
    workers: int = WORKERS,
) -> list[Row]:
    """Each known-bad manager under each seed, in the order of the registry; all of them if none is named.

    Raises KeyError for a slug or an effort that does not exist.
    """
    chosen = [KNOWN_BAD[slug].slug for slug in slugs] or list(KNOWN_BAD)
    jobs = [(slug, seed, EFFORTS[effort].name) for seed in seeds for slug in chosen]
    rows = []
    for row in _performed(jobs, min(workers, len(jobs))):
        rows.append(row)
        if progress:
            progress(row)
    order = list(KNOWN_BAD)
    return sorted(rows, key=lambda row: (order.index(row.slug), row.seed))


def _performed(jobs: list[tuple[str, int, str]], workers: int) -> Iterator[Row]:
    if workers < 2:
        yield from (run_one(*job) for job in jobs)
        return
    with ProcessPoolExecutor(workers) as pool:
        futures = [pool.submit(run_one, *job) for job in jobs]
        yield from (future.result() for future in as_completed(futures))


def run_one(slug: str, seed: int, effort: str = "default") -> Row:
    """Look for the clause of one known-bad manager where its fault shows, and shrink what is found."""
    bad, started = KNOWN_BAD[slug], time.perf_counter()
    found = _scenario(bad) if bad.context in SCENARIOS else _campaign(bad, seed, effort)
    operations = None
    if (counterexample := found.get(bad.clause)) is not None:
        operations = len(shrink(bad.implementation(), counterexample).program.operations)
    caught = counts(bad.clause, tuple(found))
    return Row(slug, bad.clause, caught, tuple(found), operations, time.perf_counter() - started, seed)


def _scenario(bad: KnownBad) -> dict[str, Counterexample | None]:
    if bad.context == "hash":
        return {"HASH-BYTES": None} if check_hash(bad.implementation()) else {}
    return {clause: None for clause, violation in check_robust(bad.implementation()).items() if violation}


def _campaign(bad: KnownBad, seed: int, effort: str) -> dict[str, Counterexample | None]:
    programs = EFFORTS[effort].programs[bad.context]
    result = run_campaign(bad.implementation(), CONTEXTS[bad.context], seed, programs, until=bad.clause)
    declared = declared_clauses(bad)
    return {clause: found for clause, found in result.found.items() if clause in declared}


def declared_clauses(bad: KnownBad) -> frozenset[str]:
    """The clauses of the profiles that the manager claims."""
    return frozenset(
        clause.slug for profile in bad.implementation().declaration.profiles for clause in clauses_of(profile)
    )


def counts(clause: str, found: tuple[str, ...]) -> bool:
    """Is `clause` found for itself: the first one found, or not just implied by another one that was found?"""
    if clause not in found:
        return False
    return found[0] == clause or not any(clause in CLAUSES[other].implies for other in found if other != clause)
