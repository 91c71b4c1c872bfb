"""The nouns: world, prefix, snapshot, and the state of the judge.

The judge's state holds a *shadow KV memory*: for each slot, which exact token prefix had its K/V written there last.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .declaration import Declaration
from .ledger import Ledger

EMPTY = -1  # "no prefix", "no block", "no hash"


@dataclass(frozen=True, slots=True)
class World:
    """A configuration: how many blocks, how many slots a block, and whether the chain hash is replaced by a weak one."""

    blocks: int
    block_size: int
    weak_hash: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a manager shows of itself; ``None`` where it does not show it.

    `free`: free block ids in their order.  `used`: ids in use.  `owned`: ids kept by the cache in a third pool.
    `references`, `hashes`, `contents`: per block, reference count, stored chain hash (``None`` if it has none), tokens.
    `index`: (key, block) pairs.
    """

    free: tuple[int, ...] | None = None
    used: tuple[int, ...] | None = None
    owned: tuple[int, ...] | None = None
    references: tuple[int, ...] | None = None
    hashes: tuple[int | None, ...] | None = None
    contents: tuple[tuple[int, ...], ...] | None = None
    index: tuple[tuple[int, int], ...] | None = None


class Prefixes:
    """Hash-consed prefixes: each distinct (parent prefix, token) is one small integer, so equality is exact and O(1)."""

    def __init__(self) -> None:
        self._children: dict[tuple[int, object], int] = {}
        self.parents: list[int] = []
        self.tokens: list[object] = []

    def child(self, parent: int, token: object) -> int:
        """The prefix that follows `parent` with `token`; a namespace is the token that follows EMPTY."""
        key = (parent, token)
        found = self._children.get(key)
        if found is None:
            found = self._children[key] = len(self.parents)
            self.parents.append(parent)
            self.tokens.append(token)
        return found

    def extend(self, parent: int, tokens: Iterable[int]) -> list[int]:
        """The prefixes that end at each of `tokens`, in order."""
        found = []
        for token in tokens:
            parent = self.child(parent, token)
            found.append(parent)
        return found

    def tail(self, prefix: int, count: int) -> tuple[int, tuple[object, ...]]:
        """Split off the last `count` tokens: the prefix before them, and the tokens."""
        tokens: list[object] = []
        for _ in range(count):
            tokens.append(self.tokens[prefix])
            prefix = self.parents[prefix]
        return prefix, tuple(reversed(tokens))

    def spell(self, prefix: int) -> tuple[int, ...]:
        """All tokens of a prefix, without its namespace."""
        tokens = []
        while prefix != EMPTY and self.parents[prefix] != EMPTY:
            tokens.append(self.tokens[prefix])
            prefix = self.parents[prefix]
        return tuple(reversed(tokens))  # type: ignore[arg-type]


Bar = tuple[str, str]  # why a block may not be found: the clause that says so, and the reason


class Owner(NamedTuple):
    """An owner outside, as the ledger names it: never equal to the name of a sequence."""

    name: str


@dataclass(slots=True)
class SequenceState:
    """A live sequence: its tokens, the prefix that ends at each of them, and how far it is.

    Positions below `computed` have their K/V in the slots of `table`; the next `reserved` ones are planned.  `unread` is
    the number of cached tokens that are still to be checked when the step ends (hits within a step).  `drafts`: so many
    of its last tokens are a guess.  `findable`: so many of its leading blocks must be found.  `bar`: why nothing that it
    computes may be found.  `admitted`: how many tokens it was admitted with.  What an owner outside keeps is a sequence,
    too, which computes nothing more.
    """

    tokens: list[int]
    prefixes: list[int]
    table: tuple[int, ...]
    computed: int
    reserved: int
    unread: int = 0
    drafts: int = 0
    findable: int = 0
    bar: Bar | None = None
    admitted: int = 0

    @property
    def confirmed(self) -> int:
        """The computed tokens that are no guess."""
        return min(self.computed, len(self.tokens) - self.drafts)

    def copy(self) -> "SequenceState":
        """An independent sequence."""
        return SequenceState(
            self.tokens[:],
            self.prefixes[:],
            self.table,
            self.computed,
            self.reserved,
            self.unread,
            self.drafts,
            self.findable,
            self.bar,
            self.admitted,
        )


@dataclass(slots=True)
class State:
    """All the judge knows: the shadow KV memory, the sequences, the block ledger, and what must still be findable.

    `blocks`: the blocks that may be handed out.  `memory`: slot -> prefix.  `copies`: block-aligned prefix -> intact
    published blocks that hold it.  `twinned`: prefixes of which two copies existed at once.  `freed`: free block ->
    (release number, table index), oldest first.  `shown`: the last snapshot.  `key_of`: the manager's chain hash of a
    block-aligned prefix, and None for one whose hash is not known (in a namespace).  `muted`: clauses that are noted
    instead of raised, so that one fault does not hide the next.  Of the extensions: `owners`, what owners outside keep;
    `barred`, blocks that may not be found, and why; `asked`, the last question and answer if that binds the next one.
    """

    world: World
    declaration: Declaration
    prefixes: Prefixes
    ledger: Ledger
    blocks: frozenset[int]
    memory: dict[int, int] = field(default_factory=dict)
    sequences: dict[str, SequenceState] = field(default_factory=dict)
    released: set[str] = field(default_factory=set)
    copies: dict[int, set[int]] = field(default_factory=dict)
    twinned: set[int] = field(default_factory=set)
    freed: dict[int, tuple[int, int]] = field(default_factory=dict)
    releases: int = 0
    shown: Snapshot | None = None
    key_of: Callable[[int], int | None] | None = None
    muted: frozenset[str] = frozenset()
    noted: list[Any] = field(default_factory=list)
    owners: dict[Owner, SequenceState] = field(default_factory=dict)
    barred: dict[int, Bar] = field(default_factory=dict)
    asked: tuple[Any, Any] | None = None

    def holder(self, name: Any) -> SequenceState:
        """Whoever holds a table entry: a live sequence, or an owner outside.  Raises KeyError."""
        return self.sequences.get(name) or self.owners[name]

    def copy(self) -> "State":
        """An independent state; prefixes are shared, they only grow."""
        return State(
            self.world,
            self.declaration,
            self.prefixes,
            self.ledger.copy(),
            self.blocks,
            dict(self.memory),
            {name: sequence.copy() for name, sequence in self.sequences.items()},
            set(self.released),
            {prefix: set(blocks) for prefix, blocks in self.copies.items()},
            set(self.twinned),
            dict(self.freed),
            self.releases,
            self.shown,
            self.key_of,
            self.muted,
            list(self.noted),
            {owner: kept.copy() for owner, kept in self.owners.items()},
            dict(self.barred),
            self.asked,
        )
