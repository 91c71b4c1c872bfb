"""Mutation testing of impl/block_manager.py: each mutant is killed by the harness, or listed as equivalent with a reason.

    python tests/mutation/run.py

Exit code 0: no surprise.  1: a new survivor, or an entry of equivalent.toml that no mutant matches any more.
2: mutmut did not get as far as a result.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FOLDERS = ("spec", "impl", "conformance")
ALIVE = ("survived", "no tests", "suspicious")

CONFIGURATION = """\
[mutmut]
source_paths=
    src/
only_mutate=
    src/kvspec/impl/block_manager.py
pytest_add_cli_args=
    -p
    no:kvspec
pytest_add_cli_args_test_selection=
    tests/
"""


class Mutant(NamedTuple):
    """One changed line and the function in which it stands."""

    where: str
    was: str
    became: str


def main() -> int:
    """Run mutmut on a copy laid out the way it wants, and hold the survivors against the list."""
    with tempfile.TemporaryDirectory(prefix="kvspec-mutation-") as folder:
        work = Path(folder)
        lay_out(work)
        if mutmut(work, "run", "--max-children", str(os.cpu_count() or 1), quiet=False).returncode:
            print("mutmut stopped before it had a result", file=sys.stderr)
            return 2
        survivors = {mutant(work, name) for name in alive(mutmut(work, "results").stdout)}
    return compare(survivors, equivalent())


def lay_out(work: Path) -> None:
    """A folder `src/kvspec` of copies, so that module names and paths agree, and the one test."""
    for name in FOLDERS:
        shutil.copytree(ROOT / name, work / "src" / "kvspec" / name, ignore=shutil.ignore_patterns("__pycache__"))
    (work / "tests").mkdir()
    shutil.copy(HERE / "verdict_on_mutant.py", work / "tests" / "test_verdict_on_mutant.py")
    (work / "setup.cfg").write_text(CONFIGURATION, encoding="utf-8")


def mutmut(work: Path, *arguments: str, quiet: bool = True) -> subprocess.CompletedProcess[str]:
    """Run mutmut in `work`; not quiet: let it show its progress."""
    command = [sys.executable, "-m", "mutmut", *arguments]
    return subprocess.run(command, cwd=work, text=True, stdout=subprocess.PIPE if quiet else None, check=False)


def alive(results: str) -> list[str]:
    """The names of mutants that were not killed."""
    lines = (line.strip().rpartition(": ") for line in results.splitlines())
    return [name for name, _, status in lines if status in ALIVE]


def mutant(work: Path, name: str) -> Mutant:
    """What the mutant `name` changed."""
    lines = mutmut(work, "show", name).stdout.splitlines()
    was, became = (
        " / ".join(line[1:].strip() for line in lines if re.match(rf"\{sign}(?!\{sign}\{sign})", line)) for sign in "-+"
    )
    function = name.rpartition("__mutmut_")[0].rpartition(".")[2]
    return Mutant(function.removeprefix("xǁ").removeprefix("x_").replace("ǁ", "."), was, became)


def equivalent() -> set[Mutant]:
    """The listed mutants; each entry must have a reason."""
    entries = tomllib.loads((HERE / "equivalent.toml").read_text(encoding="utf-8"))["mutant"]
    assert all(entry["reason"] for entry in entries)
    return {Mutant(entry["where"], entry["was"], entry["became"]) for entry in entries}


def compare(survivors: set[Mutant], listed: set[Mutant]) -> int:
    """Say what is new and what is out of date."""
    for new in sorted(survivors - listed):
        print(
            f"new survivor in {new.where}:\n  - {new.was}\n  + {new.became}\n  improve a clause or the driver, or list it"
        )
    for old in sorted(listed - survivors):
        print(f"delete this entry of equivalent.toml, no such mutant survives: {old.where}: {old.became}")
    if survivors == listed:
        print(f"no surprise: {len(survivors)} mutants survive, all listed as equivalent")
    return int(survivors != listed)


if __name__ == "__main__":
    sys.exit(main())
