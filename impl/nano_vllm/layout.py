"""How to copy one object: a function made for its class and the kinds of its attributes, as one would write it by hand."""

from collections import deque
from enum import Enum
from typing import Any, NamedTuple

PLAIN = frozenset({int, str, bytes})
CONTAINERS = frozenset({list, deque, set, dict})
_VALUES: set[type] = {int, bool, float, str, bytes, type(None)}
_SHARED = "sampling_params"  # for the sampler: no block manager changes it, so copies may share it


class Unusual(Exception):
    """There is something that the fast way does not know."""


class Layout(NamedTuple):
    """`copy(item)` copies an object and its `containers`; `others` are attributes of kinds that must be looked at.

    `put(item, name, value)` sets an attribute and does nothing else.
    """

    copy: Any
    put: Any
    containers: tuple[str, ...]
    others: tuple[str, ...]


_layouts: dict[Any, Layout] = {}


def layout_of(item: Any, attributes: dict[str, Any]) -> Layout:
    """The layout of an object that has nothing but its ``__dict__``; remembered.  Raises Unusual for other objects."""
    name = type(item), tuple(attributes), tuple(map(type, attributes.values()))
    found = _layouts.get(name)
    if found is None:
        if not has_only_a_dict(type(item)):
            raise Unusual
        found = _layouts[name] = _made(*name)
    return found


def check_constant(name: str, value: Any) -> None:
    """Let values pass that never change.  Raises Unusual."""
    if isinstance(value, Enum) or name == _SHARED:
        return
    if not (type(value) is tuple and all(type(item) in _VALUES for item in value)):
        raise Unusual


def has_only_a_dict(cls: type) -> bool:
    """Is all that an object of this class has in its ``__dict__``?"""
    inherited = cls.__mro__[:-1]
    if not inherited or any(c.__module__ == "builtins" or "__slots__" in vars(c) for c in inherited):
        return False
    try:
        object.__new__(cls)  # Python refuses this if a base written in C keeps something of its own
    except TypeError:
        return False
    return True


def _made(cls: type, names: tuple[str, ...], kinds: tuple[type, ...]) -> Layout:
    containers = tuple(name for name, kind in zip(names, kinds, strict=True) if kind in CONTAINERS)
    others = tuple(n for n, kind in zip(names, kinds, strict=True) if kind not in CONTAINERS and kind not in _VALUES)
    simple = _is_simple(cls, names)
    lines = _assignments(names, containers) if simple else _dictionary(containers)
    scope: dict[str, Any] = {"make": object.__new__, "cls": cls}
    exec("\n ".join(("def copy(old):", "new = make(cls)", *lines, "return new")), scope)
    return Layout(scope["copy"], setattr if simple else _put, containers, others)


def _put(item: Any, name: str, value: Any) -> None:
    item.__dict__[name] = value


def _is_simple(cls: type, names: tuple[str, ...]) -> bool:
    """Does assigning these attributes do nothing but put the values into the ``__dict__``, and reading them get them?"""
    plain: Any = object
    own = cls.__setattr__ is plain.__setattr__ and cls.__getattribute__ is plain.__getattribute__
    described = [getattr(cls, name, None) for name in names]
    if not own or any(hasattr(each, "__get__") or hasattr(each, "__set__") for each in described):
        return False
    return all(name.isidentifier() and not name.startswith("__") for name in names)


def _assignments(names: tuple[str, ...], containers: tuple[str, ...]) -> list[str]:
    return [f"new.{name} = old.{name}" + (".copy()" if name in containers else "") for name in names]


def _dictionary(containers: tuple[str, ...]) -> list[str]:
    copied = [f"state[{name!r}] = state[{name!r}].copy()" for name in containers]
    return ["state = old.__dict__.copy()", *copied, "new.__dict__.update(state)"]
