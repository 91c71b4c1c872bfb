"""What an exploration means for a declaration: which worlds and violations count, which are only probed, and in what words."""

from dataclasses import replace
from enum import Enum
from pathlib import Path

from rich.console import Console
from rich.text import Text

from kvspec.conformance.explorer.search import Exploration
from kvspec.conformance.explorer.world import SmallWorld
from kvspec.conformance.program import Counterexample, in_parts
from kvspec.conformance.render.counterexample import render_counterexample, trace_path_of
from kvspec.conformance.render.explain import broken_profile
from kvspec.impl.adapter import Implementation
from kvspec.spec.clauses import BORROWED, CLAUSES
from kvspec.spec.declaration import Declaration


class Standing(Enum):
    """What one world has shown."""

    HOLDS = "holds"
    VIOLATES = "violates"
    PROBED = "probed"  # outside what is declared: shown, and not counted


def outside(world: SmallWorld, declaration: Declaration) -> str:
    """Why what happens in this world does not count, as a sentence; empty if it does."""
    least, most = declaration.smallest_block_size, declaration.largest_block_size
    if least <= world.block_size <= most or (world.block_size == 1 and "one" in declaration.profiles):
        return ""
    declared = f"{least} only" if least == most else f"{least} to {most}" if most < 1 << 20 else f"{least} or more"
    one = ", and not profile one" if world.block_size == 1 else ""
    return f"block size {world.block_size} is outside what is declared ({declared}{one}): probed, not counted"


def named(implementation: Implementation, explored: Exploration) -> Counterexample | None:
    """The counterexample in the context in which ``kvspec check`` counts it: `chunked` only if it plans a step in parts."""
    found = explored.counterexample
    return found and replace(found, context="chunked" if in_parts(implementation, found) else "steps")


def undeclared_profile(found: Counterexample, declaration: Declaration) -> str:
    """Why this violation does not count, as a sentence; empty if it does."""
    own = CLAUSES[found.violation.clause].profile
    profile = broken_profile(found.violation.clause, found.context) if own in BORROWED["chunked"] else own
    if profile in declaration.profiles:
        return ""
    return f"{found.violation.clause} belongs to profile {profile}, which is not declared: probed, not counted"


def standing(world: SmallWorld, explored: Exploration, implementation: Implementation) -> Standing:
    """What counts of an exploration."""
    declaration, found = implementation.declaration, named(implementation, explored)
    if outside(world, declaration) or (found and undeclared_profile(found, declaration)):
        return Standing.PROBED
    return Standing.VIOLATES if found else Standing.HOLDS


def show_all(
    console: Console,
    implementation: Implementation,
    worlds: list[SmallWorld],
    found: list[Exploration],
    traces: Path | None,
) -> None:
    """All worlds in order; those that an interrupt kept from starting are named, too."""
    for world, explored in zip(worlds, found, strict=False):
        show(console, implementation, world, explored, traces)
    for world in worlds[len(found) :]:
        console.print(f"{world.label}: not explored (interrupted)")


def show(
    console: Console, implementation: Implementation, world: SmallWorld, explored: Exploration, traces: Path | None
) -> None:
    """Print a line of figures, then the counterexample as the table that ``kvspec check`` prints."""
    declaration, found = implementation.declaration, named(implementation, explored)
    console.print(Text(f"{world.label}: {explored.certificate.sentence()}"), soft_wrap=True)
    why = outside(world, declaration) or (undeclared_profile(found, declaration) if found else "")
    if why:
        console.print(Text(f"  {why}", "yellow"), soft_wrap=True)
    if found:
        console.print(render_counterexample(found, implementation, traces and trace_path_of(found, traces)))
