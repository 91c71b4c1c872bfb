"""The adapter of a manager that lives in another program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self, cast

from kvspec.impl.performing import PerformingExtensions
from kvspec.impl.pipe.connection import Connection, spoken
from kvspec.impl.pipe.protocol import Answer, Look, NoAnswer, Start, Started, failure, read_answer, request_line
from kvspec.spec import operations as op
from kvspec.spec.state import Snapshot, World

LOOK = request_line(Look())


class UnreadableState(Exception):
    """The program's snapshot cannot be read."""


@dataclass(frozen=True, slots=True)
class _Past:
    """One exchange and those before it; copies of an adapter share it."""

    before: _Past | None
    request: bytes
    answer: bytes

    def since_start(self) -> Iterator[_Past]:
        """All exchanges, oldest first."""
        exchanges: list[_Past] = []
        past: _Past | None = self
        while past is not None:
            exchanges.append(past)
            past = past.before
        return reversed(exchanges)


class PipeAdapter(PerformingExtensions):
    """One manager.  The program has one at a time: a copy, or a manager that was set aside, comes back by replay.

    Each operation is sent together with the request for a snapshot, where the program answers that.  A replay is one
    batch; its answers must be those of the first time.  Once the program broke, this manager is gone for good.
    """

    def __init__(self, connection: Connection, world: World, observes: bool) -> None:
        self._connection, self._observes = connection, observes
        self._token = object()
        self._past = _Past(None, request_line(Start(world)), b"")
        self._gone = ""
        self._shown: Snapshot | UnreadableState = Snapshot()

    def begin(self) -> Answer:
        """Make the manager in the program; its answer to ``start``."""
        start = self._past.request
        self._connection.owner = None
        lines, broken = self._connection.exchange([start, LOOK] if self._observes else [start])
        if not lines:
            return self._lose(broken)
        self._past = _Past(None, start, lines[0])
        answer = self._understand(lines[0])
        if isinstance(answer, Started):
            self._connection.owner = self._token
            self._see(lines[1:], broken)
        return answer

    # Operations ---------------------------------------------------------------------------------------------------

    def _perform(self, operation: op.Operation) -> op.Outcome:
        return self.perform_all((operation,))[0][0]

    def perform_all(self, operations: Sequence[op.Operation]) -> list[tuple[op.Outcome, Snapshot | None]]:
        """Several operations in one batch: outcomes and snapshots, up to the one at which the program broke."""
        if self._gone:
            return [(op.Failed(self._gone), None)]
        replay = [] if self._connection.has_manager_of(self._token) else list(self._past.since_start())
        asked = [request_line(operation) for operation in operations]
        step = 2 if self._observes else 1
        batch = [line for request in asked for line in (request, LOOK)[:step]]
        lines, broken = self._connection.exchange([past.request for past in replay] + batch)
        if again := self._differs(replay, lines):
            return [(again, None)]
        self._connection.owner = None if broken else self._token
        found: list[tuple[op.Outcome, Snapshot | None]] = []
        for place, request in zip(range(len(replay), len(lines), step), asked, strict=False):
            found.append(self._take(request, lines[place : place + step], broken))
            if self._is_gone():
                return found
        return found if len(found) == len(asked) else [*found, (self._lose(broken), None)]

    def _is_gone(self) -> bool:
        return bool(self._gone)

    def _take(
        self, request: bytes, lines: Sequence[bytes], broken: op.Failed | op.Nonsense | None
    ) -> tuple[op.Outcome, Snapshot | None]:
        self._past = _Past(self._past, request, lines[0])
        outcome = self._understand(lines[0])
        if self._observes:
            self._see(lines[1:], broken)
        shown = self._shown if self._observes and isinstance(self._shown, Snapshot) else None
        return cast(op.Outcome, outcome), shown

    def _differs(self, replay: Sequence[_Past], lines: Sequence[bytes]) -> op.Nonsense | None:
        for number, (past, line) in enumerate(zip(replay, lines, strict=False)):
            if past.answer != line:
                first, then = past.answer.decode(errors="replace"), line.decode(errors="replace")
                because = f"the same requests, another answer: request {number}: {first:.100}; then {then:.100}"
                self._lose(op.Failed(because))
                return op.Nonsense(because)
        return None

    def _understand(self, line: bytes) -> Answer:
        """The answer, or Nonsense; after that nothing that the program says can be trusted."""
        try:
            return read_answer(line)
        except NoAnswer as error:
            self._lose(op.Failed("nothing: the program was ended after an answer that is none"))
            return op.Nonsense(str(error))

    def _lose(self, broken: op.Failed | op.Nonsense | None) -> op.Failed | op.Nonsense:
        self._connection.stop(0)
        broken = broken or op.Nonsense("nothing")
        self._gone = spoken(broken)
        return broken

    # What it shows ------------------------------------------------------------------------------------------------

    def _see(self, lines: Sequence[bytes], broken: op.Failed | op.Nonsense | None) -> None:
        if self._gone or not self._observes:
            return
        if not lines:
            self._shown = UnreadableState(spoken(self._lose(broken)))
            return
        answer = self._understand(lines[0])
        if isinstance(answer, Snapshot):
            self._shown = answer
        elif isinstance(answer, op.Nonsense):
            self._shown = UnreadableState(answer.answer)
        else:
            self._shown = UnreadableState(failure(answer) or f"the answer was {answer}")

    def copy(self) -> Self:
        """An independent manager in the same state, made by replay when it is first asked."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _token=object())
        return other

    def __deepcopy__(self, memo: object) -> Self:
        return self.copy()


class ObservablePipeAdapter(PipeAdapter):
    """A manager that shows itself."""

    def snapshot(self) -> Snapshot:
        """What it showed after the last operation.  Raises UnreadableState."""
        if isinstance(self._shown, UnreadableState):
            raise self._shown
        return self._shown
