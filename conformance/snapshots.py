"""What a manager shows of itself is checked for its shape before it is judged: junk is a finding, not an accident of ours."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any

from kvspec.spec.state import Snapshot

_POOLS = ("free", "used", "owned")
_ONE_A_BLOCK = ("references", "hashes", "contents")


def fault_of(shown: Any, blocks: int) -> str | None:
    """What makes `shown` no snapshot of a pool whose block numbers are below `blocks`, or None."""
    if shown is None:
        return None
    if not isinstance(shown, Snapshot):
        return f"snapshot() gave {type(shown).__name__}, not a Snapshot"
    for name in _POOLS:
        entries = getattr(shown, name)
        if entries is not None and not _all_whole(entries):
            return f"{name} is not a list of block numbers"
    for name in _ONE_A_BLOCK:
        entries = getattr(shown, name)
        if entries is not None and not (_sized(entries) and len(entries) >= blocks):
            return f"{name} does not have an entry for each of {blocks} blocks"
    if shown.references is not None and not _all_whole(shown.references):
        return "references are not whole numbers"
    return None if shown.index is None or _pairs(shown.index) else "index is not a list of (key, block number) pairs"


def _sized(entries: Any) -> bool:
    return isinstance(entries, tuple | list)


def _whole(entry: Any) -> bool:
    return type(entry) is int or isinstance(entry, Integral)


def _all_whole(entries: Any) -> bool:
    return isinstance(entries, Iterable) and all(_whole(entry) for entry in entries)


def _pairs(entries: Any) -> bool:
    if not _sized(entries):
        return False
    return all(_sized(each) and len(each) == 2 and _whole(each[1]) and _hashable(each[0]) for each in entries)


def _hashable(key: Any) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True
