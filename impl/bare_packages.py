"""Private imports: the modules of one checkout, without its packages' ``__init__``, and without mixing checkouts.

The package of an engine imports its model classes, and so torch and more, long before its block manager is reached.  So
packages below the checkout are *bare*: they have their place in the import system, but their ``__init__`` runs only if
somebody asks them for a name that no submodule has.

All modules of one checkout live in a registry of their own.  They are in ``sys.modules`` only while one of their own
import statements runs, also one inside a function that is called much later.
"""

import builtins
import importlib
import importlib.machinery
import importlib.util
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from kvspec.impl.inert import InertModule

_lock = threading.RLock()


class PrivateImports:
    """A meta-path finder and loader for what lies in `folders`, with stand-ins for the modules named in `stubs`.

    Names that are importable already (the standard library, installed packages) are left alone, except for `package`,
    the top-level package of the checkout, and the stubs.
    """

    def __init__(self, folders: Sequence[Path], package: str | None = None, stubs: Sequence[str] = ()) -> None:
        self.folders = [str(folder) for folder in folders]
        self.package = package
        self.stubs = tuple(stubs)
        self.modules: dict[str, ModuleType] = {}
        self._found: set[str] = set()
        self._depth = 0
        self._builtins = {**vars(builtins), "__import__": self._import}

    # Entry points ----------------------------------------------------------------------------------------------

    def load(self, name: str) -> ModuleType:
        """Import the module `name` of the checkout.  Raises whatever its import raises."""
        with self._active():
            return importlib.import_module(name)

    def _import(self, name: str, names: Any = None, local: Any = None, wanted: Any = (), level: int = 0) -> Any:
        """What an import statement in one of the private modules does."""
        top = name.partition(".")[0]
        if level == 0 and self._depth == 0:
            if name in self.modules and all(hasattr(self.modules[name], one) for one in wanted or ()):
                return self.modules[name if wanted else top]
            if top in sys.modules and not self._owns(top) and not self._is_stub(name):
                return builtins.__import__(name, names, local, wanted, level)
        with self._active():
            return builtins.__import__(name, names, local, wanted, level)

    @contextmanager
    def _active(self) -> Iterator[None]:
        with _lock:
            outermost = self._depth == 0
            self._depth += 1
            hidden = self._enter() if outermost else {}
            try:
                yield
            finally:
                self._depth -= 1
                if outermost:
                    self._leave(hidden)

    def _enter(self) -> dict[str, ModuleType]:
        sys.meta_path.insert(0, self)
        hidden = {name: module for name, module in sys.modules.items() if self._owns(name)}
        for name in hidden:
            del sys.modules[name]
        sys.modules.update(self.modules)
        return hidden

    def _leave(self, hidden: dict[str, ModuleType]) -> None:
        sys.meta_path.remove(self)
        for name in self._found:
            if name in sys.modules:
                self.modules[name] = sys.modules.pop(name)
        sys.modules.update(hidden)

    def _owns(self, name: str) -> bool:
        """Is this name private here, whatever it means elsewhere?"""
        if name in self._found or self._is_stub(name):
            return True
        return self.package is not None and _is_below(name, self.package)

    def _is_stub(self, name: str) -> bool:
        return any(_is_below(name, stub) for stub in self.stubs)

    # Finder ----------------------------------------------------------------------------------------------------

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Stand-ins first, then the checkout; for all other names None, so that others look."""
        if self._is_stub(name):
            spec = importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
        else:
            spec = self._spec_of(name, path or self.folders) if self._is_mine(name) else None  # type: ignore[assignment]
        if spec is not None:
            self._found.add(name)
        return spec

    def _is_mine(self, name: str) -> bool:
        parent = name.rpartition(".")[0]
        return parent in self._found if parent else name == self.package or not self._is_elsewhere(name)

    def _is_elsewhere(self, name: str) -> bool:
        """Would anybody else find this top-level name?"""
        if name in sys.modules or name in sys.stdlib_module_names:
            return True
        finders = [finder for finder in sys.meta_path if finder is not self]
        return any(finder.find_spec(name, None) is not None for finder in finders)

    def _spec_of(self, name: str, folders: Sequence[str]) -> importlib.machinery.ModuleSpec | None:
        last = name.rpartition(".")[2]
        for folder in folders:
            module, package = Path(folder) / f"{last}.py", Path(folder) / last
            if _has_python(package):
                spec = importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
                spec.submodule_search_locations = [str(package)]
                return spec
            if module.is_file():
                return importlib.util.spec_from_file_location(name, module, loader=Source(name, str(module), self))
        return None

    # Loader of stand-ins and bare packages ---------------------------------------------------------------------

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """A stand-in, or a bare package."""
        return InertModule(spec.name) if self._is_stub(spec.name) else _BarePackage(spec.name, self)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing runs."""

    def start(self, package: ModuleType) -> None:
        """Run the ``__init__`` of a bare package after all, if it has one."""
        files = [Path(folder) / "__init__.py" for folder in package.__path__]
        for file in filter(Path.is_file, files):
            with self._active():
                self.run(compile(file.read_bytes(), str(file), "exec"), package)

    def run(self, code: Any, module: ModuleType) -> None:
        """Execute the body of a private module, so that its import statements stay private for ever."""
        module.__dict__["__builtins__"] = self._builtins
        exec(code, module.__dict__)


class Source(importlib.machinery.SourceFileLoader):
    """Loads one module of the checkout; writes no bytecode beside it."""

    def __init__(self, name: str, path: str, imports: PrivateImports) -> None:
        super().__init__(name, path)
        self._imports = imports

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's body with private imports."""
        self._imports.run(self.source_to_code(self.get_data(self.path), self.path), module)


class _BarePackage(ModuleType):
    """A package whose ``__init__`` has not run; it runs when a name is wanted that is no submodule."""

    def __init__(self, name: str, imports: PrivateImports) -> None:
        super().__init__(name)
        self.__dict__["_imports"] = imports
        self.__dict__["_started"] = False

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if own["_started"] or (name != "__all__" and name.startswith("__")) or _is_submodule(own["__path__"], name):
            raise AttributeError(f"module {own['__name__']!r} has no attribute {name!r}")
        own["_started"] = True
        own["_imports"].start(self)
        return getattr(self, name)


def _is_submodule(folders: Sequence[str], name: str) -> bool:
    return any((Path(f) / f"{name}.py").is_file() or _has_python(Path(f) / name) for f in folders)


def _has_python(folder: Path) -> bool:
    """Is this a folder with Python modules in it, or in a folder of it?"""
    if not folder.is_dir():
        return False
    return any(folder.glob("*.py")) or any(folder.glob("*/*.py"))


def _is_below(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")
