"""Seeing the inside of a manager through the attributes that managers of this shape usually have."""

from collections.abc import Iterable, Mapping
from typing import Any

from kvspec.spec.state import Snapshot

FREE = ("free_block_ids", "free_blocks", "free_ids", "free")
USED = ("used_block_ids", "used_blocks", "used_ids", "used")
BLOCKS = ("blocks", "block_table", "all_blocks")
INDEX = ("hash_to_block_id", "hash_to_block")
REFERENCES = ("ref_count", "refcount", "ref_cnt")
HASH = ("hash", "block_hash")
CONTENTS = ("token_ids", "tokens")


class Sight:
    """Which attributes show what, found once on a fresh manager; ``snapshot`` reads them."""

    __slots__ = ("_blocks", "_contents", "_free", "_hash", "_index", "_references", "_used")

    def __init__(self, manager: object) -> None:
        self._free = _pool(manager, FREE)
        self._used = _pool(manager, USED)
        self._index = _first(manager, INDEX, Mapping)
        self._blocks = _first(manager, BLOCKS, list | tuple)
        block = next(iter(getattr(manager, self._blocks)), None) if self._blocks else None
        self._references = _first(block, REFERENCES, int)
        self._hash = _first(block, HASH, object)
        self._contents = _first(block, CONTENTS, Iterable)

    def snapshot(self, manager: Any) -> Snapshot:
        """What the manager shows now.  Raises what reading raises if the manager has made junk of its attributes."""
        blocks = getattr(manager, self._blocks) if self._blocks else ()
        references, hashed, contents = self._references, self._hash, self._contents
        return Snapshot(
            free=_ids(getattr(manager, self._free)) if self._free else None,
            used=tuple(sorted(getattr(manager, self._used))) if self._used else None,
            references=tuple([getattr(block, references) for block in blocks]) if references else None,
            hashes=tuple([_known(getattr(block, hashed)) for block in blocks]) if hashed else None,
            contents=tuple([tuple(getattr(block, contents)) for block in blocks]) if contents else None,
            index=tuple(sorted(getattr(manager, self._index).items())) if self._index else None,
        )


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
    return tuple(sorted(pool)) if isinstance(pool, set | frozenset) else tuple(pool)


def _known(value: Any) -> int | None:
    return None if value is None or value == -1 else value
