"""The command line: right exit codes, and one clear message for each kind of bad input."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kvspec.conformance.command_line import app
from kvspec.spec.clauses import CLAUSES

PLAIN = {"TERM": "dumb", "COLUMNS": "200", "NO_COLOR": "1"}


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs ``kvspec`` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments), env=PLAIN)

    return run


def test_conforming(command) -> None:
    found = command("check", "bundled", "--profiles", "hash")
    assert found.exit_code == 0, found.output
    assert "CONFORMS to spec" in found.output


def test_violating(command) -> None:
    found = command("check", "known-bad:stale-index-entry", "--effort", "smoke", "--profiles", "prefix", "--snippet")
    assert found.exit_code == 1, found.output
    assert "VIOLATES  CONTENT" in found.output
    trace = next(Path("kvspec-traces").glob("content-*.ndjson"))
    assert command("replay", str(trace), "known-bad:stale-index-entry").exit_code == 1
    assert command("replay", str(trace), "model").exit_code == 0
    shown = command("show", str(trace), "--html", "page.html", "--svg", "pool.svg")
    assert shown.exit_code == 0, shown.output
    assert Path("page.html").read_text().startswith("<!")
    assert "<svg" in Path("pool.svg").read_text()
    assert command("validate", str(trace)).exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check", "no/such/file.py:BlockManager"), "There is no file no/such/file.py"),
        (("check", "no_such_module_at_all:X"), "There is no module no_such_module_at_all"),
        (("check", "known-bad:stale-index"), "Did you mean known-bad:stale-index-entry?"),
        (("check", "bundled", "--effort", "heroic"), "no such effort: heroic; there are smoke, default, deep"),
        (("check", "bundled", "--profiles", "pol"), "no such profile: pol; there are pool, prefix"),
        (("check", "bundled", "--declare", "pol"), "no such profile: pol; there are pool, prefix"),
        (("check", "bundled", "--known", "none.toml"), "none.toml cannot be read"),
        (("explain", "CONTENTS"), "did you mean CONTENT?"),
        (("clauses", "--profile", "x"), "no such profile: x"),
    ],
)
def test_bad_input_is_one_message(command, arguments: tuple[str, ...], message: str) -> None:
    found = command(*arguments)
    assert found.exit_code == 2, found.output
    assert message in found.output
    assert "Traceback" not in found.output


NANO_VLLM = str(Path(__file__).parents[1] / "conformance" / "examples" / "nano-vllm.toml")


def test_a_profile_that_the_adapter_does_not_declare_can_be_asked_for(command) -> None:
    found = command("check", "bundled", "--effort", "smoke", "--profiles", "one", "--declare", "one")
    assert found.exit_code == 1, found.output
    assert "VIOLATES  COVERS" in found.output


def test_a_profile_that_cannot_be_tried_is_not_passed_by_asking_for_it(command) -> None:
    found = command("check", "bundled", "--effort", "smoke", "--profiles", "pool,namespace", "--declare", "namespace")
    assert found.exit_code == 3, found.output
    assert "namespace is declared, but cannot be tried: the adapter has no namespaces" in found.output


def test_the_example_of_known_failures_is_what_nano_vllm_does(command) -> None:
    """The bundled manager does what nano-vllm at 9fa256a does, block for block (clause NANO-ORDER)."""
    asked = (
        "--effort",
        "smoke",
        "--profiles",
        "pool,one,collision",
        "--declare",
        "one,collision",
        "--known",
        NANO_VLLM,
    )
    found = command("check", "bundled", *asked)
    assert found.exit_code == 0, found.output
    assert "PARTIAL: one collision" in found.output
    found = command("check", "hardened", *asked)
    assert found.exit_code == 1, found.output
    assert found.output.count("NOT AS LISTED  delete this known failure") == 2


MANAGERS = {
    "raises": ("def can_allocate(self, seq): raise RuntimeError('boom')", "RuntimeError: boom"),
    "answers text": ("def can_allocate(self, seq): return 'yes'", "'yes'"),
    "answers a huge number": ("def can_allocate(self, seq): return 10**30", "can_allocate"),
    "answers a negative count": ("def can_allocate(self, seq): return -7", "-7"),
    "names a block that is not there": (
        "def allocate(self, seq, n):\n        super().allocate(seq, n)\n        seq.block_table[0] = 10**9",
        "1000000000",
    ),
    "leaves the process": ("def can_allocate(self, seq): raise SystemExit(0)", "SystemExit"),
}


@pytest.mark.parametrize("fault", MANAGERS)
def test_bad_behaviour_is_a_verdict(command, fault: str) -> None:
    body, shown = MANAGERS[fault]
    Path("mine.py").write_text(
        f"from kvspec.impl.block_manager import BlockManager as Seed\n\n\nclass BlockManager(Seed):\n    {body}\n"
    )
    found = command("check", "mine.py:BlockManager", "--effort", "smoke", "--profiles", "pool")
    assert found.exit_code == 1, found.output
    assert shown in found.output
    assert "Traceback" not in found.output
    if fault != "names a block that is not there":
        assert "Nothing works" in found.output
        assert len(found.output.strip().splitlines()) == 3


def test_a_manager_that_hangs_ends(command, monkeypatch: pytest.MonkeyPatch) -> None:
    from kvspec.conformance import time_limit

    monkeypatch.setattr(time_limit, "DEFAULT_SECONDS", 0.3)
    Path("mine.py").write_text(
        "import time\nfrom kvspec.impl.block_manager import BlockManager as Seed\n\n\n"
        "class BlockManager(Seed):\n    def can_allocate(self, seq):\n        time.sleep(60)\n"
    )
    found = command("check", "mine.py:BlockManager", "--effort", "smoke", "--profiles", "pool")
    assert found.exit_code == 1, found.output
    assert "no answer within" in found.output


def test_a_class_without_the_methods(command) -> None:
    Path("mine.py").write_text("class BlockManager:\n    def allocate(self): ...\n")
    found = command("check", "mine.py:BlockManager")
    assert found.exit_code == 2, found.output
    assert "kvspec init" in found.output


def test_an_import_that_needs_a_stand_in(command) -> None:
    Path("mine.py").write_text(
        "import a_heavy_module_nobody_has\nfrom kvspec.impl.block_manager import BlockManager as Seed\n\n\n"
        "class BlockManager(Seed):\n    pass\n"
    )
    found = command("check", "mine.py:BlockManager", "--profiles", "hash")
    assert found.exit_code == 2, found.output
    assert "--stub a_heavy_module_nobody_has" in found.output
    found = command("check", "mine.py:BlockManager", "--profiles", "hash", "--stub", "a_heavy_module_nobody_has")
    assert found.exit_code == 0, found.output


def test_the_adapter_template_loads_and_is_told_what_it_lacks(command) -> None:
    assert command("init").exit_code == 0
    assert len(Path("kvspec_adapter.py").read_text().splitlines()) <= 45
    found = command("check", "kvspec_adapter.py:MyAdapter", "--effort", "smoke")
    assert found.exit_code == 2, found.output
    assert "make a manager with world.blocks blocks" in found.output
    assert command("init").exit_code == 2


@pytest.mark.parametrize("slug", CLAUSES)
def test_every_clause_is_explained(command, slug: str) -> None:
    found = command("explain", slug)
    assert found.exit_code == 0, found.output
    assert CLAUSES[slug].sentence in " ".join(found.output.split())
    assert ".py:" in found.output, f"no enforcing line of {slug} is shown"


def test_versions_and_help(command) -> None:
    assert "trace format" in command("--version").output
    assert {"check", "explain", "clauses", "init", "explore", "prove"} <= set(command("--help").output.split())
