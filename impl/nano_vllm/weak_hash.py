"""Finding a manager's chain hash, and replacing it: by one that collides all the time, or by any other.

Nothing of the original is touched: a *twin* of the manager class is made, whose methods see the other hash wherever the
original ones see the chain hash, be it a method, a function of the module, or a method of another class of the module.
"""

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

NAMES = ("compute_hash", "_compute_hash", "hash_block_tokens", "compute_block_hash")
VALUES = 5  # few enough that a handful of blocks collides, and none of them is a usual "no hash" (-1, 0)

ChainHash = Callable[[tuple[int, ...], int | None], int]


def weak_hash(*arguments: Any, **named: Any) -> int:
    """A chain hash with five values: the same tokens after the same prefix value hash equal, on every machine."""
    values = (*arguments, *named.values())
    tokens = next(value for value in values if hasattr(value, "__iter__"))
    prefix = next((value for value in values if isinstance(value, int)), -1)
    mixed = 7 * prefix + 3
    for token in tokens:
        mixed = 11 * mixed + int(token)
    return 1 + mixed % VALUES


def chain_hash_of(cls: type) -> ChainHash | None:
    """The manager's own chain hash as a function of (tokens, parent hash or None); None if there is none to call."""
    found = _find(cls)
    if found is None:
        return None

    def chain_hash(tokens: tuple[int, ...], prefix: int | None) -> int:
        return found(list(tokens), -1 if prefix is None else prefix)  # type: ignore[no-any-return]

    try:
        usable = isinstance(chain_hash((0, 1), None), int) and isinstance(chain_hash((0, 1), 2), int)
    except Exception:
        return None
    return chain_hash if usable else None


def _find(cls: type) -> Callable[..., Any] | None:
    owner, name = _owner_of_hash(cls)
    if name is None:
        return None
    found: Callable[..., Any]
    if isinstance(owner, type):
        method = inspect.getattr_static(owner, name)
        found = getattr(object.__new__(owner) if isinstance(method, FunctionType) else owner, name)
    else:
        found = owner[name]
    return found


def _owner_of_hash(cls: type) -> tuple[Any, str | None]:
    """Where the chain hash lives: a class, or the namespace of the module; and its name."""
    namespace = namespace_of(cls)
    for name in NAMES:
        if inspect.getattr_static(cls, name, None) is not None:
            return cls, name
        if isinstance(namespace.get(name), FunctionType):
            return namespace, name
    for other in (namespace[used] for used in sorted(_used_by(cls)) if isinstance(namespace.get(used), type)):
        for name in NAMES:
            if inspect.getattr_static(other, name, None) is not None:
                return other, name
    return None, None


def _used_by(cls: type) -> set[str]:
    """The global names that the methods of `cls` itself use."""
    functions = [getattr(value, "__func__", value) for value in vars(cls).values()]
    return {name for function in functions if isinstance(function, FunctionType) for name in function.__code__.co_names}


def namespace_of(cls: type) -> dict[str, Any]:
    """The global names that the methods of `cls` see; empty for compiled classes."""
    for value in vars(cls).values():
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if isinstance(function, FunctionType):
            return function.__globals__
    return {}


def twin_with(cls: type, chain_hash: Callable[..., int] = weak_hash) -> type | None:
    """A class that is `cls` in everything but its chain hash; None if no chain hash is found.

    `chain_hash` is called as the original is: with the tokens and the hash of the block before, in its order.
    """
    owner, name = _owner_of_hash(cls)
    if name is None:
        return None
    namespaces = _Namespaces()
    body: dict[str, Any] = {}
    for ancestor in reversed(cls.__mro__[:-1]):
        for key, value in vars(ancestor).items():
            body.pop(key, None)
            if _is_method(value):
                body[key] = namespaces.seen_by(value)
    if owner is cls:
        body[name] = staticmethod(chain_hash)
    twin = type(cls.__name__, (cls,), body)
    namespaces.replace(cls, twin)
    if isinstance(owner, dict):
        namespaces.replace(owner[name], chain_hash)
    elif owner is not cls:
        namespaces.replace(owner, type(owner.__name__, (owner,), {name: staticmethod(chain_hash)}))
    return twin


def _is_method(value: Any) -> bool:
    return isinstance(value, FunctionType | classmethod | staticmethod | property)


class _Namespaces:
    """Copies of the global names that methods see, in which one object can be put in the place of another."""

    def __init__(self) -> None:
        self._copies: dict[int, dict[str, Any]] = {}

    def seen_by(self, method: Any) -> Any:
        """The same method, seeing the copy of its global names."""
        if isinstance(method, classmethod | staticmethod):
            return type(method)(self.seen_by(method.__func__))
        if isinstance(method, property):
            return property(*(part and self.seen_by(part) for part in (method.fget, method.fset, method.fdel)))
        if not isinstance(method, FunctionType):
            return method
        seen = self._copies.setdefault(id(method.__globals__), dict(method.__globals__))
        new = FunctionType(method.__code__, seen, method.__name__, method.__defaults__, method.__closure__)
        new.__kwdefaults__ = method.__kwdefaults__
        return new

    def replace(self, old: Any, new: Any) -> None:
        """Put `new` wherever a global name means `old`."""
        for seen in self._copies.values():
            for name in [name for name, value in seen.items() if value is old]:
                seen[name] = new
