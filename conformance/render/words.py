"""Operations, outcomes and snapshots in few words, for tables and pictures."""

from collections.abc import Callable, Iterable

from kvspec.spec import operations as op

ENOUGH = 1 << 20  # a limit that never bites
MOST_LETTERS = 72  # of an error


def spoken(operation: op.Operation) -> str:
    """What was asked: ``admit A [7 7]``."""
    if isinstance(operation, op.Admit):
        return f"admit {operation.sequence} {_question(operation)}"
    if isinstance(operation, op.Reserve):
        return f"reserve {operation.sequence} {operation.count}"
    if isinstance(operation, op.Commit):
        return f"commit {' '.join(operation.sequences)}"
    if isinstance(operation, op.Append):
        return f"append {operation.sequence} {operation.token}"
    if isinstance(operation, op.Release):
        return f"release {operation.sequence} {operation.cause}"
    return _spoken_extension(operation)


def _spoken_extension(operation: op.Extension) -> str:
    if isinstance(operation, op.Extend):
        return f"{'draft' if operation.drafts else 'extend'} {operation.sequence} {numbers(operation.tokens)}"
    if isinstance(operation, op.Truncate):
        return f"truncate {operation.sequence} to {operation.length}"
    if isinstance(operation, op.Probe):
        return f"probe {_question(operation)}"
    if isinstance(operation, op.Retain):
        return f"retain {operation.sequence} for {operation.owner}"
    return f"drop {operation.owner}" if isinstance(operation, op.Drop) else "reset"


def _question(operation: op.Admit | op.Probe) -> str:
    limit = f" limit {operation.limit}" if operation.limit < min(ENOUGH, len(operation.tokens)) else ""
    namespace = f" in {operation.namespace}" if operation.namespace else ""
    return f"{numbers(operation.tokens)}{limit}{namespace}"


def answered(outcome: op.Outcome) -> str:
    """What came back: ``table [0 1], 2 cached``."""
    return _ANSWERS[type(outcome)](outcome)  # type: ignore[arg-type]


def numbers(values: Iterable[object]) -> str:
    """``[7 7 9]``"""
    return f"[{' '.join(map(str, values))}]"


def _admitted(outcome: op.Admitted) -> str:
    return f"table {numbers(outcome.table)}" + (f", {outcome.cached} cached" if outcome.cached else "")


def _failed(outcome: op.Failed) -> str:
    return f"{'yes, then ' if outcome.promised else ''}{_cut(outcome.words)}"


def _cut(text: str) -> str:
    """As much as a cell of a table holds; the whole text is said under the table."""
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"


def _committed(outcome: op.Committed) -> str:
    return "table " + " ".join(map(numbers, outcome.tables))


_ANSWERS: dict[type, Callable[..., str]] = {
    op.Admitted: _admitted,
    op.Reserved: lambda outcome: f"table {numbers(outcome.table)}",
    op.Committed: _committed,
    op.Appended: lambda outcome: "done",
    op.Released: lambda outcome: "done",
    op.Refused: lambda outcome: f"refused, {outcome.reason.replace('_', ' ')}",
    op.Failed: _failed,
    op.Nonsense: lambda outcome: _cut(outcome.answer),
    op.Extended: lambda outcome: "done",
    op.Truncated: lambda outcome: f"table {numbers(outcome.table)}, {outcome.computed} computed",
    op.WasReset: lambda outcome: "yes, empty",
    op.Probed: lambda outcome: f"{outcome.cached} cached, {'fits' if outcome.fits else 'does not fit'}",
    op.Retained: lambda outcome: f"blocks {numbers(outcome.table)}",
    op.Dropped: lambda outcome: "done",
}


def plural(count: int, word: str) -> str:
    """``1 block``, ``2 blocks``."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
