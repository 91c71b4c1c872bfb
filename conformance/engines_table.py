"""The stored reports on engines as a table: versions with equal results share a row."""

from collections.abc import Iterable

from kvspec.conformance.engines_report import EngineReport, stored
from kvspec.conformance.verdict import Standing

_HEAD = (
    "| manager | versions | conforms to | violates (operations) | only probed, breaks |",
    "|---|---|---|---|---|",
)


def engines_table() -> str:
    """The table in Markdown."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for report in stored():
        cells = (report.engine, _names(report, Standing.CONFORMS), _violated(report), _probed(report))
        rows.setdefault(cells, []).append(report.version)
    lines = [f"| {cells[0]} | {_listed(versions)} | {' | '.join(cells[1:])} |" for cells, versions in rows.items()]
    return "\n".join([*_HEAD, *lines])


def _listed(versions: Iterable[str]) -> str:
    return ", ".join(f"`{version}`" for version in versions)


def _names(report: EngineReport, standing: Standing) -> str:
    names = [name for name, found in report.profiles.items() if found["standing"] == standing]
    return ", ".join(names) or "none"


def _violated(report: EngineReport) -> str:
    parts = [f"{clause} ({count})" for clause, count in report.shortest.items()]
    violated = _names(report, Standing.VIOLATES)
    return f"{violated}: {', '.join(parts)}" if parts else "none"


def _probed(report: EngineReport) -> str:
    """Profiles that are not declared, with what broke in them; one with many breaches is named alone."""
    parts = [
        f"{name}{': ' + ', '.join(found['broken']) if len(found['broken']) < 3 else ''}"
        for name, found in report.profiles.items()
        if found["standing"] == Standing.NOT_DECLARED and found["broken"]
    ]
    return "; ".join(parts) or "none"
