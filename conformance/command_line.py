"""``kvspec``: the same engines from the command line."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from kvspec.conformance.terminal import terminal
from kvspec.impl.adapter import Implementation

app = typer.Typer(
    help="Check a KV-cache block manager against the executable specification.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Target = Annotated[
    str,
    typer.Argument(
        metavar="IMPL",
        help="path/to/file.py:Class, module:Class, cmd:PROGRAM, bundled, hardened, model, known-bad:SLUG",
    ),
]
StoredTrace = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="a stored trace (NDJSON)")]
Stubs = Annotated[list[str], typer.Option("--stub", metavar="MODULE", help="stand-in for a missing heavy module")]
EffortName = Annotated[str, typer.Option(help="smoke, default or deep")]
Seed = Annotated[int, typer.Option(help="seed of every random choice")]


def main() -> None:
    """Entry point of the console script."""
    app()


def fail(message: str) -> typer.Exit:
    """One clear message on standard error and exit code 2."""
    Console(stderr=True, soft_wrap=True, highlight=False).print(message, style="red", markup=False)
    return typer.Exit(2)


def load_or_exit(target: str, stubs: list[str]) -> Implementation:
    """The implementation behind `target`; a target that does not load ends the command with code 2."""
    from kvspec.impl.errors import LoadError
    from kvspec.impl.loader import load

    try:
        return load(target, stubs=stubs)
    except LoadError as error:
        raise fail(str(error)) from None


def profiles_or_exit(text: str) -> tuple[str, ...]:
    """The profiles named in a comma-separated list; an unknown one ends the command with code 2."""
    from kvspec.conformance.profile_names import split_profiles

    try:
        return split_profiles(text)
    except ValueError as error:
        raise fail(str(error)) from None


def _version(wanted: bool) -> None:
    if wanted:
        from kvspec.conformance.trace import FORMAT_VERSION
        from kvspec.spec import __version__

        typer.echo(f"kvspec {__version__}   spec {__version__}   trace format {FORMAT_VERSION}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print versions")
    ] = False,
) -> None:
    """Check a KV-cache block manager against the executable specification."""


@app.command()
def check(
    impl: Target = "bundled",
    effort: EffortName = "default",
    seed: Seed = 0,
    profiles: Annotated[str, typer.Option(help="comma-separated; all if not given")] = "",
    declare: Annotated[str, typer.Option(help="hold it to these profiles, too; comma-separated")] = "",
    contracts_budget: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="processor time for CrossHair; by effort if not given")
    ] = None,
    stub: Stubs = [],  # noqa: B006
    known: Annotated[Path | None, typer.Option(help="known failures (TOML); the list can only shrink")] = None,
    write_known: Annotated[Path | None, typer.Option(help="write the failures of this run as known ones")] = None,
    report: Annotated[
        Path | None, typer.Option(help="folder for report.json, report.md, report.html, badge.json")
    ] = None,
    snippet: Annotated[bool, typer.Option(help="print each counterexample as a Python script without kvspec")] = False,
) -> None:
    """Check IMPL: a verdict by profile, or one shortest counterexample a broken clause."""
    from kvspec.conformance.checking import CheckRequest, run_check
    from kvspec.conformance.lockstep import CannotCreate

    request = CheckRequest(
        implementation=load_or_exit(impl, stub).declaring(profiles_or_exit(declare)),
        effort=effort,
        seed=seed,
        profiles=profiles_or_exit(profiles),
        known=known,
        write_known=write_known,
        report=report,
        snippet=snippet,
        command=shlex.join(["kvspec", *sys.argv[1:]]),
        contracts=contracts_budget,
    )
    try:
        code = run_check(request, terminal())
    except (ValueError, CannotCreate) as error:
        raise fail(str(error)) from None
    except OSError as error:
        raise fail(f"{error.filename}: {error.strerror}") from None
    raise typer.Exit(int(code))


@app.command()
def clauses(profile: Annotated[str, typer.Option(help="only this profile")] = "") -> None:
    """List every clause with its profile and sentence."""
    from rich.table import Table

    from kvspec.spec.clauses import CLAUSES, PROFILES

    if profile and profile not in PROFILES:
        raise fail(f"no such profile: {profile}; there are {', '.join(PROFILES)}")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("clause", "profile", "since", "sentence"):
        table.add_column(column, overflow="fold")
    for clause in CLAUSES.values():
        if profile in ("", clause.profile):
            table.add_row(clause.slug, clause.profile, clause.since, clause.sentence)
    terminal().print(table)


@app.command()
def explain(clause: Annotated[str, typer.Argument(help="slug of a clause, as in `kvspec clauses`")]) -> None:
    """Explain CLAUSE: its sentence, the lines that enforce it, and a known-bad manager that breaks it."""
    from kvspec.conformance.explanation import explanation
    from kvspec.spec.clauses import CLAUSES

    slug = clause.upper()
    if slug not in CLAUSES:
        from difflib import get_close_matches

        near = get_close_matches(slug, CLAUSES, 1)
        raise fail(
            f"no such clause: {clause}; " + (f"did you mean {near[0]}?" if near else "`kvspec clauses` lists them")
        )
    terminal().print(explanation(slug))


@app.command()
def init(path: Annotated[Path, typer.Argument(help="the file to write")] = Path("kvspec_adapter.py")) -> None:
    """Write a 40-line adapter to fill in."""
    from kvspec.conformance.adapter_template import ADAPTER_TEMPLATE

    if path.exists():
        raise fail(f"{path} exists already; name another file: kvspec init other_name.py")
    try:
        path.write_text(ADAPTER_TEMPLATE, encoding="utf-8")
    except OSError as error:
        raise fail(f"{path} cannot be written: {error.strerror}") from None
    typer.echo(f"wrote {path}; fill in the five methods, then: kvspec check {path}:MyAdapter")


@app.command()
def explore(
    impl: Target = "bundled",
    world: Annotated[
        str | None, typer.Option(help="blocks x block size, as in 3x2; default worlds if not given")
    ] = None,
    sequences: Annotated[int, typer.Option(min=1, help="sequences")] = 2,
    tokens: Annotated[int, typer.Option(min=1, help="distinct tokens")] = 2,
    length: Annotated[int | None, typer.Option(min=1, help="longest sequence")] = None,
    partial: Annotated[bool | None, typer.Option(help="commit any part of a step")] = None,
    effort: EffortName = "default",
    limit: Annotated[int | None, typer.Option(min=1, help="stop after so many states")] = None,
    time: Annotated[float | None, typer.Option(min=0, help="stop after so many seconds")] = None,
    certificate: Annotated[Path | None, typer.Option(help="write the certificates here")] = None,
    compare: Annotated[Path | None, typer.Option(help="certificates that must be equal")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="processes; one a core if not given")] = None,
    invariants: Annotated[bool, typer.Option(help="evaluate what is proved after each transition")] = False,
    traces: Annotated[Path, typer.Option(help="where the trace of each counterexample goes")] = Path("kvspec-traces"),
    stub: Stubs = [],  # noqa: B006
) -> None:
    """Exhaust small worlds of IMPL: all programs, the first violation is a shortest one."""
    from kvspec.conformance.explorer.command import explore_command

    implementation = load_or_exit(impl, stub)
    shape = world, sequences, tokens, length, partial, effort
    code = explore_command(
        implementation, *shape, limit, time, certificate, compare, jobs, invariants=invariants, traces=traces
    )
    raise typer.Exit(code)


@app.command("known-bad")
def known_bad(
    slugs: Annotated[list[str] | None, typer.Argument(help="only these")] = None,
    list_only: Annotated[bool, typer.Option("--list", help="list them, run nothing")] = False,
    json: Annotated[bool, typer.Option(help="one JSON object a line")] = False,
    seeds: Annotated[int, typer.Option(min=1, help="how many seeds each")] = 1,
    effort: EffortName = "default",
) -> None:
    """Run the known-bad managers: each must be caught for its own clause."""
    from kvspec.conformance.known_bad_run import known_bad_command

    raise typer.Exit(known_bad_command(slugs or (), json=json, seeds=range(seeds), effort=effort, only_list=list_only))


@app.command()
def replay(trace: StoredTrace, impl: Target, stub: Stubs = []) -> None:  # noqa: B006
    """Ask IMPL the same as in TRACE again."""
    from kvspec.conformance.trace.commands import replay_command

    raise typer.Exit(replay_command(trace, impl, stub))


@app.command()
def shrink(
    trace: StoredTrace,
    impl: Target,
    out: Annotated[Path | None, typer.Option(help="where the shorter trace goes")] = None,
    stub: Stubs = [],  # noqa: B006
) -> None:
    """Make the counterexample in TRACE shorter."""
    from kvspec.conformance.trace.commands import shrink_command

    raise typer.Exit(shrink_command(trace, impl, out, stub))


@app.command()
def show(
    trace: StoredTrace,
    html: Annotated[Path | None, typer.Option(help="write a page with the pool over time")] = None,
    svg: Annotated[Path | None, typer.Option(help="write a picture of the pool over time")] = None,
) -> None:
    """Show the counterexample in TRACE."""
    from kvspec.conformance.trace.commands import show_command

    raise typer.Exit(show_command(trace, html, svg))


@app.command()
def validate(
    traces: Annotated[list[Path], typer.Argument(metavar="TRACE...", help="the files of one recording, in any order")],
    plot: Annotated[Path | None, typer.Option(help="write the course of hit rate, use and refusals (SVG)")] = None,
    statistics: Annotated[bool, typer.Option(help="print hit rate, refusals, recycle age")] = True,
) -> None:
    """Judge a recorded TRACE by itself, in memory that does not grow with its length."""
    from kvspec.conformance.trace.validate_command import validate_command

    raise typer.Exit(validate_command(traces, plot, statistics))


@app.command()
def accept(
    trace: StoredTrace,
    known: Annotated[Path, typer.Option(help="the file of known failures")],
    reason: Annotated[str, typer.Option(help="why it fails")],
    link: Annotated[str, typer.Option(help="where that is tracked")],
) -> None:
    """List the counterexample in TRACE as a known failure."""
    from kvspec.conformance.trace.commands import accept_command

    raise typer.Exit(accept_command(trace, known, reason, link))


@app.command()
def prove(
    section: Annotated[
        list[str] | None, typer.Option(help="only this section, or a part of its name; may be repeated")
    ] = None,
    each: Annotated[bool, typer.Option("--each", help="one row a condition")] = False,
    json: Annotated[bool, typer.Option("--json", help="one JSON object a condition")] = False,
    without: Annotated[
        str | None, typer.Option(metavar="SLUG", help="leave an invariant out, and see what breaks")
    ] = None,
    export: Annotated[Path | None, typer.Option(help="write the conditions as SMT-LIB files into this folder")] = None,
    no_second_solver: Annotated[bool, typer.Option("--no-second-solver", help="do not ask cvc5")] = False,
) -> None:
    """Prove the specification again: conditions, verdicts, bounds."""
    from kvspec.spec.proofs.command import run

    raise typer.Exit(run(section or (), each, json, without, export, no_second_solver))


@app.command()
def smoke(
    impl: Annotated[str, typer.Argument(metavar="cmd:PROGRAM", help="a program that speaks the pipe protocol")],
) -> None:
    """Five tiny exchanges with a program in another language, and what to write next."""
    from kvspec.conformance.smoke import smoke_command

    raise typer.Exit(int(smoke_command(impl)))


@app.command()
def vectors(
    impl: Annotated[str | None, typer.Argument(metavar="IMPL", help="run them; only list them if not given")] = None,
    slug: Annotated[list[str] | None, typer.Option(help="only this vector; may be repeated")] = None,
    export: Annotated[Path | None, typer.Option(help="copy all files into this folder")] = None,
    stub: Stubs = [],  # noqa: B006
) -> None:
    """List the vectors, export them, or run them against IMPL."""
    from kvspec.conformance.vectors_command import vectors_command

    implementation = load_or_exit(impl, stub) if impl else None
    raise typer.Exit(int(vectors_command(implementation, slug or (), export)))
