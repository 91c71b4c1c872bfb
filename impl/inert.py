"""Inert stand-ins for modules that are imported but not needed: any attribute, call, subclass and decorator works."""

from types import ModuleType
from typing import Any


def _is_protocol(name: str) -> bool:
    """Python asks objects for such names; a stand-in must not claim to have them."""
    return name.startswith("__") and name.endswith("__")


class _InertType(type):
    """The type of stand-ins that are used as classes: in annotations, as base classes, as namespaces."""

    def __getattr__(cls, name: str) -> Any:
        if _is_protocol(name):
            raise AttributeError(name)
        found = inert(name)
        setattr(cls, name, found)
        return found

    def __getitem__(cls, _parameters: Any) -> Any:
        return cls

    def __or__(cls, _other: Any) -> Any:
        return cls

    def __ror__(cls, _other: Any) -> Any:
        return cls

    def __iter__(cls) -> Any:
        return iter(())


class Inert(metaclass=_InertType):
    """Does nothing, whatever is asked.  Called with one function, it returns it, as a decorator would."""

    def __init__(self, *_arguments: Any, **_named: Any) -> None:
        """Take anything."""

    def __init_subclass__(cls, **_named: Any) -> None:
        """Take any class keyword."""

    def __getattr__(self, name: str) -> Any:
        if _is_protocol(name):
            raise AttributeError(name)
        return Inert()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Return the function that is decorated, or another stand-in."""
        decorates = len(arguments) == 1 and not named and callable(arguments[0])
        return arguments[0] if decorates else Inert()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_error: Any) -> None:
        """Let exceptions pass."""

    def __bool__(self) -> bool:
        return False


def _new(cls: type, *arguments: Any, **named: Any) -> Any:
    """What calling a stand-in gives: the function it decorates, or an instance."""
    plain = cls.__dict__.get("_stands_in", False) and len(arguments) == 1 and not named and callable(arguments[0])
    return arguments[0] if plain else object.__new__(cls)


def inert(name: str) -> type:
    """A fresh stand-in that can be used as a class, a function or a decorator."""
    return _InertType(name, (Inert,), {"__new__": _new, "_stands_in": True})


class InertModule(ModuleType):
    """A module of which every name is a stand-in."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "An inert stand-in.")
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if _is_protocol(name):
            raise AttributeError(name)
        found = inert(name)
        setattr(self, name, found)
        return found
