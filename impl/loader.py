"""From the text given to ``--impl`` to an implementation.

``path/to/block_manager.py:Class``  a manager in a checkout; the package around it is found, and imported bare
``package.module:Class``            a manager that can be imported (if that needs too much, it is imported bare as well)
``…:name``                          an adapter of your own, or a factory
``path/to/block_manager.py``        the only block manager in the file
``bundled``                         the manager of the seed, which comes with kvspec
``hardened``                        the drop-in without its weak points, which comes with kvspec, too
``model``                           the functional model of the specification
``extended``                        the same with all the extensions (``spec.extensions``)
``known-bad:SLUG``                  a manager with one planted fault (``kvspec known-bad --list``)
``cmd:PROGRAM ARGUMENTS``           a program in any language that speaks the pipe protocol
``vllm``, ``lmdeploy``, ``sglang``, ``mini-sglang``, ``vllm:PATH``
                                    an engine's block manager, installed, from a wheel or a folder (``impl.engines``)

An adapter of your own is a class with a class attribute `declaration` (``spec.declaration.Declaration``),
``__init__(self, world)`` and the five methods of ``impl.adapter.Adapter``; `snapshot`, `copy` and a static method
`chain_hash(tokens, prefix)` are optional.  A factory is a function without parameters that returns an
``impl.adapter.Implementation``.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from kvspec.impl.adapter import Implementation
from kvspec.impl.errors import LoadError
from kvspec.impl.modules import Imported, imported, with_place
from kvspec.impl.named_targets import named_target
from kvspec.impl.nano_vllm import implementation_of
from kvspec.impl.nano_vllm.shapes import shape_of
from kvspec.impl.targets import Target, parsed
from kvspec.spec.declaration import Declaration

OPERATIONS = ("admit", "reserve", "commit", "append", "release")
_INIT = "`kvspec init` writes the frame of an adapter."


def load(target: str, stubs: Sequence[str] = ()) -> Implementation:
    """The implementation that `target` names; the modules in `stubs` are replaced by inert stand-ins.

    Raises LoadError with one message: what is wrong, where, and what to do next.
    """
    if found := named_target(target):
        return found
    wanted = parsed(target)
    where = imported(wanted, stubs)
    name = wanted.name or _only_candidate(where)
    return _implementation(_named(where, name), name, where, wanted)


# Which object --------------------------------------------------------------------------------------------------


def _named(where: Imported, name: str) -> Any:
    found: Any = where.module
    for part in name.split("."):
        if not hasattr(found, part):
            raise LoadError(f"{where.source} has no {name}. {_offer(where)}")
        found = getattr(found, part)
    return found


def _only_candidate(where: Imported) -> str:
    names = _candidates(where)
    managers = [name for name in _classes(where) if name.endswith("Manager")]
    if len(names or managers) == 1:
        return (names or managers)[0]
    if names:
        raise LoadError(f"{where.source} has several block managers: {', '.join(names)}. Add one: …:{names[0]}.")
    raise LoadError(f"{where.source} has no class that looks like a block manager. {_offer(where)}")


def _candidates(where: Imported) -> list[str]:
    """The classes of this very module that can be loaded."""
    return [name for name, cls in _classes(where).items() if _is_adapter(cls) or shape_of(cls) is not None]


def _classes(where: Imported) -> dict[str, type]:
    own = where.module.__name__
    return {name: v for name, v in vars(where.module).items() if isinstance(v, type) and v.__module__ == own}


def _offer(where: Imported) -> str:
    names = _candidates(where)
    if names:
        return f"It has: {', '.join(names)}."
    return f"Its classes are: {', '.join(_classes(where)) or 'none'}. Name one after a colon; {_INIT}"


# What it is ----------------------------------------------------------------------------------------------------


def _implementation(found: Any, name: str, where: Imported, wanted: Target) -> Implementation:
    label = f"{where.source}:{name}"
    if isinstance(found, Implementation):
        return _at(found, where, wanted)
    if _means_adapter(found):
        return _of_adapter(found, found, label, where, wanted)
    if isinstance(found, type):
        return implementation_of(found, wanted.text, where.source, _sequences(where))
    if callable(found):
        return _made_by(found, label, where, wanted)
    raise LoadError(f"{label} is {_article(found)}; a class or a factory is needed. {_offer(where)}")


def _at(found: Implementation, where: Imported, wanted: Target) -> Implementation:
    return replace(found, target=wanted.text, source=found.source or where.source)


def _sequences(where: Imported) -> tuple[type, ...]:
    """The classes in the module `sequence` beside the manager's: one of them may be what the manager works on."""
    beside = where.neighbour("sequence")
    return tuple(value for value in vars(beside).values() if isinstance(value, type)) if beside else ()


def _article(found: object) -> str:
    return f"an object of type {type(found).__name__}"


# Adapters and factories ----------------------------------------------------------------------------------------


def _operations_of(found: Any) -> list[str]:
    return [operation for operation in OPERATIONS if callable(getattr(found, operation, None))]


def _is_adapter(found: Any) -> bool:
    """Has it a declaration and the five operations?"""
    return isinstance(getattr(found, "declaration", None), Declaration) and len(_operations_of(found)) == len(
        OPERATIONS
    )


def _means_adapter(found: Any) -> bool:
    """Is it meant to be an adapter, complete or not?"""
    return hasattr(found, "declaration") or len(_operations_of(found)) > 2


def _of_adapter(found: Any, create: Callable[..., Any], label: str, where: Imported, wanted: Target) -> Implementation:
    declaration = getattr(found, "declaration", None)
    if not isinstance(declaration, Declaration):
        raise LoadError(
            f"{label} needs a class attribute `declaration`, a kvspec.spec.declaration.Declaration. {_INIT}"
        )
    if isinstance(found, type) and (lacking := [one for one in OPERATIONS if one not in _operations_of(found)]):
        raise LoadError(f"The adapter {label} lacks {', '.join(lacking)}. {_INIT}")
    return Implementation(
        name=declaration.name,
        declaration=declaration,
        create=create,
        target=wanted.text,
        source=where.source,
        shape="own adapter",
        chain_hash=getattr(found, "chain_hash", None),
    )


def _made_by(factory: Callable[[], Any], label: str, where: Imported, wanted: Target) -> Implementation:
    try:
        made = factory()
    except (Exception, SystemExit) as error:
        raise LoadError(f"Calling the factory {label} without arguments raised {with_place(error)}.") from error
    if isinstance(made, Implementation):
        return _at(made, where, wanted)
    if callable(getattr(made, "create", None)):
        return _of_adapter(made, made.create, label, where, wanted)
    raise LoadError(f"The factory {label} returned {_article(made)}; a kvspec.impl.adapter.Implementation is needed.")
