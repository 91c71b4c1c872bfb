"""Making a sequence with a given block size, whatever way the engine sets it."""

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from kvspec.impl.sequence import Sequence

MakeSequence = Callable[[list[int]], Any]

APPEND = "append_token"
APPEND_RENAMED = "append_output_token"
_BLOCK_SIZE = "block_size"


def fits(cls: object, append: str = APPEND) -> bool:
    """Does this look like a class of sequences, to which a sampled token is added by `append`?"""
    return isinstance(cls, type) and hasattr(cls, append) and hasattr(cls, "__len__")


def sequence_maker(cls: type | None, block_size: int) -> tuple[MakeSequence, str]:
    """How to make a sequence of `block_size` from its tokens, and what to call that way.

    The engine's own class is used if it accepts the block size, the bundled one otherwise.
    """
    if cls is not None:
        for way in (_by_class_attribute, _by_setter, _by_constructor):
            make = way(cls, block_size)
            if make is not None and _has_block_size(make, block_size):
                return make, f"own {cls.__name__}"
    bundled = _by_class_attribute(Sequence, block_size)
    assert bundled is not None
    return bundled, "bundled Sequence"


def _by_class_attribute(cls: type, block_size: int) -> MakeSequence | None:
    """A subclass for this block size: the original, and its other subclasses, stay as they are."""
    others = _required_others(cls)
    sized = type(cls.__name__, (cls,), {_BLOCK_SIZE: block_size, "__module__": cls.__module__})
    return lambda tokens: sized(tokens, **others)


def _by_setter(cls: type, block_size: int) -> MakeSequence | None:
    setter = getattr(cls, "set_block_size", None)
    if setter is None:
        return None
    sized = type(cls.__name__, (cls,), {"__module__": cls.__module__})
    others = _required_others(cls)
    try:
        sized.set_block_size(block_size)  # type: ignore[attr-defined]
    except Exception:
        return None
    return lambda tokens: sized(tokens, **others)


def _by_constructor(cls: type, block_size: int) -> MakeSequence | None:
    if _BLOCK_SIZE not in _parameters(cls):
        return None
    others = _required_others(cls) | {_BLOCK_SIZE: block_size}
    return lambda tokens: cls(tokens, **others)


def _parameters(cls: type) -> dict[str, inspect.Parameter]:
    """The constructor's parameters after the tokens."""
    try:
        parameters = list(inspect.signature(cls).parameters.values())
    except (TypeError, ValueError):
        return {}
    return {parameter.name: parameter for parameter in parameters[1:]}


def _required_others(cls: type) -> dict[str, Any]:
    """Stand-ins for what the constructor wants besides the tokens: sampling parameters, which no manager reads."""
    wanted = (
        p for p in _parameters(cls).values() if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    )
    return {parameter.name: _stand_in(parameter) for parameter in wanted if parameter.name != _BLOCK_SIZE}


def _stand_in(parameter: inspect.Parameter) -> Any:
    if isinstance(parameter.annotation, type) and parameter.annotation is not parameter.empty:
        try:
            return parameter.annotation()
        except Exception:
            pass
    return SimpleNamespace(temperature=1.0, max_tokens=1 << 20, ignore_eos=True, top_p=1.0, top_k=-1, seed=0)


def _has_block_size(make: MakeSequence, block_size: int) -> bool:
    """Does a sequence made this way count blocks of this size?  One that counts none (the manager does) is fine."""
    try:
        sequence, exact = make([0] * (block_size + 1)), make([0] * block_size)
        counted = getattr(sequence, "num_blocks", 2), getattr(exact, "num_blocks", 1)
    except Exception:
        return False
    return counted == (2, 1) and _splits(sequence, block_size)


def _splits(sequence: Any, block_size: int) -> bool:
    block = getattr(sequence, "block", None)
    try:
        return block is None or len(block(1)) == 1
    except Exception:
        return False
