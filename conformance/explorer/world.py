"""Small worlds: what a scheduler can ask for in them, as a finite numbered alphabet of operations.

Every program over the alphabet is explored.  Names of sequences and numbers of tokens are symmetric, so a state names its
sequences and tokens in its own way (`Renaming`); block numbers are not, a manager may depend on them.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import permutations, product

from kvspec.spec import operations as op
from kvspec.spec.judge import illegal
from kvspec.spec.state import EMPTY, Prefixes, State, World

NAMES = ("A", "B", "C", "D")
NO_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class SmallWorld:
    """`blocks` of `block_size`, at most `sequences` live ones, `tokens` distinct tokens, at most `max_length` in a sequence.

    `partial_commits`: any part of the uncomputed tokens may be reserved and any part of a step committed, in any order,
    with appends in between (where hits within a step are declared, steps are whole all the same); else all uncomputed
    tokens are reserved, a step is committed as a whole, and tokens are appended between steps.  `weak_hash`: the chain
    hash collides; tokens then are not symmetric.
    """

    blocks: int
    block_size: int
    sequences: int = 2
    tokens: int = 2
    max_length: int = 4
    partial_commits: bool = False
    weak_hash: bool = False

    def __post_init__(self) -> None:
        smallest = min(self.blocks, self.block_size, self.sequences, self.tokens, self.max_length)
        if smallest < 1 or self.sequences > len(NAMES):
            raise ValueError(f"a small world has at least one of everything and at most {len(NAMES)} sequences: {self}")

    @property
    def world(self) -> World:
        """What the manager is created for."""
        return World(self.blocks, self.block_size, self.weak_hash)

    @property
    def label(self) -> str:
        """A short name: blocks x block size, sequences, tokens, length."""
        marks = ("", " partial")[self.partial_commits] + ("", " weak hash")[self.weak_hash]
        return f"{self.blocks}x{self.block_size} s{self.sequences} t{self.tokens} l{self.max_length}{marks}"

    def as_data(self) -> dict[str, object]:
        """The fields, in order."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Renaming:
    """A bijection of sequence names and of token numbers, by position."""

    names: tuple[int, ...]
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Possible:
    """The numbers of the operations that may be asked for, how many there are of each kind, which release again."""

    operations: list[int]
    kinds: tuple[tuple[str, int], ...]
    second_releases: frozenset[int]


class PrefixNames(dict[int, int]):
    """Prefix -> the prefix with other token numbers; computed when it is asked for.  Negative numbers stay."""

    def __init__(self, prefixes: Prefixes, tokens: tuple[int, ...]) -> None:
        self.prefixes, self.tokens = prefixes, tokens

    def __missing__(self, prefix: int) -> int:
        renamed = prefix if prefix < 0 or self.prefixes.parents[prefix] == EMPTY else self._child(prefix)
        self[prefix] = renamed
        return renamed

    def _child(self, prefix: int) -> int:
        token: int = self.prefixes.tokens[prefix]  # type: ignore[assignment]
        return self.prefixes.child(self[self.prefixes.parents[prefix]], self.tokens[token])


class Alphabet:
    """All operations of a small world, numbered, and what becomes of each under a renaming.

    `operations[i]` is an operation, `renamings[r]` a renaming, `renamed[r][i]` the number of operation `i` renamed by `r`,
    `inverse[r]` the inverse of `r`, `after[q][r]` the renaming that does `r` and then `q`.
    """

    def __init__(self, world: SmallWorld) -> None:
        self.world = world
        self.names = NAMES[: world.sequences]
        self.nothing = (EMPTY,) * world.block_size
        self._spelled: dict[int, tuple[str, tuple[int, ...], tuple[int, ...]]] = {}
        self._different: dict[int, tuple[int, ...]] = {}
        self._renamers: dict[tuple[int, ...], PrefixNames] = {}
        self._known: dict[object, Possible] = {}
        self.operations: list[op.Operation] = list(self._all())
        self.number = {operation: index for index, operation in enumerate(self.operations)}
        orders = product(permutations(range(world.sequences)), permutations(range(world.tokens)))
        self.renamings = [Renaming(*pair) for pair in orders]
        self._place = {renaming: index for index, renaming in enumerate(self.renamings)}
        self.renamed = [[self.number[self._rename(r, each)] for each in self.operations] for r in self.renamings]
        self.after = [[self._place[_compose(q, r)] for r in self.renamings] for q in self.renamings]
        self.inverse = [row.index(0) for row in zip(*self.after, strict=True)]

    def spell(self, prefixes: Prefixes, prefix: int) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
        """Namespace and tokens of a prefix, and the prefixes that end at each token of its last block."""
        found = self._spelled.get(prefix)
        if found is None:
            chain, each = [], prefix
            while prefixes.parents[each] != EMPTY:
                chain.append(each)
                each = prefixes.parents[each]
            last = tuple(reversed(chain[: self.world.block_size]))
            found = self._spelled[prefix] = (str(prefixes.tokens[each]), prefixes.spell(prefix), last)
        return found

    def different(self, prefixes: Prefixes, prefix: int) -> tuple[int, ...]:
        """The different tokens of a prefix, in the order in which they first occur."""
        found = self._different.get(prefix)
        if found is None:
            tokens = () if prefix < 0 else prefixes.spell(prefix)
            found = self._different[prefix] = tuple(dict.fromkeys(tokens))
        return found

    def renamer(self, prefixes: Prefixes, tokens: tuple[int, ...]) -> "PrefixNames":
        """The number of each prefix after its tokens were renamed."""
        found = self._renamers.get(tokens)
        if found is None:
            found = self._renamers[tokens] = PrefixNames(prefixes, tokens)
        return found

    def place(self, names: tuple[int, ...], tokens: tuple[int, ...]) -> int:
        """The number of a renaming."""
        return self._place[Renaming(names, tokens)]

    def _all(self) -> Iterator[op.Operation]:
        for name in self.names:
            for tokens in self.strings:
                yield from (op.Admit(name, tokens, limit) for limit in self._limits(len(tokens)))
        for size in range(1, len(self.names) + 1):
            yield from (op.Commit(names) for names in permutations(self.names, size))
        for name in self.names:
            yield from (op.Reserve(name, count) for count in range(1, self.world.max_length + 1))
            yield from (op.Append(name, token) for token in range(self.world.tokens))
            yield op.Release(name)

    @cached_property
    def strings(self) -> list[tuple[int, ...]]:
        """All token strings, shortest first."""
        lengths = range(1, self.world.max_length + 1)
        return [string for length in lengths for string in product(range(self.world.tokens), repeat=length)]

    def _limits(self, length: int) -> list[int]:
        return [NO_LIMIT, *range(1, length)] if self.world.partial_commits else [NO_LIMIT]

    def _rename(self, renaming: Renaming, operation: op.Operation) -> op.Operation:
        if isinstance(operation, op.Commit):
            return op.Commit(tuple(self.rename_name(renaming, name) for name in operation.sequences))
        assert not isinstance(operation, op.Extension), "small worlds have the five operations"
        name = self.rename_name(renaming, operation.sequence)
        if isinstance(operation, op.Admit):
            return op.Admit(name, tuple(renaming.tokens[token] for token in operation.tokens), operation.limit)
        if isinstance(operation, op.Append):
            return op.Append(name, renaming.tokens[operation.token])
        return op.Reserve(name, operation.count) if isinstance(operation, op.Reserve) else op.Release(name)

    def rename_name(self, renaming: Renaming, name: str) -> str:
        """The name that stands for `name`."""
        return self.names[renaming.names[self.names.index(name)]]

    def possible(self, state: State) -> Possible:
        """What a scheduler may ask for in `state`; of the names that are not live one serves for all."""
        looks = tuple([(name, len(s.tokens), s.computed, s.reserved, s.unread) for name, s in state.sequences.items()])
        key = (looks, tuple(state.released))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._possible_anew(state)
        return found

    def _possible_anew(self, state: State) -> Possible:
        legal = [operation for operation in self._possible(state) if not illegal(state, operation)]
        kinds = Counter(type(operation).__name__.lower() for operation in legal)
        again = [each for each in legal if isinstance(each, op.Release) and each.sequence not in state.sequences]
        numbers = [self.number[operation] for operation in legal]
        return Possible(numbers, tuple(sorted(kinds.items())), frozenset(self.number[each] for each in again))

    def _possible(self, state: State) -> Iterator[op.Operation]:
        yield from self._commits(state)
        yield from self._progress(state)
        yield from self._admits(state)
        gone = [name for name in self.names if name in state.released]
        yield from (op.Release(name) for name in (*state.sequences, *gone[:1]))

    def _admits(self, state: State) -> Iterator[op.Operation]:
        absent = [name for name in self.names if name not in state.sequences]
        new = [name for name in absent if name not in state.released]
        again = [name for name in absent if name in state.released]
        for name in (*new, *again)[:1]:
            for tokens in self.strings:
                yield from (op.Admit(name, tokens, limit) for limit in self._limits(len(tokens)))

    def _commits(self, state: State) -> Iterator[op.Operation]:
        flying = [name for name, sequence in state.sequences.items() if sequence.reserved or sequence.unread]
        partial = self.world.partial_commits and not state.declaration.same_step_hit
        for size in range(1 if partial else len(flying), len(flying) + 1):
            yield from (op.Commit(names) for names in permutations(flying, size) if names)

    def _progress(self, state: State) -> Iterator[op.Operation]:
        partial = self.world.partial_commits
        free = partial and not state.declaration.same_step_hit
        between = free or not any(sequence.reserved or sequence.unread for sequence in state.sequences.values())
        for name, sequence in state.sequences.items():
            left = len(sequence.tokens) - sequence.computed
            yield from (op.Reserve(name, count) for count in range(1 if partial else max(left, 1), left + 1))
            if len(sequence.tokens) < self.world.max_length and between:
                yield from (op.Append(name, token) for token in range(self.world.tokens))


def _compose(outer: Renaming, inner: Renaming) -> Renaming:
    names = tuple(outer.names[name] for name in inner.names)
    return Renaming(names, tuple(outer.tokens[token] for token in inner.tokens))
