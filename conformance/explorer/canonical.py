"""The judge's state up to the names of sequences, tokens and blocks: equal forms have equal futures.

Of the judge's state only this decides what it will rule:

* each live sequence: namespace, tokens, block table, computed, reserved, unread tokens, entries that the ledger counts
  as computed, and where it matters, how many it was admitted with;
* each block that was ever used: the prefix that it was registered for (if any) and its key in the ledger where that is
  another one, whether it must be found, whether a twin existed, slots that differ from that prefix, and, if it is free,
  with which release it became free (numbered densely, oldest first) and how far back it was in its table then
  (likewise);
* how many blocks were never used, and how many names were released and are not live.

Slots of a block that is not registered count only where part of a block may be hit (a whole-prompt hit down to the last
token is declared, or ALIGNED is muted): elsewhere such a block can't be hit, ``claim`` requires its key, and a sequence
reads only what it wrote there itself.
"""

import marshal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

from kvspec.conformance.explorer.world import Alphabet
from kvspec.spec.declaration import FullHit, Publish
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
    freed = _freed(state)
    best, found = b"", list[Numbering]()
    for order in _orders(state):
        form, numbering = _form(state, alphabet, order, freed)
        if not found or form < best:
            best, found = form, [numbering]
        elif form == best:
            found.append(numbering)
    return best, found


def _orders(state: State) -> Iterable[Sequence[str]]:
    """The orders of the live sequences that sort what does not depend on any name."""
    if len(state.sequences) < 2:
        return (tuple(state.sequences),)
    looks = {
        name: (len(each.tokens), each.computed, each.reserved, each.unread, len(each.table))
        for name, each in state.sequences.items()
    }
    kinds = sorted(set(looks.values()))
    if len(kinds) == len(looks):
        return (sorted(looks, key=looks.__getitem__),)
    groups = [[name for name in looks if looks[name] == kind] for kind in kinds]
    return [[name for part in choice for name in part] for choice in product(*map(permutations, groups))]


def _form(
    state: State, alphabet: Alphabet, order: Sequence[str], freed: dict[int, tuple[int, int]]
) -> tuple[bytes, Numbering]:
    """Prefixes are spelled by their numbers after renaming: one number for a namespace and all tokens."""
    blocks: dict[int, int] = {}
    sequences = [state.sequences[name] for name in order]
    tables = [[blocks.setdefault(block, len(blocks)) for block in sequence.table] for sequence in sequences]
    for block in freed:
        if block not in blocks:
            blocks[block] = len(blocks)
    seen, tokens = _tokens(state, alphabet, sequences, blocks)
    rename, computed = alphabet.renamer(state.prefixes, tokens), state.ledger.computed
    prompts = state.declaration.publish is Publish.PROMPT  # only then it matters with how many tokens it was admitted
    lives = [
        (
            rename[each.prefixes[-1]],
            table,
            each.computed,
            each.reserved,
            each.unread,
            computed[name],
            prompts and each.admitted,
        )
        for name, each, table in zip(order, sequences, tables, strict=True)
    ]
    contents = [_block(state, alphabet, block, rename, freed.get(block)) for block in blocks]
    gone = [name for name in alphabet.names if name in state.released]
    form = marshal.dumps((lives, contents, len(state.blocks), len(gone)), 2)
    return form, Numbering(_names(alphabet, order, gone), tokens, seen, tuple(blocks))


def _block(state: State, alphabet: Alphabet, block: int, rename: dict[int, int], freed: Any) -> Any:
    ledger = state.ledger
    held, key = ledger.identity[block], ledger.hash[block]
    if held == EMPTY:
        return freed, _wrong(state, block, alphabet.nothing, rename) if _reads_parts(state) else None
    other = None if key == held else rename[key]
    findable = block in state.copies.get(held, ())
    wrong = _wrong(state, block, alphabet.spell(state.prefixes, held)[2], rename)
    return rename[held], other, findable, held in state.twinned, wrong, freed


def _reads_parts(state: State) -> bool:
    """May a sequence go on that was given part of a block as a hit?"""
    return state.declaration.full_hit is FullHit.LAST_TOKEN or "ALIGNED" in state.muted


def _wrong(state: State, block: int, chain: tuple[int, ...], rename: dict[int, int]) -> Any:
    """The slots that do not hold what the prefix of the block says, and what they hold."""
    first, memory = block * len(chain), state.memory
    found = [memory.get(slot, EMPTY) for slot in range(first, first + len(chain))]
    if tuple(found) == chain:
        return None
    return [(offset, rename[held]) for offset, held in enumerate(found) if held != chain[offset]]


def _tokens(
    state: State, alphabet: Alphabet, sequences: Iterable[SequenceState], blocks: Iterable[int]
) -> tuple[int, tuple[int, ...]]:
    """How many tokens occur, and the number of each, in the order in which they occur: in sequences, then in blocks."""
    count = alphabet.world.tokens
    if state.world.weak_hash:
        return count, tuple(range(count))
    met: dict[int, int] = {}
    for prefix in _prefixes(state, alphabet, sequences, blocks):
        for token in alphabet.different(state.prefixes, prefix):
            met.setdefault(token, len(met))
        if len(met) == count:
            break
    seen = len(met)
    for token in range(count):
        met.setdefault(token, len(met))
    return seen, tuple([met[token] for token in range(count)])


def _prefixes(
    state: State, alphabet: Alphabet, sequences: Iterable[SequenceState], blocks: Iterable[int]
) -> Iterable[int]:
    """All prefixes that a form spells, in order."""
    for sequence in sequences:
        yield sequence.prefixes[-1]
    ledger, size = state.ledger, alphabet.world.block_size
    for block in blocks:
        if (held := ledger.identity[block]) != EMPTY:
            yield held
            yield ledger.hash[block]
        if held != EMPTY or _reads_parts(state):
            yield from (state.memory.get(slot, EMPTY) for slot in range(block * size, (block + 1) * size))


def _freed(state: State) -> dict[int, tuple[int, int]]:
    """Free block -> (dense number of its release, dense number of its table entry among those), oldest first.

    Blocks that were never used are left out.
    """
    groups: dict[int, list[int]] = {}
    for release, entry in state.freed.values():
        if release:
            groups.setdefault(release, []).append(entry)
    if not groups:
        return {}
    number = {release: index for index, release in enumerate(sorted(groups), 1)}
    return {
        block: (number[release], sorted(groups[release]).index(entry))
        for block, (release, entry) in state.freed.items()
        if release
    }


def _names(alphabet: Alphabet, order: Sequence[str], gone: list[str]) -> tuple[int, ...]:
    fresh = [name for name in alphabet.names if name not in order and name not in gone]
    return tuple(alphabet.names.index(name) for name in (*order, *gone, *fresh))
