"""Light imports: a few modules of a huge package for real, and inert stand-ins for all the others.

The packages around the real modules are bare, as in ``bare_packages``, but their ``__init__`` never runs: a name that it
would define is a stand-in as well, unless a value is given for it.
"""

import importlib.machinery
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from kvspec.impl.bare_packages import PrivateImports, Source
from kvspec.impl.inert import InertModule


class LightImports(PrivateImports):
    """Imports below `package` in `folder`.

    `real`: the modules that are loaded for real, as far as this version of the engine has them.  `foreign`: top-level
    packages that are stood in for, installed or not.  `values`: module -> name -> what the name is in the stand-in.
    """

    def __init__(
        self,
        folder: Path,
        package: str,
        real: Sequence[str],
        foreign: Sequence[str],
        values: Mapping[str, Mapping[str, Any]],
    ) -> None:
        super().__init__([folder], package, foreign)
        self._files = {name: file for name in real if (file := _file_of(folder, name))}
        self._above = {package} | {above for name in self._files for above in _packages_of(name)}
        self._values = values

    @property
    def real(self) -> tuple[str, ...]:
        """The modules that this version has of those that are loaded for real."""
        return tuple(self._files)

    def _is_stub(self, name: str) -> bool:
        return super()._is_stub(name) or (
            self._is_inside(name) and name not in self._files | dict.fromkeys(self._above)
        )

    def _is_inside(self, name: str) -> bool:
        return name == self.package or name.startswith(f"{self.package}.")

    def _spec_of(self, name: str, folders: Sequence[str]) -> importlib.machinery.ModuleSpec | None:
        if file := self._files.get(name):
            within = [str(file.parent)] if file.name == "__init__.py" else None
            loader = Source(name, str(file), self)
            return importlib.util.spec_from_file_location(name, file, loader=loader, submodule_search_locations=within)
        if not self._is_inside(name):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """A stand-in, with the values that are given for it."""
        module = _StandIn(spec.name, frozenset({*self._files, *self._above, *self._values}))
        vars(module).update(self._values.get(spec.name, {}))
        return module


class _StandIn(InertModule):
    """As inert as any, but it does not stand in for submodules that are real or have values."""

    def __init__(self, name: str, real: frozenset[str]) -> None:
        super().__init__(name)
        self._real = real

    def __getattr__(self, name: str) -> Any:
        if name == "_real" or f"{self.__name__}.{name}" in self._real:
            raise AttributeError(name)
        return super().__getattr__(name)


def _file_of(folder: Path, module: str) -> Path | None:
    path = folder.joinpath(*module.split("."))
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.is_file()), None)


def _packages_of(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]
