"""What a trace consists of: a header, one record an operation, a footer; and the one error that all readers raise."""

from dataclasses import dataclass

from kvspec.conformance.trace.encoding import (
    DECLARATION,
    INTEGER,
    OPERATION,
    OUTCOME,
    SNAPSHOT,
    TEXT,
    TRUTH,
    WORLD,
    Codec,
    Shape,
    members,
    optional,
)
from kvspec.spec.declaration import Declaration
from kvspec.spec.operations import Operation, Outcome
from kvspec.spec.state import Snapshot, World

FORMAT_VERSION = 1  # the version of the trace format; changes with every change of a field

# Contexts whose clauses no program shows: their traces have no operations, and name the clause only.
WITHOUT_OPERATIONS = ("robust", "hash")


class TraceError(Exception):
    """The trace proves nothing: it is truncated, reordered, edited, empty, malformed, or of another version."""


@dataclass(frozen=True, slots=True)
class Header:
    """Where a trace comes from.

    `implementation`: the name of the manager.  `target`: how it was loaded.  `muted`: clauses that were noted only.
    `shortest`: proved to be the shortest program of its world.  `chain_hash`: the name of the chain hash if it is a
    known one, so that the trace can be judged by itself.  `snapshot`: of the manager before the first operation.
    """

    format: int
    spec: str
    slug: str
    implementation: str
    target: str
    declaration: Declaration
    world: World
    context: str
    seed: int
    muted: frozenset[str]
    shortest: bool = False
    chain_hash: str | None = None
    snapshot: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One operation: its number from 1, what was asked, what was answered, what the manager then showed."""

    number: int
    request: Operation
    answer: Outcome
    snapshot: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class Footer:
    """What the trace claims of itself.

    `operations`: how many.  `verdict`: the clause which the last operation breaks, or None.  `because`: in words.
    `digest`: see ``digest.py``.
    """

    operations: int
    verdict: str | None
    because: str | None
    digest: str


@dataclass(frozen=True, slots=True)
class Trace:
    """A complete trace in memory."""

    header: Header
    records: tuple[Record, ...]
    footer: Footer


def _shape_codec(shape: object) -> Codec:
    return Codec(shape.write, shape.read)  # type: ignore[attr-defined]


_SNAPSHOT = optional(_shape_codec(SNAPSHOT))

HEADER = Shape(
    Header,
    {
        "format": INTEGER,
        "spec": TEXT,
        "slug": TEXT,
        "implementation": TEXT,
        "target": TEXT,
        "declaration": _shape_codec(DECLARATION),
        "world": _shape_codec(WORLD),
        "context": TEXT,
        "seed": INTEGER,
        "muted": members(TEXT),
        "shortest": TRUTH,
        "chain_hash": optional(TEXT),
        "snapshot": _SNAPSHOT,
    },
)

RECORD = Shape(
    Record,
    {"number": INTEGER, "request": _shape_codec(OPERATION), "answer": _shape_codec(OUTCOME), "snapshot": _SNAPSHOT},
    sparse=True,
)

FOOTER = Shape(Footer, {"operations": INTEGER, "verdict": optional(TEXT), "because": optional(TEXT), "digest": TEXT})
