"""``kvspec vectors``: list the stored vectors, copy them somewhere, or run them."""

import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, JustifyMethod
from rich.table import Table

from kvspec.conformance.render import render_counterexample
from kvspec.conformance.render.table import quoted
from kvspec.conformance.trace import TraceError
from kvspec.conformance.vector_programs import FOLDER
from kvspec.conformance.vector_running import BadVectors, Vector, VectorResult, chosen, load_vectors, run_vectors
from kvspec.conformance.verdict import ExitCode
from kvspec.impl.adapter import Implementation


def vectors_command(
    implementation: Implementation | None = None,
    slugs: Sequence[str] = (),
    export: Path | None = None,
    console: Console | None = None,
) -> ExitCode:
    """List the vectors; with `export` copy all files there; with an implementation run them.  The exit code."""
    console = console or Console(highlight=False, soft_wrap=True)
    try:
        vectors = chosen(load_vectors(), slugs)
        if export:
            return _export(export, console)
        return _run(implementation, vectors, console) if implementation else _list(vectors, console)
    except BadVectors as error:
        console.print(str(error), style="red", markup=False)
        return ExitCode.USAGE
    except TraceError as error:
        console.print(f"a stored vector proves nothing: {error}", style="red", markup=False)
        return ExitCode.PROVES_NOTHING


def _list(vectors: list[Vector], console: Console) -> ExitCode:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("vector", "context", "operations", "clauses", "kills"):
        justify: JustifyMethod = "right" if column in ("operations", "kills") else "left"
        table.add_column(column, overflow="fold", justify=justify, no_wrap=column == "vector")
    for vector in vectors:
        row = (vector.context.name, str(vector.operations), " ".join(vector.clauses), str(len(vector.kills)))
        table.add_row(vector.slug, *row)
    console.print(table)
    console.print(f"{len(vectors)} vectors in {FOLDER}", markup=False)
    return ExitCode.CONFORMS


def _export(folder: Path, console: Console) -> ExitCode:
    if folder.exists():
        raise BadVectors(f"{folder} exists already: name a folder that does not")
    shutil.copytree(FOLDER, folder)
    console.print(f"copied to {folder}: start with {folder / 'manifest.json'}", markup=False)
    return ExitCode.CONFORMS


def _run(implementation: Implementation, vectors: list[Vector], console: Console) -> ExitCode:
    results = list(run_vectors(implementation, vectors))
    broken = [result for result in results if result.counterexample]
    untried = [result for result in results if result.untried]
    unmade = [result for result in results if result.unmade]
    for result in _one_a_clause(broken):
        assert result.counterexample is not None
        again = f"kvspec vectors {quoted(implementation.target or 'IMPL')} --slug {result.vector.slug}"
        console.print(f"vector {result.vector.slug}", style="bold red", markup=False)
        console.print(render_counterexample(result.counterexample, implementation, again=again))
    for slugs in textwrap.wrap(" ".join(result.vector.slug for result in broken), 100, break_on_hyphens=False):
        console.print(f"fails    {slugs}", style="red", markup=False)
    for result in unmade[:1]:
        console.print(f"{len(unmade)} cannot be run, the first because {result.unmade}", style="red", markup=False)
    for reason in sorted({result.untried for result in untried}):
        count = sum(result.untried == reason for result in untried)
        console.print(f"{count} not counted: {reason}", style="dim", markup=False)
    passed = len(results) - len(broken) - len(untried) - len(unmade)
    console.print(f"{implementation.name}: {passed} of {len(results)} vectors pass, {len(broken)} fail", markup=False)
    if broken or unmade:
        return ExitCode.VIOLATES if broken else ExitCode.USAGE
    return ExitCode.CONFORMS if passed else ExitCode.PROVES_NOTHING


def _one_a_clause(results: list[VectorResult]) -> list[VectorResult]:
    """The shortest for each clause."""
    found: dict[str, VectorResult] = {}
    for result in sorted(results, key=lambda result: result.vector.operations):
        if result.counterexample:
            found.setdefault(result.counterexample.violation.clause, result)
    return list(found.values())
