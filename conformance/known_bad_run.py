"""Run known-bad managers: is each caught, for its own clause, and how short is the counterexample?"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from json import dumps

from kvspec.conformance.campaign import run_campaign
from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.effort import EFFORTS
from kvspec.conformance.hash_check import check_hash
from kvspec.conformance.known_bad_row import Row
from kvspec.conformance.program import Counterexample
from kvspec.conformance.robustness import check_robust
from kvspec.conformance.shrink import shrink
from kvspec.conformance.terminal import terminal
from kvspec.impl.known_bad import KNOWN_BAD, KnownBad, load_known_bad
from kvspec.spec.clauses import CLAUSES, clauses_of

SCENARIOS = ("robust", "hash")  # contexts without programs
WORKERS = 2

Progress = Callable[[Row], None]


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
    return in_order(rows)


def in_order(rows: list[Row]) -> list[Row]:
    """By the order of the registry, then by seed."""
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
    short = _shrunk(bad, found)
    operations = len(short.program.operations) if short else None
    caught = counts(bad.clause, tuple(found))
    return Row(slug, bad.clause, caught, tuple(found), operations, time.perf_counter() - started, seed)


def shrunk_one(slug: str, seed: int, effort: str = "default") -> Counterexample | None:
    """The shrunk counterexample to the clause of one known-bad manager, or None if no program shows it."""
    bad = KNOWN_BAD[slug]
    return None if bad.context in SCENARIOS else _shrunk(bad, _campaign(bad, seed, effort))


def _shrunk(bad: KnownBad, found: dict[str, Counterexample | None]) -> Counterexample | None:
    counterexample = found.get(bad.clause)
    return shrink(bad.implementation(), counterexample) if counterexample else None


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


def known_bad_command(
    slugs: Iterable[str] = (),
    *,
    json: bool = False,
    seeds: Iterable[int] = (0,),
    effort: str = "default",
    only_list: bool = False,
) -> int:
    """``kvspec known-bad``: 0 if all were caught, 1 if one was not, 2 for a name that does not exist."""
    chosen = tuple(slugs) or tuple(KNOWN_BAD)
    if unknown := [slug for slug in chosen if slug not in KNOWN_BAD]:
        print(_no_such(unknown[0]), file=sys.stderr)
        return 2
    if effort not in EFFORTS:
        print(f"no such effort: {effort}; there are {', '.join(EFFORTS)}", file=sys.stderr)
        return 2
    if only_list:
        _list(chosen, json)
        return 0
    rows = _run_json(chosen, seeds, effort) if json else _run_table(chosen, seeds, effort)
    return 0 if all(row.caught for row in rows) else 1


def _no_such(slug: str) -> str:
    try:
        load_known_bad(slug)
    except KeyError as error:
        return str(error.args[0])
    raise AssertionError(f"{slug} does exist")


def _list(slugs: Iterable[str], as_json: bool) -> None:
    from kvspec.conformance import known_bad_table

    if not as_json:
        terminal().print(known_bad_table.listing(slugs))
        return
    for bad in map(KNOWN_BAD.__getitem__, slugs):
        print(dumps({name: getattr(bad, name) for name in ("slug", "clause", "sentence", "reports", "base", "shape")}))


def _run_json(slugs: Iterable[str], seeds: Iterable[int], effort: str) -> list[Row]:
    return run_known_bad(slugs, seeds, effort, lambda row: print(dumps(asdict(row)), flush=True))


def _run_table(slugs: tuple[str, ...], seeds: Iterable[int], effort: str) -> list[Row]:
    from rich.progress import track

    from kvspec.conformance import known_bad_table

    console, started, seeds = terminal(), time.perf_counter(), tuple(seeds)
    jobs = [(slug, seed, effort) for seed in seeds for slug in slugs]
    performed = _performed(jobs, min(WORKERS, len(jobs)))
    rows = list(track(performed, "known-bad managers", len(jobs), console=console, transient=True))
    rows = in_order(rows)
    console.print(known_bad_table.results(rows))
    console.print(known_bad_table.last_line(rows, time.perf_counter() - started))
    return rows
