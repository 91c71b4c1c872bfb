"""Independent copies of a manager and its sequences, fast enough for a search through many states.

What there is to copy is looked at once a state; then copies are made by functions for just that (``layout``).  The fast
way knows containers of plain values and lists of plain objects (the blocks).  Whatever it does not know, two names for
one container included, is left to ``copy.deepcopy``.  Sequences are always copied attribute by attribute, because
engines give them a ``__getstate__`` for sending them to workers, which drops what workers do not need.
"""

from collections.abc import Callable
from copy import deepcopy
from itertools import chain
from typing import Any

from kvspec.impl.nano_vllm.layout import PLAIN, Layout, Unusual, check_constant, has_only_a_dict, layout_of

Copies = Callable[[], tuple[Any, list[Any]]]


def copier(manager: Any, sequences: list[Any]) -> Copies:
    """What makes copies of the manager and of all sequences, which share nothing mutable with the originals.

    It may be called again and again while the originals stay as they are.
    """
    met: list[Any] = []
    try:
        layout, nested = _manager(manager, met)
        others = [(_look_at(sequence, met), sequence) for sequence in sequences]
        _check_different([item for _, items in nested for _, item in items] + sequences)
        _check_contents(met)
    except Unusual:
        return lambda: _slow(manager, sequences)

    copy_manager, put = layout.copy, layout.put

    def copies() -> tuple[Any, list[Any]]:
        new = copy_manager(manager)
        for name, items in nested:
            put(new, name, [copy(item) for copy, item in items])
        return new, [copy(sequence) for copy, sequence in others]

    return copies


def _manager(manager: Any, met: list[Any]) -> tuple[Layout, list[tuple[str, list[Any]]]]:
    """How to copy the manager, and what is in its lists of objects; `met` gets all other containers."""
    attributes = manager.__dict__
    layout, nested = layout_of(manager, attributes), []
    for name in layout.containers:
        value = attributes[name]
        if type(value) is list and value and type(value[0]) not in PLAIN:
            nested.append((name, [(_look_at(item, met), item) for item in value]))
        else:
            met.append(value)
    for name in layout.others:
        check_constant(name, attributes[name])
    return layout, nested


def _look_at(item: Any, met: list[Any]) -> Callable[[Any], Any]:
    """How to copy an object; `met` gets its containers."""
    try:
        attributes = item.__dict__
    except AttributeError:
        raise Unusual from None
    layout = layout_of(item, attributes)
    for name in layout.containers:
        met.append(attributes[name])
    for name in layout.others:
        check_constant(name, attributes[name])
    return layout.copy  # type: ignore[no-any-return]


def _check_different(items: list[Any]) -> None:
    """No object is met twice, in one list, in two lists, or as a sequence, too.  Raises Unusual."""
    if len(set(map(id, items))) != len(items):
        raise Unusual


def _check_contents(containers: list[Any]) -> None:
    """All hold plain values, and no container has two names.  Raises Unusual."""
    _check_different(containers)
    if not PLAIN.issuperset(map(type, chain(*containers))):
        raise Unusual
    for container in containers:
        if type(container) is dict and not PLAIN.issuperset(map(type, container.values())):
            raise Unusual


def _slow(manager: Any, sequences: list[Any]) -> tuple[Any, list[Any]]:
    """As ``copier``, for anything: whatever manager and sequences share, their copies share."""
    memo: dict[int, Any] = {}
    plain = [sequence for sequence in sequences if hasattr(sequence, "__dict__") and has_only_a_dict(type(sequence))]
    for sequence in plain:
        memo[id(sequence)] = object.__new__(type(sequence))
    for sequence in plain:
        vars(memo[id(sequence)]).update(deepcopy(vars(sequence), memo))
    return deepcopy(manager, memo), [deepcopy(sequence, memo) for sequence in sequences]
