"""The files of a report: JSON, Markdown for a job summary, a self-contained page, a badge, and the traces."""

import base64
import json
from contextlib import suppress
from pathlib import Path

from kvspec import spec
from kvspec.conformance.render.page import fill
from kvspec.conformance.render.report_data import ReportView, as_json, badge
from kvspec.conformance.render.story_page import told_story
from kvspec.conformance.render.table import plain_story
from kvspec.conformance.trace.writer import NotRepeatable, write_trace
from kvspec.conformance.verdict import COUNTED, Standing
from kvspec.impl.adapter import Implementation

CERTIFIED = ("world", "states", "transitions", "depth", "exhausted", "stopped", "seconds", "digest")


def write_report_files(folder: Path, view: ReportView, implementation: Implementation) -> list[Path]:
    """Write report.json, report.md, report.html, badge.json and traces/*.ndjson; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "report.json": json_text(view),
        "report.md": markdown(view),
        "report.html": html(view, attention_in(folder)),
        "badge.json": json.dumps(badge(view)) + "\n",
    }
    written = []
    for name, text in texts.items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        written.append(path)
    for shown in view.shown:
        found = shown.result.counterexample
        assert found is not None
        with suppress(NotRepeatable):  # the story was told, but a moody manager does not break the clause every time
            written.append(write_trace(folder / shown.trace, implementation, found, view.report.seed))
    return written


def json_text(view: ReportView) -> str:
    """``report.json``"""
    return json.dumps(as_json(view), indent=2, ensure_ascii=False) + "\n"


def markdown(view: ReportView) -> str:
    """``report.md``: short enough for a job summary; counterexamples as text."""
    stories = [(shown, plain_story(shown.story, shown.trace, 96)) for shown in view.shown]
    return fill("report.md.j2", **_values(view), stories=stories)


def html(view: ReportView, attention: tuple[str, str] | None = None) -> str:
    """``report.html``: one file, nothing is loaded from elsewhere; `attention` is the drawing and the table of gpu_tests."""
    stories = [(shown, told_story(shown.story, shown.trace, shown.snippet)) for shown in view.shown]
    return fill("report.html.j2", **_values(view), stories=stories, attention=attention)


def attention_in(folder: Path) -> tuple[str, str] | None:
    """What ``pytest gpu_tests --kvspec-report FOLDER`` left in the folder: drawing (SVG) and table (text), or None."""
    drawing, table = folder / "attention.svg", folder / "attention.txt"
    if not (drawing.is_file() and table.is_file()):
        return None
    picture = base64.b64encode(drawing.read_bytes()).decode()  # as an image: its style must not reach the page
    return f"data:image/svg+xml;base64,{picture}", table.read_text(encoding="utf-8")


def _values(view: ReportView) -> dict[str, object]:
    standings = {"conforms": "good", "partial": "warn", "violates": "bad", "proves nothing": "warn"}
    profiles = [
        v for v in view.report.profiles() if v.standing is not Standing.NOT_TRIED or v.untried != "not selected"
    ]
    return {
        "report": view.report,
        "view": view,
        "spec": spec.__version__,
        "profiles": profiles,
        "counted": COUNTED,
        "classes": standings,
        "certificates": [_flat(certificate) for certificate in view.report.certificates],
        "anchors": {shown.result.clause for shown in view.shown},
    }


def _flat(certificate: dict[str, object]) -> dict[str, str]:
    """A certificate as a row of the page: nested values in words, long digests cut; the JSON has all of it."""
    return {name: _cell(certificate[name]) for name in CERTIFIED if name in certificate}


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_cell(entry)}" for name, entry in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    text = str(value)
    return text if len(text) <= 40 else f"{text[:16]}…"
