"""Which small worlds are exhausted at which effort, and which are searched for the shortest program to one clause.

Shapes differ on purpose: wide tables with one token find what narrow pools with two tokens never show.
"""

from dataclasses import replace

from kvspec.conformance.explorer.world import SmallWorld
from kvspec.spec.declaration import Declaration

WORLDS: dict[str, tuple[SmallWorld, ...]] = {
    "smoke": (SmallWorld(2, 2, 2, 1, 4, True),),
    "default": (SmallWorld(3, 2, 2, 1, 4, True), SmallWorld(2, 2, 2, 2, 4, True)),
    "deep": (SmallWorld(3, 2, 2, 1, 5, True), SmallWorld(4, 2, 2, 1, 5), SmallWorld(3, 2, 2, 2, 4)),
}
SEARCHED = (
    SmallWorld(2, 2, 2, 1, 4, True),
    SmallWorld(3, 2, 2, 2, 4),
    SmallWorld(4, 2, 2, 1, 6),
    SmallWorld(3, 2, 2, 2, 4, True),
)


def default_worlds(declaration: Declaration, effort: str = "default") -> list[SmallWorld]:
    """The worlds for an effort: smoke, default or deep.  Partial commits only where `chunked` is declared."""
    return fitted(WORLDS[effort], declaration)


def fitted(worlds: tuple[SmallWorld, ...], declaration: Declaration) -> list[SmallWorld]:
    """The worlds with a block size and commits that the declaration allows, without repetitions.

    Where hits within a step are declared, what is reserved matters to what can be hit: with parts such a world has ten times
    as many states, so it is explored without, unless it is asked for.
    """
    least, most = declaration.smallest_block_size, declaration.largest_block_size
    partial = "chunked" in declaration.profiles and not declaration.same_step_hit
    return list(dict.fromkeys(_fit(world, min(max(world.block_size, least), most), partial) for world in worlds))


def _fit(world: SmallWorld, size: int, partial: bool) -> SmallWorld:
    length = world.max_length * size // world.block_size
    return replace(world, block_size=size, max_length=length, partial_commits=world.partial_commits and partial)
