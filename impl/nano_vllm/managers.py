"""Constructing a manager: which constructor argument is the pool, which the block size."""

import inspect
from collections.abc import Callable
from typing import Any

from kvspec.impl.errors import ImplementationError, LoadError
from kvspec.impl.nano_vllm.answers import spoken
from kvspec.spec.state import World

_POOL = ("num_blocks", "num_kvcache_blocks", "capacity", "num_gpu_blocks", "total_blocks", "n_blocks")
_SIZE = ("block_size", "kvcache_block_size", "page_size")

Construct = Callable[[type, World], Any]


def constructor_of(cls: type) -> Construct:
    """How to make a manager of `cls` for a world.  Raises LoadError if it wants more than the two numbers."""
    parameters = _parameters(cls)
    names = [parameter.name for parameter in parameters]
    pool = next((name for name in _POOL if name in names), None)
    size = next((name for name in _SIZE if name in names), None)
    switches = {p.name: True for p in parameters if _turns_prefix_cache_on(p)}
    if pool is None or size is None:
        pool = size = None
    known = {pool, size} if pool else set(names[:2])
    if unknown := [p.name for p in parameters if p.default is p.empty and p.name not in known]:
        raise LoadError(
            f"{cls.__name__} cannot be constructed from a number of blocks and a block size: it also wants "
            f"{', '.join(unknown)}. Write an adapter that makes it (`kvspec init` writes the frame)."
        )
    return _by_name(pool, size, switches) if pool and size else _by_position(switches)


def _by_name(pool: str, size: str, switches: dict[str, bool]) -> Construct:
    return lambda cls, world: cls(**{pool: world.blocks, size: world.block_size}, **switches)


def _by_position(switches: dict[str, bool]) -> Construct:
    return lambda cls, world: cls(world.blocks, world.block_size, **switches)


def _parameters(cls: type) -> list[inspect.Parameter]:
    try:
        parameters = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _turns_prefix_cache_on(parameter: inspect.Parameter) -> bool:
    return parameter.default is False and "prefix" in parameter.name and "cach" in parameter.name


def constructed(construct: Construct, cls: type, world: World) -> Any:
    """A manager for this world.

    Raises ImplementationError if the class refuses a world that makes sense; for a world that makes none, what the
    class itself raises, because then that error is what is looked at.
    """
    try:
        return construct(cls, world)
    except Exception as error:
        if world.blocks < 1 or world.block_size < 1:
            raise
        raise ImplementationError(
            f"{cls.__name__} refuses {world.blocks} blocks of block size {world.block_size}: {spoken(error)}"
        ) from error
