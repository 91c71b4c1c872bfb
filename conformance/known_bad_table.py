"""The known-bad managers on a terminal: the list, and the table of a run."""

from collections.abc import Iterable, Sequence
from statistics import median, quantiles

from rich.table import Table
from rich.text import Text

from kvspec.conformance.known_bad_row import Row
from kvspec.impl.known_bad import KNOWN_BAD


def listing(slugs: Iterable[str]) -> Table:
    """Slug, clause, fault and the public reports that it stands for."""
    table = _table("known-bad manager", "clause", "fault", "stands for")
    for slug in slugs:
        bad = KNOWN_BAD[slug]
        table.add_row(slug, bad.clause, Text(bad.sentence), Text(", ".join(bad.reports)))
    return table


def results(rows: Sequence[Row]) -> Table:
    """What became of each; a row that was not caught stands out."""
    table = _table("known-bad manager", "clause", "caught", "caught by", "operations", "seconds")
    for row in rows:
        verdict = Text("yes", style="green") if row.caught else Text("NO", style="bold red")
        operations = "" if row.operations is None else str(row.operations)
        table.add_row(row.slug, row.clause, verdict, ", ".join(row.caught_by), operations, f"{row.seconds:.2f}")
    return table


def last_line(rows: Sequence[Row], seconds: float) -> Text:
    """How many were caught, and how long the counterexamples are."""
    caught = sum(row.caught for row in rows)
    lengths = [row.operations for row in rows if row.operations is not None]
    text = f"{caught} of {len(rows)} caught for their own clause in {seconds:.0f} s"
    if len(lengths) > 1:
        text += f"; operations: median {median(lengths):g}, 95th percentile {quantiles(lengths, n=20)[-1]:g}"
    return Text(text, style="green" if caught == len(rows) else "bold red")


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
