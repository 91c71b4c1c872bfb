"""A contained child process that answers lines with lines: limited in time and output, killed with its whole group."""

import errno
import os
import select
import signal
import subprocess
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

LONGEST_LINE = 1 << 24  # bytes of output without a line feed before the child counts as running wild
KEPT_BYTES = 4096  # of standard error, at its beginning and at its end
KEPT_LINES = 4  # at the beginning, where some languages say what was wrong, and at the end, where others do
CHUNK = 1 << 16
PATIENCE_SECONDS = 0.1  # without output; then it is looked whether the child still lives
GRACE_SECONDS = 0.5  # to exit after its standard input was closed


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why answers are missing: `kind` is "died", "hung", "cut off" or "flood"; `words` say it in a sentence."""

    kind: str
    words: str


class Words:
    """The beginning and the end of what a child says on standard error."""

    def __init__(self) -> None:
        self._first, self._last = bytearray(), bytearray()

    def add(self, chunk: bytes) -> None:
        """The child said this."""
        room = max(0, KEPT_BYTES - len(self._first))
        self._first += chunk[:room]
        self._last = (self._last + chunk[room:])[-KEPT_BYTES:]

    def in_one_line(self) -> str:
        """The first and the last lines, with an ellipsis for those between them."""
        text = bytes(self._first + self._last).decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if len(lines) > 2 * KEPT_LINES:
            lines[KEPT_LINES:-KEPT_LINES] = ["…"]
        return " | ".join(lines)[-2 * KEPT_BYTES :]


class Child:
    """One running program.  Raises OSError if it cannot be started.

    After a trouble, or ``stop``, nothing of it is left running.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._process = _run(command)
        streams = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._stdin, self._stdout, self._stderr = (stream.fileno() for stream in streams if stream)
        for descriptor in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(descriptor, False)
        self._poll = select.poll()
        self._poll.register(self._stdout, select.POLLIN)
        self._poll.register(self._stderr, select.POLLIN)
        self._received = bytearray()
        self._words = Words()
        self._ever_answered = False
        self._stderr_open = True
        self._finalizer = weakref.finalize(self, _end, self._process, os.getpid())
        self._owner = os.getpid()

    @property
    def running(self) -> bool:
        """Is it still there to be asked, by this process?  A fork of the one that started it needs a child of its own."""
        return self._finalizer.alive and self._owner == os.getpid()

    def last_words(self) -> str:
        """What it wrote on standard error since it was asked last, as one line; empty if it wrote nothing."""
        return self._words.in_one_line()

    def unasked(self) -> bytes:
        """Output that is there although every question has been answered."""
        if not self._received:
            with suppress(OSError):
                self._received += os.read(self._stdout, CHUNK)
        return bytes(self._received)

    def ask(self, lines: Sequence[bytes], seconds: float) -> tuple[list[bytes], Trouble | None]:
        """Send `lines` at once and collect one line of answer for each, `seconds` at most between any two.

        With a trouble the answers that came before it are returned too, and the child is ended.
        """
        answers: list[bytes] = []
        self._words = Words()
        try:
            trouble = self._exchange(memoryview(b"".join(lines)), len(lines), seconds, answers)
        except BaseException:
            self.stop(0)
            raise
        if trouble:
            self.stop(0)
        return answers, trouble

    def _exchange(self, unsent: memoryview, wanted: int, seconds: float, answers: list[bytes]) -> Trouble | None:
        unsent = self._send(unsent)
        if unsent:
            self._poll.register(self._stdin, select.POLLOUT)
        deadline = time.monotonic() + seconds
        while len(answers) < wanted:
            left = max(0.0, deadline - time.monotonic())
            ready = self._poll.poll(min(left, PATIENCE_SECONDS) * 1000)
            if not ready and self._process.poll() is not None:
                return self._ended()
            if not ready and left <= PATIENCE_SECONDS:
                return Trouble("hung", f"no answer within {seconds:g} s{self._flush_hint()}{self._quoted_words()}")
            for descriptor, _ in ready:
                if descriptor == self._stdin:
                    unsent = self._send(unsent)
                    if not unsent:
                        self._poll.unregister(self._stdin)
                elif descriptor == self._stderr:
                    self._listen()
                elif not (chunk := _read(self._stdout)):
                    return self._ended()
                elif self._collect(chunk, answers, wanted):
                    deadline = time.monotonic() + seconds
                elif len(self._received) > LONGEST_LINE:
                    return Trouble("flood", f"more than {LONGEST_LINE >> 20} MiB of output without the end of a line")
        if unsent:
            self._poll.unregister(self._stdin)
        return None

    def _send(self, unsent: memoryview) -> memoryview:
        """Write as much as the pipe takes; to a child that is gone nothing can be sent, its output will tell."""
        try:
            return unsent[os.write(self._stdin, unsent) :] if unsent else unsent
        except BlockingIOError:
            return unsent
        except BrokenPipeError:
            return unsent[:0]

    def _collect(self, chunk: bytes, answers: list[bytes], wanted: int) -> bool:
        """Move complete lines to `answers`, at most until there are `wanted`; was there one?"""
        self._received += chunk
        if b"\n" not in chunk:
            return False
        *complete, rest = bytes(self._received).split(b"\n", wanted - len(answers))
        answers += complete
        self._received = bytearray(rest)
        self._ever_answered = True
        return True

    def _listen(self) -> None:
        chunk = _read(self._stderr)
        if not chunk:
            self._poll.unregister(self._stderr)
            self._stderr_open = False
        self._words.add(chunk)

    def _ended(self) -> Trouble:
        """Standard output was closed, or the child is gone and its own children keep it open: how did it end?"""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_SECONDS)
        if self._stderr_open:
            with suppress(OSError):
                self._words.add(os.read(self._stderr, CHUNK))
        how = _status(self._process.returncode) + self._quoted_words()
        if self._received:
            return Trouble("cut off", f"the last line is cut off: {_text(self._received)}; {how}")
        return Trouble("died", how)

    def _flush_hint(self) -> str:
        return "" if self._ever_answered else "; is standard output flushed after the answer?"

    def _quoted_words(self) -> str:
        words = self.last_words()
        return f"; its last words: {words}" if words else ""

    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Close its input, wait `grace` seconds, then kill whatever is left of its process group."""
        if self.running:
            with suppress(OSError):
                self._process.stdin.close()  # type: ignore[union-attr]
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(grace)
            self._finalizer()


def _text(output: bytes | bytearray) -> str:
    return repr(bytes(output[:120]).decode(errors="replace"))


def _run(command: Sequence[str]) -> "subprocess.Popen[bytes]":
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, CHUNK)
    except OSError as error:
        if error.errno == errno.EIO:
            return b""
        raise


def _status(code: int | None) -> str:
    if code is None:
        return "it closed its standard output and runs on"
    if code < 0:
        return f"it was killed by {signal.Signals(-code).name}"
    return f"it exited with code {code}"


def _end(process: "subprocess.Popen[bytes]", owner: int) -> None:
    """Kill the process group (also what the child left behind in it), reap the child, close the pipes.

    A fork of the owner only closes its copies of the pipes.
    """
    if owner == os.getpid():
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        with suppress(OSError):
            stream.close()  # type: ignore[union-attr]
