"""``kvspec explore``: options in, progress and certificates out, an exit code back."""

import re
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress as Bar
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from kvspec.conformance.explorer.certificate import differences, read_certificates, write_certificates
from kvspec.conformance.explorer.copies import NotFaithful
from kvspec.conformance.explorer.defaults import default_worlds
from kvspec.conformance.explorer.judging import NotLinked
from kvspec.conformance.explorer.parallel import explore_all
from kvspec.conformance.explorer.reporting import Standing, show_all, standing
from kvspec.conformance.explorer.search import Exploration, Progress
from kvspec.conformance.explorer.world import SmallWorld
from kvspec.conformance.lockstep import CannotCreate
from kvspec.conformance.terminal import terminal
from kvspec.conformance.verdict import ExitCode
from kvspec.impl.adapter import Implementation
from kvspec.spec.declaration import Declaration


def worlds_asked_for(
    declaration: Declaration,
    world: str | None = None,
    sequences: int = 2,
    tokens: int = 2,
    length: int | None = None,
    partial: bool | None = None,
    effort: str = "default",
) -> list[SmallWorld]:
    """The worlds that options describe: one if `world` is given (as in 3x2: blocks x block size), else those of `effort`.

    Raises ValueError with a sentence for people.
    """
    if world is None:
        return default_worlds(declaration, effort)
    match = re.fullmatch(r"(\d+)x(\d+)", world)
    if match is None:
        raise ValueError(f"a world is given as blocks x block size, for instance 3x2, not {world}")
    blocks, size = int(match[1]), int(match[2])
    if partial is None:
        partial = "chunked" in declaration.profiles
    return [SmallWorld(blocks, size, sequences, tokens, length or 2 * size, partial)]


def explore_command(
    implementation: Implementation,
    world: str | None = None,
    sequences: int = 2,
    tokens: int = 2,
    length: int | None = None,
    partial: bool | None = None,
    effort: str = "default",
    limit: int | None = None,
    seconds: float | None = None,
    certificate: Path | None = None,
    compare: Path | None = None,
    jobs: int | None = None,
    console: Console | None = None,
    invariants: bool = False,
    traces: Path | None = None,
) -> int:
    """Explore, print a line for each world and the counterexample if there is one; see ``kvspec explore --help``.

    `invariants`: evaluate what is proved after each transition.  `traces`: a folder for the trace of each counterexample.
    0: nothing declared is violated; 1: a violation, or a certificate that differs from `compare`; 2: usage or adapter
    error; 3: copies of the manager cannot be trusted, something proved does not hold, nothing that is declared was
    tried, or nothing was exhausted although no limit was asked for.
    """
    console = console or terminal()
    try:
        worlds = worlds_asked_for(implementation.declaration, world, sequences, tokens, length, partial, effort)
        expected = read_certificates(compare) if compare else None
        with _bars(console, worlds) as progress:
            found = explore_all(implementation, worlds, None, limit, seconds, progress, jobs, invariants)
    except (ValueError, OSError, CannotCreate) as error:
        console.print(f"kvspec explore: {error}", style="red", markup=False, highlight=False)
        return int(ExitCode.USAGE)
    except (NotFaithful, NotLinked) as error:
        console.print(f"kvspec explore proves nothing: {error}", style="red", markup=False, highlight=False)
        return int(ExitCode.PROVES_NOTHING)
    show_all(console, implementation, worlds, found, traces)
    if certificate:
        write_certificates(certificate, [each.certificate for each in found])
    differing = _compare(console, found, expected) if expected is not None else False
    shown = [standing(*pair, implementation) for pair in zip(worlds, found, strict=False)]
    if differing or Standing.VIOLATES in shown:
        return int(ExitCode.VIOLATES)
    return int(_without_violation(console, worlds, found, shown, limit is not None or seconds is not None))


def _without_violation(
    console: Console, worlds: list[SmallWorld], found: list[Exploration], shown: list[Standing], limited: bool
) -> ExitCode:
    """Nothing declared is violated: has that been shown of all worlds?"""
    if Standing.HOLDS not in shown:
        console.print(
            "proves nothing: nothing that is declared was explored to its end", style="yellow", soft_wrap=True
        )
        return ExitCode.PROVES_NOTHING
    decided = [each for each, stands in zip(found, shown, strict=True) if stands is Standing.HOLDS]
    complete = len(found) == len(worlds) and all(each.certificate.exhausted for each in decided)
    return ExitCode.CONFORMS if complete or limited else ExitCode.PROVES_NOTHING


def _compare(console: Console, found: list[Exploration], expected: list[dict[str, Any]]) -> bool:
    """Print what differs from the certificates of the same worlds; a world without one differs."""
    by_world = {str(each["world"]): each for each in expected}
    differing = False
    for each in found:
        mine = each.certificate.as_data()
        other = by_world.get(str(mine["world"]))
        wrong = differences(mine, other) if other else [f"no certificate of the world {mine['world']} to compare with"]
        for sentence in wrong:
            console.print(f"differs: {sentence}", style="red", markup=False, highlight=False)
        differing = differing or bool(wrong)
    if not differing:
        console.print("equal to the certificates compared with")
    return differing


@contextmanager
def _bars(console: Console, worlds: list[SmallWorld]) -> Any:
    """A line for each world on a terminal, nothing elsewhere."""
    if not console.is_terminal:
        yield None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("{task.fields[where]}"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        tasks = {world: bar.add_task(world.label, total=None, where="") for world in worlds}

        def show(world: SmallWorld, where: Progress) -> None:
            text = f"{where.states:,} states, frontier {where.frontier:,}, depth {where.depth}, {where.transitions:,} transitions"
            bar.update(tasks[world], where=text)

        yield show
