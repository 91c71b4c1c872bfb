"""Results as text: one row for each group of conditions, and every condition that is not what it must be."""

import itertools
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from .prover import ConditionResult, unproved

_COLUMNS = ("what", "of", "conditions", "verdict", "bound", "assumption", "work", "seconds")


def table(results: Iterable[ConditionResult], each: bool = False) -> Any:
    """A rich table of the results, one row a group, or one row a condition (`each`); below it what failed."""
    results = list(results)
    rows = Table(*_COLUMNS, title="The specification is proved; implementations are checked against it.")
    for group in ([result] for result in results) if each else _groups(results):
        rows.add_row(*_row(group, each))
    return Group(rows, *(Text(line) for line in closing(results)))


def closing(results: list[ConditionResult]) -> list[str]:
    """What failed, by name; or that nothing did."""
    failed = unproved(results)
    lines = [f"{result.section}: {result.name}: {result.verdict}. {result.detail}".rstrip() for result in failed]
    seconds = sum(result.seconds for result in results)
    good = len(results) - len(failed)
    return [*lines, f"{good} of {len(results)} conditions are as they must be; {seconds:.1f} s of processor time."]


def as_json(results: Iterable[ConditionResult]) -> str:
    """One JSON object a line."""
    return "\n".join(json.dumps(asdict(result)) for result in results)


def _groups(results: list[ConditionResult]) -> list[list[ConditionResult]]:
    def alike(result: ConditionResult) -> tuple[str, str]:
        return (result.section, "" if result.section in _WHOLE else result.subject)

    return [list(group) for _, group in itertools.groupby(results, alike)]


_WHOLE = (
    "any hash",
    "collision",
    "strengthenings",
    "planted faults",
    "planted falsehoods",
    "second solver",
    "witnesses",
    "contracts",
)


def _row(group: list[ConditionResult], each: bool) -> tuple[str, ...]:
    first = group[0]
    held = [result for result in group if result.holds]
    return (
        first.section,
        first.name if each else "" if first.section in _WHOLE else first.subject,
        str(len(group)) if len(held) == len(group) else f"{len(held)} of {len(group)}",
        _verdicts(group),
        ", ".join(dict.fromkeys(result.bound for result in group)),
        ", ".join(dict.fromkeys(result.assumption for result in group if result.assumption)),
        str(sum(result.work for result in group) or ""),
        f"{sum(result.seconds for result in group):.2f}",
    )


def _verdicts(group: list[ConditionResult]) -> str:
    counted = Counter(str(result.verdict) for result in group)
    return (
        next(iter(counted))
        if len(counted) == 1
        else ", ".join(f"{count} {verdict}" for verdict, count in counted.items())
    )
