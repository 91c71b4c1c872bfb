"""``kvspec prove``: prove the specification, print what was shown, and fail if anything was not.

Exit codes: 0 all is as it must be; 1 a condition is missing or has no proof; 2 wrong options, or no solver; 3 the run
proves nothing: a planted fault or falsehood was not refuted, or a step is impossible.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .conditions import Text
    from .prover import ConditionResult

_WIDE = 160
_GUARDS = ("planted faults", "planted falsehoods", "witnesses")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``run``, for a command line that has this as one of its commands."""
    parser.add_argument(
        "--section",
        action="append",
        default=[],
        metavar="NAME",
        help="only this section, or a part of its name; may be repeated",
    )
    parser.add_argument("--each", action="store_true", help="one row a condition")
    parser.add_argument("--json", action="store_true", help="one JSON object a condition instead of a table")
    parser.add_argument("--without", metavar="SLUG", help="leave an invariant out of the text, and see what breaks")
    parser.add_argument("--export", type=Path, metavar="FOLDER", help="write the proved conditions as SMT-LIB files")
    parser.add_argument("--no-second-solver", action="store_true", help="do not ask cvc5")


def run(
    section: Sequence[str] = (),
    each: bool = False,
    json: bool = False,
    without: str | None = None,
    export: Path | None = None,
    no_second_solver: bool = False,
) -> int:
    """Prove, print, and return the exit code.  The options are those of ``add_options``."""
    try:
        from . import conditions, prover
    except ModuleNotFoundError as missing:
        return _unusable(f"{missing.name} is missing: pip install z3-solver")
    try:
        section = [_section(name, prover.SECTIONS) for name in section]
    except ValueError as error:
        return _unusable(str(error))
    if without and without not in conditions.TEXT.invariants:
        return _unusable(f"no invariant {without!r}; there are: {', '.join(conditions.TEXT.invariants)}")
    text = _less(conditions.TEXT, without)
    if export:
        return _export(text, export)
    results = prover.prove(text=text, sections=section, use_second_solver=not no_second_solver)
    _print(results, each, json)
    return exit_code(results)


def exit_code(results: "list[ConditionResult]") -> int:
    """1 if a condition is not what it must be, 3 if what guards against an empty proof is not."""
    wrong = {result.section for result in results if not result.holds}
    return 0 if not wrong else 3 if wrong <= set(_GUARDS) else 1


def _section(name: str, among: Sequence[str]) -> str:
    """The section of that name, or the only one with that in its name.  Raises ValueError with what there is."""
    like = [known for known in among if name in known]
    if name in among or len(like) == 1:
        return name if name in among else like[0]
    what = f"several sections like {name!r}: {', '.join(like)}" if like else f"no section {name!r}"
    raise ValueError(f"{what}; there are: {', '.join(among)}")


def _less(text: "Text", slug: str | None) -> "Text":
    return replace(text, invariants={name: rule for name, rule in text.invariants.items() if name != slug})


def _unusable(why: str) -> int:
    print(f"kvspec prove: {why}", file=sys.stderr)
    return 2


def _export(text: "Text", folder: Path) -> int:
    from . import prover

    folder.mkdir(parents=True, exist_ok=True)
    scripts = dict(prover.export(text))
    for name, script in scripts.items():
        (folder / name).write_text(script)
    print(f"{len(scripts)} conditions written to {folder}; a solver must say unsat of each")
    return 0


def _print(results: "list[ConditionResult]", each: bool, json: bool) -> None:
    from . import report, solver

    if json:
        print(report.as_json(results))
        return
    from rich.console import Console

    # In a log there is no terminal whose width could be asked for, and 80 columns are too few.
    Console(width=None if sys.stdout.isatty() else _WIDE).print(report.table(results, each))
    print(solver.versions())


def main(arguments: Sequence[str] | None = None) -> int:
    """The same from ``python -m kvspec.spec.proofs``."""
    parser = argparse.ArgumentParser(prog="kvspec prove", description="Prove the specification.")
    add_options(parser)
    return run(**vars(parser.parse_args(arguments)))
