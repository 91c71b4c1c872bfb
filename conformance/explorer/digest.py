"""The key of a state: sixteen bytes over the class of the judge's state, the true block numbers, and what is shown.

Two states are the same exactly if a bijection of sequence names, token numbers and hash values (block numbers stay)
takes one into the other: the judge's state (``canonical``) and the snapshot.  Hash values, which only name prefixes, are
replaced by the order in which the blocks first show them; `used` and `index` have no order.
"""

import marshal
from hashlib import blake2b
from typing import Any

from kvspec.conformance.explorer.blocks import BlockNames
from kvspec.conformance.explorer.canonical import Numbering
from kvspec.conformance.explorer.judging import JudgeClass
from kvspec.conformance.explorer.world import Alphabet
from kvspec.spec.state import Snapshot

MOST_REMEMBERED = 20_000


class Digests:
    """Computes keys; remembers how contents and index are spelled without names, for the latest few thousand of them."""

    def __init__(self, alphabet: Alphabet, names: BlockNames) -> None:
        self.alphabet, self.names = alphabet, names
        self._spelled: dict[Any, bytes] = {}

    def key(self, judged: JudgeClass, renaming: int, blocks: int, shown: Snapshot | None) -> bytes:
        """`renaming` and `blocks` lead from the actual names to the local names of the class."""
        part = self._part(judged, 0, renaming, blocks, shown)
        if len(judged.numberings) > 1:
            others = range(1, len(judged.numberings))
            part = min(part, *[self._part(judged, number, renaming, blocks, shown) for number in others])
        return blake2b(judged.digest + part, digest_size=16).digest()

    def _part(self, judged: JudgeClass, number: int, renaming: int, blocks: int, shown: Snapshot | None) -> bytes:
        order = judged.orders.get((number, blocks))
        if order is None:
            actual = self.names.back(blocks)
            named = [actual[block] for block in judged.numberings[number].blocks]
            order = judged.orders[number, blocks] = marshal.dumps(named, 2)
        if shown is None:
            return order
        plain = marshal.dumps((shown.free, shown.owned, shown.references), 2)
        return order + plain + self._spell(shown, judged.numberings[number], renaming)

    def _spell(self, shown: Snapshot, numbering: Numbering, renaming: int) -> bytes:
        name = (shown.used, shown.hashes, shown.contents, shown.index, numbering.tokens, numbering.seen, renaming)
        found = self._spelled.get(name)
        if found is None:
            if len(self._spelled) >= MOST_REMEMBERED:
                self._spelled.clear()
            found = self._spelled[name] = self._spell_anew(shown, numbering, renaming)
        return found

    def _spell_anew(self, shown: Snapshot, numbering: Numbering, renaming: int) -> bytes:
        actual_to_local = self.alphabet.renamings[renaming].tokens
        tokens = {
            t: numbering.tokens[local]
            for t, local in enumerate(actual_to_local)
            if numbering.tokens[local] < numbering.seen
        }
        contents = [[tokens.setdefault(token, len(tokens)) for token in content] for content in shown.contents or ()]
        hashes: dict[Any, int] = {None: -1}
        named = [hashes.setdefault(value, len(hashes)) for value in shown.hashes or ()]
        index = _index(shown.index or (), hashes)
        return marshal.dumps((sorted(shown.used or ()), named, contents, index), 2)


def _index(index: tuple[tuple[int, int], ...], hashes: dict[Any, int]) -> list[tuple[int, int]]:
    """Entries sorted by block, keys by the order in which they first occur; a block may have several keys."""
    known = sorted((hashes[key], block) for key, block in index if key in hashes)
    others = sorted(block for key, block in index if key not in hashes)
    return known + [(-2, block) for block in others]
