"""What a manager shows of itself is checked for its shape before it is judged: junk is a finding, not an accident of ours."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any

from kvspec.spec.state import Snapshot

# What a clause on the state looks at; it holds where that is not shown (``spec.invariants``).
NEEDED = {
    "PARTITION": ("free",),
    "REFCOUNT": ("references",),
    "INDEX-BOUNDED": ("index",),
    "INDEX-MATCH": ("index", "hashes"),
    "INDEX-TOKENS": ("index", "contents"),
    "INDEX-CHAIN": ("index",),
}

_POOLS = ("free", "used", "owned")
_ONE_A_BLOCK = ("references", "hashes", "contents")


class Unreadable(ValueError):
    """A snapshot that is none; the message says why."""


def fault_of(shown: Any, blocks: int, most: int | None = None) -> str | None:
    """What makes `shown` no snapshot of a pool whose block numbers are below `blocks`, or None.

    `most`: how many entries a list with one a block may have, where there are block numbers that are never handed out.
    """
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
        if entries is not None and not (_sized(entries) and blocks <= len(entries) <= (most or blocks)):
            found = f"{len(entries)} entries" if _sized(entries) else "none"
            return f"{name} does not have an entry for each of {blocks} blocks: it has {found}"
    if shown.references is not None and not _all_whole(shown.references):
        return "references are not whole numbers"
    return None if shown.index is None or _pairs(shown.index) else "index is not a list of (key, block number) pairs"


def unseen(shown: Snapshot | None, keyed: bool) -> list[str]:
    """The clauses on the state for which a manager shows too little.  `keyed`: its keys can be compared with a hash."""
    hidden = [slug for slug, fields in NEEDED.items() if any(getattr(shown, name, None) is None for name in fields)]
    return hidden + ["INDEX-CHAIN"] * (not keyed and "INDEX-CHAIN" not in hidden)


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
