"""The suite under pytest, as a user starts it: from a foreign folder, with the exit codes of a gate."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SUITE = str(ROOT / "conformance")


def conformance(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """``pytest conformance OPTIONS`` at the least effort, started in `folder`."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", SUITE, "--effort", "smoke", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def test_a_right_manager_is_green(tmp_path: Path) -> None:
    ran = conformance(tmp_path, "--profiles", "hash")
    assert ran.returncode == 0, ran.stdout
    assert "CONFORMS to spec" in ran.stdout


def test_a_wrong_manager_is_red_and_names_the_clause(tmp_path: Path) -> None:
    ran = conformance(tmp_path, "--impl", "known-bad:stale-index-entry", "--profiles", "prefix")
    assert ran.returncode == 1, ran.stdout
    assert "test_clause[prefix-CONTENT]" in ran.stdout
    assert "VIOLATES  CONTENT" in ran.stdout
    assert list(tmp_path.glob("kvspec-traces/content-*.ndjson"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--impl", "no/such.py:X"), "There is no file no/such.py"),
        (("--profiles", "pol"), "no such profile: pol"),
        (("--declare", "pol"), "no such profile: pol"),
        (("--known", "none.toml"), "none.toml cannot be read"),
    ],
)
def test_bad_input_is_one_message(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    ran = conformance(tmp_path, *options)
    assert ran.returncode == 2, ran.stdout
    assert message in ran.stdout + ran.stderr
    assert "Traceback" not in ran.stdout + ran.stderr


def test_a_run_that_proves_nothing_says_so(tmp_path: Path) -> None:
    ran = conformance(tmp_path, "--profiles", "robust")
    assert ran.returncode == 3, ran.stdout
    assert "no clause of a declared profile was tried" in ran.stdout


def test_one_clause_is_not_a_profile(tmp_path: Path) -> None:
    ran = conformance(tmp_path, "--profiles", "prefix", "-k", "prefix-CONTENT")
    assert ran.returncode == 0, ran.stdout
    assert "incomplete" in ran.stdout
    assert "CONFORMS" not in ran.stdout


def test_known_failures_make_it_partial_and_only_shrink(tmp_path: Path) -> None:
    bad = ("--impl", "known-bad:stale-index-entry", "--profiles", "prefix")
    assert conformance(tmp_path, *bad, "--write-known", "known.toml").returncode == 1
    known = tmp_path / "known.toml"
    known.write_text(
        known.read_text()
        .replace('reason = ""', 'reason = "as planted"')
        .replace('link = ""', 'link = "https://x.example"')
    )
    ran = conformance(tmp_path, *bad, "--known", "known.toml")
    assert ran.returncode == 0, ran.stdout
    assert "partial" in ran.stdout
    ran = conformance(tmp_path, "--impl", "model", "--profiles", "prefix", "--known", "known.toml")
    assert ran.returncode == 1, ran.stdout
    assert "delete these known failures" in ran.stdout
