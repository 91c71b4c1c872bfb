"""What a run leaves behind: the folder of the report, and the first file of known failures."""

from pathlib import Path
from typing import TYPE_CHECKING

from kvspec.conformance import matrix
from kvspec.conformance.known_failures import KnownFailuresError, write_known
from kvspec.conformance.program import Counterexample
from kvspec.conformance.render.report_data import view_of
from kvspec.conformance.render.report_files import write_report_files
from kvspec.conformance.trace.writer import NotRepeatable, slug_of
from kvspec.conformance.verdict import ConformanceReport
from kvspec.impl.known_bad import KNOWN_BAD

if TYPE_CHECKING:
    from kvspec.conformance.examination import Examination


def write_outputs(
    examination: "Examination",
    report: ConformanceReport,
    folder: Path | str | None,
    known: Path | str | None,
) -> list[str]:
    """Write what was asked for; one line a file or problem, for the terminal."""
    lines = []
    if folder:
        fixed = tuple(examination.fixed_known_failures())
        view = view_of(report, examination.implementation, stored_matrix(), fixed)
        written = write_report_files(Path(folder), view, examination.implementation)
        lines += [f"wrote {path}" for path in written]
    if known:
        lines.append(_write_known(Path(known), examination, report))
    return lines


def stored_matrix() -> dict[str, tuple[str, tuple[str, ...]]]:
    """What the harness catches, as computed when it was built: known-bad manager -> (its clause, what it breaks)."""
    if not matrix.REPORT.exists():
        return {}
    broken = matrix.load(matrix.REPORT).broken
    return {slug: (KNOWN_BAD[slug].clause, tuple(broken[slug])) for slug in broken if slug in KNOWN_BAD}


def _write_known(path: Path, examination: "Examination", report: ConformanceReport) -> str:
    found: dict[str, Counterexample] = {}
    for result in report.broken():
        if each := result.counterexample:
            found.setdefault(slug_of(each.violation.clause, each.program, each.context), each)
    try:
        count = write_known(path, found.values(), examination.implementation, report.seed)
    except (KnownFailuresError, NotRepeatable) as error:
        return f"{path} is not written: {error}"
    return f"wrote {path}: {count} known failures; give each a reason and a link"
