"""Independent copies of a manager and its sequences, fast enough for a search through many states.

The fast way knows containers of plain values and one list of plain objects (the blocks).  Whatever it does not know,
two names for one container included, is left to ``copy.deepcopy``.  Sequences are always copied attribute by attribute,
because engines give them a ``__getstate__`` for sending them to workers, which drops what workers do not need.
"""

from collections import deque
from copy import deepcopy
from enum import Enum
from typing import Any

_PLAIN = frozenset({int, str, bytes})
_VALUES: set[type] = {int, bool, float, str, bytes, type(None)}
_CONTAINERS = frozenset({list, deque, set, dict})
_SHARED = "sampling_params"  # for the sampler: no block manager changes it, so copies may share it

_make = object.__new__
_only_a_dict: dict[type, bool] = {}


class _Unusual(Exception):
    """There is something that the fast way does not know."""


def copied(manager: Any, sequences: list[Any]) -> tuple[Any, list[Any]]:
    """Copies of the manager and of all sequences, which share nothing mutable with the originals."""
    try:
        return _manager(manager), _objects(sequences)
    except _Unusual:
        return _slow(manager, sequences)


def _manager(manager: Any) -> Any:
    state = _state(manager)
    containers = 0
    for name, value in state.items():
        kind = type(value)
        if kind in _VALUES:
            continue
        containers += 1
        if kind not in _CONTAINERS:
            _check_constant(value)
        elif _PLAIN.issuperset(map(type, value)):
            if kind is dict and not _PLAIN.issuperset(map(type, value.values())):
                raise _Unusual
            state[name] = value.copy()
        elif kind is list:
            state[name] = _objects(value)
        else:
            raise _Unusual
    original = manager.__dict__.values()
    if len({id(value) for value in original if type(value) not in _VALUES}) != containers:
        raise _Unusual  # two names for one container
    return _object(manager, state)


def _objects(items: list[Any]) -> list[Any]:
    """Copies of different objects that hold plain values and lists of them."""
    fresh = []
    for item in items:
        state = _state(item)
        for name, value in state.items():
            kind = type(value)
            if kind is list and _PLAIN.issuperset(map(type, value)):
                state[name] = value[:]
            elif kind not in _VALUES and name != _SHARED:
                _check_constant(value)
        fresh.append(_object(item, state))
    if len(set(map(id, items))) != len(items):
        raise _Unusual
    return fresh


def _state(item: Any) -> dict[str, Any]:
    """A copy of the attributes of an object that has nothing but its ``__dict__``."""
    cls = type(item)
    known = _only_a_dict.get(cls)
    if known is None:
        known = _only_a_dict[cls] = _has_only_a_dict(cls)
    if not known:
        raise _Unusual
    return item.__dict__.copy()  # type: ignore[no-any-return]


def _has_only_a_dict(cls: type) -> bool:
    inherited = cls.__mro__[:-1]
    return bool(inherited) and not any(c.__module__ == "builtins" or "__slots__" in vars(c) for c in inherited)


def _object(item: Any, state: dict[str, Any]) -> Any:
    new = _make(type(item))
    new.__dict__ = state
    return new


def _check_constant(value: Any) -> None:
    """Let values pass that never change; the types of enumerations are remembered.  Raises _Unusual."""
    if isinstance(value, Enum):
        _VALUES.add(type(value))
    elif not (type(value) is tuple and all(type(item) in _VALUES for item in value)):
        raise _Unusual


def _slow(manager: Any, sequences: list[Any]) -> tuple[Any, list[Any]]:
    """As ``copied``, for anything: whatever manager and sequences share, their copies share."""
    memo: dict[int, Any] = {}
    plain = [sequence for sequence in sequences if hasattr(sequence, "__dict__") and _has_only_a_dict(type(sequence))]
    for sequence in plain:
        memo[id(sequence)] = _make(type(sequence))
    for sequence in plain:
        vars(memo[id(sequence)]).update(deepcopy(vars(sequence), memo))
    return deepcopy(manager, memo), [deepcopy(sequence, memo) for sequence in sequences]
