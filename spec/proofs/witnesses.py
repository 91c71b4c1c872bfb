"""No vacuity: each step is possible in a state that has all invariants, in each case that matters."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import z3

from ..steps import NONE
from .bounded import BoundedStep
from .conditions import ARGUMENTS


@dataclass(frozen=True)
class Witness:
    """A case of a step that must be possible."""

    step: str
    sentence: str
    case: Callable[[BoundedStep], Any]


def _o(done: BoundedStep) -> Any:
    return ARGUMENTS["o"]


_b = ARGUMENTS["b"]


def _recycled(done: BoundedStep) -> Any:
    key = done.before.hash[_b]
    return z3.And(key != NONE, done.before.index[key] == _b)


def _twin_recycled(done: BoundedStep) -> Any:
    key = done.before.hash[_b]
    return z3.And(key != NONE, done.before.index[key] != _b, done.before.index[key] != NONE)


def _popped(done: BoundedStep) -> Any:
    o = ARGUMENTS["o"]
    return done.before.references[done.before.table[o][done.before.length[o] - 1]]


def witnesses() -> tuple[Witness, ...]:
    """All cases."""
    o = ARGUMENTS["o"]
    return (
        Witness("take", "take of a block that holds nothing", lambda d: d.before.hash[_b] == NONE),
        Witness("take", "take of a findable block: it is recycled", _recycled),
        Witness("take", "take of a block whose twin owns the index entry", _twin_recycled),
        Witness("claim", "claim of a block in use", lambda d: z3.And(d.before.used[_b], d.before.length[o] == 1)),
        Witness("claim", "claim of a free block", lambda d: z3.And(z3.Not(d.before.used[_b]), d.before.length[o] == 1)),
        Witness("register", "register of a first block", lambda d: d.before.computed[o] == 0),
        Witness("register", "register behind a computed block", lambda d: d.before.computed[o] == 1),
        Witness("pop", "pop of a shared block", lambda d: _popped(d) == 2),
        Witness("pop", "pop of the last reference", lambda d: _popped(d) == 1),
        Witness("pop", "pop of a computed block", lambda d: d.before.computed[o] == d.before.length[o]),
    )
