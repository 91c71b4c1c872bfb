"""What is shown of a run: tables, pictures, snippets and reports."""

from kvspec.conformance.render.counterexample import (
    plain_counterexample,
    render_counterexample,
    story_of,
    trace_path_of,
)
from kvspec.conformance.render.moments import Story, tell
from kvspec.conformance.render.snippet import standalone_snippet
from kvspec.conformance.render.table import plain_story, render_story

__all__ = [
    "Story",
    "plain_counterexample",
    "plain_story",
    "render_counterexample",
    "render_story",
    "standalone_snippet",
    "story_of",
    "tell",
    "trace_path_of",
]
