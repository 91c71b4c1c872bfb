"""Writes the generated parts of the documents: ``python -m tests.generate_documents`` from the root of a checkout.

``tests/test_documents.py`` fails while a generated part differs from what this module would write.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


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


GENERATED = {"spec/README.md": {"clauses": clause_table, "ledger": ledger}}


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
