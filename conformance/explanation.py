"""``kvspec explain CLAUSE``: the sentence, the lines that enforce it, and who breaks it."""

import inspect
from types import ModuleType

from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.text import Text

from kvspec.conformance import hash_check, robustness
from kvspec.impl.known_bad import KNOWN_BAD
from kvspec.spec import extension_rules, invariants, judge, model
from kvspec.spec.clauses import BORROWED, CLAUSES, Clause

ENFORCERS: tuple[ModuleType, ...] = (judge, invariants, extension_rules, model, robustness, hash_check)


def enforcing_lines(slug: str) -> list[tuple[str, int, str]]:
    """(file, line, text) of each check of a clause: a comment with its sentence, then the check itself."""
    found = []
    for module in ENFORCERS:
        lines = inspect.getsource(module).splitlines()
        name = module.__name__.removeprefix("kvspec.").replace(".", "/") + ".py"
        for number, line in enumerate(lines):
            if line.strip() == f"# {slug}: {CLAUSES[slug].sentence}":
                found.append((name, number + 2, "\n".join(lines[number : number + 3])))
    return found


def explanation(slug: str) -> RenderableType:
    """Everything known about a clause.  Raises KeyError if there is none."""
    clause = CLAUSES[slug]
    parts: list[RenderableType] = [_heading(clause), ""]
    for name, number, text in enforcing_lines(slug):
        parts += [
            Text(f"{name}:{number}", style="dim"),
            Syntax(inspect.cleandoc(text), "python", background_color="default"),
        ]
    killers = [bad for bad in KNOWN_BAD.values() if bad.clause == slug]
    if killers:
        parts += ["", "Known-bad managers that break it (run one with: kvspec check known-bad:SLUG):"]
        parts += [Text(f"  {bad.slug:34} {bad.sentence}") for bad in killers]
        reports = sorted({report for bad in killers for report in bad.reports})
        parts += [Text("Public reports: " + ", ".join(reports), style="dim")] if reports else []
    return Group(*parts)


def _heading(clause: Clause) -> Text:
    text = Text(clause.slug, style="bold")
    text.append(f"   {clause.sentence}\n", style="not bold")
    borrowers = [profile for profile, owners in BORROWED.items() if clause.profile in owners]
    text.append(f"profile {clause.profile}, {clause.kind} clause, since {clause.since}", style="dim not bold")
    if borrowers:
        text.append(f"; also decided in {', '.join(borrowers)}", style="dim not bold")
    return text
