"""Permutations of block numbers, numbered, with what they make of answers and snapshots."""

from typing import Any

from kvspec.spec import operations as op
from kvspec.spec.state import Snapshot


class BlockNames:
    """All ways met so far to rename the blocks of a pool; number 0 changes nothing.

    `maps[w]` is a dictionary from old to new number; numbers that are no blocks stay what they are.
    """

    def __init__(self, blocks: frozenset[int]) -> None:
        self.blocks = tuple(sorted(blocks))
        self.maps: list[dict[int, int]] = []
        self._place: dict[tuple[int, ...], int] = {}
        self._after: dict[tuple[int, int], int] = {}
        self._inverse: dict[int, int] = {}
        self._ways: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        self.number(self.blocks)

    def number(self, images: tuple[int, ...]) -> int:
        """The number of the way that sends the blocks, in order, to `images`."""
        found = self._place.get(images)
        if found is None:
            found = self._place[images] = len(self.maps)
            self.maps.append(dict(zip(self.blocks, images, strict=True)))
        return found

    def after(self, outer: int, inner: int) -> int:
        """First `inner`, then `outer`."""
        found = self._after.get((outer, inner))
        if found is None:
            first, then = self.maps[inner], self.maps[outer]
            found = self._after[outer, inner] = self.number(tuple(then[first[block]] for block in self.blocks))
        return found

    def inverse(self, way: int) -> int:
        """The way back."""
        found = self._inverse.get(way)
        if found is None:
            back = {image: block for block, image in self.maps[way].items()}
            found = self._inverse[way] = self.number(tuple(back[block] for block in self.blocks))
        return found

    def back(self, way: int) -> dict[int, int]:
        """The map that undoes a way."""
        return self.maps[self.inverse(way)]

    def way(self, source: tuple[int, ...], target: tuple[int, ...]) -> int:
        """Send each block of `source` to the one of `target` at the same place, and the rest in ascending order."""
        found = self._ways.get((source, target))
        if found is None:
            pairs = dict(zip(source, target, strict=True))
            unused = iter([block for block in self.blocks if block not in target])
            images = tuple(pairs[block] if block in pairs else next(unused) for block in self.blocks)
            found = self._ways[source, target] = self.number(images)
        return found

    def rename_outcome(self, outcome: op.Outcome, way: int) -> op.Outcome:
        """The answer with other block numbers."""
        if way == 0:
            return outcome
        get = self.maps[way].get
        if isinstance(outcome, op.Admitted):
            return op.Admitted(outcome.cached, outcome.reserved, tuple([get(b, b) for b in outcome.table]))
        if isinstance(outcome, op.Reserved):
            return op.Reserved(tuple([get(b, b) for b in outcome.table]))
        if isinstance(outcome, op.Committed):
            return op.Committed(tuple([tuple([get(b, b) for b in table]) for table in outcome.tables]))
        return outcome

    def rename_snapshot(self, shown: Snapshot | None, way: int, tokens: tuple[int, ...]) -> Snapshot | None:
        """The snapshot with other block and token numbers; hashes stay what they are."""
        if shown is None:
            return None
        get, back = self.maps[way].get, self.back(way)
        contents = shown.contents and tuple(tuple(map(_token(tokens), content)) for content in shown.contents)
        return Snapshot(
            _each(shown.free, get),
            _each(shown.used, get),
            _each(shown.owned, get),
            _permuted(shown.references, back),
            _permuted(shown.hashes, back),
            _permuted(contents, back),
            shown.index and tuple((key, get(block, block)) for key, block in shown.index),
        )


def _token(tokens: tuple[int, ...]) -> Any:
    return lambda token: tokens[token] if isinstance(token, int) and 0 <= token < len(tokens) else token


def _each(blocks: tuple[int, ...] | None, get: Any) -> tuple[int, ...] | None:
    return blocks and tuple(get(block, block) for block in blocks)


def _permuted(entries: tuple[Any, ...] | None, back: dict[int, int]) -> tuple[Any, ...] | None:
    """Entry b of the result is what entry `back[b]` was."""
    return entries and tuple(entries[back.get(block, block)] for block in range(len(entries)))
