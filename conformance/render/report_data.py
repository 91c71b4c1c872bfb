"""A report as plain data: what the JSON file says, and the one source of the other forms."""

from dataclasses import dataclass, field
from typing import Any

from kvspec import spec
from kvspec.conformance.lockstep import CannotCreate
from kvspec.conformance.render.counterexample import story_of
from kvspec.conformance.render.moments import Story
from kvspec.conformance.render.snippet import standalone_snippet
from kvspec.conformance.trace.writer import NotRepeatable, slug_of
from kvspec.conformance.verdict import ClauseResult, ConformanceReport, ExitCode, ProfileVerdict, Standing
from kvspec.impl.adapter import Implementation

REPORT_FORMAT = 1

VERDICTS = {
    ExitCode.CONFORMS: "conforms",
    ExitCode.VIOLATES: "violates",
    ExitCode.PROVES_NOTHING: "proves nothing",
    ExitCode.USAGE: "usage error",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """One counterexample that the report shows: the result, its story, and the file of its trace.

    `kind`: ``violation``, ``known`` (listed as such), or ``probed`` (of a profile that is not declared: never counted).
    """

    kind: str
    result: ClauseResult
    story: Story
    trace: str
    snippet: str = ""


@dataclass(frozen=True, slots=True)
class ReportView:
    """A report with the stories of its counterexamples.

    `matrix`: known-bad manager -> (its clause, the clauses that caught it), where it was computed.
    `fixed`: known failures that are gone, as sentences.
    """

    report: ConformanceReport
    shown: tuple[Shown, ...] = ()
    matrix: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """``conforms``, ``violates`` or ``proves nothing``; a fixed but still listed failure is a violation."""
        return VERDICTS[self.exit_code]

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the run."""
        return ExitCode.VIOLATES if self.fixed else self.report.exit_code()


def view_of(
    report: ConformanceReport,
    implementation: Implementation,
    matrix: dict[str, tuple[str, tuple[str, ...]]] | None = None,
    fixed: tuple[str, ...] = (),
) -> ReportView:
    """Tell the stories of all failures, one a clause: those that count first, then known and probed ones."""
    shown: dict[str, Shown] = {}
    for kind, result in failures(report):
        if result.clause not in shown and (told := _shown(kind, result, implementation, report.seed)):
            shown[result.clause] = told
    return ReportView(report, tuple(shown.values()), matrix or {}, fixed)


def failures(report: ConformanceReport) -> list[tuple[str, ClauseResult]]:
    """All failures with their kind; of the probed ones only those that a program shows."""
    broken = [("violation", result) for result in report.broken()]
    failing = [(result, found) for result in report.results if (found := result.counterexample)]
    known = [("known", result) for result, _ in failing if result.known and result.profile in report.declared]
    rest = [result for result, found in failing if result.profile not in report.declared and found.program.operations]
    return [*broken, *known, *(("probed", result) for result in rest)]


def _shown(kind: str, result: ClauseResult, implementation: Implementation, seed: int) -> Shown | None:
    found = result.counterexample
    assert found is not None
    try:
        story = story_of(found, implementation, seed)
        snippet = standalone_snippet(found, implementation, seed)
    except (NotRepeatable, CannotCreate):
        return None
    return Shown(kind, result, story, f"traces/{slug_of(result.clause, found.program, found.context)}.ndjson", snippet)


# JSON -------------------------------------------------------------------------------------------------------------


def as_json(view: ReportView) -> dict[str, Any]:
    """The report as JSON values, valid under ``schemas/report.schema.json``."""
    report, traces = view.report, {shown.result.clause: shown.trace for shown in view.shown}
    return {
        "kvspec": "report",
        "format": REPORT_FORMAT,
        "spec": spec.__version__,
        "implementation": {"name": report.name, "target": report.target, "shape": report.shape},
        "verdict": view.verdict,
        "exit_code": int(view.exit_code),
        "effort": report.effort,
        "seed": report.seed,
        "command": report.command,
        "seconds": round(report.seconds, 3),
        "declared": list(report.declared),
        "profiles": [_profile(verdict) for verdict in report.profiles()],
        "results": [_result(result, traces) for result in report.results],
        "counts": {context: dict(counts) for context, counts in report.counts.items()},
        "certificates": report.certificates,
        "notes": report.notes,
        "fixed": list(view.fixed),
        "proves_nothing": report.proves_nothing,
        "matrix": {slug: {"clause": clause, "caught": list(caught)} for slug, (clause, caught) in view.matrix.items()},
    }


def _profile(verdict: ProfileVerdict) -> dict[str, Any]:
    return {
        "profile": verdict.profile,
        "declared": verdict.declared,
        "verdict": str(verdict.standing),
        "clauses": verdict.decided,
        "broken": list(verdict.broken),
        "untried": verdict.untried,
    }


def _result(result: ClauseResult, traces: dict[str, str]) -> dict[str, Any]:
    found = result.counterexample
    return {
        "profile": result.profile,
        "clause": result.clause,
        "holds": found is None,
        "known": result.known,
        "because": found.violation.because if found else None,
        "operations": len(found.program.operations) if found else None,
        "trace": traces.get(result.clause) if found else None,
    }


# Badge ------------------------------------------------------------------------------------------------------------


def badge(view: ReportView) -> dict[str, Any]:
    """The badge as a shields.io endpoint."""
    message, colour = _badge_text(view)
    return {"schemaVersion": 1, "label": "kvspec", "message": message, "color": colour}


def _badge_text(view: ReportView) -> tuple[str, str]:
    if view.exit_code is ExitCode.VIOLATES:
        clauses = dict.fromkeys(result.clause for result in view.report.broken())
        return f"violates {' '.join(clauses)}" if clauses else "a known failure is fixed", "red"
    if view.exit_code is ExitCode.PROVES_NOTHING:
        return "proves nothing", "lightgrey"
    names = {verdict.profile: verdict.standing for verdict in view.report.profiles()}
    partial = [name for name, standing in names.items() if standing is Standing.PARTIAL]
    whole = [name for name, standing in names.items() if standing is Standing.CONFORMS]
    rest = f"partial: {' '.join(partial)}" if partial else ""
    return " | ".join(filter(None, (" ".join(whole), rest))), "yellow" if partial else "brightgreen"
