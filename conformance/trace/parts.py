"""Read long traces in batches of lines, across the files of a rotated recording, and note where one is incomplete.

Damage is an error as everywhere; but a recording may start in the middle, lack its end, or lack a file: then there is
less to judge, and `remarks` says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kvspec.conformance.trace.digest import Digest
from kvspec.conformance.trace.fast_lines import Decoded, FastLines
from kvspec.conformance.trace.format import Footer, Header, TraceError
from kvspec.conformance.trace.reader import TraceReader, read_footer

BATCH = 1 << 18  # bytes of lines that are read at once


class Part:
    """One file: its header, the number of its first operation, its operations, its footer if it has one.

    `size` and `read`: bytes, for a progress bar.  Raises TraceError.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.read = path, 0
        self.footer: Footer | None = None
        self.cut: str | None = None
        try:
            self.size = path.stat().st_size
            with path.open("rb") as file:
                reader = TraceReader(file)
                first = file.readline()
        except OSError as error:
            raise TraceError(f"the trace cannot be read: {error.strerror}") from None
        self.header: Header = reader.header
        self.first = FastLines().decode(first, 2)[0] if _is_record(first) else None
        self._lines = FastLines()

    def operations(self) -> Iterator[Decoded]:
        """All operations; afterwards `footer` is known, or `cut` says what is missing."""
        due = self.first or 1
        for lines, place in self._batches():
            for shift, line in enumerate(lines):
                decoded = self._lines.decode(line, place + shift)
                if decoded[0] != due:
                    raise TraceError(
                        f"line {place + shift} holds operation {decoded[0]} where {due} is due: "
                        "lines were reordered or lost"
                    )
                due += 1
                yield decoded

    def drain(self) -> None:
        """Read on to the footer without decoding: is the rest of the file what was written?"""
        for _ in self._rest:
            pass

    def _batches(self) -> Iterator[tuple[list[bytes], int]]:
        self._rest = self._checked()
        return self._rest

    def _checked(self) -> Iterator[tuple[list[bytes], int]]:
        """Batches of records and the line number of the first; the digest and the footer are checked at the end."""
        digest, place = Digest(), 2
        with self.path.open("rb") as file:
            head = file.readline()
            digest.add(head)
            self.read = len(head)
            while lines := file.readlines(BATCH):
                self.read += sum(map(len, lines))
                last = lines[-1]
                if not _is_record(last):
                    self._end(lines.pop(), file.readline(), lines, digest, place)
                digest.add(b"".join(lines))
                yield lines, place
                place += len(lines)
                if self.footer or self.cut:
                    return
        self.cut = "it has no footer"

    def _end(self, last: bytes, after: bytes, lines: list[bytes], digest: Digest, place: int) -> None:
        if not last.endswith(b"\n"):
            self.cut = f"line {place + len(lines)} is cut off"
            return
        footer = read_footer(place + len(lines), last, self.header)
        if after:
            raise TraceError("there are lines after the footer")
        for line in lines:
            digest.add(line)
        count = place + len(lines) - 2
        if footer.operations != count:
            raise TraceError(
                f"the footer counts {footer.operations} operations, but {count} are there: lines are missing or added"
            )
        if footer.digest != digest.close(count, footer.verdict, footer.because):
            raise TraceError("the digest does not match: the trace was edited after it was written")
        self.footer = footer


def _is_record(line: bytes) -> bool:
    return line.endswith(b"\n") and (line.startswith(b'{"number":') or b'"digest"' not in line)


class Parts:
    """The files of one recording in the order of their operations.  `remarks`: what is incomplete.  Raises TraceError."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.parts = sorted((Part(path) for path in paths), key=lambda part: part.first or 0)
        self.header = self.parts[0].header
        self.remarks: list[str] = []
        for part in self.parts[1:]:
            if replace(part.header, snapshot=None, seed=0) != replace(self.header, snapshot=None, seed=0):
                raise TraceError(f"{part.path.name} is not of the same recording as {self.parts[0].path.name}")

    @property
    def size(self) -> int:
        """Bytes in all files."""
        return sum(part.size for part in self.parts)

    @property
    def read(self) -> int:
        """Bytes read so far."""
        return sum(part.read for part in self.parts)
