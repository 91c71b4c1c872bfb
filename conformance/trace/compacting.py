"""Forget the prefixes that nothing refers to any more, so that memory follows live state and not the length of a trace.

Prefixes are numbers that are given once, and the judge only adds to them.  What is kept: every prefix in a slot, of a
live sequence, or known to be findable, and all that lie before one of these (a prompt that comes again must meet the
very numbers of its tail).  The numbers change; what they stand for, and so every later verdict, does not.
"""

from collections.abc import Iterable

from kvspec.conformance.lockstep import key_function
from kvspec.impl.adapter import Implementation
from kvspec.spec.state import EMPTY, Prefixes, State


def live_prefixes(state: State) -> set[int]:
    """All prefixes that a later verdict may depend on."""
    live: set[int] = set()
    for prefix in _named(state):
        while prefix > EMPTY and prefix not in live:
            live.add(prefix)
            prefix = state.prefixes.parents[prefix]
    return live


def _named(state: State) -> Iterable[int]:
    ledger = state.ledger
    yield from state.memory.values()
    for sequence in (*state.sequences.values(), *state.owners.values()):
        yield from sequence.prefixes[-1:]
    yield from state.copies
    yield from state.twinned
    for numbers in (ledger.hash, ledger.content, ledger.identity):
        yield from numbers.values()
    yield from (prefix for prefix, block in ledger.index.items() if block != EMPTY)


def compact(state: State, implementation: Implementation | None = None) -> int:
    """Renumber the live prefixes, in place; how many are left.

    `implementation`: whose chain hash is known; it is asked for the keys of the new numbers.
    """
    new, old = Prefixes(), state.prefixes
    number = {EMPTY: EMPTY, EMPTY - 1: EMPTY - 1}
    for prefix in sorted(live_prefixes(state)):
        number[prefix] = new.child(number[old.parents[prefix]], old.tokens[prefix])
    state.prefixes = new
    _renumber(state, number)
    if implementation is not None and state.key_of is not None:
        state.key_of = key_function(implementation, state)
    return len(new.parents)


def _renumber(state: State, number: dict[int, int]) -> None:
    for slot, prefix in state.memory.items():
        state.memory[slot] = number[prefix]
    for sequence in (*state.sequences.values(), *state.owners.values()):
        sequence.prefixes = [number[prefix] for prefix in sequence.prefixes]
    state.copies = {number[prefix]: blocks for prefix, blocks in state.copies.items()}
    state.twinned = {number[prefix] for prefix in state.twinned}
    ledger = state.ledger
    for values in (ledger.hash, ledger.content, ledger.identity):
        for block, prefix in values.items():
            values[block] = number[prefix]
    index = {number[prefix]: block for prefix, block in ledger.index.items() if block != EMPTY}
    ledger.index.clear()
    ledger.index.update(index)


class Compactor:
    """Compacts when the prefixes have doubled since the last time, so that the work stays linear in the trace."""

    def __init__(self, state: State, implementation: Implementation | None = None, least: int = 50_000) -> None:
        self._state, self._implementation = state, implementation
        self._least = self._limit = least
        state.released = RecentNames()

    def __call__(self) -> None:
        """Compact if it is time."""
        if len(self._state.prefixes.parents) > self._limit:
            self._limit = 2 * compact(self._state, self._implementation) + self._least


class RecentNames(set[str]):
    """The names of released sequences; only so many of the latest are kept."""

    def __init__(self, most: int = 1 << 16) -> None:
        super().__init__()
        self._most, self._order = most, dict[str, None]()

    def add(self, name: str) -> None:
        """As of a set; the oldest name goes if there are too many."""
        super().add(name)
        self._order.pop(name, None)
        self._order[name] = None
        if len(self._order) > self._most:
            oldest = next(iter(self._order))
            del self._order[oldest]
            super().discard(oldest)

    def discard(self, name: object) -> None:
        """As of a set."""
        super().discard(name)
        self._order.pop(str(name), None)
