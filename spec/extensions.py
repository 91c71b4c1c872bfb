"""The verbs of the extensions: what only some engines can do, each belonging to a profile that an adapter declares.

``several``   tokens join several at a time (``Extend``)
``truncate``  draft tokens of speculative decoding join (``Extend`` with `drafts`), and are rejected or confirmed
``reset``     the cache is emptied, for instance because the weights have changed
``probe``     a question that changes nothing: how much of this prompt is cached, and would it fit?
``owners``    somebody outside (a transfer, a connector, an offload) keeps the computed blocks of a sequence

An adapter has the method of that name; one that does not declare the profile is never asked.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Extend:
    """Several tokens join a sequence; their K/V does not exist yet.

    `drafts`: they are a guess.  Their K/V is computed like that of others, but no block that holds one of them may be
    findable until ``Truncate`` confirms it.
    """

    sequence: str
    tokens: tuple[int, ...]
    drafts: bool = False


@dataclass(frozen=True, slots=True)
class Truncate:
    """Of the draft tokens those below `length` are confirmed and become ordinary; the others never were."""

    sequence: str
    length: int


@dataclass(frozen=True, slots=True)
class Reset:
    """Nothing that is cached may be hit any more: the weights have changed."""


@dataclass(frozen=True, slots=True)
class Probe:
    """How much of these tokens is cached, and would ``Admit`` with the same arguments fit now?"""

    tokens: tuple[int, ...]
    limit: int
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Retain:
    """An owner outside keeps the full computed blocks of a live sequence, whatever becomes of that."""

    sequence: str
    owner: str


@dataclass(frozen=True, slots=True)
class Drop:
    """The owner lets go of all that it keeps."""

    owner: str


Extension = Extend | Truncate | Reset | Probe | Retain | Drop


@dataclass(frozen=True, slots=True)
class Extended:
    """The tokens joined."""


@dataclass(frozen=True, slots=True)
class Truncated:
    """`computed` tokens of the sequence have their K/V; `table` lists its blocks."""

    computed: int
    table: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WasReset:
    """The cache is empty."""


@dataclass(frozen=True, slots=True)
class Probed:
    """`cached` tokens would be found; `fits`: the admission would not be refused."""

    cached: int
    fits: bool


@dataclass(frozen=True, slots=True)
class Retained:
    """The blocks that the owner keeps: the leading entries of the sequence's table that are full and computed."""

    table: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Dropped:
    """The owner keeps nothing any more."""


ExtensionOutcome = Extended | Truncated | WasReset | Probed | Retained | Dropped
