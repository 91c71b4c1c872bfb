"""The lines of the pipe protocol: what is asked, and what may be answered.

One JSON object a line, one answer line for each request line, in order.  Requests may come many at once.  The five
operations and their outcomes are those of a trace (``kvspec.impl.encoding``); beside them there are

``hello``     who are you, and what do you declare?             -> ``hello``
``start``     drop any manager and make one for this world      -> ``started`` or ``failed``
``snapshot``  what does the manager look like? (optional)       -> ``snapshot``
``hash``      the chain hash of one block (optional)            -> ``hash``
``stop``      no more requests                                  -> ``stopped``, and the program ends

The end of the input is a ``stop`` without an answer.
"""

import json
from dataclasses import dataclass
from typing import Any

from kvspec.impl.encoding import (
    DECLARATION,
    INTEGER,
    INTEGERS,
    KEY,
    OPERATION,
    OUTCOME,
    SNAPSHOT,
    TEXT,
    TRUTH,
    WORLD,
    Choice,
    Codec,
    EncodingError,
    Shape,
    optional,
)
from kvspec.spec.declaration import Declaration
from kvspec.spec.operations import Failed, Nonsense, Operation, Outcome
from kvspec.spec.state import Snapshot, World

PROTOCOL = 1


@dataclass(frozen=True, slots=True)
class Hello:
    """Asks a program to introduce itself."""

    protocol: int = PROTOCOL


@dataclass(frozen=True, slots=True)
class Start:
    """Asks for a fresh manager."""

    world: World


@dataclass(frozen=True, slots=True)
class Look:
    """Asks for a snapshot."""


@dataclass(frozen=True, slots=True)
class HashBlock:
    """Asks for the chain hash of a block of `tokens` after the block with the hash `parent`."""

    tokens: tuple[int, ...]
    parent: int | None


@dataclass(frozen=True, slots=True)
class Stop:
    """Asks the program to end."""


@dataclass(frozen=True, slots=True)
class Introduction:
    """Who answers.  `snapshot`, `hash`: whether it answers these optional requests."""

    protocol: int
    version: str
    language: str
    declaration: Declaration
    snapshot: bool = False
    hash: bool = False


@dataclass(frozen=True, slots=True)
class Started:
    """There is a fresh manager."""


@dataclass(frozen=True, slots=True)
class BlockHash:
    """The chain hash."""

    key: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """The program ends."""


Request = Operation | Hello | Start | Look | HashBlock | Stop
Answer = Outcome | Introduction | Started | Snapshot | BlockHash | Stopped


def _codec(shape: Shape) -> Codec:
    return Codec(shape.write, shape.read)


REQUEST = Choice(
    "op",
    {
        "hello": Shape(Hello, {"protocol": INTEGER}),
        "start": Shape(Start, {"world": _codec(WORLD)}),
        **OPERATION.shapes,
        "snapshot": Shape(Look, {}),
        "hash": Shape(HashBlock, {"tokens": INTEGERS, "parent": optional(KEY)}),
        "stop": Shape(Stop, {}),
    },
)

ANSWER = Choice(
    "outcome",
    {
        "hello": Shape(
            Introduction,
            {
                "protocol": INTEGER,
                "version": TEXT,
                "language": TEXT,
                "declaration": _codec(DECLARATION),
                "snapshot": TRUTH,
                "hash": TRUTH,
            },
        ),
        "started": Shape(Started, {}),
        **{name: shape for name, shape in OUTCOME.shapes.items() if shape.kind is not Nonsense},
        "snapshot": SNAPSHOT,
        "hash": Shape(BlockHash, {"key": KEY}),
        "stopped": Shape(Stopped, {}),
    },
)


class NoAnswer(Exception):
    """A line is no answer of the protocol; the message says why."""


def request_line(request: Request) -> bytes:
    """A request as a line."""
    return json.dumps(REQUEST.write(request), separators=(",", ":")).encode() + b"\n"


def read_answer(line: bytes) -> Answer:
    """The answer on a line (without its line feed).  Raises NoAnswer."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise NoAnswer(f"standard output is for answers, one JSON object a line; there was {_shown(line)}") from None
    return decode_answer(value, line)


def decode_answer(value: Any, line: bytes) -> Answer:
    """The answer that a JSON value stands for.  Raises NoAnswer, which quotes `line`."""
    try:
        return ANSWER.read(value)  # type: ignore[no-any-return]
    except EncodingError as error:
        raise NoAnswer(f"unknown answer {_shown(line)}: {error}") from None


def failure(answer: Answer) -> str | None:
    """What a program says that failed, or None if it did not."""
    return answer.error if isinstance(answer, Failed) else None


def _shown(line: bytes) -> str:
    text = line.decode(errors="replace")
    return repr(text if len(text) <= 100 else text[:97] + "...")
