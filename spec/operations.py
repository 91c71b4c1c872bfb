"""The verbs: what a scheduler asks of a block manager, and what it may be told.

The timing of each verb (which tokens a sequence has when it is called) is the contract that most public reports got
wrong; ``README.md`` section "The timing contract" states it once for all of them.
"""

from dataclasses import dataclass
from enum import StrEnum

from .extensions import (
    Drop,
    Dropped,
    Extend,
    Extended,
    Extension,
    ExtensionOutcome,
    Probe,
    Probed,
    Reset,
    Retain,
    Retained,
    Truncate,
    Truncated,
    WasReset,
)

__all__ = [
    "Admit",
    "Admitted",
    "Append",
    "Appended",
    "Cause",
    "Commit",
    "Committed",
    "Drop",
    "Dropped",
    "Extend",
    "Extended",
    "Extension",
    "Failed",
    "Nonsense",
    "Operation",
    "Outcome",
    "Probe",
    "Probed",
    "Reason",
    "Refused",
    "Release",
    "Released",
    "Reserve",
    "Reserved",
    "Reset",
    "Retain",
    "Retained",
    "Truncate",
    "Truncated",
    "WasReset",
    "sequences_of",
]


class Cause(StrEnum):
    """Why a sequence is released."""

    FINISHED = "finished"
    PREEMPTED = "preempted"
    ABORTED = "aborted"


class Reason(StrEnum):
    """Why an operation is refused."""

    NO_SPACE = "no_space"  # not now: it may fit once other sequences are released
    TOO_LARGE = "too_large"  # never: it does not fit into the empty pool
    IN_USE = "in_use"  # the cache is not reset while blocks of it are held


@dataclass(frozen=True, slots=True)
class Admit:
    """A new or preempted sequence asks in with all its known tokens; reserve at most `limit` uncomputed ones."""

    sequence: str
    tokens: tuple[int, ...]
    limit: int
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Reserve:
    """The scheduler plans the next `count` tokens of a live sequence: room for their K/V must exist afterwards."""

    sequence: str
    count: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A step ends: the K/V of the reserved tokens of these sequences is now in their slots."""

    sequences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Append:
    """One sampled token joins a sequence whose tokens are all computed; its own K/V does not exist yet."""

    sequence: str
    token: int


@dataclass(frozen=True, slots=True)
class Release:
    """The sequence gives its blocks back; releasing it a second time must be harmless."""

    sequence: str
    cause: Cause = Cause.FINISHED


Operation = Admit | Reserve | Commit | Append | Release | Extension


def sequences_of(operation: Operation) -> tuple[str, ...]:
    """The sequences that an operation names."""
    if isinstance(operation, Commit):
        return operation.sequences
    return () if isinstance(operation, Reset | Probe | Drop) else (operation.sequence,)


@dataclass(frozen=True, slots=True)
class Admitted:
    """`cached` tokens were found, `reserved` more are planned, `table` lists the blocks of the sequence."""

    cached: int
    reserved: int
    table: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reserved:
    """The block table after the reservation."""

    table: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Committed:
    """The block table of each committed sequence after the step, in the order of the request."""

    tables: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Appended:
    """The token joined."""


@dataclass(frozen=True, slots=True)
class Released:
    """The blocks were given back."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The manager said no."""

    reason: Reason = Reason.NO_SPACE


@dataclass(frozen=True, slots=True)
class Failed:
    """The manager raised; `promised` tells whether it had said yes to this very request just before.

    `clear` tells whether the error names bad input (ValueError, TypeError, KeyError with a message, or the manager's
    own exception), as opposed to an accident (IndexError, a bare assertion, AttributeError).
    """

    error: str
    promised: bool = False
    clear: bool = False

    @property
    def words(self) -> str:
        """``failed: …`` with the error, or ``gave no answer: …`` for an error that begins with ``nothing: ``."""
        silent = self.error.startswith("nothing: ")
        return f"gave no answer: {self.error.removeprefix('nothing: ')}" if silent else f"failed: {self.error}"


@dataclass(frozen=True, slots=True)
class Nonsense:
    """The manager answered something that is no answer: wrong type, out of range, negative."""

    answer: str


Outcome = Admitted | Reserved | Committed | Appended | Released | Refused | Failed | Nonsense | ExtensionOutcome
