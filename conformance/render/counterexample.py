"""From a counterexample in memory to what is shown of it: it is run once more, stored, and read back."""

import tempfile
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from kvspec.conformance.lockstep import CannotCreate
from kvspec.conformance.program import Counterexample
from kvspec.conformance.render.moments import Story, tell
from kvspec.conformance.render.table import plain, render_story
from kvspec.conformance.trace.reader import read_trace
from kvspec.conformance.trace.writer import NotRepeatable, slug_of, write_trace
from kvspec.impl.adapter import Implementation


def story_of(found: Counterexample, implementation: Implementation, seed: int = 0) -> Story:
    """Run the counterexample once more and tell it.  Raises NotRepeatable, lockstep.CannotCreate."""
    with tempfile.TemporaryDirectory() as folder:
        return tell(read_trace(write_trace(Path(folder) / "trace.ndjson", implementation, found, seed)))


def trace_path_of(found: Counterexample, folder: Path) -> Path:
    """Where the trace of a counterexample belongs in `folder`."""
    return folder / f"{slug_of(found.violation.clause, found.program, found.context)}.ndjson"


def render_counterexample(
    found: Counterexample,
    implementation: Implementation,
    trace_path: Path | None = None,
    seed: int = 0,
    again: str = "",
) -> RenderableType:
    """The table of a counterexample, run once more: a trace that lies at `trace_path` may be another manager's.

    Its trace is written to `trace_path` unless one is there.  `again`: a command that shows it without a trace.
    """
    trace = str(trace_path) if trace_path else "TRACE"
    try:
        if trace_path and not trace_path.exists():
            write_trace(trace_path, implementation, found, seed)
        return render_story(story_of(found, implementation, seed), trace, again)
    except (NotRepeatable, CannotCreate) as error:
        violation = found.violation
        return Text(f"VIOLATES  {violation.clause}  {violation.because}\n  {error}")


def plain_counterexample(
    found: Counterexample,
    implementation: Implementation,
    trace_path: Path | None = None,
    seed: int = 0,
    width: int = 100,
) -> str:
    """The same as plain text."""
    return plain(render_counterexample(found, implementation, trace_path, seed), width)
