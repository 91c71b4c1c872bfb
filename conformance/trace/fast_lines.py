"""Decode the lines of long traces: the four lines of a decode step by their text, everything else as the strict reader.

A line that is spelled exactly as recorder and writer spell it needs no JSON parser, and a block table whose text is that
of the last table of its sequence, or continues it, is not parsed again.  Whatever differs in one byte takes the strict
way, so both accept the same lines (but a field that is named twice, which only the digest would not excuse).
"""

import json
import re
from typing import Any

from kvspec.conformance.extension_calls import EXTENSION_OUTCOMES
from kvspec.conformance.trace.encoding import EncodingError
from kvspec.conformance.trace.format import RECORD, TraceError
from kvspec.spec import operations as op
from kvspec.spec.state import Snapshot

Decoded = tuple[int, op.Operation, op.Outcome, Snapshot | None]

_NAME = rb'"([A-Za-z0-9_.:#-]+)"'
_START = rb'\{"number":([1-9][0-9]*),"request":\{"op":'
_APPEND = re.compile(
    _START + rb'"append","sequence":' + _NAME + rb',"token":(0|[1-9][0-9]*)\},"answer":\{"outcome":"appended"\}\}\n'
)
_RESERVE = re.compile(
    _START + rb'"reserve","sequence":' + _NAME + rb',"count":([1-9][0-9]*)\},"answer":\{"outcome":"reserved","table":'
    rb"\[([0-9,]+)\]\}\}\n"
)
_COMMIT = re.compile(
    _START + rb'"commit","sequences":\["([A-Za-z0-9_.:#",-]+)"\]\},"answer":\{"outcome":"committed","tables":'
    rb"\[\[([0-9,\[\]]+)\]\]\}\}\n"
)
_RELEASE = re.compile(
    _START + rb'"release","sequence":' + _NAME + rb',"cause":"(finished|preempted|aborted)"\},'
    rb'"answer":\{"outcome":"released"\}\}\n'
)
_NUMBERS = re.compile(rb"(?:0|[1-9][0-9]*)(?:,(?:0|[1-9][0-9]*))*")
_NAMES = re.compile(rb'[A-Za-z0-9_.:#-]+(?:","[A-Za-z0-9_.:#-]+)*')
_CAUSES = {cause.value.encode(): cause for cause in op.Cause}
_ANSWERS: dict[type, type] = {
    op.Admit: op.Admitted,
    op.Reserve: op.Reserved,
    op.Append: op.Appended,
    op.Release: op.Released,
    **EXTENSION_OUTCOMES,
}
_APPENDED, _RELEASED = op.Appended(), op.Released()


class _Spelled(Exception):
    """The line is spelled in another way."""


class FastLines:
    """Decodes lines one after the other; what it keeps is the last table of each live sequence."""

    def __init__(self) -> None:
        self._tables: dict[bytes, tuple[bytes, tuple[int, ...]]] = {}
        self._scan = json.JSONDecoder(parse_constant=_no_constant).raw_decode

    def decode(self, line: bytes, place: int) -> Decoded:
        """The operation in a line; `place` is the number of the line.  Raises TraceError."""
        if found := _APPEND.fullmatch(line):
            number, name, token = found.groups()
            return int(number), op.Append(name.decode(), int(token)), _APPENDED, None
        try:
            if found := _RESERVE.fullmatch(line):
                number, name, count, table = found.groups()
                outcome = op.Reserved(self._table(name, table))
                return int(number), op.Reserve(name.decode(), int(count)), outcome, None
            if found := _COMMIT.fullmatch(line):
                return self._commit(*found.groups())
        except _Spelled:
            return self._strictly(line, place)
        if found := _RELEASE.fullmatch(line):
            number, name, cause = found.groups()
            self._tables.pop(name, None)
            return int(number), op.Release(name.decode(), _CAUSES[cause]), _RELEASED, None
        return self._strictly(line, place)

    def _commit(self, number: bytes, names: bytes, tables: bytes) -> Decoded:
        named, shown = names.split(b'","'), tables.split(b"],[")
        if len(named) != len(shown) or not _NAMES.fullmatch(names):
            raise _Spelled
        found = tuple(map(self._table, named, shown))
        return int(number), op.Commit(tuple([name.decode() for name in named])), op.Committed(found), None

    def _table(self, name: bytes, text: bytes) -> tuple[int, ...]:
        last = self._tables.get(name)
        if last is not None:
            if last[0] == text:
                return last[1]
            if text.startswith(last[0] + b","):
                return self._keep(name, text, (*last[1], *_numbers(text[len(last[0]) + 1 :])))
        return self._keep(name, text, _numbers(text))

    def _keep(self, name: bytes, text: bytes, table: tuple[int, ...]) -> tuple[int, ...]:
        self._tables[name] = text, table
        return table

    def _strictly(self, line: bytes, place: int) -> Decoded:
        try:
            value, end = self._scan(line.decode())
            rest = line.decode()[end:]
        except (ValueError, RecursionError) as error:
            raise TraceError(f"line {place} is not JSON: {error}") from None
        if rest.strip():
            raise TraceError(f"line {place} is not JSON: there is more behind the value")
        try:
            record = RECORD.read(value)
        except EncodingError as error:
            raise TraceError(f"line {place}: {error}") from None
        if not _fits(record.request, record.answer):
            raise TraceError(f"line {place}: the answer is none to this request")
        return record.number, record.request, record.answer, record.snapshot


def _fits(request: op.Operation, answer: op.Outcome) -> bool:
    if isinstance(answer, op.Refused | op.Failed | op.Nonsense):
        return True
    if isinstance(request, op.Commit) and isinstance(answer, op.Committed):
        return len(request.sequences) == len(answer.tables)
    return type(answer) is _ANSWERS.get(type(request))


def _numbers(text: bytes) -> tuple[int, ...]:
    if not _NUMBERS.fullmatch(text):
        raise _Spelled
    return tuple(map(int, text.split(b",")))


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a number")
