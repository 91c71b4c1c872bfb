"""The shapes of the short programs that CrossHair goes through: what happens in which order; the rest is integers.

Several small shapes instead of one large one: each has few paths, and goes for one kind of fault.  The integers decide
which prompt lengths, tokens, limits and pool sizes a program has; they are symbolic, so the manager's own branches decide
which of their values differ.  Lengths and sizes are chosen where blocks begin and end.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from kvspec.spec import operations as op
from kvspec.spec.declaration import Declaration
from kvspec.spec.state import World

Script = Generator[op.Operation, op.Outcome, Any]

NO_LIMIT = 1 << 20
BIT = (0, 1)


@dataclass(frozen=True, slots=True)
class Shape:
    """A family of programs.  `program(block size, integers…)` gives the world, and the operations one by one.

    `bounds`: the least and the greatest value of each integer.  `chunked`: it commits parts of prompts.  `one`: blocks
    of one token.
    """

    name: str
    sentence: str
    program: Callable[..., tuple[World, Script]]
    bounds: dict[str, tuple[int, int]]
    chunked: bool = False
    one: bool = False

    def possible(self, declaration: Declaration) -> bool:
        """May a scheduler ask this of a manager that declares itself so?"""
        parts = "chunked" in declaration.profiles and not declaration.same_step_hit
        return (parts or not self.chunked) and ("one" in declaration.profiles or not self.one)

    def block_size(self, declaration: Declaration) -> int:
        """Small, because long prompts have many paths; of one token where that is the point."""
        least = 1 if self.one else max(2, declaration.smallest_block_size)
        return min(least, declaration.largest_block_size)

    def __call__(self, size: int, integers: dict[str, int]) -> tuple[World, Script]:
        """The program for these integers, in blocks of `size` tokens."""
        return self.program(size, **integers)


def chosen(number: int, among: Sequence[int]) -> int:
    """The entry `number` of `among`, found by halving, so that a symbolic number has one path for each entry."""
    while len(among) > 1:
        half = len(among) // 2
        if number < half:
            among = among[:half]
        else:
            number, among = number - half, among[half:]
    return among[0]


def _length(number: int, size: int) -> int:
    return chosen(number, (1, size, size + 1, 2 * size, 2 * size + 1, 3 * size))


LENGTH = (0, 5)


def _prompt(length: int, place: int = 0, token: int = 0) -> tuple[int, ...]:
    """Zeros, but for `token` at `place`."""
    return tuple([token if position == place else 0 for position in range(length)])


def _admitted(name: str, tokens: tuple[int, ...], limit: int = NO_LIMIT) -> Script:
    """Ask in; True if there was room."""
    outcome = yield op.Admit(name, tokens, limit)
    return isinstance(outcome, op.Admitted)


def _prefilled(name: str, tokens: tuple[int, ...]) -> Script:
    """Ask in and compute; True if there was room."""
    admitted = yield from _admitted(name, tokens)
    if admitted:
        yield op.Commit((name,))
    return admitted


def _decoded(name: str, token: int) -> Script:
    """Sample a token and compute it; True if there was room."""
    yield op.Append(name, token)
    outcome = yield op.Reserve(name, 1)
    if isinstance(outcome, op.Reserved):
        yield op.Commit((name,))
    return isinstance(outcome, op.Reserved)


def _share(
    size: int, pool: int, first: int, second: int, place: int, token: int, finished: int
) -> tuple[World, Script]:
    def script() -> Script:
        one = yield from _prefilled("A", _prompt(_length(first, size)))
        if one and finished == 1:
            yield op.Release("A")
        two = yield from _prefilled("B", _prompt(_length(second, size), chosen(place, (0, size)), token))
        for name in ["B"] * two + ["A"] * one:
            yield op.Release(name)
            yield op.Release(name)

    return World(chosen(pool, (2, 3, 4)), size), script()


def _step(size: int, pool: int, first: int, second: int, place: int, token: int) -> tuple[World, Script]:
    def script() -> Script:
        one = yield from _admitted("A", _prompt(_length(first, size)))
        two = yield from _admitted("B", _prompt(_length(second, size), chosen(place, (0, size)), token))
        live = ["A"] * one + ["B"] * two
        if live:
            yield op.Commit(tuple(live))
        for name in live:
            yield op.Release(name)

    return World(chosen(pool, (2, 3, 4)), size), script()


def _grow(size: int, pool: int, first: int, other: int, token: int) -> tuple[World, Script]:
    def script() -> Script:
        one = yield from _prefilled("A", _prompt(_length(first, size)))
        two = False
        if other == 1:
            two = yield from _prefilled("B", _prompt(1, 0, token))
        more = one
        for _ in range(size + 1):
            if more:
                more = yield from _decoded("A", token)
        for name in ["A"] * one + ["B"] * two:
            yield op.Release(name)

    return World(chosen(pool, (1, 2, 3)), size), script()


def _resume(size: int, pool: int, first: int, between: int, token: int, decoded: int) -> tuple[World, Script]:
    def script() -> Script:
        tokens = _prompt(_length(first, size))
        if not (yield from _prefilled("A", tokens)):
            return
        yield op.Append("A", token)
        if decoded == 1:
            outcome = yield op.Reserve("A", 1)
            if isinstance(outcome, op.Reserved):
                yield op.Commit(("A",))
        yield op.Release("A", op.Cause.PREEMPTED)
        two = yield from _prefilled("B", _prompt(_length(between, size), 0, 1))
        if two:
            yield op.Release("B")
        if (yield from _prefilled("A", (*tokens, token))):
            yield op.Release("A")

    return World(chosen(pool, (1, 2, 3)), size), script()


def _recycle(size: int, pool: int, first: int, second: int, lead: int, token: int, held: int) -> tuple[World, Script]:
    def script() -> Script:
        tokens = (*_prompt(size, size - 1, 1), *_prompt(_length(first, size) - 1))
        if not (yield from _prefilled("A", tokens)):
            return
        yield op.Release("A")
        ahead = (token,) * size if lead == 1 else ()
        two = yield from _prefilled("B", (ahead + tokens)[: _length(second, size) + size - 1])
        if two and held != 1:
            yield op.Release("B")
        if (yield from _prefilled("A", (*tokens, 0))):
            yield op.Release("A")
        if two and held == 1:
            yield op.Release("B")

    return World(chosen(pool, (2, 3, 4)), size), script()


def _chunk(size: int, pool: int, first: int, limit: int, count: int, second: int, token: int) -> tuple[World, Script]:
    def script() -> Script:
        length = _length(first, size)
        one = yield from _admitted("A", _prompt(length, length - 1, token), limit)
        if one:
            yield op.Commit(("A",))
        two = yield from _prefilled("B", _prompt(_length(second, size)))
        if one and limit + count <= length:
            outcome = yield op.Reserve("A", count)
            if isinstance(outcome, op.Reserved):
                yield op.Commit(("A",))
        for name in ["A"] * one + ["B"] * two:
            yield op.Release(name)

    return World(chosen(pool, (2, 3, 4)), size), script()


THREE = (0, 2)

SHAPES: tuple[Shape, ...] = (
    Shape(
        "grow",
        "a sequence grows beyond its block, alone or beside another",
        _grow,
        {"pool": THREE, "first": LENGTH, "other": BIT, "token": BIT},
    ),
    Shape(
        "share",
        "two prompts with a common beginning, one after the other, each released twice",
        _share,
        {"pool": THREE, "first": LENGTH, "second": LENGTH, "place": BIT, "token": BIT, "finished": BIT},
    ),
    Shape(
        "step",
        "two prompts with a common beginning in one step",
        _step,
        {"pool": THREE, "first": LENGTH, "second": LENGTH, "place": BIT, "token": BIT},
    ),
    Shape(
        "recycle",
        "a prompt comes back after another took its blocks, and holds its tokens elsewhere",
        _recycle,
        {"pool": THREE, "first": LENGTH, "second": LENGTH, "lead": BIT, "token": BIT, "held": BIT},
    ),
    Shape(
        "resume",
        "a preempted sequence comes back with its sampled token",
        _resume,
        {"pool": THREE, "first": LENGTH, "between": LENGTH, "token": BIT, "decoded": BIT},
    ),
    Shape(
        "chunk",
        "a prompt is computed in two parts, and another asks in between",
        _chunk,
        {"pool": THREE, "first": LENGTH, "limit": (1, 6), "count": (1, 6), "second": LENGTH, "token": BIT},
        chunked=True,
    ),
    Shape(
        "grow one",
        "a sequence grows in blocks of one token",
        _grow,
        {"pool": THREE, "first": LENGTH, "other": BIT, "token": BIT},
        one=True,
    ),
)


def shapes_for(declaration: Declaration) -> list[Shape]:
    """The shapes that a manager which declares itself so can be asked."""
    return [shape for shape in SHAPES if shape.possible(declaration)]
