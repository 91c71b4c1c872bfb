"""What a manager is that is to be recorded: seen on the object, nothing is constructed or called."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from kvspec.impl.encoding import DECLARATION, WORLD
from kvspec.impl.nano_vllm import shapes
from kvspec.impl.nano_vllm.sight import BLOCKS, INDEX, USED
from kvspec.impl.recorder_calls import Calls
from kvspec.impl.recorder_early import EarlyCalls
from kvspec.impl.recorder_lines import Entry
from kvspec.spec import __version__
from kvspec.spec.clauses import CLAUSES
from kvspec.spec.declaration import Declaration
from kvspec.spec.state import World

FORMAT = 1  # of the trace


class CannotRecord(Exception):
    """This manager is not one that can be recorded; the message says why."""


def shape_to_record(manager: Any) -> shapes.Shape:
    """The shape of the manager.  Raises CannotRecord."""
    shape = shapes.shape_of(type(manager))
    if shape not in (shapes.LATE, shapes.LATE_TOKENS, shapes.EARLY):
        raise CannotRecord(f"{type(manager).__name__} has none of the shapes that can be recorded")
    return shape


def calls_of(cls: type, shape: shapes.Shape, entries: list[Entry], hand_over: Callable[[], None]) -> Calls:
    """Who understands the calls of this shape."""
    if shape is shapes.EARLY:
        return EarlyCalls(entries, hand_over, shapes.grow_name(cls))
    return Calls(entries, hand_over, shapes.grow_name(cls), shapes.publish_name(cls))


def _declaration(manager: Any, shape: shapes.Shape) -> Declaration:
    size = _block_size(manager)
    return replace(
        shape.declaration, name=type(manager).__name__, smallest_block_size=size, largest_block_size=max(size, 1)
    )


def _block_size(manager: Any) -> int:
    size = getattr(manager, "block_size", None)
    if type(size) is not int or size < 1:
        raise CannotRecord(f"{type(manager).__name__} does not show its block_size")
    return size


def _world(manager: Any) -> World:
    blocks = next((found for name in BLOCKS if isinstance(found := getattr(manager, name, None), list | tuple)), None)
    if not blocks:
        raise CannotRecord(f"{type(manager).__name__} does not show its blocks")
    return World(len(blocks), _block_size(manager))


def is_fresh(manager: Any) -> bool:
    """Is nothing in use and nothing cached?  If that cannot be seen, it is not taken for granted."""
    used = next((found for name in USED if isinstance(found := getattr(manager, name, None), Collection)), None)
    index = next((found for name in INDEX if isinstance(found := getattr(manager, name, None), Mapping)), {})
    return used is not None and not used and not index


def header_of(manager: Any, shape: shapes.Shape) -> dict[str, Any]:
    """The first line of each file; clauses of profiles that are not declared are muted where the judge can go on."""
    cls, declaration = type(manager), _declaration(manager, shape)
    muted = [c.slug for c in CLAUSES.values() if c.survivable and c.profile not in declaration.profiles]
    return {
        "kvspec": "trace",
        "format": FORMAT,
        "spec": __version__,
        "slug": "recording",
        "implementation": cls.__name__,
        "target": f"{cls.__module__}:{cls.__qualname__}",
        "declaration": DECLARATION.write(declaration),
        "world": WORLD.write(_world(manager)),
        "context": "steps" if declaration.same_step_hit else "chunked",
        "seed": 0,
        "muted": sorted(muted),
        "shortest": False,
        "chain_hash": None,
        "snapshot": None,
    }
