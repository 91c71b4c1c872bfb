"""Seeing the inside of a manager through the attributes that managers of this shape usually have."""

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any

from kvspec.spec.state import Snapshot

FREE = ("free_block_ids", "free_blocks", "free_ids", "free")
USED = ("used_block_ids", "used_blocks", "used_ids", "used")
BLOCKS = ("blocks", "block_table", "all_blocks")
INDEX = ("hash_to_block_id", "hash_to_block")
REFERENCES = ("ref_count", "refcount", "ref_cnt")
HASH = ("hash", "block_hash")
CONTENTS = ("token_ids", "tokens")
_UNORDERED = (set, frozenset)


class Sight:
    """Which attributes show what, found once on a fresh manager; ``snapshot`` reads them."""

    __slots__ = ("_blocks", "_contents", "_free", "_hash", "_index", "_references", "_used")

    def __init__(self, manager: object) -> None:
        self._free = _getter(_pool(manager, FREE))
        self._used = _getter(_pool(manager, USED))
        self._index = _getter(_first(manager, INDEX, Mapping))
        blocks = _first(manager, BLOCKS, list | tuple)
        self._blocks = _getter(blocks)
        block = next(iter(getattr(manager, blocks)), None) if blocks else None
        self._references = _getter(_first(block, REFERENCES, int))
        self._hash = _getter(_first(block, HASH, object))
        self._contents = _getter(_first(block, CONTENTS, Iterable))

    def snapshot(self, manager: Any) -> Snapshot:
        """What the manager shows now.  Raises what reading raises if the manager has made junk of its attributes."""
        blocks = self._blocks(manager) if self._blocks else ()
        return Snapshot(
            _ids(self._free(manager)) if self._free else None,
            tuple(sorted(self._used(manager))) if self._used else None,
            None,
            tuple(map(self._references, blocks)) if self._references else None,
            _hashes(tuple(map(self._hash, blocks))) if self._hash else None,
            tuple(map(tuple, map(self._contents, blocks))) if self._contents else None,
            tuple(sorted(self._index(manager).items())) if self._index else None,
        )


def _getter(name: str | None) -> Any:
    return attrgetter(name) if name else None


def _first(owner: object, names: tuple[str, ...], kind: Any) -> str | None:
    """The first of `names` that `owner` has with a value of this kind."""
    return next(
        (name for name in names if isinstance(getattr(owner, name, _ABSENT), kind) and hasattr(owner, name)), None
    )


_ABSENT = object()


def _pool(manager: object, names: tuple[str, ...]) -> str | None:
    """As ``_first``, for a collection of block ids (not of block objects)."""
    found = _first(manager, names, Iterable)
    return found if found and all(type(block) is int for block in getattr(manager, found)) else None


def _ids(pool: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(pool)) if isinstance(pool, _UNORDERED) else tuple(pool)


def _hashes(stored: tuple[Any, ...]) -> tuple[int | None, ...]:
    if -1 not in stored:
        return stored
    return tuple([None if value is None or value == -1 else value for value in stored])
