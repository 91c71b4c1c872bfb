"""Writes the generated parts of the documents: ``python -m tests.generate_documents`` from the root of a checkout.

``tests/test_documents.py`` fails while a generated part differs from what this module would write.
"""

import re
from contextlib import chdir
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 100


def clause_table() -> str:
    """Every clause of the registry, by profile."""
    from kvspec.spec.clauses import CLAUSES, PROFILES

    lines = ["| profile | clause | kind | sentence |", "|---|---|---|---|"]
    for profile in PROFILES.values():
        for clause in CLAUSES.values():
            if clause.profile == profile.name:
                lines.append(f"| `{profile.name}` | `{clause.slug}` | {clause.kind} | {clause.sentence} |")
    return "\n".join(lines)


def ledger() -> str:
    """What is claimed of each clause, and why it may be believed."""
    from kvspec.spec.proofs.ledger_of_claims import ledger_markdown

    return ledger_markdown()


@cache
def success() -> str:
    """The summary of a run over the bundled manager; the time is left out."""
    from kvspec.conformance.examination import Examination, Options
    from kvspec.conformance.summary import summary_text
    from kvspec.impl.loader import load

    examination = Examination(load("bundled"), Options(effort="smoke"))
    examination.decide_all()
    text = summary_text(examination.report(), WIDTH)
    return _block("kvspec check bundled --effort smoke", re.sub(r"\s+[0-9.]+ s$", "", text.rstrip()))


@cache
def failure() -> str:
    """The counterexample to CONTENT of a known-bad manager with the most common serious fault."""
    from kvspec.conformance.campaign import run_campaign
    from kvspec.conformance.contexts import CONTEXTS
    from kvspec.conformance.render import plain_counterexample
    from kvspec.conformance.shrink import shrink
    from kvspec.conformance.trace import slug_of
    from kvspec.impl.loader import load

    target = "known-bad:stale-index-entry"
    implementation = load(target)
    found = shrink(implementation, run_campaign(implementation, CONTEXTS["steps"], 0, 400).found["CONTENT"])
    trace = Path("kvspec-traces") / f"{slug_of('CONTENT', found.program, found.context)}.ndjson"
    with TemporaryDirectory() as folder, chdir(folder):  # the trace is not wanted here
        return _block(f"kvspec check {target}", plain_counterexample(found, implementation, trace, width=WIDTH))


@cache
def known() -> str:
    """The verdict with the example of known failures; the bundled manager fails exactly as nano-vllm's head does."""
    from kvspec.conformance.examination import Examination, Options
    from kvspec.conformance.known_failures import KnownFailures
    from kvspec.conformance.summary import summary_text
    from kvspec.impl.loader import load

    known = KnownFailures.load(ROOT / "conformance" / "examples" / "nano-vllm.toml")
    held = load("bundled").declaring(("one", "collision"))
    examination = Examination(held, Options(effort="smoke", profiles=("one", "collision")), known=known)
    examination.decide_all()
    table = [line for line in summary_text(examination.report(), WIDTH).splitlines() if "partial" in line]
    command = "kvspec check FILE.py:BlockManager --declare one,collision --known nano-vllm.toml"
    return _block(command, "\n".join(["…", *table, "…"]))


def _block(command: str, text: str) -> str:
    lines = "\n".join(line.rstrip() for line in text.rstrip().splitlines())
    return f"```text\n$ {command}\n{lines}\n```"


def engines() -> str:
    """The stored reports on real managers."""
    from kvspec.conformance.engines_table import engines_table

    return engines_table()


GENERATED = {
    "README.md": {"success": success, "failure": failure, "known": known, "engines": engines},
    "spec/README.md": {"clauses": clause_table, "ledger": ledger},
}


def rewritten(path: str) -> str:
    """The document with its generated parts as they should be."""
    text = (ROOT / path).read_text(encoding="utf-8")
    for name, write in GENERATED[path].items():
        pattern = re.compile(rf"(<!-- {name}: [^\n]*-->\n).*?(<!-- /{name} -->)", re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"{path} has no part <!-- {name}: … --> … <!-- /{name} -->")
        content = write().strip()
        text = pattern.sub(lambda match, content=content: f"{match[1]}\n{content}\n\n{match[2]}", text)
    return text


def main() -> None:
    """Rewrite every document in place."""
    for path in GENERATED:
        (ROOT / path).write_text(rewritten(path), encoding="utf-8")


if __name__ == "__main__":
    main()
