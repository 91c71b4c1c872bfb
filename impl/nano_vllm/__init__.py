"""Adapters for managers in the style of nano-vllm, chosen by looking at the class."""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

from kvspec.impl.adapter import Implementation
from kvspec.impl.errors import ImplementationError, LoadError
from kvspec.impl.nano_vllm import shapes
from kvspec.impl.nano_vllm.adapter import NanoAdapter, Plan
from kvspec.impl.nano_vllm.early import EarlyAdapter, LayoutAdapter, RenamedAdapter
from kvspec.impl.nano_vllm.late import LateAdapter, LateTokensAdapter
from kvspec.impl.nano_vllm.managers import constructed, constructor_of
from kvspec.impl.nano_vllm.sequences import APPEND, APPEND_RENAMED, MakeSequence, fits, sequence_maker
from kvspec.impl.nano_vllm.shapes import SHAPES, Shape
from kvspec.impl.nano_vllm.sight import Sight
from kvspec.impl.nano_vllm.weak_hash import chain_hash_of, namespace_of, twin_with
from kvspec.spec.declaration import Declaration
from kvspec.spec.state import World

ADAPTERS: dict[str, type[NanoAdapter]] = {
    shapes.LATE.name: LateAdapter,
    shapes.LATE_TOKENS.name: LateTokensAdapter,
    shapes.EARLY.name: EarlyAdapter,
    shapes.LAYOUT.name: LayoutAdapter,
    shapes.RENAMED.name: RenamedAdapter,
}

_SIZES = (2, 4, 8, 16, 32, 64, 128, 256)


def implementation_of(
    cls: type,
    target: str = "",
    source: str = "",
    sequences: tuple[type, ...] = (),
    adapter: type[NanoAdapter] | None = None,
) -> Implementation:
    """The implementation of a manager class in one of the known shapes.

    `sequences`: classes of sequences to try, besides those that the manager's module names.  `adapter`: one that knows
    more calls of the manager than its shape has.  Raises LoadError if the
    shape is not known, or no manager can be constructed.
    """
    shape = shapes.shape_of(cls)
    if shape is None:
        raise LoadError(why_no_shape(cls))
    append = APPEND_RENAMED if shape is shapes.RENAMED else APPEND
    factory = _Factory(cls, shape, _own_sequence(cls, sequences, append), adapter or ADAPTERS[shape.name])
    smallest, largest = _block_sizes(factory)
    trial = factory(World(4, smallest))
    return Implementation(
        name=cls.__name__,
        declaration=_declared(cls, shape, trial.manager, smallest, largest),
        create=factory,
        target=target,
        source=source,
        shape=f"{shape.name}; {factory.spoken(smallest)}",
        chain_hash=chain_hash_of(cls),
    )


def with_chain_hash(implementation: Implementation, chain_hash: Callable[..., int]) -> Implementation:
    """The same manager with another chain hash, which is called as its own one is: tokens and parent, in its order.

    A manager that shows no chain hash stays as it is.  Raises LoadError for an adapter of another kind.
    """
    factory = implementation.create
    if not isinstance(factory, _Factory):
        raise LoadError(f"{implementation.name} is not a Python class with the calls of nano-vllm's managers")
    return replace(implementation, create=factory.with_chain_hash(chain_hash), chain_hash=chain_hash)


class _Factory:
    """Makes adapters: what depends on the block size or the hash only is found once."""

    def __init__(self, cls: type, shape: Shape, sequence: type | None, adapter: type[NanoAdapter]) -> None:
        self._cls, self._shape, self._sequence, self._adapter = cls, shape, sequence, adapter
        self._construct = constructor_of(cls)
        self._makers: dict[int, tuple[MakeSequence, str]] = {}
        self._twin: type | None = None
        renamed = shape is shapes.RENAMED
        self._spelling: dict[str, Any] = {
            "grow": "allocate_block_for_decode" if renamed else shapes.grow_name(cls),
            "publish": shapes.publish_name(cls) if shape.needs[-1] == shapes.LATE.needs[-1] else "commit",
            "asks_with_sequence": renamed or shapes.required(cls, "can_append") > 0,
        }
        if renamed and sequence is None:
            raise LoadError(f"{cls.__name__} works on requests of its own, but its module names no such class.")

    def __call__(self, world: World) -> NanoAdapter:
        """A fresh manager behind its adapter.  Raises ImplementationError if the manager refuses the world."""
        cls = self._weak() if world.weak_hash else self._cls
        manager = constructed(self._construct, cls, world)
        make = self._maker(world.block_size)[0]
        plan = Plan(make, Sight(manager), world.block_size, **self._spelling)
        return self._adapter(manager, plan)

    def with_chain_hash(self, chain_hash: Callable[..., int]) -> "_Factory":
        """The same for managers with another chain hash, where theirs is found."""
        new = copy(self)
        new._cls, new._twin = twin_with(self._cls, chain_hash) or self._cls, None
        return new

    def spoken(self, block_size: int) -> str:
        """Which class of sequences is used."""
        return self._maker(block_size)[1]

    def _maker(self, block_size: int) -> tuple[MakeSequence, str]:
        if block_size not in self._makers:
            self._makers[block_size] = sequence_maker(self._sequence, block_size)
        return self._makers[block_size]

    def _weak(self) -> type:
        if self._twin is None:
            self._twin = twin_with(self._cls)
        if self._twin is None:
            raise ImplementationError(f"{self._cls.__name__} shows no chain hash that could be replaced by a weak one.")
        return self._twin


def _own_sequence(cls: type, others: tuple[type, ...], append: str) -> type | None:
    """The engine's own class of sequences, if the manager's module or one of `others` gives it."""
    named = namespace_of(cls)
    likely = [named.get("Sequence"), named.get("Request"), *others, *named.values()]
    return next((found for found in likely if fits(found, append)), None)


def _block_sizes(factory: Callable[[World], NanoAdapter]) -> tuple[int, int]:
    """The smallest and the largest block size that the constructor accepts, as far as it matters here."""
    refusals = []
    for size in _SIZES:
        try:
            factory(World(4, size))
        except ImplementationError as error:
            refusals.append(str(error))
            continue
        return size, _largest(factory, size) if refusals else Declaration("").largest_block_size
    raise LoadError(
        f"No manager can be constructed: {refusals[0]}. If it needs more, write an adapter (`kvspec init`)."
    )


def _largest(factory: Callable[[World], NanoAdapter], size: int) -> int:
    try:
        factory(World(4, 2 * size))
    except ImplementationError:
        return size
    return Declaration("").largest_block_size


def _declared(cls: type, shape: Shape, manager: object, smallest: int, largest: int) -> Declaration:
    late = shape is shapes.LATE
    profiles = shape.declaration.profiles | ({"hash"} if late and chain_hash_of(cls) else set())
    return replace(
        shape.declaration,
        name=cls.__name__,
        profiles=frozenset(profiles),
        smallest_block_size=smallest,
        largest_block_size=largest,
        nano_vllm_order=late and shapes.keeps_nano_vllm_order(manager),
    )


def why_no_shape(cls: type) -> str:
    """The message for a class that has none of the known shapes: what is missing for each."""
    lines = [f"{cls.__name__} is not a block manager of a shape that is known here."]
    for shape in SHAPES:
        missing = shape.missing(cls)
        lacks = f"lacks {', '.join(missing)}" if missing else "the calls are there, but take other arguments"
        lines.append(f"  {shape.name}: {lacks}")
    lines.append("Write an adapter with the five operations: `kvspec init` writes the frame.")
    return "\n".join(lines)
