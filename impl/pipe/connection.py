"""A program, started when it is needed and again after it broke: its answers, and what its breaking means."""

from collections.abc import Sequence

from kvspec.impl.errors import ImplementationError
from kvspec.impl.pipe.child import Child, Trouble
from kvspec.impl.pipe.protocol import Answer, NoAnswer, Request, read_answer, request_line
from kvspec.spec.operations import Failed, Nonsense

START_SECONDS = 20.0  # until the first answer of a program that was just started
ANSWER_SECONDS = 5.0
IMPATIENT_SECONDS = 0.5  # once it has hung: a counterexample is run many times while it is made shorter


class BrokenProgram(ImplementationError):
    """The program gave no answer, or none of the protocol."""


class Connection:
    """Talks to one program.  `owner`: a token of whoever made the manager that it has.  `asked`: lines sent so far."""

    def __init__(
        self, command: Sequence[str], seconds: float = ANSWER_SECONDS, start_seconds: float = START_SECONDS
    ) -> None:
        self.command, self.seconds, self.start_seconds = tuple(command), seconds, start_seconds
        self._child: Child | None = None
        self.owner: object | None = None
        self.asked = self.starts = 0

    def has_manager_of(self, owner: object) -> bool:
        """Does the running program have the manager of this owner?"""
        return self.owner is owner and self._child is not None and self._child.running

    def ask(self, request: Request) -> Answer:
        """One answer.  Raises BrokenProgram, OSError if the program cannot be started."""
        lines, broken = self.exchange([request_line(request)])
        if broken:
            raise BrokenProgram(spoken(broken))
        try:
            return read_answer(lines[0])
        except NoAnswer as error:
            self.stop(0)
            raise BrokenProgram(str(error)) from None

    def exchange(self, lines: Sequence[bytes]) -> tuple[list[bytes], Failed | Nonsense | None]:
        """Send lines at once; the lines of answer, and what the missing ones mean.  Raises OSError."""
        child, seconds = self._child, self.seconds
        if child is None or not child.running:
            child, seconds = self._start(), max(self.start_seconds, self.seconds)
        elif unasked := child.unasked():
            self.stop(0)
            return [], Nonsense(f"there was output that nobody asked for: {unasked[:120].decode(errors='replace')!r}")
        self.asked += len(lines)
        answers, trouble = child.ask(lines, seconds)
        return answers, self._meaning(trouble) if trouble else None

    def _start(self) -> Child:
        self.owner = None
        self._child = Child(self.command)
        self.starts += 1
        return self._child

    def _meaning(self, trouble: Trouble) -> Failed | Nonsense:
        self.owner = None
        if trouble.kind == "hung":
            self.seconds = min(self.seconds, IMPATIENT_SECONDS)
            return Failed(f"nothing: {trouble.words}")
        if trouble.kind == "died":
            return Failed(f"nothing: the program ended; {trouble.words}")
        return Nonsense(trouble.words)

    def stop(self, grace: float = 0.5) -> None:
        """End the program, if it runs."""
        self.owner = None
        if self._child is not None:
            self._child.stop(grace)
            self._child = None


def spoken(outcome: Failed | Nonsense) -> str:
    """The words of an outcome."""
    return outcome.answer if isinstance(outcome, Nonsense) else outcome.error.removeprefix("nothing: ")
