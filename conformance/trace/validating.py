"""Judge recordings of any length: linear in their length, in memory that follows the live state only."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kvspec.conformance.trace.compacting import Compactor
from kvspec.conformance.trace.fast_lines import Decoded
from kvspec.conformance.trace.format import WITHOUT_OPERATIONS, Footer, Header, TraceError
from kvspec.conformance.trace.judging import check_verdict, opening_state, recorded_implementation
from kvspec.conformance.trace.parts import Part, Parts
from kvspec.conformance.trace.statistics import Statistics
from kvspec.conformance.trace.strangers import Strangers
from kvspec.spec import operations as op
from kvspec.spec.judge import Illegal, Violation, advance
from kvspec.spec.state import State

BEFORE = 10  # operations that are shown before a violation
Progress = Callable[[int, int], None]  # bytes read, bytes in all


@dataclass(slots=True)
class Validation:
    """What is known of a recording.  `last`: the operations before the violation, and the one that shows it.

    `remarks`: why it could not be judged completely; without a violation and without remarks nothing is broken.
    """

    header: Header
    judged: int = 0
    skipped: int = 0
    violation: Violation | None = None
    last: tuple[Decoded, ...] = ()
    remarks: list[str] = field(default_factory=list)
    statistics: Statistics = field(default_factory=Statistics)
    most_prefixes: int = 0


def validate(paths: Sequence[Path], progress: Progress | None = None, compact_from: int = 50_000) -> Validation:
    """Judge the files of one recording.  `compact_from`: so many prefixes may wait to be forgotten.

    Raises TraceError where a file is damaged, claims what is not so, or asks what no scheduler may ask.
    """
    parts = Parts(paths)
    if parts.header.context in WITHOUT_OPERATIONS or parts.header.context == "model":
        raise TraceError("this is a counterexample that needs its implementation: use `kvspec replay`")
    validator = _Validator(parts, progress, compact_from)
    validator.run()
    return validator.found


class _Validator:
    """Runs through the parts once."""

    def __init__(self, parts: Parts, progress: Progress | None, compact_from: int) -> None:
        self._parts, self._progress, self._compact_from = parts, progress, compact_from
        self.found = Validation(parts.header)
        self._window: deque[Decoded] = deque(maxlen=BEFORE + 1)
        self._due = 1
        self._state: State
        self._strangers: Strangers | None = None
        self._restart(middle=False)

    def run(self) -> None:
        """Judge part after part, up to the first violation; the part that has it is read to its end."""
        for part in self._parts.parts:
            self._continue_with(part)
            self._judge(part)
            self._after(part)
            if self.found.violation:
                break
        self._finish()

    def _restart(self, middle: bool) -> None:
        self._state = opening_state(self.found.header)
        self._strangers = Strangers(self._state) if middle else None
        implementation = recorded_implementation(self.found.header)
        self._compactor = Compactor(self._state, implementation, self._compact_from)

    def _continue_with(self, part: Part) -> None:
        first = part.first or self._due
        if first == self._due:
            return
        missing = (
            f"operations {self._due:,} to {first - 1:,} are missing" if self._due > 1 else "it starts in the middle"
        )
        self._remark(f"{part.path.name}: {missing}")
        self._count_skipped()
        self._restart(middle=True)
        self._due = first

    def _remark(self, text: str) -> None:
        self.found.remarks.append(text)

    def _judge(self, part: Part) -> None:
        """The hot loop."""
        add, note, state = self._window.append, self.found.statistics.note, self._state
        for decoded in part.operations():
            add(decoded)
            number, request, answer, shown = decoded
            if self._strangers is not None:
                if (some := self._strangers.judgeable(request, answer)) is None:
                    continue
                (request, answer), shown = some, None  # a snapshot is of the whole pool
            table = self._table_of(request) if type(request) is op.Release else ()
            try:
                violation = advance(state, request, answer, shown)
            except Illegal as error:
                raise TraceError(f"operation {number} is one that no scheduler may ask for: {error}") from None
            self.found.judged += 1
            if violation is not None:
                self._violated(violation, part)
                return
            if table:
                self.found.statistics.freed(state, table)
            note(state, request, answer)
            if not number & 255:
                self._now_and_then()

    def _table_of(self, request: op.Release) -> tuple[int, ...]:
        live = self._state.sequences.get(request.sequence)
        return live.table if live else ()

    def _violated(self, violation: Violation, part: Part) -> None:
        """The rest of the file is read as well: an edited file proves nothing."""
        self.found.violation, self.found.last = violation, tuple(self._window)
        part.drain()

    def _now_and_then(self) -> None:
        prefixes = len(self._state.prefixes.parents)
        self.found.most_prefixes = max(self.found.most_prefixes, prefixes)
        self._state.noted.clear()
        self._compactor()
        if self._progress:
            self._progress(self._parts.read, self._parts.size)

    def _after(self, part: Part) -> None:
        """What the end of a file says: the claim of its footer, or that it has none."""
        self._due = self._window[-1][0] + 1 if self._window else self._due
        if part.cut:
            self._remark(f"{part.path.name} lacks its end: {part.cut}")
        elif part.footer is not None:
            self._check_claim(part.footer)

    def _check_claim(self, footer: Footer) -> None:
        violation, last = self.found.violation, self._window[-1][0] if self._window else 0
        if footer.verdict and violation and last < footer.operations:
            raise TraceError(
                f"operation {last} breaks {violation.clause}, but the trace goes on to break {footer.verdict}"
            )
        check_verdict(self.found.header, footer.verdict, violation)

    def _finish(self) -> None:
        self._count_skipped()
        self.found.statistics.close(self._state)
        if not self.found.judged:
            self._remark("there is no operation that can be judged")
        if self._progress:
            self._progress(self._parts.size, self._parts.size)

    def _count_skipped(self) -> None:
        if self._strangers is not None:
            self.found.skipped += self._strangers.skipped
