"""``kvspec smoke "cmd:…"``: five tiny exchanges with a program, as they go over the pipe, and what to write next."""

from dataclasses import dataclass
from typing import cast

from rich.console import Console

from kvspec.conformance.snapshots import fault_of
from kvspec.conformance.verdict import ExitCode
from kvspec.impl.errors import LoadError
from kvspec.impl.pipe.connection import Connection, spoken
from kvspec.impl.pipe.loading import command_of, problem_of
from kvspec.impl.pipe.protocol import (
    PROTOCOL,
    Answer,
    BlockHash,
    HashBlock,
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
TIMING = "the timing contract in spec/README.md"
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
        hit = _exchanges(connection, introduction, console)
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
    if not isinstance(answer, Introduction):
        raise Mismatch(Hello(), failure(answer) or _line(exchange), f"{advice} ({GUIDE})")
    if problem := problem_of(answer):
        raise Mismatch(Hello(), problem, f"correct the answer to hello ({GUIDE})")
    console.print("1  hello: who are you, and what do you declare?", style="bold")
    _show(exchange, console)
    if answer.hash:
        _hash(connection, console)
    return answer


def _hash(connection: Connection, console: Console) -> None:
    block, form = HashBlock((7, 7), None), 'answer {"outcome":"hash","key":"…"}, or announce none'
    exchange = _ask(connection, block, console, form)
    if not isinstance(exchange.answer, BlockHash):
        raise Mismatch(block, failure(exchange.answer) or _line(exchange), f"{form} ({GUIDE})")


def _exchanges(connection: Connection, introduction: Introduction, console: Console) -> bool:
    """All but the first exchange; was the prefix found again?"""
    console.print("2  a prompt is admitted, computed, and released", style="bold")
    state = _start(connection, introduction, 4, console)
    prompt = (7,) * state.world.block_size + (9,)
    for operation in (op.Admit("A", prompt, LIMIT), op.Commit(("A",)), op.Release("A")):
        _perform(connection, introduction, state, operation, console)
    console.print("3  the same prompt comes again: its first block can be found", style="bold")
    found = _perform(connection, introduction, state, op.Admit("B", prompt, LIMIT), console)
    _perform(connection, introduction, state, op.Commit(("B",)), console)
    _sample_and_refuse(connection, introduction, state, console)
    goodbye = 'answer with {"outcome":"stopped"}, then end'
    if not isinstance((last := _ask(connection, Stop(), console, goodbye)).answer, Stopped):
        raise Mismatch(Stop(), failure(last.answer) or _line(last), goodbye)
    return isinstance(found, op.Admitted) and found.cached > 0


def _start(connection: Connection, introduction: Introduction, blocks: int, console: Console) -> State:
    declaration = introduction.declaration
    world = World(blocks + declaration.withheld, max(2, declaration.smallest_block_size))
    start = _ask(connection, Start(world), console, "make a manager for the world, and drop the one before")
    if not isinstance(start.answer, Started):
        raise Mismatch(Start(world), failure(start.answer) or _line(start), 'answer with {"outcome":"started"}')
    state = begin(world, declaration)
    state.muted = COMPLETENESS
    return state


def _sample_and_refuse(connection: Connection, introduction: Introduction, state: State, console: Console) -> None:
    """The fourth exchange, and the fifth in a world of its own."""
    console.print("4  a token is sampled, and computed in the next step", style="bold")
    for operation in (op.Append("B", 5), op.Reserve("B", 1), op.Commit(("B",))):
        _perform(connection, introduction, state, operation, console)
    console.print("5  a fresh, smaller pool: a prompt that needs all of it waits until A is gone", style="bold")
    state = _start(connection, introduction, 3, console)
    size, blocks = state.world.block_size, state.world.blocks
    short, large = op.Admit("A", (7,) * (size + 1), LIMIT), op.Admit("B", (3,) * (blocks * size), LIMIT)
    _perform(connection, introduction, state, short, console)
    _perform(connection, introduction, state, large, console, op.Refused)
    for operation in (op.Commit(("A",)), op.Release("A"), *(() if state.declaration.withheld else (large,))):
        _perform(connection, introduction, state, operation, console)


def _perform(
    connection: Connection,
    introduction: Introduction,
    state: State,
    operation: op.Operation,
    console: Console,
    expected: type | None = None,
) -> op.Outcome:
    verb, expected = type(operation).__name__.lower(), expected or _EXPECTED[type(operation)]
    exchange = _ask(connection, operation, console, f'answer as the row of "{verb}" says')
    shown = _look(connection, state, console) if introduction.snapshot else None
    if not isinstance(exchange.answer, expected):
        got = failure(exchange.answer) or _line(exchange)
        raise Mismatch(operation, got, f'answer {expected.__name__.lower()}; see "{verb}" in {TIMING}')
    outcome = cast(op.Outcome, exchange.answer)
    if violation := advance(state, operation, outcome, shown):
        raise Mismatch(operation, f"{violation.clause}: {violation.because}", f"kvspec explain {violation.clause}")
    return outcome


def _look(connection: Connection, state: State, console: Console) -> Snapshot:
    form = "give a snapshot its form"
    exchange = _ask(connection, Look(), console, form)
    shown, blocks = exchange.answer, state.world.blocks + len(state.declaration.unusable)
    if not isinstance(shown, Snapshot):
        raise Mismatch(Look(), failure(shown) or _line(exchange), 'answer {"outcome":"snapshot",…}, or announce none')
    if fault := fault_of(shown, max(state.blocks) + 1, blocks):
        raise Mismatch(Look(), fault, f"{form} ({GUIDE})")
    return shown


COMPLETENESS = frozenset({"NO-LOST-HIT", "SURVIVES-RELEASE", "TWIN"})  # nothing has to be found in a smoke test
_EXPECTED: dict[type, type] = {
    op.Admit: op.Admitted,
    op.Reserve: op.Reserved,
    op.Commit: op.Committed,
    op.Append: op.Appended,
    op.Release: op.Released,
}


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
    return f'all exchanges work: kvspec vectors "{target}", then kvspec check "{target}"'


def _line(exchange: Exchange) -> str:
    return _short(exchange.answered)


def _short(line: bytes) -> str:
    text = line.decode(errors="replace").strip()
    return text if len(text) <= 160 else f"{text[:157]}..."
