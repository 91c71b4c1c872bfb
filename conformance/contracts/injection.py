"""A manager prepared for CrossHair: its chain hash replaced by a pure one, and no compiled code on the way.

CrossHair does not see into C: with numpy or a C hash it has reported false statements as confirmed.
"""

from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from kvspec.impl.adapter import Implementation
from kvspec.impl.errors import LoadError
from kvspec.impl.nano_vllm import with_chain_hash
from kvspec.spec.state import World

# Packages that compute in C, as far as managers have been seen to use them.
_NUMBERS = {"array", "cupy", "jax", "numba", "numpy", "pandas", "torch"}
_BYTES = {"ctypes", "hashlib", "mmh3", "pickle", "struct", "xxhash", "zlib"}
COMPILED = frozenset(_NUMBERS | _BYTES)


class CannotBeTried(Exception):
    """Why CrossHair cannot go through a manager, as the end of the sentence 'cannot be tried: …'."""


def chain(*arguments: Any, **named: Any) -> int:
    """A pure chain hash, injective for the tokens 0 and 1: a prefix read as a number in base 3.

    Takes tokens and parent in any order, as managers differ in it; no parent is None or a number below 1.
    """
    values = (*arguments, *named.values())
    tokens = next(value for value in values if hasattr(value, "__iter__"))
    parent = next((value for value in values if isinstance(value, int)), 0)
    key = parent if parent > 0 else 0
    for token in tokens:
        key = 3 * key + token + 1
    return key


def injected(implementation: Implementation, block_size: int) -> Implementation:
    """The implementation with ``chain`` for its chain hash.  Raises CannotBeTried, or what the constructor raises."""
    try:
        pure = with_chain_hash(implementation, chain)
    except LoadError as error:
        raise CannotBeTried(str(error)) from error
    manager = type(pure.create(World(2, block_size)).manager)  # type: ignore[attr-defined]
    if used := next(_compiled(manager), None):
        raise CannotBeTried(f"{used}, and CrossHair does not see into compiled code")
    return pure


def _compiled(cls: type) -> Iterator[str]:
    """Which methods use compiled code, as sentences."""
    members = {name: value for ancestor in reversed(cls.__mro__[:-1]) for name, value in vars(ancestor).items()}
    for name, value in members.items():
        method = getattr(value, "__func__", value)
        if isinstance(method, FunctionType):
            for used in _names(method.__code__):
                if (root := _root(method.__globals__.get(used))) in COMPILED:
                    yield f"{cls.__name__}.{name} uses {root}"


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _root(value: Any) -> str:
    """The top-level package that an object comes from."""
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return module.partition(".")[0].lstrip("_") if isinstance(module, str) else ""
