"""Run stored vectors against a manager: its own answers are judged; the stored ones only show what a sound one did."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kvspec.conformance.contexts import CONTEXTS, Context
from kvspec.conformance.lockstep import CannotCreate
from kvspec.conformance.program import Counterexample, Program, run
from kvspec.conformance.trace import judge_trace, read_trace
from kvspec.conformance.vector_manifest import MANIFEST, digest
from kvspec.conformance.vector_programs import FOLDER
from kvspec.impl.adapter import Implementation
from kvspec.spec.clauses import CLAUSES, clauses_of
from kvspec.spec.declaration import Declaration


class BadVectors(Exception):
    """The stored vectors are damaged, or one that was asked for does not exist."""


@dataclass(frozen=True, slots=True)
class Vector:
    """A stored trace, as the manifest lists it."""

    slug: str
    path: Path
    context: Context
    filled_by: str
    operations: int
    clauses: tuple[str, ...]
    kills: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VectorResult:
    """`untried`: why the vector says nothing of this manager.  `counterexample`: what is broken, if anything.

    `unmade`: why no manager of the vector's world, which its declaration allows, could be made.
    """

    vector: Vector
    untried: str = ""
    counterexample: Counterexample | None = None
    unmade: str = ""


def load_vectors(folder: Path = FOLDER) -> list[Vector]:
    """All vectors of the manifest, their digests checked.  Raises BadVectors."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        for entry in (*manifest["traces"], *manifest["plain"]):
            if digest(folder / entry["file"]) != entry["sha256"]:
                raise BadVectors(f"{entry['file']} is not what the manifest says: it was edited, or is from elsewhere")
        return [_vector(folder, entry) for entry in manifest["traces"]]
    except (OSError, ValueError, KeyError) as error:
        raise BadVectors(f"the vectors cannot be read: {error}") from None


def _vector(folder: Path, entry: dict[str, object]) -> Vector:
    return Vector(
        str(entry["slug"]),
        folder / str(entry["file"]),
        CONTEXTS[str(entry["context"])],
        str(entry["filled_by"]),
        int(str(entry["operations"])),
        tuple(entry["clauses"]),  # type: ignore[arg-type]
        tuple(entry["kills"]),  # type: ignore[arg-type]
    )


def chosen(vectors: list[Vector], slugs: Iterable[str]) -> list[Vector]:
    """Those with these slugs, or all if there are none.  Raises BadVectors."""
    known = {vector.slug: vector for vector in vectors}
    if unknown := set(slugs) - known.keys():
        raise BadVectors(f"no such vector: {', '.join(sorted(unknown))}; `kvspec vectors` lists them")
    return [known[slug] for slug in slugs] or vectors


def run_vectors(implementation: Implementation, vectors: Iterable[Vector]) -> Iterator[VectorResult]:
    """Each vector on a fresh manager."""
    return (run_vector(implementation, vector) for vector in vectors)


def run_vector(implementation: Implementation, vector: Vector) -> VectorResult:
    """Judge the stored trace, then ask the manager the same and judge what it does."""
    judge_trace(vector.path)
    program = stored_program(vector)
    if reason := _impossible(implementation.declaration, vector.context, program):
        return VectorResult(vector, reason)
    claimed = claimed_clauses(implementation.declaration, vector.context)
    muted = frozenset(slug for slug, clause in CLAUSES.items() if clause.survivable) - claimed
    try:
        lockstep, violation = run(implementation, program, muted, vector.context.model)
    except CannotCreate as error:
        return VectorResult(vector, unmade=str(error))
    if violation is None:
        return VectorResult(vector)
    if violation.clause not in claimed:
        return VectorResult(vector, f"{violation.clause} is broken, but belongs to no declared profile")
    program = Program(program.world, tuple(lockstep.operations))
    return VectorResult(vector, "", Counterexample(program, violation, vector.context.name, muted))


def stored_program(vector: Vector) -> Program:
    """What is asked in a vector.  Raises TraceError."""
    trace = read_trace(vector.path)
    return Program(trace.header.world, tuple(record.request for record in trace.records))


def claimed_clauses(declaration: Declaration, context: Context) -> frozenset[str]:
    """The clauses that count for this manager in this context."""
    profiles = declaration.profiles & {*context.profiles, *({"robust"} if context.name == "steps" else ())}
    return frozenset(clause.slug for profile in profiles for clause in clauses_of(profile))


def _impossible(declaration: Declaration, context: Context, program: Program) -> str | None:
    if not declaration.profiles & set(context.profiles):
        return f"{', '.join(context.profiles)} is not declared"
    if reason := context.possible(declaration):
        return reason
    size = program.world.block_size
    if (not context.one and size < declaration.smallest_block_size) or size > declaration.largest_block_size:
        return f"block size {size} is not declared"
    return None
