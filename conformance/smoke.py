"""``kvspec smoke "cmd:…"``: three tiny exchanges with a program, as they go over the pipe, and what to write next."""

from dataclasses import dataclass
from typing import cast

from rich.console import Console

from kvspec.conformance.verdict import ExitCode
from kvspec.impl.errors import LoadError
from kvspec.impl.pipe.connection import Connection, spoken
from kvspec.impl.pipe.loading import command_of
from kvspec.impl.pipe.protocol import (
    PROTOCOL,
    Answer,
    Hello,
    Introduction,
    Look,
    NoAnswer,
    Request,
    Start,
    Started,
    Stop,
    Stopped,
    failure,
    read_answer,
    request_line,
)
from kvspec.spec import operations as op
from kvspec.spec.judge import advance, begin
from kvspec.spec.state import Snapshot, State, World

GUIDE = "spec/PORTING.md"
LIMIT = 1 << 20


class Mismatch(Exception):
    """The program's answer is not what the exchange needs; `advice` says what to write."""

    def __init__(self, request: Request, got: str, advice: str) -> None:
        super().__init__(got)
        self.request, self.got, self.advice = request, got, advice


@dataclass(frozen=True, slots=True)
class Exchange:
    """What went over the pipe."""

    asked: bytes
    answered: bytes
    answer: Answer


def smoke_command(target: str, console: Console | None = None) -> ExitCode:
    """Run the exchanges, print them, and say what to do next.  The exit code."""
    console = console or Console(highlight=False, soft_wrap=True)
    try:
        connection = Connection(command_of(target))
    except LoadError as error:
        console.print(str(error), style="red", markup=False)
        return ExitCode.USAGE
    try:
        introduction = _introduce(connection, console)
        hit = _compute_and_hit(connection, introduction, console)
    except Mismatch as mismatch:
        _three_lines(mismatch, console)
        return ExitCode.VIOLATES
    except OSError as error:
        console.print(f"{target}: the program cannot be started: {error.strerror}", style="red", markup=False)
        return ExitCode.USAGE
    finally:
        connection.stop(0)
    console.print(f"next    {_next_step(introduction, hit, target)}", markup=False)
    return ExitCode.CONFORMS


def _introduce(connection: Connection, console: Console) -> Introduction:
    """The first exchange."""
    quiet = Console(quiet=True)  # if nothing works, three lines are enough
    advice = f'answer with {{"outcome":"hello","protocol":{PROTOCOL},…}} first; everything else can wait'
    exchange = _ask(connection, Hello(), quiet, advice)
    answer = exchange.answer
    if not isinstance(answer, Introduction) or answer.protocol != PROTOCOL:
        raise Mismatch(Hello(), failure(answer) or f"{answer}", advice)
    console.print("1  hello: who are you, and what do you declare?", style="bold")
    _show(exchange, console)
    return answer


def _compute_and_hit(connection: Connection, introduction: Introduction, console: Console) -> bool:
    """The second and the third exchange; was the prefix found again?"""
    declaration = introduction.declaration
    size = max(2, declaration.smallest_block_size)
    world = World(blocks=4, block_size=size)
    state = begin(world, declaration)
    state.muted = COMPLETENESS
    prompt = (7,) * size + (9,)
    console.print("2  a prompt is admitted, computed, and released", style="bold")
    start = _ask(connection, Start(world), console, "make a manager for the world, and drop the one before").answer
    if not isinstance(start, Started):
        raise Mismatch(Start(world), failure(start) or f"{start}", 'answer with {"outcome":"started"}')
    for operation in (op.Admit("A", prompt, LIMIT), op.Commit(("A",)), op.Release("A")):
        _perform(connection, introduction, state, operation, console)
    console.print("3  the same prompt comes again: its first block can be found", style="bold")
    found = _perform(connection, introduction, state, op.Admit("B", prompt, LIMIT), console)
    _perform(connection, introduction, state, op.Commit(("B",)), console)
    _perform(connection, introduction, state, op.Release("B"), console)
    if not isinstance(_ask(connection, Stop(), console, "answer stop, then end").answer, Stopped):
        raise Mismatch(Stop(), "another answer", 'answer with {"outcome":"stopped"}, then end')
    return isinstance(found, op.Admitted) and found.cached > 0


def _perform(
    connection: Connection, introduction: Introduction, state: State, operation: op.Operation, console: Console
) -> op.Outcome:
    advice = f'see "{type(operation).__name__.lower()}" in the timing contract'
    answer = _ask(connection, operation, console, advice).answer
    shown = _ask(connection, Look(), console, "hello announced snapshots").answer if introduction.snapshot else None
    if shown is not None and not isinstance(shown, Snapshot):
        raise Mismatch(Look(), failure(shown) or f"{shown}", 'answer with {"outcome":"snapshot",…}, or announce none')
    expected = _EXPECTED[type(operation)]
    if not isinstance(answer, expected):
        raise Mismatch(operation, failure(answer) or f"{answer}", f"answer {expected.__name__.lower()}; {advice}")
    outcome = cast(op.Outcome, answer)
    if violation := advance(state, operation, outcome, shown):
        raise Mismatch(operation, f"{violation.clause}: {violation.because}", f"kvspec explain {violation.clause}")
    return outcome


COMPLETENESS = frozenset({"NO-LOST-HIT", "SURVIVES-RELEASE", "TWIN"})  # nothing has to be found in a smoke test
_EXPECTED: dict[type, type] = {op.Admit: op.Admitted, op.Commit: op.Committed, op.Release: op.Released}


def _ask(connection: Connection, request: Request, console: Console, advice: str) -> Exchange:
    line = request_line(request)
    answers, broken = connection.exchange([line])
    if not answers:
        assert broken is not None
        raise Mismatch(request, spoken(broken), f"{advice} ({GUIDE})")
    try:
        exchange = Exchange(line, answers[0], read_answer(answers[0]))
    except NoAnswer as error:
        raise Mismatch(request, str(error), f"{advice} ({GUIDE})") from None
    _show(exchange, console)
    return exchange


def _show(exchange: Exchange, console: Console) -> None:
    console.print(f"   > {_short(exchange.asked)}", style="dim", markup=False)
    console.print(f"   < {_short(exchange.answered)}", markup=False)


def _three_lines(mismatch: Mismatch, console: Console) -> None:
    console.print(f"asked   {_short(request_line(mismatch.request))}", style="red", markup=False)
    console.print(f"got     {mismatch.got}", style="red", markup=False)
    console.print(f"next    {mismatch.advice}", style="red", markup=False)


def _next_step(introduction: Introduction, hit: bool, target: str) -> str:
    if not hit:
        return "nothing was found again: write the prefix cache, then declare the profile prefix"
    if not introduction.snapshot:
        return "answer snapshot: then faults are found where they happen, not when they hurt"
    return f'all three exchanges work: kvspec vectors "{target}", then kvspec check "{target}"'


def _short(line: bytes) -> str:
    text = line.decode(errors="replace").strip()
    return text if len(text) <= 160 else f"{text[:157]}..."
