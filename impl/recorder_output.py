"""The files of a recording: written by a thread of their own, rotated by size, each a whole trace with a footer.

The first file has the name that was asked for, the next ones a number before the suffix.  Operations are numbered across
files, so whoever reads a later file alone sees that it starts in the middle.
"""

import contextlib
import hashlib
import json
import threading
import time
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO

from kvspec.impl.recorder_lines import Entry, Hide, Lines

BATCHES_WAITING = 64  # so many batches may wait for the disk; then the engine waits, for `patience` seconds at most


class Output:
    """Takes batches of entries.  After an error it takes nothing any more; `error` says why.

    Raises OSError if the first file cannot be opened.
    """

    def __init__(
        self,
        path: Path,
        header: dict[str, Any],
        rotate: int,
        keep: int,
        hide: Hide | None,
        number: int,
        patience: float,
    ) -> None:
        self.error: BaseException | None = None
        self.parts: list[Path] = []
        self._path, self._header, self._rotate, self._keep = path, header, rotate, keep
        self._lines, self._patience, self._made = Lines(number, hide), patience, 0
        self._abandoned = False
        self._queue: SimpleQueue[list[Entry] | None] = SimpleQueue()
        self._open()
        self._thread = threading.Thread(target=self._run, name="kvspec-recorder", daemon=True)
        self._thread.start()

    def put(self, batch: list[Entry]) -> None:
        """Hand a batch to the thread.  Raises what stopped the thread, or TimeoutError if it does not keep up."""
        if self._queue.qsize() >= BATCHES_WAITING:
            self._wait()
        if self.error is not None:
            raise self.error
        self._queue.put(batch)

    def _wait(self) -> None:
        until = time.monotonic() + self._patience
        while self._queue.qsize() >= BATCHES_WAITING and self.error is None:
            if time.monotonic() >= until:
                raise TimeoutError("the recording falls behind the engine")
            time.sleep(0.001)

    def close(self) -> None:
        """Write what waits and the footer; wait for that, but not for ever."""
        self._queue.put(None)
        self._thread.join(timeout=30)

    def abandon(self) -> None:
        """End without a footer, and without waiting."""
        self._abandoned = True
        self._queue.put(None)

    # In the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while (batch := self._queue.get()) is not None:
            if self.error is None:
                self._guarded(lambda batch=batch: self._write_batch(batch))
        if self.error is None and not self._abandoned:
            self._guarded(self._close_part)
        else:
            with contextlib.suppress(OSError):
                self._file.close()

    def _guarded(self, work: Any) -> None:
        try:
            work()
        except Exception as error:
            self.error = error

    def _write_batch(self, batch: list[Entry]) -> None:
        """A new file begins when there is something to write to it, so that none is empty."""
        if batch and self._size >= self._rotate:
            self._close_part()
            self._open()
            self._drop_oldest()
        lines, of = [], self._lines.of
        for entry in batch:
            lines += of(entry)
        self._write("".join(lines).encode())
        self._file.flush()

    def _write(self, text: bytes) -> None:
        self._file.write(text)
        self._sha.update(text)
        self._size += len(text)

    def _open(self) -> None:
        self._file, part = _new_file(self._path, self._made + 1)
        self.parts.append(part)
        self._made, self._size, self._sha, self._first = self._made + 1, 0, hashlib.sha256(), self._lines.number
        self._write(json.dumps(self._header, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")

    def _close_part(self) -> None:
        count = self._lines.number - self._first
        self._sha.update(f"{count}\n\n\n".encode())
        footer = {"operations": count, "verdict": None, "because": None, "digest": f"sha256:{self._sha.hexdigest()}"}
        self._file.write(json.dumps(footer, separators=(",", ":")).encode() + b"\n")
        self._file.close()

    def _drop_oldest(self) -> None:
        while self._keep and len(self.parts) > self._keep:
            self.parts.pop(0).unlink(missing_ok=True)


def _new_file(path: Path, part: int) -> tuple[BinaryIO, Path]:
    """A file that did not exist: ``log.ndjson``, then ``log.0002.ndjson``; earlier recordings are left alone."""
    wanted = path if part == 1 else path.with_name(f"{path.stem}.{part:04}{path.suffix}")
    attempt, name = 1, wanted
    while True:
        try:
            return name.open("xb"), name
        except FileExistsError:
            attempt += 1
            name = wanted.with_name(f"{wanted.stem}-{attempt}{wanted.suffix}")
