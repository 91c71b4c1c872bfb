"""Going back to a state of a manager: by its own copy, by ``copy.deepcopy``, or by replaying the program from scratch."""

import copy
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kvspec.conformance.lockstep import CannotCreate
from kvspec.impl.adapter import Adapter, Implementation
from kvspec.spec.state import World


class NotFaithful(Exception):
    """Copies, replays and the original disagree: whatever would be found in them proves nothing."""


class Copier:
    """`way` is "copy", "deepcopy" or "replay"; only the first two make copies."""

    def __init__(self, implementation: Implementation, world: World, way: str = "auto") -> None:
        self.implementation, self.world = implementation, world
        self.way = way if way != "auto" else _best_way(self.create())
        self.copy: Callable[[Any], Any] = _own_copy if self.way == "copy" else copy.deepcopy
        self._kinds: dict[type, bool] = {}

    def many(self, adapter: Adapter) -> Callable[[], Any]:
        """What makes copies of a manager that stays in its state."""
        kind = type(adapter)
        if kind not in self._kinds:
            self._kinds[kind] = self.way == "copy" and _makes_many(kind)
        if self._kinds[kind]:
            return adapter.copier()  # type: ignore[attr-defined,no-any-return]
        return lambda: self.copy(adapter)

    def check_kind(self, adapter: Adapter) -> None:
        """A copy is of the same class, or it is no copy.  Raises NotFaithful."""
        if self.way != "replay" and type(copied := self.copy(adapter)) is not type(adapter):
            raise NotFaithful(f"the copy of a {type(adapter).__name__} is a {type(copied).__name__}")

    def create(self) -> Adapter:
        """A fresh manager.  Raises CannotCreate."""
        try:
            return self.implementation.create(self.world)
        except Exception as error:
            raise CannotCreate(f"{self.implementation.name}: {type(error).__name__}: {error}") from error


def _makes_many(kind: type) -> bool:
    """Has it a ``copier`` that no ``copy`` of a subclass replaces?"""
    names = ({"copy", "copier"} & vars(each).keys() for each in kind.__mro__)
    return "copier" in next((found for found in names if found), ())


def _own_copy(adapter: Any) -> Any:
    return adapter.copy()


def _best_way(adapter: Adapter) -> str:
    """The first way that works; a manager that holds a lock, for instance, cannot be copied at all."""
    ways: tuple[tuple[str, Callable[[Any], Any]], ...] = (("copy", _own_copy), ("deepcopy", copy.deepcopy))
    for way, copy_of in ways:
        with suppress(Exception):
            copy_of(adapter)
            return way
    return "replay"
