"""Which calls a manager class has: its shape, recognised from names and signatures, never from a version."""

import inspect
from dataclasses import dataclass, replace
from typing import Any

from kvspec.spec.declaration import Covers, Declaration, FullHit, Publish

_GROW = ("may_append", "append")
_PUBLISH = ("hash_blocks", "hash_block")


@dataclass(frozen=True, slots=True)
class Shape:
    """One family of managers: its name, the calls it needs (alternatives in a tuple), and what it legally does."""

    name: str
    needs: tuple[tuple[str, ...], ...]
    declaration: Declaration

    def missing(self, cls: type) -> list[str]:
        """The calls that `cls` lacks, spelled for a message."""
        return [" or ".join(names) for names in self.needs if not any(callable(getattr(cls, n, None)) for n in names)]


_BASIC = ("can_allocate",), ("allocate",), ("deallocate",), ("can_append",), _GROW
_LATE = Declaration(
    "",
    frozenset({"pool", "prefix", "order", "chunked"}),
    publish=Publish.COMMIT,
    full_hit=FullHit.LAST_BLOCK,
    covers=Covers.KNOWN,
    credits_shared=True,
    release_in_flight=True,
    smallest_block_size=2,
)
_EARLY = Declaration(
    "",
    frozenset({"pool", "prefix", "order"}),
    publish=Publish.RESERVE,
    same_step_hit=True,
    covers=Covers.KNOWN,
    credits_shared=False,
    smallest_block_size=2,
)

LATE = Shape("late registration (allocate(seq, n), hash_blocks)", (*_BASIC, _PUBLISH), _LATE)
LATE_TOKENS = Shape("late registration (allocate(seq), hash_blocks)", (*_BASIC, _PUBLISH), _LATE)
EARLY = Shape("early registration (allocate(seq) publishes)", _BASIC, _EARLY)
LAYOUT = Shape(
    "token layout (get_token_layout, can_append(seq, n))",
    (("get_token_layout",), *_BASIC),
    replace(_EARLY, covers=Covers.RESERVED, credits_shared=True, profiles=frozenset({"pool", "prefix", "chunked"})),
)
RENAMED = Shape(
    "renamed early registration (allocate_blocks_for_prefill, allocate_block_for_decode)",
    (
        ("can_allocate_new_block",),
        ("allocate_blocks_for_prefill",),
        ("allocate_block_for_decode",),
        ("cache_block_if_needed",),
        ("deallocate",),
    ),
    replace(_EARLY, profiles=frozenset({"pool", "prefix"})),
)
SHAPES = (LATE, LATE_TOKENS, EARLY, LAYOUT, RENAMED)


def shape_of(cls: type) -> Shape | None:
    """The shape of a manager class, or None if it has none that is known."""
    if not RENAMED.missing(cls):
        return RENAMED
    if not LAYOUT.missing(cls):
        return LAYOUT if required(cls, "can_allocate") == 1 else None
    if EARLY.missing(cls) or required(cls, "can_allocate") != 1:
        return None
    wanted = required(cls, "allocate")
    if not LATE.missing(cls):
        late = {1: LATE_TOKENS, 2: LATE}.get(wanted)
        return late if required(cls, publish_name(cls)) == 1 else None
    return EARLY if wanted == 1 and required(cls, "can_append") <= 1 else None


def required(cls: type, name: str) -> int:
    """How many arguments the caller of a method must give; 1 where the signature does not show."""
    try:
        parameters = inspect.signature(getattr(cls, name)).parameters.values()
    except (TypeError, ValueError):
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.kind in positional and p.default is p.empty]
    bound = isinstance(inspect.getattr_static(cls, name), classmethod | staticmethod)
    return len(needed) - (0 if bound else 1)


def spelled(cls: type, names: tuple[str, ...]) -> str:
    """The first of `names` that the class has."""
    return next(name for name in names if callable(getattr(cls, name, None)))


def grow_name(cls: type) -> str:
    """How the class spells 'make room for the last token'."""
    return spelled(cls, _GROW)


def publish_name(cls: type) -> str:
    """How the class spells 'the forward pass has ended'."""
    return spelled(cls, _PUBLISH)


def keeps_nano_vllm_order(manager: Any) -> bool:
    """Has a fresh manager the pools and the index of nano-vllm's own?"""
    free = getattr(manager, "free_block_ids", None)
    return type(free).__name__ == "deque" and all(hasattr(manager, name) for name in ("blocks", "hash_to_block_id"))
