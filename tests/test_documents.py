"""What a document states is checked: generated parts are up to date, examples run, named files and options exist."""

import doctest
import re
from pathlib import Path

import pytest

from .generate_documents import GENERATED, rewritten

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [
    "README.md",
    "impl/engines/README.md",
    "spec/README.md",
    "spec/PORTING.md",
    "gpu_tests/README.md",
    "conformance/README.md",
]


def present() -> list[str]:
    """The documents of this list that exist; the two that must are asserted below."""
    return [name for name in DOCUMENTS if (ROOT / name).exists()]


def test_the_front_doors_exist() -> None:
    assert {"README.md", "spec/README.md"} <= set(present())


@pytest.mark.parametrize("path", GENERATED)
def test_generated_parts_are_up_to_date(path: str) -> None:
    current = (ROOT / path).read_text(encoding="utf-8")
    assert current == rewritten(path), f"{path} is out of date; run: python -m tests.generate_documents"


@pytest.mark.parametrize("path", present())
def test_examples_run(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    examples = doctest.DocTestParser().get_doctest(text, {}, path, path, 0)
    failures: list[str] = []
    doctest.DocTestRunner().run(examples, out=failures.append)
    assert not failures, "".join(failures)


@pytest.mark.parametrize("path", present())
def test_links_lead_somewhere(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)", text)
    missing = [target for target in targets if not ((ROOT / path).parent / target).exists()]
    assert not missing, f"{path} links to files that do not exist: {missing}"


@pytest.mark.parametrize("path", present())
def test_commands_and_options_exist(path: str) -> None:
    """Each `kvspec COMMAND --option` in a document is one of the command line's."""
    import typer

    from kvspec.conformance.command_line import app

    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for line in re.findall(r"kvspec ([a-z][a-z-]*[^\n`#]*)", (ROOT / path).read_text(encoding="utf-8")):
        name, *rest = line.split()
        if name not in commands:
            continue  # prose
        known = {option for parameter in commands[name].params for option in parameter.opts}
        unknown = [word.split("=")[0] for word in rest if word.startswith("--") and word.split("=")[0] not in known]
        assert not unknown, f"{path}: `kvspec {line}` uses {unknown}, which `kvspec {name}` does not know"
