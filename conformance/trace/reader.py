"""Traces are read line by line, in constant memory, and strictly: whatever is wrong, the trace proves nothing."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kvspec import spec
from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.trace.digest import Digest
from kvspec.conformance.trace.encoding import EncodingError
from kvspec.conformance.trace.format import (
    FOOTER,
    FORMAT_VERSION,
    HEADER,
    RECORD,
    WITHOUT_OPERATIONS,
    Footer,
    Header,
    Record,
    Trace,
    TraceError,
)
from kvspec.spec.clauses import CLAUSES


class TraceReader:
    """The header at once, the records as they are read, the footer when they end.  Every step may raise TraceError.

    A record that was yielded is not yet vouched for: only when `records` has ended without an error is the trace whole.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = enumerate(lines, 1)
        self._digest = Digest()
        self.footer: Footer | None = None
        self.header: Header = self._read_header()

    def records(self) -> Iterator[Record]:
        """All operations in order; checks the footer after the last one."""
        count = 0
        for number, line in self._lines:
            value = _parse(number, line)
            if "digest" in value:
                self._close(number, value, count)
                return
            count += 1
            self._digest.add(line)
            yield _numbered(number, _read(number, RECORD, value), count)
        raise TraceError(f"the trace has no footer: it was cut off after {_operations(count)}, so it has no verdict")

    def _read_header(self) -> Header:
        number, line = next(self._lines, (0, b""))
        if not line.strip():
            raise TraceError("the trace is empty")
        value = _parse(number, line)
        if value.pop("kvspec", None) != "trace":
            raise TraceError('line 1 is not the header of a kvspec trace: it lacks "kvspec": "trace"')
        _check_version(value)
        self._digest.add(line)
        header: Header = _read(number, HEADER, value)
        _check_header(header)
        return header

    def _close(self, number: int, value: dict[str, Any], count: int) -> None:
        footer: Footer = _read(number, FOOTER, value)
        if footer.operations != count:
            counted = _operations(footer.operations)
            raise TraceError(f"the footer counts {counted}, but {count} are there: lines are missing or added")
        if footer.digest != self._digest.close(count, footer.verdict, footer.because):
            raise TraceError("the digest does not match: the trace was edited after it was written")
        if next(self._lines, None) is not None:
            raise TraceError("there are lines after the footer")
        _check_footer(footer, self.header)
        self.footer = footer


@contextmanager
def stream_trace(path: Path) -> Iterator[TraceReader]:
    """Open a trace for reading line by line.  Raises TraceError, also if the file cannot be read."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise TraceError(f"the trace cannot be read: {error.strerror}") from None
    with file:
        yield TraceReader(file)


def read_trace(path: Path) -> Trace:
    """A whole, checked trace.  Raises TraceError."""
    with stream_trace(path) as reader:
        records = tuple(reader.records())
        assert reader.footer is not None
        return Trace(reader.header, records, reader.footer)


def read_footer(number: int, line: bytes, header: Header) -> Footer:
    """The footer in line `number` of a trace with this header; count and digest are for the caller.  Raises TraceError."""
    footer: Footer = _read(number, FOOTER, _parse(number, line))
    _check_footer(footer, header)
    return footer


def _parse(number: int, line: bytes) -> dict[str, Any]:
    if not line.endswith(b"\n"):
        raise TraceError(f"line {number} is cut off: the trace is truncated")
    try:
        value = _DECODER.decode(line.decode())
    except (ValueError, RecursionError) as error:
        raise TraceError(f"line {number} is not JSON: {error}") from None
    if type(value) is not dict:
        raise TraceError(f"line {number} is not a JSON object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field is named twice")
    return found


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a number")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


def _read(number: int, shape: Any, value: dict[str, Any]) -> Any:
    try:
        return shape.read(value)
    except EncodingError as error:
        raise TraceError(f"line {number}: {error}") from None


def _numbered(line: int, record: Record, expected: int) -> Record:
    if record.number != expected:
        found = f"line {line} holds operation {record.number} where {expected} is due"
        raise TraceError(f"{found}: lines were reordered or lost")
    return record


def _check_version(value: dict[str, Any]) -> None:
    if value.get("format") != FORMAT_VERSION:
        raise TraceError(f"the trace has format {value.get('format')!r}; this kvspec reads format {FORMAT_VERSION}")
    judged_by = value.get("spec")
    if _release(judged_by) != _release(spec.__version__):
        raise TraceError(f"the trace was judged by spec {judged_by!r}, this is {spec.__version__}: record it again")


def _release(version: object) -> str:
    """Major and minor number: between them rules may change."""
    return ".".join(str(version).split(".")[:2])


def _check_header(header: Header) -> None:
    if header.context not in CONTEXTS and header.context not in WITHOUT_OPERATIONS:
        raise TraceError(f"the header names the context {header.context!r}, which does not exist")
    if unknown := header.muted - CLAUSES.keys():
        raise TraceError(f"the header mutes {min(unknown)}, which is not a clause")
    world = header.world
    if header.context in CONTEXTS and (world.blocks < 1 or world.block_size < 1):
        raise TraceError(f"the header's world has {world.blocks} blocks of {world.block_size} tokens")


def _check_footer(footer: Footer, header: Header) -> None:
    if footer.verdict is not None and footer.verdict not in CLAUSES:
        raise TraceError(f"the verdict names {footer.verdict!r}, which is not a clause")
    if footer.operations == 0 and header.context not in WITHOUT_OPERATIONS:
        raise TraceError("the trace has no operations: it proves nothing")
    if footer.operations == 0 and footer.verdict is None:
        raise TraceError("the trace has neither operations nor a verdict: it proves nothing")


def _operations(count: int) -> str:
    return "1 operation" if count == 1 else f"{count} operations"
