"""The gate of a CI system: green on a correct manager, red on a bad one, red where nothing is proved."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
GATE = ROOT / "conformance" / "gate.sh"
ACTION = yaml.safe_load((ROOT / "conformance" / "action.yml").read_text())
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the gate is a bash script")


@dataclass(frozen=True)
class Ended:
    """How a gate ended, and what it left behind."""

    code: int
    out: str
    err: str
    summary: str
    outputs: dict[str, str]
    report: Path


@pytest.fixture(scope="module")
def kvspec_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where another Python finds this checkout as ``kvspec``, installed or not."""
    folder = tmp_path_factory.mktemp("path") / "kvspec"
    folder.mkdir()
    for name in ("spec", "impl", "conformance"):
        (folder / name).symlink_to(ROOT / name)
    return str(folder.parent)


def gate(folder: Path, kvspec_path: str, **settings: str) -> Ended:
    summary, outputs = folder / "summary.md", folder / "outputs"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KVSPEC_", "GITHUB_"))}
    environment = kept | {
        "PYTHONPATH": kvspec_path,
        "KVSPEC_PYTHON": sys.executable,
        "KVSPEC_EFFORT": "smoke",
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_OUTPUT": str(outputs),
    }
    done = subprocess.run(
        ["bash", str(GATE)], cwd=folder, env=environment | settings, capture_output=True, text=True, check=False
    )
    lines = outputs.read_text().splitlines() if outputs.exists() else []
    return Ended(
        done.returncode,
        done.stdout,
        done.stderr,
        summary.read_text() if summary.exists() else "",
        dict(line.split("=", 1) for line in lines),
        folder / settings.get("KVSPEC_REPORT", "kvspec-report"),
    )


@pytest.fixture(scope="module")
def green(tmp_path_factory: pytest.TempPathFactory, kvspec_path: str) -> Ended:
    return gate(tmp_path_factory.mktemp("green"), kvspec_path, KVSPEC_IMPL="bundled")


@pytest.fixture(scope="module")
def bad_manager(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the bundled manager that frees a block which another sequence still holds."""
    text = (ROOT / "impl" / "block_manager.py").read_text()
    assert "block.ref_count -= 1" in text
    path = tmp_path_factory.mktemp("bad") / "block_manager.py"
    path.write_text(text.replace("block.ref_count -= 1", "block.ref_count = 0"))
    return path


@pytest.fixture(scope="module")
def red(tmp_path_factory: pytest.TempPathFactory, kvspec_path: str, bad_manager: Path) -> Ended:
    folder = tmp_path_factory.mktemp("red")
    return gate(folder, kvspec_path, KVSPEC_IMPL=f"{bad_manager}:BlockManager", KVSPEC_PROFILES="pool")


def test_the_bundled_manager_is_green(green: Ended) -> None:
    assert green.code == 0, green.err
    assert green.outputs == {"verdict": "conforms", "report": "kvspec-report"}
    assert "BlockManager conforms" in green.summary
    assert json.loads((green.report / "report.json").read_text())["verdict"] == "conforms"
    assert (green.report / "report.html").exists()
    assert json.loads((green.report / "badge.json").read_text())["color"] in ("brightgreen", "yellow")


def test_a_bad_manager_is_red_and_the_summary_has_its_counterexample(red: Ended) -> None:
    assert red.code == 1
    assert red.outputs["verdict"] == "violates"
    assert "| pool | **violates** |" in red.summary
    assert "VIOLATES  RELEASE" in red.summary
    assert list((red.report / "traces").glob("release-*.ndjson"))


def test_a_known_failure_is_green_and_listed(tmp_path: Path, kvspec_path: str, bad_manager: Path, red: Ended) -> None:
    known = listed(tmp_path, red)
    target = f"{bad_manager}:BlockManager"
    ended = gate(tmp_path, kvspec_path, KVSPEC_IMPL=target, KVSPEC_PROFILES="pool", KVSPEC_KNOWN=str(known))
    assert ended.code == 0, ended.out + ended.err
    assert "| pool | partial |" in ended.summary


def test_a_fixed_but_still_listed_failure_is_red(tmp_path: Path, kvspec_path: str, red: Ended) -> None:
    known = listed(tmp_path, red)
    ended = gate(tmp_path, kvspec_path, KVSPEC_IMPL="bundled", KVSPEC_PROFILES="pool", KVSPEC_KNOWN=str(known))
    assert ended.code == 1
    assert "delete this known failure" in ended.summary


def listed(folder: Path, red: Ended) -> Path:
    (trace,) = (red.report / "traces").glob("release-*.ndjson")
    shutil.copy(trace, folder / "release.ndjson")
    known = folder / "known.toml"
    known.write_text(
        '[[known]]\ntrace = "release.ndjson"\nclause = "RELEASE"\nreason = "planted"\nlink = "https://example.com/1"\n'
    )
    return known


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"KVSPEC_IMPL": "no/such/file.py:BlockManager"}, "file.py"),
        ({"KVSPEC_IMPL": "bundled", "KVSPEC_EFFORT": "heroic"}, "heroic"),
        ({"KVSPEC_IMPL": "bundled", "KVSPEC_PROFILES": "speed"}, "speed"),
        ({"KVSPEC_IMPL": "bundled", "KVSPEC_KNOWN": "gone.toml"}, "gone.toml"),
        ({"KVSPEC_IMPL": ""}, "KVSPEC_IMPL is not set"),
    ],
)
def test_a_mistake_in_the_settings_is_a_usage_error(
    tmp_path: Path, kvspec_path: str, settings: dict[str, str], message: str
) -> None:
    ended = gate(tmp_path, kvspec_path, **settings)
    assert ended.code == 2
    assert message in ended.err + ended.out
    assert "Traceback" not in ended.err


def test_a_check_that_says_nothing_is_red(tmp_path: Path, kvspec_path: str) -> None:
    """A Python that ends with 0 and does nothing: an old report must not pass for its result."""
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\nexit 0\n")
    silent.chmod(0o755)
    (tmp_path / "kvspec-report").mkdir()
    (tmp_path / "kvspec-report" / "report.json").write_text('{"verdict": "conforms"}')
    ended = gate(tmp_path, kvspec_path, KVSPEC_IMPL="bundled", KVSPEC_PYTHON=str(silent))
    assert ended.code == 3
    assert "proves nothing" in ended.err
    assert ended.outputs["verdict"] == "proves nothing"


def test_a_check_that_crashes_is_red(tmp_path: Path, kvspec_path: str) -> None:
    crashing = tmp_path / "python"
    crashing.write_text("#!/bin/sh\nkill -9 $$\n")
    crashing.chmod(0o755)
    ended = gate(tmp_path, kvspec_path, KVSPEC_IMPL="bundled", KVSPEC_PYTHON=str(crashing))
    assert ended.code == 137
    assert ended.outputs["verdict"] == "crashed"


def test_settings_are_data_and_never_shell_text(tmp_path: Path, kvspec_path: str) -> None:
    ended = gate(tmp_path, kvspec_path, KVSPEC_IMPL="$(touch owned); `touch owned`", KVSPEC_STUBS="a b;touch owned")
    assert ended.code == 2
    assert not (tmp_path / "owned").exists()


# The action and the hook ---------------------------------------------------------------------------------------------


def test_the_action_gives_every_input_to_the_gate_as_a_setting() -> None:
    steps = ACTION["runs"]["steps"]
    (check,) = [step for step in steps if step.get("id") == "gate"]
    passed = set(check["env"].values())
    assert passed == {f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"] if name != "install"}
    text = GATE.read_text()
    assert all(name in text for name in check["env"])


def test_the_action_never_pastes_an_input_into_a_script() -> None:
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_the_action_uploads_the_report_of_a_red_run() -> None:
    upload = ACTION["runs"]["steps"][-1]
    assert upload["uses"].startswith("actions/upload-artifact@")
    assert upload["if"] == "always()"


def test_only_impl_is_required() -> None:
    assert [name for name, given in ACTION["inputs"].items() if given.get("required")] == ["impl"]
    assert all("default" in given for given in ACTION["inputs"].values() if not given.get("required"))


def test_the_hook_runs_the_check_once_for_the_whole_commit() -> None:
    (hook,) = HOOKS
    assert hook["id"] == "kvspec"
    assert hook["entry"] == "kvspec check"
    assert hook["pass_filenames"] is False


def test_the_script_is_executable_and_has_no_syntax_error() -> None:
    assert os.access(GATE, os.X_OK)
    assert subprocess.run(["bash", "-n", str(GATE)], check=False).returncode == 0
