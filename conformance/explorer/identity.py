"""What tells two states of a manager apart.

``shown``        its snapshot, if that shows free list, reference counts and index: then it is taken at its word, and
                 samples of equal states are compared in what they do next (``search``)
``fingerprint``  its snapshot and what its own ``fingerprint()`` returns: anything whose ``repr`` is equal for equal states
                 (of a manager in a nano-vllm shape: its own or its adapter's)
``pickled``      its snapshot, if any, and its pickled attributes: exact, but fine; it may never be exhausted, for
                 instance because the manager counts its calls
``unseen``       nothing but its answers: it shows nothing and cannot be pickled.  Not sound: states that differ inside
                 are taken for one, so nothing is exhausted, though a violation that is found is one
"""

import pickle
from collections.abc import Callable
from typing import Any

from kvspec.spec.state import Snapshot

Hidden = Callable[[Any], bytes]


def way_to_tell_apart(adapter: Any, shown: Snapshot | None) -> str:
    """The first of the ways above that works for this manager."""
    if callable(getattr(adapter, "fingerprint", None)):
        return "fingerprint"
    if shown is not None and None not in (shown.free, shown.references, shown.index):
        return "shown"
    try:
        _pickled(adapter)
    except Exception:
        return "unseen"
    return "pickled"


def hidden_part(way: str) -> Hidden | None:
    """What to add to the key of a state, or None if there is nothing to add."""
    return {"fingerprint": _fingerprint, "pickled": _pickled}.get(way)


def _fingerprint(adapter: Any) -> bytes:
    return repr(adapter.fingerprint()).encode()


def _pickled(adapter: Any) -> bytes:
    return pickle.dumps(adapter, 4)
