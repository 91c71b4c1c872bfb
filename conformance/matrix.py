"""The matrix of clauses and known-bad managers: who breaks what, and which clause has a manager that only it catches."""

import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from kvspec.conformance.campaign import run_campaign
from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.hash_check import check_hash
from kvspec.conformance.known_bad_run import WORKERS, declared_clauses
from kvspec.conformance.robustness import check_robust
from kvspec.impl.known_bad import KNOWN_BAD
from kvspec.spec.clauses import CLAUSES

PROGRAMS = 250  # a context
REPORT = Path(__file__).parent / "reports" / "matrix.json"

Broken = dict[str, tuple[str, ...]]  # clause -> contexts in which it breaks


@dataclass(frozen=True, slots=True)
class Matrix:
    """`broken`: what each known-bad manager breaks, of all the clauses that it claims."""

    broken: dict[str, Broken]

    def only(self, slug: str) -> bool:
        """Does the manager break its own clause, and nothing else but what that implies?"""
        clause, broken = KNOWN_BAD[slug].clause, self.broken[slug].keys()
        return clause in broken and broken <= {clause, *CLAUSES[clause].implies}

    def killers(self, clause: str) -> list[str]:
        """The known-bad managers which only `clause` (and what it implies) catches."""
        return [slug for slug in self.broken if KNOWN_BAD[slug].clause == clause and self.only(slug)]

    def missing(self) -> list[str]:
        """What is missing, a sentence each."""
        gone = [
            f"{slug} is in the matrix, but no known-bad manager has that name"
            for slug in self.broken.keys() - KNOWN_BAD.keys()
        ]
        new = [
            f"known-bad manager {slug} is not in the matrix: compute it again"
            for slug in KNOWN_BAD.keys() - self.broken.keys()
        ]
        return (
            gone
            or new
            or self._uncaught()
            + [
                f"{clause} has no known-bad manager that only it (and what it implies) catches"
                for clause in CLAUSES
                if not self.killers(clause)
            ]
        )

    def _uncaught(self) -> list[str]:
        return [
            f"known-bad manager {slug} does not break {KNOWN_BAD[slug].clause}"
            for slug, broken in self.broken.items()
            if KNOWN_BAD[slug].clause not in broken
        ]


def compute(
    slugs: tuple[str, ...] = (),
    seed: int = 0,
    programs: int = PROGRAMS,
    progress: Callable[[str], None] | None = None,
    workers: int = WORKERS,
) -> Matrix:
    """Run every known-bad manager in every context of its profiles."""
    chosen = slugs or tuple(KNOWN_BAD)
    broken: dict[str, Broken] = {}
    with ProcessPoolExecutor(workers) as pool:
        futures = {pool.submit(broken_by, slug, seed, programs): slug for slug in chosen}
        for future in as_completed(futures):
            broken[futures[future]] = future.result()
            if progress:
                progress(futures[future])
    return Matrix({slug: broken[slug] for slug in chosen})


def broken_by(slug: str, seed: int = 0, programs: int = PROGRAMS) -> Broken:
    """All the clauses of its profiles that one known-bad manager breaks, in the order of the registry."""
    bad = KNOWN_BAD[slug]
    implementation, found = bad.implementation(), dict[str, list[str]]()
    profiles = implementation.declaration.profiles
    for context in CONTEXTS.values():
        if profiles.intersection(context.profiles) and not context.possible(implementation.declaration):
            for clause in run_campaign(implementation, context, seed, programs).found:
                found.setdefault(clause, []).append(context.name)
    if "robust" in profiles:
        for clause, violation in check_robust(implementation).items():
            if violation:
                found.setdefault(clause, []).append("robust")
    if "hash" in profiles and check_hash(implementation):
        found["HASH-BYTES"] = ["hash"]
    declared = declared_clauses(bad)
    return {clause: tuple(found[clause]) for clause in CLAUSES if clause in found and clause in declared}


def store(matrix: Matrix, path: Path = REPORT) -> None:
    """Write the matrix as JSON, one line a manager, and as a table in Markdown beside it."""
    path.parent.mkdir(exist_ok=True)
    rows = (f"  {json.dumps(slug)}: {json.dumps(broken)}" for slug, broken in matrix.broken.items())
    path.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    path.with_suffix(".md").write_text(markdown(matrix), encoding="utf-8")


def load(path: Path = REPORT) -> Matrix:
    """The stored matrix."""
    read = json.loads(path.read_text(encoding="utf-8"))
    return Matrix({slug: {clause: tuple(seen) for clause, seen in broken.items()} for slug, broken in read.items()})


def markdown(matrix: Matrix) -> str:
    """A section for each clause: its sentence, and the known-bad managers that must be caught for it."""
    lines = [
        "# Which known-bad manager breaks which clause",
        "",
        "Computed by `python -m kvspec.conformance.matrix`.  A manager is **bold** if nothing but its own clause, and what",
        "that implies, catches it.",
    ]
    for clause in CLAUSES.values():
        lines += ["", f"## {clause.slug}", "", clause.sentence[0].upper() + clause.sentence[1:] + "."]
        if clause.implies:
            lines[-1] += f"  A breach may also break {', '.join(clause.implies)}."
        lines += ["", "| known-bad manager | fault | stands for | base | breaks |", "|---|---|---|---|---|"]
        lines += [_line(matrix, slug) for slug in matrix.broken if KNOWN_BAD[slug].clause == clause.slug]
    return "\n".join(lines) + "\n"


def _line(matrix: Matrix, slug: str) -> str:
    bad = KNOWN_BAD[slug]
    name = f"**{slug}**" if matrix.only(slug) else slug
    broken = ", ".join(f"{clause} ({' '.join(contexts)})" for clause, contexts in matrix.broken[slug].items())
    return f"| {name} | {bad.sentence} | {', '.join(bad.reports)} | {bad.base} | {broken} |"


if __name__ == "__main__":
    computed = compute(progress=lambda slug: print(slug, flush=True))
    store(computed)
    print("\n".join(computed.missing()) or "nothing is missing")
