"""``kvspec check``: the run of the pytest suite with progress bars and counterexamples on the terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from kvspec.conformance.effort import EFFORTS
from kvspec.conformance.examination import Examination, Options
from kvspec.conformance.examination import Progress as Report
from kvspec.conformance.known_failures import KnownFailures
from kvspec.conformance.profile_names import require_profiles
from kvspec.conformance.render import render_counterexample, standalone_snippet
from kvspec.conformance.summary import nothing_works, summary
from kvspec.conformance.verdict import ConformanceReport, ExitCode
from kvspec.impl.adapter import Implementation


@dataclass(frozen=True)
class CheckRequest:
    """What ``kvspec check`` was asked."""

    implementation: Implementation
    effort: str
    seed: int
    profiles: tuple[str, ...]
    known: Path | None
    write_known: Path | None
    report: Path | None
    snippet: bool
    command: str
    contracts: float | None = None


def run_check(request: CheckRequest, console: Console) -> ExitCode:
    """Examine, print, write what was asked for.

    Raises ValueError for an unknown effort or profile, or bad known failures, and lockstep.CannotCreate.
    """
    if request.effort not in EFFORTS:
        raise ValueError(f"no such effort: {request.effort}; there are {', '.join(EFFORTS)}")
    require_profiles(request.profiles)
    options = Options(request.effort, request.seed, request.profiles, request.command, contracts=request.contracts)
    known = KnownFailures.load(request.known) if request.known else None
    with _progress(console) as show:
        examination = Examination(request.implementation, options, show, known)
        examination.decide_all()
        report = examination.report()
    fixed = examination.fixed_known_failures()
    _print(request, examination, report, fixed, console)
    if request.report or request.write_known:
        from kvspec.conformance.outputs import write_outputs

        for line in write_outputs(examination, report, request.report, request.write_known):
            console.print(line)
    return ExitCode.VIOLATES if fixed else report.exit_code()


def _print(
    request: CheckRequest,
    examination: Examination,
    report: ConformanceReport,
    fixed: list[str],
    console: Console,
) -> None:
    if short := nothing_works(report, request.implementation):
        console.print(short)
    else:
        console.print(summary(report))
        _print_counterexamples(request, examination, report, console)
    for sentence in fixed:
        console.print(f"NOT AS LISTED  delete this known failure: {sentence}", style="bold red", soft_wrap=True)


def _print_counterexamples(
    request: CheckRequest, examination: Examination, report: ConformanceReport, console: Console
) -> None:
    shown: set[str] = set()
    for result in report.broken():
        if result.counterexample and result.clause not in shown:
            shown.add(result.clause)
            console.print()
            trace = examination.trace_of(result.counterexample)
            console.print(render_counterexample(result.counterexample, request.implementation, trace, request.seed))
            if request.snippet:
                print(standalone_snippet(result.counterexample, request.implementation))


@contextmanager
def _progress(console: Console) -> Iterator[Report | None]:
    """A bar for each engine while it works, gone when it is done; nothing where the output is no terminal."""
    if not console.is_terminal:
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, visible=done < total)

        yield show
