"""What the known-bad managers show of the harness: caught under ten seeds, and by how short a program.

``python -m kvspec.conformance.evidence [SLUG ...]`` computes it, of all or of some, and stores it in ``reports``.  Budgets
are numbers of programs and states, never times, so a seed gives the same figures on every machine: the tests run two of
the ten seeds again and compare.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles

from kvspec.conformance.known_bad_run import WORKERS, run_one, shrunk_one
from kvspec.conformance.proof_of_length import with_proof_of_length
from kvspec.impl.known_bad import KNOWN_BAD

SEEDS = 10
REPORT = Path(__file__).parent / "reports" / "evidence.json"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Of one known-bad manager, for seeds 0 to 9.

    `caught`: under how many seeds it is caught for its own clause.  `operations`: the length of the shrunk counterexample
    of each seed; empty where only a scenario shows the fault.  `shortest`: the length of the shortest program in the small
    world of seed 0's counterexample, of which the explorer has tried all; None if that world is too large, or has
    operations that the explorer does not ask.
    """

    caught: int
    operations: list[int]
    shortest: int | None = None


def gather(slug: str) -> Evidence:
    """Run one known-bad manager under all seeds, and search the world of its first counterexample for a shorter one."""
    rows = [run_one(slug, seed) for seed in range(SEEDS)]
    lengths = [row.operations for row in rows if row.operations is not None]
    return Evidence(sum(row.caught for row in rows), lengths, shortest(slug))


def shortest(slug: str) -> int | None:
    """The length of the shortest program in the world of seed 0's counterexample, or None if it was not searched."""
    found = shrunk_one(slug, 0)
    if found is None:
        return None
    proved = with_proof_of_length(KNOWN_BAD[slug].implementation(), found)
    shorter = len(proved.program.operations) < len(found.program.operations)
    return len(proved.program.operations) if proved.shortest or shorter else None


def collect(slugs: Iterable[str] = ()) -> Iterator[tuple[str, Evidence]]:
    """The evidence of all known-bad managers, or of these, as it comes."""
    with ProcessPoolExecutor(WORKERS) as pool:
        futures = {pool.submit(gather, slug): slug for slug in tuple(slugs) or tuple(KNOWN_BAD)}
        for future in as_completed(futures):
            yield futures[future], future.result()


def missing(evidence: dict[str, Evidence]) -> list[str]:
    """What the evidence does not show although it must, a sentence each."""
    absent = [f"{slug} has no evidence" for slug in KNOWN_BAD if slug not in evidence]
    gone = [f"{slug} is no known-bad manager" for slug in evidence if slug not in KNOWN_BAD]
    uncaught = [
        f"{slug} was caught for {KNOWN_BAD[slug].clause} under {each.caught} of {SEEDS} seeds"
        for slug, each in evidence.items()
        if slug in KNOWN_BAD and each.caught < SEEDS
    ]
    return absent + gone + uncaught


def lengths(evidence: dict[str, Evidence]) -> tuple[float, float]:
    """Median and 95th percentile of the lengths of all counterexamples under all seeds, in operations."""
    all_of_them = [length for each in evidence.values() for length in each.operations]
    return median(all_of_them), quantiles(all_of_them, n=20)[-1]


def store(evidence: dict[str, Evidence], path: Path = REPORT) -> None:
    """Write the evidence as JSON, one line a manager, in the order of the registry."""
    rows = (f"  {json.dumps(slug)}: {json.dumps(asdict(evidence[slug]))}" for slug in KNOWN_BAD if slug in evidence)
    path.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def load(path: Path = REPORT) -> dict[str, Evidence]:
    """The stored evidence."""
    return {slug: Evidence(**each) for slug, each in json.loads(path.read_text(encoding="utf-8")).items()}


def main(slugs: list[str]) -> int:
    """Compute and store; 1 if something is missing."""
    known = load() if slugs and REPORT.exists() else {}
    for slug, evidence in collect(slugs):
        print(f"{slug}: {evidence}", flush=True)
        known[slug] = evidence
        store(known)
    told = missing(load())
    middle, most = lengths(load())
    print("\n".join(told) or f"nothing is missing; operations: median {middle:g}, 95th percentile {most:g}")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
