"""Where an engine lies: installed, in a wheel, or in a folder; found without importing any of it."""

import importlib.util
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from kvspec.impl.errors import LoadError

_unpacked: list[TemporaryDirectory[str]] = []  # kept until the process ends


@dataclass(frozen=True, slots=True)
class Place:
    """The folder in which the package lies, the version of the engine, and the place in words."""

    folder: Path
    version: str
    source: str


def find(package: str, distributions: Sequence[str], where: str, modules: Iterable[str]) -> Place:
    """The engine in `where` (a wheel or a folder), or the installed one if `where` is empty.

    `distributions`: the names under which the package is published.  `modules`: what is unpacked from a wheel.
    Raises LoadError.
    """
    if not where:
        return _installed(package, distributions)
    path = Path(where).expanduser()
    if zipfile.is_zipfile(path):
        return _in_wheel(path.resolve(), package, modules)
    if path.is_dir():
        return _in_folder(path.resolve(), package, distributions)
    lies = "is no wheel" if path.exists() else f"is not there (looked in {Path.cwd()})"
    raise LoadError(
        f"{package}:{where}: {where} {lies}. Give a wheel, or a folder in which the package {package} lies."
    )


def _installed(package: str, distributions: Sequence[str]) -> Place:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise LoadError(
            f"{package} is not installed. `pip download --no-deps {distributions[0]}` fetches its wheel, which need not "
            f"be installed: --impl {package}:FILE.whl"
        )
    folder = Path(next(iter(spec.submodule_search_locations))).parent
    return Place(folder, _installed_version(distributions), str(folder / package))


def _installed_version(distributions: Sequence[str]) -> str:
    for name in distributions:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return "unknown"


def _in_folder(folder: Path, package: str, distributions: Sequence[str]) -> Place:
    base = folder.parent if folder.name == package and not (folder / package).is_dir() else folder
    if not (base / package).is_dir():
        raise LoadError(f"{package}:{folder}: there is no package {package} in this folder.")
    names = {name.replace("-", "_") for name in distributions}
    found = [info.name for info in base.glob("*.dist-info") if info.name.partition("-")[0] in names]
    return Place(base, found[0].split("-")[1].removesuffix(".dist") if found else "unknown", str(base / package))


def _in_wheel(wheel: Path, package: str, modules: Iterable[str]) -> Place:
    folder = TemporaryDirectory(prefix=f"kvspec-{package}-")
    _unpacked.append(folder)
    with zipfile.ZipFile(wheel) as archive:
        there = set(archive.namelist())
        if not any(name.startswith(f"{package}/") for name in there):
            raise LoadError(f"{package}:{wheel}: there is no package {package} in this wheel.")
        archive.extractall(folder.name, [file for module in modules for file in _files_of(module) if file in there])
    return Place(Path(folder.name), wheel.name.split("-")[1], str(wheel))


def _files_of(module: str) -> tuple[str, str]:
    path = module.replace(".", "/")
    return f"{path}.py", f"{path}/__init__.py"
