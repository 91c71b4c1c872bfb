"""What was recorded as lines of the trace format, in the order in which the engine did it.

An entry is a plain tuple, made in the engine's thread as cheaply as possible; it becomes text in the recorder's thread.
Sequences have names that need no escape in JSON.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

from kvspec.impl.nano_vllm.answers import Answered, block_table
from kvspec.spec.operations import Failed, Nonsense, Outcome

# The first field of an entry, and the fields behind it
ADMIT = 0  # name, tokens, limit, cached, reserved, table
ADMIT_NOT = 1  # name, tokens, limit, outcome
RESERVE = 2  # name, count, table
RESERVE_NOT = 3  # name, count, outcome
COMMIT = 4  # [(name, table), ...]
COMMIT_NOT = 5  # name, outcome
APPEND = 6  # name, tokens
RELEASE = 7  # name, cause
RELEASE_NOT = 8  # name, outcome

Entry = tuple[Any, ...]
Hide = Callable[[Any], int]


class Opaque:
    """Replaces a token by a keyed hash of 63 bits: who has no key can tell equal tokens, and nothing else."""

    def __init__(self, key: bytes) -> None:
        self._key = hashlib.blake2b(key, digest_size=32).digest()
        self._known: dict[Any, int] = {}

    def __call__(self, token: Any) -> int:
        """The number that stands for `token`."""
        found = self._known.get(token)
        if found is None:
            digest = hashlib.blake2b(str(token).encode(), digest_size=8, key=self._key).digest()
            found = self._known[token] = int.from_bytes(digest, "big") >> 1
        return found


class Lines:
    """Numbers and writes entries; `hide` replaces tokens.  `number` is that of the last operation written."""

    def __init__(self, number: int = 0, hide: Hide | None = None) -> None:
        self.number = number
        self._hide = hide
        self._tables: dict[str, tuple[Any, str]] = {}
        self._writers: tuple[Callable[..., list[str]], ...] = (
            self._admit,
            self._admit_not,
            self._reserve,
            self._reserve_not,
            self._commit,
            self._commit_not,
            self._append,
            self._release,
            self._release_not,
        )

    def of(self, entry: Entry) -> list[str]:
        """The lines of one entry, each with its line feed; the table of a manager may be nonsense, which is noted."""
        try:
            return self._writers[entry[0]](*entry[1:])
        except Answered as answered:
            return [self._line(_unanswered(entry), _said(answered.outcome))]

    def _line(self, request: str, answer: str) -> str:
        self.number += 1
        return f'{{"number":{self.number},"request":{{"op":{request}}},"answer":{{"outcome":{answer}}}}}\n'

    def _admit(self, name: str, tokens: Any, limit: int, cached: int, reserved: int, table: Any) -> list[str]:
        shown = self._table(name, table)
        return [
            self._line(
                self._asked(name, tokens, limit),
                f'"admitted","cached":{cached},"reserved":{reserved},"table":[{shown}]',
            )
        ]

    def _admit_not(self, name: str, tokens: Any, limit: int, outcome: Outcome) -> list[str]:
        return [self._line(self._asked(name, tokens, limit), _said(outcome))]

    def _asked(self, name: str, tokens: Any, limit: int) -> str:
        numbers = joined(map(self._hide, tokens) if self._hide else tokens)
        return f'"admit","sequence":"{name}","tokens":[{numbers}],"limit":{limit},"namespace":""'

    def _reserve(self, name: str, count: int, table: Any) -> list[str]:
        shown = self._table(name, table)
        return [self._line(f'"reserve","sequence":"{name}","count":{count}', f'"reserved","table":[{shown}]')]

    def _reserve_not(self, name: str, count: int, outcome: Outcome) -> list[str]:
        return [self._line(f'"reserve","sequence":"{name}","count":{count}', _said(outcome))]

    def _commit(self, rows: list[tuple[str, Any]]) -> list[str]:
        tables = "],[".join([self._table(name, table) for name, table in rows])
        names = '","'.join([name for name, _ in rows])
        return [self._line(f'"commit","sequences":["{names}"]', f'"committed","tables":[[{tables}]]')]

    def _commit_not(self, name: str, outcome: Outcome) -> list[str]:
        return [self._line(f'"commit","sequences":["{name}"]', _said(outcome))]

    def _append(self, name: str, tokens: Iterable[Any]) -> list[str]:
        shown = map(self._hide, tokens) if self._hide else tokens
        return [self._line(f'"append","sequence":"{name}","token":{token}', '"appended"') for token in shown]

    def _release(self, name: str, cause: str) -> list[str]:
        self._tables.pop(name, None)
        return [self._line(f'"release","sequence":"{name}","cause":"{cause}"', '"released"')]

    def _release_not(self, name: str, outcome: Outcome) -> list[str]:
        return [self._line(f'"release","sequence":"{name}","cause":"finished"', _said(outcome))]

    def _table(self, name: str, table: Any) -> str:
        """The text of a table; the last one of each sequence is kept, because it rarely changes."""
        last = self._tables.get(name)
        if last is not None and last[0] == table:
            return last[1]
        text = joined(block_table("the block table", table))
        self._tables[name] = (table, text)
        return text


def joined(numbers: Iterable[Any]) -> str:
    """Whole numbers as the inside of a JSON list."""
    return ",".join(map(str, numbers))


def _said(outcome: Outcome) -> str:
    if isinstance(outcome, Failed):
        flags = f'"promised":{json.dumps(outcome.promised)},"clear":{json.dumps(outcome.clear)}'
        return f'"failed","error":{json.dumps(outcome.error, ensure_ascii=False)},{flags}'
    if isinstance(outcome, Nonsense):
        return f'"nonsense","answer":{json.dumps(outcome.answer, ensure_ascii=False)}'
    return '"refused","reason":"no_space"'


def _unanswered(entry: Entry) -> str:
    """The request of an entry whose table could not be read."""
    if entry[0] == COMMIT:
        return '"commit","sequences":["' + '","'.join(name for name, _ in entry[1]) + '"]'
    if entry[0] == RESERVE:
        return f'"reserve","sequence":"{entry[1]}","count":{entry[2]}'
    return f'"admit","sequence":"{entry[1]}","tokens":[{joined(entry[2])}],"limit":{entry[3]},"namespace":""'
