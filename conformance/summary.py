"""The verdict in a terminal: by profile, with the counts that show that the run proves something."""

import io

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from kvspec.conformance.verdict import COUNTED, ConformanceReport, ExitCode, ProfileVerdict, Standing
from kvspec.impl.adapter import Implementation
from kvspec.spec import __version__ as spec_version
from kvspec.spec.clauses import EXTENSIONS

STYLES = {
    Standing.CONFORMS: "bold green",
    Standing.PARTIAL: "bold yellow",
    Standing.VIOLATES: "bold red",
    Standing.INCOMPLETE: "yellow",
    Standing.NOT_DECLARED: "dim",
    Standing.NOT_TRIED: "dim",
}


def summary(report: ConformanceReport) -> RenderableType:
    """Heading, table of profiles, table of counts, closing line."""
    parts: list[RenderableType] = [_heading(report), "", _profiles(report)]
    if report.counts:
        parts += ["", _counts(report)]
    parts += ["", *report.notes, _closing(report)]
    return Group(*parts)


def summary_text(report: ConformanceReport, width: int = 100, color: bool = False) -> str:
    """The summary as text, `width` columns wide."""
    buffer = io.StringIO()
    console = Console(file=buffer, width=width, force_terminal=color, no_color=not color, highlight=False)
    console.print(summary(report))
    return buffer.getvalue()


def _heading(report: ConformanceReport) -> Text:
    shape = f", {report.shape}" if report.shape else ""
    text = Text(f"kvspec {spec_version}   effort {report.effort}   seed {report.seed}\n", style="dim")
    text.append(f"{report.name}{shape}", style="bold not dim")
    text.append(f"   declares {' '.join(report.declared)}", style="not dim")
    return text


def _profiles(report: ConformanceReport) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("profile", "verdict", "clauses", "broken"):
        table.add_column(column, overflow="fold")
    for verdict in report.profiles():
        if not _left_out(verdict):
            table.add_row(verdict.profile, Text(verdict.standing, STYLES[verdict.standing]), *_details(verdict))
    return table


def _left_out(verdict: ProfileVerdict) -> bool:
    """Nobody asked for it, or it is an extension that the manager does not offer."""
    unoffered = verdict.profile in EXTENSIONS and not verdict.declared
    return verdict.standing is Standing.NOT_TRIED and (verdict.untried == "not selected" or unoffered)


def _details(verdict: ProfileVerdict) -> tuple[str, str]:
    if verdict.standing is Standing.NOT_TRIED:
        return "", verdict.untried
    held = f"{verdict.decided - len(verdict.broken)}/{verdict.decided}"
    broken = " ".join(verdict.broken)
    if verdict.standing is Standing.NOT_DECLARED:
        return held, f"probed: breaks {broken}" if broken else "probed: holds"
    return held, broken


def _counts(report: ConformanceReport) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("what happened")
    for name in COUNTED:
        table.add_column(name.replace("_", " "), justify="right")
    for context, counts in report.counts.items():
        table.add_row(context, *(f"{counts[name]:,}" for name in COUNTED))
    return table


def _closing(report: ConformanceReport) -> Text:
    code, seconds = report.exit_code(), f"   {report.seconds:.1f} s"
    profiles = {verdict.standing: [] for verdict in report.profiles()}  # type: ignore[var-annotated]
    for verdict in report.profiles():
        profiles[verdict.standing].append(verdict.profile)
    if code is ExitCode.PROVES_NOTHING:
        reasons = "\n  ".join(report.proves_nothing)
        return Text(f"PROVES NOTHING{seconds}\n  {reasons}", style="bold yellow")
    if code is ExitCode.VIOLATES:
        clauses = " ".join(dict.fromkeys(result.clause for result in report.broken()))
        return Text(f"VIOLATES {clauses}{seconds}", style="bold red")
    partial = f"   PARTIAL: {' '.join(profiles[Standing.PARTIAL])}" if profiles.get(Standing.PARTIAL) else ""
    names = " ".join(profiles.get(Standing.CONFORMS, []))
    if not names and not partial:
        return Text(f"NOTHING BROKEN, but no profile was tried as a whole{seconds}", style="yellow")
    return Text(f"CONFORMS to spec {spec_version}: {names}{partial}{seconds}", style="bold green")


def nothing_works(report: ConformanceReport, implementation: Implementation) -> str | None:
    """Three lines instead of a flood where not even the first operations of any program work; else None."""
    steps = report.counts.get("steps")
    if not steps or not report.broken() or steps["operations"] > 3 * steps["ended_early"]:
        return None
    first = report.broken()[0].counterexample
    assert first is not None
    return (
        f"Nothing works: every program ended within its first operations.\n"
        f"First: {first.violation.clause}: {first.violation.because}\n"
        f"Look at the adapter ({implementation.shape or 'own adapter'}); its contract is impl/adapter.py and spec/README.md."
    )
