"""Known failures: stored traces with a reason and a link, replayed strictly.

They are deterministic, so they cannot flake, and the list can only shrink: what still fails counts as *partial*, what
is fixed must be deleted.  A file looks like this::

    [[known]]
    trace = "known-traces/content-4f1c.ndjson"  # relative to this file
    clause = "CONTENT"
    reason = "a hash collision is not told apart"
    link = "https://example.com/issues/1"
"""

import json
import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvspec.conformance.lockstep import CannotCreate
from kvspec.conformance.program import Counterexample
from kvspec.conformance.trace.format import Trace, TraceError
from kvspec.conformance.trace.reader import read_trace
from kvspec.conformance.trace.replaying import replay
from kvspec.conformance.trace.writer import slug_of, write_trace
from kvspec.impl.adapter import Implementation
from kvspec.spec.clauses import CLAUSES

FIELDS = ("trace", "clause", "reason", "link")


class KnownFailuresError(ValueError):
    """The file of known failures cannot be used; the message says which entry and why."""


@dataclass(frozen=True, slots=True)
class Known:
    """One entry, with the trace that shows it."""

    path: Path
    clause: str
    reason: str
    link: str
    trace: Trace

    @property
    def context(self) -> str:
        """The conditions under which it fails."""
        return self.trace.header.context


@dataclass(frozen=True, slots=True)
class KnownResult:
    """One entry replayed; `sentence` says how it went."""

    entry: Known
    still_fails: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class KnownFailures:
    """The entries of one file."""

    path: Path
    entries: tuple[Known, ...]

    @classmethod
    def load(cls, path: Path | str) -> "KnownFailures":
        """Read and check a file.  Raises KnownFailuresError."""
        path = Path(path)
        entries = tuple(_entry(path, number, table) for number, table in enumerate(_tables(path), 1))
        _check_distinct(path, entries)
        return cls(path, entries)

    def covers(self, clause: str, context: str) -> bool:
        """Is a breach of `clause` in `context` listed?"""
        return any(entry.clause == clause and entry.context == context for entry in self.entries)

    def check(self, implementation: Implementation) -> list[KnownResult]:
        """Replay each entry."""
        return [_replayed(entry, implementation) for entry in self.entries]


def _replayed(entry: Known, implementation: Implementation) -> KnownResult:
    name = f"{entry.path.name} ({entry.clause}, {entry.link})"
    try:
        violation = replay(entry.trace, implementation).violation
    except CannotCreate as error:
        return KnownResult(entry, False, f"{name} cannot be replayed: {error}")
    if violation and violation.clause == entry.clause:
        return KnownResult(entry, True, f"{name} still fails: {entry.reason}")
    instead = f"it breaks {violation.clause} instead" if violation else "it passes now"
    return KnownResult(entry, False, f"{name}: {instead}")


# Reading ----------------------------------------------------------------------------------------------------------


def _tables(path: Path) -> list[Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise KnownFailuresError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise KnownFailuresError(f"{path} is not TOML: {error}") from None
    tables = document.pop("known", [])
    if document:
        raise KnownFailuresError(f"{path}: unknown entry {min(document)!r}; each known failure is a [[known]] table")
    if type(tables) is not list:
        raise KnownFailuresError(f"{path}: write [[known]], with two brackets on each side")
    return tables


def _entry(path: Path, number: int, table: Any) -> Known:
    where = f"{path}, entry {number}"
    _check_fields(where, table)
    trace_path = path.parent / table["trace"]
    try:
        trace = read_trace(trace_path)
    except TraceError as error:
        raise KnownFailuresError(f"{where}: {table['trace']}: {error}") from None
    if trace.footer.verdict != table["clause"]:
        shown = trace.footer.verdict or "no clause"
        raise KnownFailuresError(f"{where}: the clause is {table['clause']}, but {table['trace']} breaks {shown}")
    return Known(trace_path, table["clause"], table["reason"], table["link"], trace)


def _check_fields(where: str, table: Any) -> None:
    if type(table) is not dict:
        raise KnownFailuresError(f"{where}: a table was expected")
    if unknown := table.keys() - set(FIELDS):
        raise KnownFailuresError(f"{where}: unknown field {min(unknown)!r}")
    for name in FIELDS:
        if type(table.get(name)) is not str or not table[name].strip():
            raise KnownFailuresError(f"{where} has no {name}: every known failure needs {', '.join(FIELDS)}")
    if table["clause"] not in CLAUSES:
        raise KnownFailuresError(f"{where}: there is no clause {table['clause']!r}")
    if not table["link"].startswith(("https://", "http://")):
        raise KnownFailuresError(f"{where}: the link must be a web address, not {table['link']!r}")


def _check_distinct(path: Path, entries: Iterable[Known]) -> None:
    seen: set[Path] = set()
    for entry in entries:
        if entry.path.resolve() in seen:
            raise KnownFailuresError(f"{path} lists {entry.path.name} twice")
        seen.add(entry.path.resolve())


# Writing ----------------------------------------------------------------------------------------------------------

HEAD = """\
# Known failures of {name}.  Each is a stored trace that is replayed on every run.
# Give each one a reason and a link, or the file is refused.  Delete an entry once it is fixed.
"""


def write_known(
    path: Path,
    found: Iterable[Counterexample],
    implementation: Implementation,
    seed: int = 0,
) -> int:
    """Write the first file for an implementation, reasons and links left blank; returns the number of entries.

    The traces go into a folder beside the file.  Raises KnownFailuresError rather than lose what was filled in by hand,
    trace.NotRepeatable if a counterexample cannot be shown again.
    """
    if path.exists():
        raise KnownFailuresError(f"{path} exists: known failures are never overwritten")
    folder, parts = path.with_name(f"{path.stem}-traces"), [HEAD.format(name=implementation.name)]
    for each in found:
        slug = slug_of(each.violation.clause, each.program, each.context)
        trace = write_trace(folder / f"{slug}.ndjson", implementation, each, seed)
        parts.append(entry_text(trace.relative_to(path.parent), each.violation.clause, each.violation.because))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(parts), encoding="utf-8")
    return len(parts) - 1


def add_known(path: Path, trace: Path, reason: str, link: str) -> None:
    """Append a stored trace to a file of known failures, which is made if need be.  Raises KnownFailuresError."""
    try:
        clause = read_trace(trace).footer.verdict
    except TraceError as error:
        raise KnownFailuresError(f"{trace}: {error}") from None
    relative = Path(os.path.relpath(trace.resolve(), path.resolve().parent))
    table = {"trace": relative.as_posix(), "clause": clause or "", "reason": reason, "link": link}
    _check_fields("the new entry", table)
    known = KnownFailures.load(path).entries if path.exists() else ()
    if any(entry.path.resolve() == trace.resolve() for entry in known):
        raise KnownFailuresError(f"{path} lists {trace.name} already")
    before = path.read_text(encoding="utf-8") if path.exists() else HEAD.format(name="this implementation")
    entry = entry_text(relative, table["clause"], "", reason, link)
    path.write_text(f"{before.rstrip()}\n\n{entry}", encoding="utf-8")


def entry_text(trace: Path, clause: str, because: str = "", reason: str = "", link: str = "") -> str:
    """One entry as TOML."""
    comment = f"# {because}\n" if because else ""
    fields = {"trace": trace.as_posix(), "clause": clause, "reason": reason, "link": link}
    lines = "".join(f"{name} = {_quoted(value)}\n" for name, value in fields.items())
    return f"{comment}[[known]]\n{lines}"


def _quoted(text: str) -> str:
    """A TOML basic string; its escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False)
