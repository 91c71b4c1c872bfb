"""Independent copies of a manager and its sequences, fast enough for a search through many states.

The fast way knows containers of plain values and one list of plain objects (the blocks).  Whatever it does not know,
two names for one container included, is left to ``copy.deepcopy``.  Sequences are always copied attribute by attribute,
because engines give them a ``__getstate__`` for sending them to workers, which drops what workers do not need.
"""

from collections import deque
from copy import deepcopy
from enum import Enum
from functools import lru_cache
from typing import Any

_ATOMS: set[type] = {int, bool, float, str, bytes, type(None)}
_PLAIN = frozenset({int, str, bytes})
_POOLS = (list, deque, set)


def copied(manager: Any, sequences: list[Any]) -> tuple[Any, list[Any]]:
    """Copies of the manager and of all sequences, which share nothing mutable with the originals."""
    state = _fast_manager(manager)
    states = [_fast_object(sequence) for sequence in sequences]
    if state is None or None in states:
        return _slow(manager, sequences)
    return _object(type(manager), state), [_object(type(s), d) for s, d in zip(sequences, states, strict=True)]


def _object(cls: type, state: dict[str, Any]) -> Any:
    new = object.__new__(cls)
    new.__dict__ = state
    return new


def _fast_manager(manager: Any) -> dict[str, Any] | None:
    """The attributes of a copy of the manager, or None if there is something to be careful about."""
    if not _has_only_a_dict(type(manager)):
        return None
    state = manager.__dict__.copy()
    seen: set[int] = set()
    objects = False
    for key, value in state.items():
        kind = type(value)
        if kind in _ATOMS:
            continue
        if id(value) in seen:
            return None
        seen.add(id(value))
        if kind in _POOLS and _PLAIN.issuperset(map(type, value)):
            state[key] = value.copy()
        elif kind is dict and _PLAIN.issuperset(map(type, value)) and _PLAIN.issuperset(map(type, value.values())):
            state[key] = value.copy()
        elif kind is list and not objects:
            objects = True
            states = [_fast_object(item) for item in value]
            if None in states or len(set(map(id, value))) != len(value):
                return None
            state[key] = [_object(type(item), d) for item, d in zip(value, states, strict=True)]  # type: ignore[arg-type]
        elif not _is_atom(value):
            return None
    return state


def _fast_object(item: Any) -> dict[str, Any] | None:
    """The attributes of a copy of an object that holds plain values and lists of them, or None."""
    if not _has_only_a_dict(type(item)):
        return None
    state: dict[str, Any] = item.__dict__.copy()
    for key, value in state.items():
        kind = type(value)
        if kind in _ATOMS:
            continue
        if kind is list and _PLAIN.issuperset(map(type, value)):
            state[key] = value[:]
        elif not _is_atom(value):
            return None
    return state


def _is_atom(value: Any) -> bool:
    """A value that never changes; members of enumerations are remembered by their type."""
    if type(value) is tuple:
        return all(type(item) in _ATOMS for item in value)
    if isinstance(value, Enum):
        _ATOMS.add(type(value))
        return True
    return False


@lru_cache(maxsize=256)
def _has_only_a_dict(cls: type) -> bool:
    """Is everything that an instance holds in its ``__dict__``?"""
    ancestors = cls.__mro__[:-1]
    return bool(ancestors) and not any(c.__module__ == "builtins" or "__slots__" in vars(c) for c in ancestors)


def _slow(manager: Any, sequences: list[Any]) -> tuple[Any, list[Any]]:
    memo: dict[int, Any] = {}
    fresh = []
    for sequence in sequences:
        if _has_only_a_dict(type(sequence)):
            memo[id(sequence)] = object.__new__(type(sequence))
    for sequence in sequences:
        new = memo.get(id(sequence))
        if new is None:
            fresh.append(deepcopy(sequence, memo))
            continue
        new.__dict__.update(deepcopy(sequence.__dict__, memo))
        fresh.append(new)
    return deepcopy(manager, memo), fresh
