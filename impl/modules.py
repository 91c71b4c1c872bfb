"""Importing the module that a target names, as it is or bare, and saying clearly why that did not work."""

import importlib
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from kvspec.impl.bare_packages import PrivateImports
from kvspec.impl.errors import LoadError
from kvspec.impl.nano_vllm.answers import spoken
from kvspec.impl.targets import Place, Target, place_of, syntax_error

_MOST_STUBS = 40
_HERE = str(Path(__file__).parent)


@dataclass(frozen=True, slots=True)
class Imported:
    """A module, the file it came from, and how to import a module beside it (None if that fails)."""

    module: ModuleType
    source: str
    neighbour: Callable[[str], ModuleType | None]


def imported(wanted: Target, stubs: Sequence[str]) -> Imported:
    """Import the file or module of a target.  Raises LoadError."""
    if wanted.file is not None:
        return _bare(place_of(wanted.file), str(wanted.file), wanted.text, stubs)
    needed = None
    if not stubs:
        try:
            return _ordinary(wanted.module)
        except ModuleNotFoundError as error:
            needed = error.name
        except (Exception, SystemExit) as error:
            raise LoadError(f"Importing {wanted.module} raised {with_place(error)}.") from error
    place, file = _place_of_module(wanted.module, needed)
    return _bare(place, str(file), wanted.text, stubs)


def with_place(error: BaseException) -> str:
    """An exception in one line, with the file and line where it was raised."""
    return f"{spoken(error)} ({_at(error)})"


def _at(error: BaseException) -> str:
    """File and line of the innermost frame that is neither ours nor the import system's."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(("<", _HERE))]
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else "no line known"


# Ordinary imports ----------------------------------------------------------------------------------------------


def _ordinary(name: str) -> Imported:
    with _current_folder_last():
        module = importlib.import_module(name)

    def neighbour(other: str) -> ModuleType | None:
        package = name.rpartition(".")[0]
        try:
            return importlib.import_module(f"{package}.{other}") if package else None
        except Exception:
            return None

    return Imported(module, getattr(module, "__file__", None) or name, neighbour)


@contextmanager
def _current_folder_last() -> Iterator[None]:
    """Modules in the current folder can be imported, unless something installed has their name."""
    here = str(Path.cwd())
    known = here in sys.path or "" in sys.path
    if not known:
        sys.path.append(here)
    try:
        yield
    finally:
        if not known:
            sys.path.remove(here)


def _place_of_module(name: str, needed: str | None) -> tuple[Place, Path]:
    """The file of a module, found without importing its packages.  Raises LoadError."""
    first, *rest = name.split(".")
    for folder in (*sys.path, ""):
        base = Path(folder or ".").resolve()
        file = base.joinpath(first, *rest).with_suffix(".py")
        if file.is_file():
            return Place(base, name, first if rest else None), file
    if needed and not f"{name}.".startswith(f"{needed}."):
        raise LoadError(f"Importing {name} needs {needed}, which is not installed. Give the file of the block manager.")
    raise LoadError(
        f"There is no module {name}: it is neither installed nor in {Path.cwd()}. "
        "Give the path of the file instead: path/to/block_manager.py:Class."
    )


# Bare imports --------------------------------------------------------------------------------------------------


def _bare(place: Place, source: str, text: str, stubs: Sequence[str]) -> Imported:
    imports = _imports(place, source, stubs)
    try:
        module = imports.load(place.module)
    except ModuleNotFoundError as error:
        raise LoadError(_missing(place, source, text, stubs, error)) from error
    except SyntaxError as error:
        raise LoadError(syntax_error(source, error)) from error
    except (Exception, SystemExit) as error:
        raise LoadError(f"Importing {source} raised {with_place(error)}. {_hint(error)}") from error

    def neighbour(name: str) -> ModuleType | None:
        package = place.module.rpartition(".")[0]
        try:
            return imports.load(f"{package}.{name}" if package else name)
        except Exception:
            return None

    return Imported(module, source, neighbour)


def _imports(place: Place, source: str, stubs: Sequence[str]) -> PrivateImports:
    folders = dict.fromkeys((place.folder, Path(source).parent))
    return PrivateImports(list(folders), place.package or place.module, stubs)


def _missing(place: Place, source: str, text: str, stubs: Sequence[str], error: ModuleNotFoundError) -> str:
    """The message that names all modules that are not there, and the options that stand in for them."""
    missing = _all_missing(place, source, stubs, error)
    are = "which is not installed" if len(missing) == 1 else "which are not installed"
    options = " ".join(f"--stub {name}" for name in (*stubs, *missing))
    return (
        f"{source} imports {', '.join(missing)}, {are} ({_at(error)}). Install what the block manager really uses; "
        f"let inert stand-ins take the place of the rest: --impl {text} {options}"
    )


def _all_missing(place: Place, source: str, stubs: Sequence[str], error: ModuleNotFoundError) -> list[str]:
    """Stand in for one missing module after the other, to find out which ones there are."""
    missing = [_to_stub(place, error)]
    while len(missing) < _MOST_STUBS:
        try:
            _imports(place, source, (*stubs, *missing)).load(place.module)
        except ModuleNotFoundError as another:
            if (name := _to_stub(place, another)) in missing:
                break
            missing.append(name)
        except (Exception, SystemExit):
            break
        else:
            break
    return missing


def _to_stub(place: Place, error: ModuleNotFoundError) -> str:
    """What to stub: all of a foreign package, but only the missing module of the checkout's own."""
    name = error.name or str(error)
    top = name.partition(".")[0]
    return name if top == place.package else top


def _hint(error: BaseException) -> str:
    name = (error.name or "").partition(".")[0] if isinstance(error, ImportError) else ""
    if name:
        return f"If the block manager does not really use {name}, add --stub {name}."
    return "If a module that it imports but does not use is the cause, name it with --stub."
