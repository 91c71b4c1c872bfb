"""From the text given to ``--impl`` to an implementation.

``path/to/block_manager.py:Class``  a manager in a checkout; the package around it is found, and imported bare
``package.module:Class``            a manager that can be imported (if that needs too much, it is imported bare as well)
``…:name``                          a class with its own five operations, or a factory (see below)
``path/to/block_manager.py``        the only block manager in the file
``bundled``                         the manager of the seed, which comes with kvspec

Your own adapter is a class with a class attribute `declaration` (``spec.declaration.Declaration``), ``__init__(self,
world)`` and the five methods of ``impl.adapter.Adapter``; `snapshot`, `copy` and a static method `chain_hash` are
optional.  Or it is a factory: a function without parameters that returns an ``impl.adapter.Implementation``.
"""

import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from kvspec.impl.adapter import Implementation
from kvspec.impl.bare_packages import PrivateImports
from kvspec.impl.block_manager import BlockManager
from kvspec.impl.errors import LoadError
from kvspec.impl.nano_vllm import implementation_of
from kvspec.impl.nano_vllm.answers import spoken
from kvspec.impl.nano_vllm.sequences import fits
from kvspec.impl.nano_vllm.shapes import looks_like_manager
from kvspec.impl.targets import Place, Target, parsed, place_of, syntax_error
from kvspec.spec.declaration import Declaration

OPERATIONS = ("admit", "reserve", "commit", "append", "release")
_MOST_STUBS = 40


def load(target: str, stubs: Sequence[str] = ()) -> Implementation:
    """The implementation that `target` names; the modules in `stubs` are replaced by inert stand-ins.

    Raises LoadError with one message: what is wrong, where, and what to do next.
    """
    if target.strip() == "bundled":
        return implementation_of(BlockManager, target="bundled", source=inspect.getfile(BlockManager))
    wanted = parsed(target)
    found = _by_file(wanted, stubs) if wanted.file else _by_module(wanted, stubs)
    return _implementation(found.pick(wanted.name), found, wanted)


@dataclass(frozen=True, slots=True)
class _Found:
    """A loaded module, where it came from, and how to load its neighbours."""

    module: ModuleType
    source: str
    neighbour: Callable[[str], ModuleType | None]

    def pick(self, name: str) -> Any:
        """The object called `name` (dots allowed), or the only candidate.  Raises LoadError."""
        if not name:
            return self._only_candidate()
        found: Any = self.module
        for part in name.split("."):
            if not hasattr(found, part):
                raise LoadError(f"{self.source} has no {name}. {self._spoken_candidates()}")
            found = getattr(found, part)
        return found

    def candidates(self) -> list[str]:
        """The names of the classes of this very module that can be loaded."""
        own = [
            (n, v) for n, v in vars(self.module).items() if isinstance(v, type) and v.__module__ == self.module.__name__
        ]
        return [name for name, value in own if looks_like_manager(value) or _is_adapter(value)]

    def _only_candidate(self) -> Any:
        names = self.candidates()
        if len(names) == 1:
            return getattr(self.module, names[0])
        if names:
            raise LoadError(
                f"{self.source} has several block managers: {', '.join(names)}. Add one, as in …:{names[0]}."
            )
        raise LoadError(f"{self.source} has no class that looks like a block manager. {self._spoken_candidates()}")

    def _spoken_candidates(self) -> str:
        names = self.candidates()
        if names:
            return f"It has: {', '.join(names)}."
        classes = [
            n for n, v in vars(self.module).items() if isinstance(v, type) and v.__module__ == self.module.__name__
        ]
        return f"Its classes are: {', '.join(classes) or 'none'}. Name one after a colon, or write an adapter: `kvspec init`."


# Modules -------------------------------------------------------------------------------------------------------


def _by_file(wanted: Target, stubs: Sequence[str]) -> _Found:
    assert wanted.file is not None
    return _bare(place_of(wanted.file), str(wanted.file), wanted.text, stubs)


def _by_module(wanted: Target, stubs: Sequence[str]) -> _Found:
    """An ordinary import; bare, if the ordinary one needs something that is not installed, or something is to be stubbed."""
    if not stubs:
        try:
            module = _imported(wanted.module)
        except ModuleNotFoundError:
            pass
        except (Exception, SystemExit) as error:
            raise LoadError(f"Importing {wanted.module} raised {_with_place(error)}.") from error
        else:
            return _Found(module, getattr(module, "__file__", None) or wanted.module, _ordinary_neighbour(module))
    place, file = _place_of_module(wanted)
    return _bare(place, str(file), wanted.text, stubs)


def _imported(name: str) -> ModuleType:
    """Import with the current folder as the last place to look."""
    here = os.getcwd()
    sys.path.append(here)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(here)


def _ordinary_neighbour(module: ModuleType) -> Callable[[str], ModuleType | None]:
    def neighbour(name: str) -> ModuleType | None:
        package = module.__name__.rpartition(".")[0]
        try:
            return importlib.import_module(f"{package}.{name}") if package else None
        except Exception:
            return None

    return neighbour


def _place_of_module(wanted: Target) -> tuple[Place, Path]:
    """The file of a module that is found without running its packages.  Raises LoadError."""
    first, *rest = wanted.module.split(".")
    for folder in (*sys.path, os.getcwd()):
        base = Path(folder or ".").resolve()
        file = base.joinpath(first, *rest).with_suffix(".py")
        if file.is_file():
            return Place(base, wanted.module, first if rest else None), file
    raise LoadError(
        f"There is no module {wanted.module}: it is neither installed nor in {os.getcwd()}. "
        "Give the path of the file instead: path/to/block_manager.py:Class."
    )


def _bare(place: Place, source: str, text: str, stubs: Sequence[str]) -> _Found:
    imports = _imports(place, source, stubs)
    try:
        module = imports.load(place.module)
    except ModuleNotFoundError as error:
        raise LoadError(_missing(place, source, text, stubs, error)) from error
    except SyntaxError as error:
        raise LoadError(syntax_error(source, error)) from error
    except (Exception, SystemExit) as error:
        raise LoadError(f"Importing {source} raised {_with_place(error)}. {_hint(error)}".rstrip()) from error

    def neighbour(name: str) -> ModuleType | None:
        package = place.module.rpartition(".")[0]
        try:
            return imports.load(f"{package}.{name}" if package else name)
        except Exception:
            return None

    return _Found(module, source, neighbour)


def _imports(place: Place, source: str, stubs: Sequence[str]) -> PrivateImports:
    folders = dict.fromkeys((place.folder, Path(source).parent))
    top = place.package or place.module
    return PrivateImports(list(folders), top, stubs)


def _missing(place: Place, source: str, text: str, stubs: Sequence[str], error: ModuleNotFoundError) -> str:
    """Which modules are not there, all of them, and the options that stand in for them."""
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
    are = "which is not installed" if len(missing) == 1 else "which are not installed"
    options = " ".join(f"--stub {name}" for name in (*stubs, *missing))
    return (
        f"{source} imports {', '.join(missing)}, {are} ({_at(error)}). Install what the block manager really uses; "
        f"let inert stand-ins take the place of the rest: --impl {text} {options}"
    )


def _to_stub(place: Place, error: ModuleNotFoundError) -> str:
    """What to stub: all of a foreign package, but only the missing module of the checkout's own."""
    name = error.name or str(error)
    top = name.partition(".")[0]
    return name if top == place.package else top


def _with_place(error: BaseException) -> str:
    return f"{spoken(error)} ({_at(error)})"


def _at(error: BaseException) -> str:
    """File and line of the innermost frame that is neither ours nor the import system's."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(("<", _HERE))]
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else "no line known"


_HERE = str(Path(__file__).parent)


def _hint(error: BaseException) -> str:
    if isinstance(error, ImportError):
        name = (error.name or "").partition(".")[0]
        return f"If the manager does not really use it, add --stub {name}." if name else ""
    return "If a module that it imports but does not use is the cause, name it with --stub."


# Objects -------------------------------------------------------------------------------------------------------


def _implementation(found: Any, where: _Found, wanted: Target) -> Implementation:
    label = f"{where.source}:{wanted.name or getattr(found, '__name__', '')}"
    if isinstance(found, Implementation):
        return replace(found, target=wanted.text, source=found.source or where.source)
    if _is_adapter(found):
        return _of_adapter(found, where, wanted)
    if isinstance(found, type):
        return implementation_of(found, wanted.text, where.source, _sequences(where))
    if callable(found):
        return _implementation_of_factory(found, where, wanted, label)
    raise LoadError(f"{label} is a {type(found).__name__}; a class, a factory or an Implementation is needed.")


def _sequences(where: _Found) -> tuple[type, ...]:
    """Classes of sequences in the module beside the manager's."""
    beside = where.neighbour("sequence")
    return tuple(value for value in vars(beside).values() if fits(value)) if beside else ()


def _is_adapter(found: Any) -> bool:
    """Has it a declaration and the five operations?"""
    return isinstance(getattr(found, "declaration", None), Declaration) and all(
        callable(getattr(found, operation, None)) for operation in OPERATIONS
    )


def _of_adapter(found: Any, where: _Found, wanted: Target) -> Implementation:
    return Implementation(
        name=found.declaration.name,
        declaration=found.declaration,
        create=found,
        target=wanted.text,
        source=where.source,
        shape="own adapter",
        chain_hash=getattr(found, "chain_hash", None),
    )


def _implementation_of_factory(
    factory: Callable[..., Any], where: _Found, wanted: Target, label: str
) -> Implementation:
    declaration = getattr(factory, "declaration", None)
    if isinstance(declaration, Declaration):
        return _of_adapter(factory, where, wanted)
    try:
        made = factory()
    except (Exception, SystemExit) as error:
        raise LoadError(f"Calling the factory {label} without arguments raised {_with_place(error)}.") from error
    if isinstance(made, Implementation):
        return replace(made, target=wanted.text, source=made.source or where.source)
    if isinstance(getattr(made, "declaration", None), Declaration) and callable(getattr(made, "create", None)):
        return replace(_of_adapter(made, where, wanted), create=made.create)
    raise LoadError(f"The factory {label} returned a {type(made).__name__}; an Implementation is needed.")
