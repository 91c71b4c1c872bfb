"""``kvspec validate``: judge a recording, say what was found, and what could not be judged."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from kvspec.conformance.render.words import plural
from kvspec.conformance.trace.commands import clear_errors, judge_command
from kvspec.conformance.trace.course import course_of
from kvspec.conformance.trace.encoding import OPERATION, OUTCOME
from kvspec.conformance.trace.fast_lines import Decoded
from kvspec.conformance.trace.format import WITHOUT_OPERATIONS
from kvspec.conformance.trace.parts import Parts
from kvspec.conformance.trace.validating import Validation, validate
from kvspec.conformance.verdict import ExitCode

LONGEST = 160  # characters of an operation that are shown


@clear_errors
def validate_command(traces: Sequence[Path], plot: Path | None = None, statistics: bool = True) -> int:
    """Judge the files of one recording: 1 if it breaks a clause, 3 if it could not be judged completely, else 0."""
    if len(traces) == 1 and Parts(traces).header.context in (*WITHOUT_OPERATIONS, "model"):
        return judge_command(traces[0])
    screen, begin = Console(highlight=False, soft_wrap=True), time.perf_counter()
    with _bar() as bar:
        task = bar.add_task("judging", total=None)
        found = validate(traces, lambda read, size: bar.update(task, completed=read, total=size))
    _tell(screen, found, time.perf_counter() - begin)
    if statistics:
        _tell_statistics(screen, found)
    if plot:
        plot.write_text(course_of(found), encoding="utf-8")
        screen.print(f"wrote {plot}", markup=False)
    if found.violation:
        return ExitCode.VIOLATES
    return ExitCode.PROVES_NOTHING if found.remarks else ExitCode.CONFORMS


def _bar() -> Progress:
    """On a terminal only, on standard error, and gone when it is done."""
    screen = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)


def _tell(screen: Console, found: Validation, seconds: float) -> None:
    for remark in found.remarks:
        screen.print(remark, style="yellow", markup=False)
    done = f"{found.header.implementation}: {plural(found.judged, 'operation')} judged"
    if found.skipped:
        done += f", {found.skipped:,} could not be judged"
    if found.violation is None:
        partly = ", as far as it can be judged" if found.remarks else ""
        style = "yellow" if found.remarks else "green"
        screen.print(f"{done}, 0 violations{partly} ({seconds:.1f} s)", style=style, markup=False)
        return
    for decoded in found.last:
        screen.print(_shown(decoded), style="dim" if decoded is not found.last[-1] else "red", markup=False)
    broken = f"operation {found.last[-1][0]:,} breaks {found.violation.clause}: {found.violation.because}"
    screen.print(f"{done}, the last one breaks a clause\n{broken}", style="red", markup=False)


def _shown(decoded: Decoded) -> str:
    number, request, answer, _ = decoded
    asked, answered = OPERATION.write(request), OUTCOME.write(answer)
    text = f"{number:>10}  {asked.pop('op')} {_fields(asked)} -> {answered.pop('outcome')} {_fields(answered)}"
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _fields(values: dict[str, object]) -> str:
    return " ".join(f"{name}={json.dumps(value)}" for name, value in values.items())


def _tell_statistics(screen: Console, found: Validation) -> None:
    counts = found.statistics
    if not counts.asked:
        return
    age = f"; half of them within {counts.recycle_age:,} operations after their release" if counts.recycled else ""
    screen.print(
        f"hit rate {counts.hit_rate:.1%} of {counts.asked:,} prompt tokens in {plural(counts.admitted, 'admission')}\n"
        f"{plural(counts.refused, 'refusal')}, {plural(counts.preempted, 'preemption')}\n"
        f"{plural(counts.recycled, 'cached block')} recycled{age}",
        markup=False,
    )
