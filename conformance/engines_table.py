"""The stored reports on engines as a table: versions with equal results share a row."""

from collections.abc import Iterable

from kvspec.conformance.engines_report import EngineReport, stored
from kvspec.conformance.render.explain import BUILT_ON
from kvspec.conformance.verdict import Standing

_HEAD = (
    "| manager | versions | conforms to | violates (operations) | only probed, breaks |",
    "|---|---|---|---|---|",
)


def engines_table(reports: Iterable[EngineReport] | None = None) -> str:
    """The table of `reports`, or of all that are stored, in Markdown."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for report in stored() if reports is None else reports:
        cells = (report.engine, _claimed(report), _violated(report), _probed(report))
        rows.setdefault(cells, []).append(report.version)
    lines = [f"| {cells[0]} | {_listed(versions)} | {' | '.join(cells[1:])} |" for cells, versions in rows.items()]
    return "\n".join([*_HEAD, *lines])


def _listed(versions: Iterable[str]) -> str:
    return ", ".join(f"`{version}`" for version in versions)


def _names(report: EngineReport, standing: Standing) -> list[str]:
    return [name for name, found in report.profiles.items() if found["standing"] == standing]


def _claimed(report: EngineReport) -> str:
    """What conforms and does not build on a profile that is broken: what ends programs early hides the rest."""
    shaken = {name for broken in _names(report, Standing.VIOLATES) for name in BUILT_ON.get(broken, ())}
    return ", ".join(name for name in _names(report, Standing.CONFORMS) if name not in shaken) or "none"


def _violated(report: EngineReport) -> str:
    parts = [f"{clause} ({count})" for clause, count in report.shortest.items()]
    violated = ", ".join(_names(report, Standing.VIOLATES))
    return f"{violated}: {', '.join(parts)}" if parts else "none"


def _probed(report: EngineReport) -> str:
    """Profiles that are not declared, with what broke in them; one with many breaches is named alone."""
    parts = [
        f"{name}{': ' + ', '.join(found['broken']) if len(found['broken']) < 3 else ''}"
        for name, found in report.profiles.items()
        if found["standing"] == Standing.NOT_DECLARED and found["broken"]
    ]
    return "; ".join(parts) or "none"
