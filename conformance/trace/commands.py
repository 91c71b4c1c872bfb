"""The commands on traces, as functions that print and return an exit code (see ``verdict.ExitCode``)."""

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path

from rich.console import Console

from kvspec.conformance.known_failures import KnownFailuresError, add_known
from kvspec.conformance.lockstep import CannotCreate
from kvspec.conformance.render.counterexample import render_counterexample
from kvspec.conformance.render.moments import tell
from kvspec.conformance.render.picture import svg_of
from kvspec.conformance.render.story_page import html_of
from kvspec.conformance.render.table import render_story
from kvspec.conformance.render.words import plural
from kvspec.conformance.shrink import shrink
from kvspec.conformance.terminal import terminal
from kvspec.conformance.trace.format import Trace, TraceError
from kvspec.conformance.trace.judging import judge_trace
from kvspec.conformance.trace.reader import read_trace
from kvspec.conformance.trace.replaying import Replay, counterexample_of, replay
from kvspec.conformance.trace.writer import NotRepeatable, write_trace
from kvspec.conformance.verdict import ExitCode
from kvspec.impl.adapter import Implementation
from kvspec.impl.errors import LoadError
from kvspec.impl.loader import load

Target = str | Implementation
Command = Callable[..., int]


def _complain(message: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(message, markup=False, style="red")


def clear_errors(command: Command) -> Command:
    """Every expected failure ends a command with one message: 2 for usage, 3 where nothing is proved."""

    @wraps(command)
    def guarded(*arguments: object, **named: object) -> int:
        try:
            return command(*arguments, **named)
        except (LoadError, KnownFailuresError) as error:
            _complain(str(error))
            return ExitCode.USAGE
        except OSError as error:
            _complain(f"{error.filename}: {error.strerror}")
            return ExitCode.USAGE
        except (TraceError, NotRepeatable, CannotCreate) as error:
            _complain(str(error))
            return ExitCode.PROVES_NOTHING

    return guarded


def _loaded(target: Target, stubs: Sequence[str]) -> Implementation:
    return target if isinstance(target, Implementation) else load(target, stubs=stubs)


@clear_errors
def replay_command(trace: Path, impl: Target, stubs: Sequence[str] = ()) -> int:
    """Ask an implementation the same again: 1 if it breaks a clause, 0 if it does not."""
    stored = read_trace(trace)
    implementation = _loaded(impl, stubs)
    told = replay(stored, implementation)
    screen, claimed = terminal(), stored.footer.verdict
    if told.violation is None:
        screen.print(f"{implementation.name}: {_passed(stored, told)}", style="green", markup=False, soft_wrap=True)
        return ExitCode.CONFORMS
    screen.print(render_counterexample(counterexample_of(stored, told.violation), implementation))
    if claimed and told.violation.clause != claimed:
        screen.print(f"the trace was stored for {claimed}", markup=False, soft_wrap=True)
    return ExitCode.VIOLATES


def _passed(stored: Trace, told: Replay) -> str:
    done = f"{plural(len(stored.records) - told.skipped, 'operation')} replayed"
    skipped = f", {told.skipped} could not be asked after other answers" if told.skipped else ""
    verdict = f"{stored.footer.verdict} holds now" if stored.footer.verdict else "no clause is broken"
    return f"{verdict} ({done}{skipped})"


@clear_errors
def shrink_command(trace: Path, impl: Target, out: Path | None = None, stubs: Sequence[str] = ()) -> int:
    """Make a counterexample shorter and store it in `out` (default: beside the trace): 1, or 0 if nothing fails now."""
    stored = read_trace(trace)
    implementation = _loaded(impl, stubs)
    told = replay(stored, implementation)
    if told.violation is None:
        terminal().print(f"{implementation.name}: {_passed(stored, told)}", style="green", markup=False, soft_wrap=True)
        return ExitCode.CONFORMS
    shorter = counterexample_of(stored, told.violation)
    if stored.records:
        shorter = shrink(implementation, shorter)
    path = write_trace(
        out or trace.with_name(f"{trace.stem}-short.ndjson"), implementation, shorter, stored.header.seed
    )
    terminal().print(render_counterexample(shorter, implementation, path))
    before, after = len(stored.records), len(shorter.program.operations)
    terminal().print(f"{before} -> {plural(after, 'operation')}: {path}", markup=False, soft_wrap=True)
    return ExitCode.VIOLATES


@clear_errors
def show_command(trace: Path, html: Path | None = None, svg: Path | None = None) -> int:
    """Show a stored counterexample as a table, and as a page or picture where asked for: 0 if it could be shown."""
    stored = read_trace(trace)
    if stored.footer.verdict is None:
        terminal().print(
            f"{plural(len(stored.records), 'operation')}, no clause is broken", markup=False, soft_wrap=True
        )
        return ExitCode.CONFORMS
    story = tell(stored)
    terminal().print(render_story(story, str(trace)))
    for path, text in ((html, html_of(story, str(trace))), (svg, svg_of(story))):
        if path:
            path.write_text(text, encoding="utf-8")
            terminal().print(f"wrote {path}", markup=False, soft_wrap=True)
    return ExitCode.CONFORMS


@clear_errors
def judge_command(trace: Path) -> int:
    """Judge a trace by itself, in constant memory: 0 if it breaks no clause, 1 if it does, 3 if it proves nothing."""
    judgement = judge_trace(trace)
    done = f"{judgement.header.implementation}: {judgement.operations:,} operations judged"
    if judgement.violation is None:
        terminal().print(f"{done}, 0 violations", style="green", markup=False, soft_wrap=True)
        return ExitCode.CONFORMS
    violation = judgement.violation
    terminal().print(
        f"{done}, the last one breaks {violation.clause}: {violation.because}",
        style="red",
        markup=False,
        soft_wrap=True,
    )
    return ExitCode.VIOLATES


@clear_errors
def accept_command(trace: Path, known: Path, reason: str, link: str) -> int:
    """List a stored counterexample as a known failure, with a reason and a link: 0 if it is listed now."""
    add_known(known, trace, reason, link)
    terminal().print(f"{known}: {trace.name} is listed as known", markup=False, soft_wrap=True)
    return ExitCode.CONFORMS
