"""Traces are written line by line; the footer last, so that a writer that died left no verdict."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from kvspec import spec
from kvspec.conformance.hash_check import check_hash
from kvspec.conformance.lockstep import Lockstep
from kvspec.conformance.program import Counterexample, Program, run
from kvspec.conformance.trace.digest import Digest
from kvspec.conformance.trace.encoding import OPERATION, WORLD
from kvspec.conformance.trace.format import (
    FOOTER,
    FORMAT_VERSION,
    HEADER,
    RECORD,
    WITHOUT_OPERATIONS,
    Footer,
    Header,
    Record,
)
from kvspec.impl.adapter import Implementation
from kvspec.spec.judge import Violation
from kvspec.spec.operations import Operation, Outcome
from kvspec.spec.state import Snapshot, World

KNOWN_HASH = "xxh64"  # nano-vllm's chain hash, the one that ``hash_check.reference_hash`` computes


class NotRepeatable(Exception):
    """The implementation does not break the same clause when the program runs again."""


class TraceWriter:
    """Writes one trace: `add` per operation, then `close` with the verdict; without `close` there is no footer."""

    def __init__(self, file: BinaryIO, header: Header) -> None:
        self._file, self._digest, self._count = file, Digest(), 0
        self._write({"kvspec": "trace", **HEADER.write(header)})

    def add(self, request: Operation, answer: Outcome, snapshot: Snapshot | None = None) -> None:
        """Append one operation."""
        self._count += 1
        self._write(RECORD.write(Record(self._count, request, answer, snapshot)))

    def close(self, violation: Violation | None) -> None:
        """Write the footer."""
        verdict, because = (violation.clause, violation.because) if violation else (None, None)
        digest = self._digest.close(self._count, verdict, because)
        self._write(FOOTER.write(Footer(self._count, verdict, because, digest)))

    def _write(self, value: dict[str, Any]) -> None:
        line = to_line(value)
        self._digest.add(line)
        self._file.write(line)


def to_line(value: dict[str, Any]) -> bytes:
    """One JSON object as one line."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def slug_of(clause: str, program: Program, context: str) -> str:
    """A name for a counterexample: the clause, and four digits that follow from the program."""
    asked = [WORLD.write(program.world), [OPERATION.write(operation) for operation in program.operations], context]
    return f"{clause.lower()}-{hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:4]}"


def header_of(
    implementation: Implementation,
    world: World,
    slug: str,
    context: str,
    seed: int = 0,
    muted: Iterable[str] = (),
    shortest: bool = False,
    snapshot: Snapshot | None = None,
) -> Header:
    """The header of a trace of `implementation`."""
    return Header(
        FORMAT_VERSION,
        spec.__version__,
        slug,
        implementation.name,
        implementation.target,
        implementation.declaration,
        world,
        context,
        seed,
        frozenset(muted),
        shortest,
        None if check_hash(implementation) else KNOWN_HASH,
        snapshot,
    )


def write_trace(path: Path, implementation: Implementation, found: Counterexample, seed: int = 0) -> Path:
    """Run a counterexample once more and store it; returns `path`.

    Raises NotRepeatable if the clause does not break again, lockstep.CannotCreate if no manager can be made.
    """
    program, clause = found.program, found.violation.clause
    slug = slug_of(clause, program, found.context)
    if found.context in WITHOUT_OPERATIONS:
        header = header_of(implementation, program.world, slug, found.context, seed)
        return _store(path, header, (), found.violation)
    lockstep, violation = run(implementation, program, found.muted, clause == "NANO-ORDER")
    if violation is None or violation.clause != clause:
        again = f"breaks {violation.clause}" if violation else "breaks nothing"
        raise NotRepeatable(f"the program broke {clause}, but {again} when it runs again")
    first = Lockstep(implementation, program.world).look()
    header = header_of(implementation, program.world, slug, found.context, seed, found.muted, found.shortest, first)
    return write_lockstep(path, header, lockstep, violation)


def write_lockstep(path: Path, header: Header, lockstep: Lockstep, violation: Violation | None) -> Path:
    """Store what a lockstep has recorded, with this verdict; returns `path`."""
    records = zip(lockstep.operations, lockstep.outcomes, lockstep.snapshots, strict=True)
    return _store(path, header, records, violation)


def _store(
    path: Path,
    header: Header,
    records: Iterable[tuple[Operation, Outcome, Snapshot | None]],
    violation: Violation | None,
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        writer = TraceWriter(file, header)
        for record in records:
            writer.add(*record)
        writer.close(violation)
    return path
