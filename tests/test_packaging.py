"""The wheel: every module and data file under its one name, the metadata, and a spec that needs nothing else."""

from __future__ import annotations

import importlib.util
import itertools
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("spec", "impl", "conformance", "gpu_tests")
GENERATED = shutil.ignore_patterns("__pycache__", "*.py[co]", ".*_cache", ".hypothesis", "build")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is packaged: a build writes next to its source."""
    copy = tmp_path_factory.mktemp("source")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, ignore=GENERATED)
    for file in ("pyproject.toml", "LICENSE", "README.md"):
        if (ROOT / file).exists():
            shutil.copy(ROOT / file, copy)
    return copy


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked."""
    if missing := [tool for tool in ("pip", "setuptools") if importlib.util.find_spec(tool) is None]:
        pytest.skip(f"a wheel is built with {' and '.join(missing)}, see requirements-dev.txt")
    built, unpacked = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("unpacked")
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        built,
        source,
    ]
    run = subprocess.run(build, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    (archive,) = built.glob("*.whl")
    assert archive.name == f"kvspec-{PROJECT['project']['version']}-py3-none-any.whl"
    zipfile.ZipFile(archive).extractall(unpacked)
    return unpacked


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    (folder,) = wheel.glob("*.dist-info")
    return Parser().parsestr((folder / "METADATA").read_text(encoding="utf-8"))


def test_package_list_is_the_tree() -> None:
    folders = {path.parent.relative_to(ROOT) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    without_init = sorted(str(folder) for folder in folders if not (ROOT / folder / "__init__.py").exists())
    assert not without_init, "these folders have modules, but no __init__.py"
    listed = PROJECT["tool"]["setuptools"]["packages"]
    assert sorted(listed) == sorted(".".join(("kvspec", *folder.parts)) for folder in folders)


def test_wheel_holds_exactly_the_tree(source: Path, wheel: Path) -> None:
    expected = {
        path.relative_to(source).as_posix()
        for folder in FOLDERS
        for path in (source / folder).rglob("*")
        if path.is_file()
    }
    packaged = {
        path.relative_to(wheel / "kvspec").as_posix() for path in (wheel / "kvspec").rglob("*") if path.is_file()
    }
    assert sorted(expected - packaged) == [], "left out of the wheel"
    assert sorted(packaged - expected) == [], "only in the wheel"
    assert {path.name for path in wheel.iterdir()} == {"kvspec", f"kvspec-{PROJECT['project']['version']}.dist-info"}


def test_metadata(metadata: Message) -> None:
    assert metadata["Name"] == "kvspec"
    assert set(metadata["Requires-Python"].split(",")) == {">=3.11", "<3.14"}
    assert metadata["License-Expression"] == "MIT"
    assert metadata["License-File"] == "LICENSE"
    assert set(metadata.get_all("Provides-Extra")) == set(PROJECT["project"]["optional-dependencies"])
    required = {entry.partition(">")[0] for entry in metadata.get_all("Requires-Dist") if "extra ==" not in entry}
    assert required >= {"hypothesis", "pytest", "xxhash", "typer", "rich"}
    assert "torch" not in required, "torch is an extra"


def test_entry_points(wheel: Path) -> None:
    (folder,) = wheel.glob("*.dist-info")
    text = (folder / "entry_points.txt").read_text(encoding="utf-8")
    assert "[console_scripts]\nkvspec = kvspec.conformance.command_line:main" in text
    assert "[pytest11]\nkvspec = kvspec.conformance.plugin" in text


def test_spec_runs_from_the_wheel_with_nothing_else_installed(wheel: Path) -> None:
    modules = [f"kvspec.spec.{path.stem}" for path in sorted((wheel / "kvspec" / "spec").glob("[a-z]*.py"))]
    assert "kvspec.spec.judge" in modules
    code = f"""
import importlib, sys
sys.path.insert(0, {str(wheel)!r})
for module in {modules!r}:
    file = importlib.import_module(module).__file__
    assert file.startswith({str(wheel)!r}), file
"""
    isolated = [sys.executable, "-I", "-S", "-c", code]
    run = subprocess.run(isolated, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_developers_install_every_direct_dependency_at_one_version() -> None:
    lines = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.partition("==")[0].strip() for line in lines if "==" in line}
    assert not [line for line in lines if line.strip() and not line.startswith("#") and "==" not in line]
    project = PROJECT["project"]
    direct = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    assert {entry.partition(">")[0] for entry in direct} <= pinned
