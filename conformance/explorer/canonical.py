"""The judge's state up to the names of sequences, tokens and blocks: equal forms have equal futures.

Of the judge's state only this decides what it will rule:

* each live sequence: namespace, tokens, block table, computed, reserved, unread tokens, entries that the ledger counts
  as computed;
* each block that was ever used: the prefix whose K/V it holds in full (if any), whether the ledger's index names it,
  whether it must be found, whether a twin existed, slots that differ from that prefix, and, if it is free, with which
  release it became free (numbered densely, oldest first) and how far back it was in its table then (likewise);
* how many blocks were never used, and how many names were released and are not live.

Slots of a block that holds no full block of tokens are left out: such a block can never be hit (``claim`` requires the
key), and a sequence reads only what it wrote there itself.
"""

import marshal
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

from kvspec.conformance.explorer.world import Alphabet
from kvspec.spec.state import EMPTY, SequenceState, State


@dataclass(frozen=True, slots=True)
class Numbering:
    """One way to number a state canonically.

    `names`: positions of the names, live ones first.  `tokens[t]`: canonical number of token `t`; the first `seen` ones
    occur.  `blocks`: all blocks that were ever used, in canonical order.
    """

    names: tuple[int, ...]
    tokens: tuple[int, ...]
    seen: int
    blocks: tuple[int, ...]


def canonical(state: State, alphabet: Alphabet) -> tuple[bytes, list[Numbering]]:
    """The canonical form, and all numberings that give it (more than one if the state is symmetric in itself)."""
    best, found = b"", []
    for order in _orders(state):
        form, numbering = _form(state, alphabet, order)
        if not found or form < best:
            best, found = form, [numbering]
        elif form == best:
            found.append(numbering)
    return best, found


def _orders(state: State) -> Iterator[list[str]]:
    """The orders of the live sequences that sort what does not depend on any name."""
    if len(state.sequences) < 2:
        yield list(state.sequences)
        return
    groups: dict[Any, list[str]] = {}
    for name, each in state.sequences.items():
        groups.setdefault((len(each.tokens), each.computed, each.reserved, each.unread, len(each.table)), []).append(name)
    for choice in product(*(permutations(groups[kind]) for kind in sorted(groups))):
        yield [name for part in choice for name in part]


def _form(state: State, alphabet: Alphabet, order: list[str]) -> tuple[bytes, Numbering]:
    fixed = range(alphabet.world.tokens) if state.world.weak_hash else ()
    tokens = {token: token for token in fixed}
    blocks: dict[int, int] = {}
    sequences = [_sequence(state, name, state.sequences[name], tokens, blocks) for name in order]
    for block, (release, _) in state.freed.items():
        if release:
            blocks.setdefault(block, len(blocks))
    freed = _freed(state)
    contents = [_block(state, block, tokens, freed) for block in blocks]
    gone = [name for name in alphabet.names if name in state.released]
    form = marshal.dumps((sequences, contents, len(state.blocks), len(gone)), 2)
    return form, Numbering(_names(alphabet, order, gone), *_tokens(alphabet, tokens), tuple(blocks))


def _sequence(state: State, name: str, sequence: SequenceState, tokens: dict[int, int], blocks: dict[int, int]) -> Any:
    spelled = [tokens.setdefault(token, len(tokens)) for token in sequence.tokens]
    table = [blocks.setdefault(block, len(blocks)) for block in sequence.table]
    namespace = state.prefixes.tokens[_root(state, sequence.prefixes[0])]
    return namespace, spelled, table, sequence.computed, sequence.reserved, sequence.unread, state.ledger.computed[name]


def _block(state: State, block: int, tokens: dict[int, int], freed: dict[int, tuple[int, int]]) -> Any:
    held = state.ledger.identity[block]
    if held == EMPTY:
        return freed.get(block)
    spelled = [tokens.setdefault(token, len(tokens)) for token in state.prefixes.spell(held)]
    namespace = state.prefixes.tokens[_root(state, held)]
    named = state.ledger.index[held] == block
    findable = block in state.copies.get(held, ())
    wrong = [(offset, [tokens.setdefault(token, len(tokens)) for token in spelled]) for offset, spelled in _wrong(state, block, held)]
    return namespace, spelled, named, findable, held in state.twinned, wrong, freed.get(block)


def _wrong(state: State, block: int, held: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The slots that do not hold what the prefix of the block says, and what they hold."""
    size = state.world.block_size
    for offset in range(size - 1, -1, -1):
        found = state.memory.get(block * size + offset, EMPTY)
        if found != held:
            yield offset, state.prefixes.spell(found)
        held = state.prefixes.parents[held]


def _root(state: State, prefix: int) -> int:
    parents = state.prefixes.parents
    while parents[prefix] != EMPTY:
        prefix = parents[prefix]
    return prefix


def _freed(state: State) -> dict[int, tuple[int, int]]:
    """Free block -> (dense number of its release, dense number of its table entry among those), oldest first."""
    releases = sorted({release for release, _ in state.freed.values()} - {0})
    groups: dict[int, list[int]] = {release: [] for release in releases}
    for release, entry in state.freed.values():
        if release:
            groups[release].append(entry)
    number = {release: index + 1 for index, release in enumerate(releases)}
    return {
        block: (number[release], sum(other < entry for other in groups[release]))
        for block, (release, entry) in state.freed.items()
        if release
    }


def _names(alphabet: Alphabet, order: list[str], gone: list[str]) -> tuple[int, ...]:
    fresh = [name for name in alphabet.names if name not in order and name not in gone]
    return tuple(alphabet.names.index(name) for name in (*order, *gone, *fresh))


def _tokens(alphabet: Alphabet, tokens: dict[int, int]) -> tuple[tuple[int, ...], int]:
    seen = len(tokens)
    for token in range(alphabet.world.tokens):
        tokens.setdefault(token, len(tokens))
    return tuple(tokens[token] for token in range(alphabet.world.tokens)), seen
