"""Without an injective chain hash: a program on which comparing a block's own tokens does not help.

The solver runs the text from the first state through a fixed schedule, with the prompts and the hash function left
open, and is asked for a claim that meets its requirements and yet takes a block with another prefix.  What it answers
is turned into operations and a weak chain hash, so that any manager can be run on it.

    a writes blocks [A, C]; b writes block [B]; c asks for [B, C] and is given B of b, and C of a, which is A C
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import z3

from .. import operations as op
from ..steps import FIELDS, NONE
from .bounded import BoundedTerms, Bounds, Cells, hashing
from .conditions import TEXT, Text
from .solver import WORK_LIMIT
from .terms import INT, PREFIX, Ledger, Map, chain, hash_of

BLOCK_SIZE = 2
SCHEDULE: tuple[tuple[str, int, int | None], ...] = (
    ("take", 0, 0),
    ("take", 0, 1),
    ("register", 0, None),
    ("register", 0, None),
    ("take", 1, 2),
    ("register", 1, None),
    ("claim", 2, 2),
    ("claim", 2, 1),
)
LENGTHS = (2, 1, 2)  # blocks of each prompt


@dataclass
class WeakHash:
    """A chain hash with a few given values; all other arguments get values of their own."""

    values: dict[tuple[int, tuple[int, ...]], int]
    others: dict[tuple[int, tuple[int, ...]], int] = field(default_factory=dict)

    def __call__(self, tokens: Iterable[int], prefix: int | None = None) -> int:
        """The chain hash of a block of tokens behind a prefix with this hash (None or NONE: none)."""
        asked = (NONE if prefix is None else prefix, tuple(tokens))
        if asked in self.values:
            return self.values[asked]
        return self.others.setdefault(asked, 1 + max(self.values.values()) + len(self.others))


@dataclass(frozen=True)
class Collision:
    """Three prompts and a weak chain hash: the third prompt hits a block of the first, which holds another prefix."""

    prompts: tuple[tuple[int, ...], ...]
    weak_hash: WeakHash
    blocks: int = 8
    block_size: int = BLOCK_SIZE

    def operations(self) -> list[op.Operation]:
        """The program: the first two prompts are computed, then the third asks in."""
        names = ("a", "b", "c")
        steps = [
            (op.Admit(name, tokens, len(tokens)), op.Commit((name,)))
            for name, tokens in zip(names, self.prompts, strict=True)
        ]
        return list(itertools.chain.from_iterable(steps))[:-1]


def find_collision(text: Text = TEXT) -> Collision | None:
    """The counterexample of the solver; None if there is none, as with the repaired hit rule."""
    bounds = Bounds(3, 3, 2)
    logic, z = BoundedTerms(bounds), _empty_ledger(bounds)
    solver = z3.SimpleSolver(ctx=z3.main_ctx())
    solver.set("rlimit", WORK_LIMIT)
    solver.add(*hashing(logic, z, injective=False))
    for name, o, b in SCHEDULE:
        step_text, letters = text.steps[name]
        chosen = {"o": z3.IntVal(o), "b": z3.IntVal(b if b is not None else NONE)}
        step = step_text(logic, z, *(chosen[letter] for letter in letters))
        solver.add(*step.requires.values())
        z = z.after(step)
    solver.add(z3.Not(step.ensures["CONTENT"]), *_one_collision_only(logic))
    return _program(logic, solver.model()) if solver.check() == z3.sat else None


def _one_collision_only(logic: BoundedTerms) -> Iterator[Any]:
    """Apart from the two prefixes in question all have different keys: the hash is as good as it can be."""
    (first, whole, _), (other, *_), _ = (row.cells for row in logic.prompts.cells)
    yield z3.Distinct(hash_of(first), hash_of(whole), hash_of(other))


def _empty_ledger(bounds: Bounds) -> Ledger:
    none, zero, false = z3.IntVal(NONE), z3.IntVal(0), z3.BoolVal(False)
    start = dict.fromkeys(FIELDS, none) | dict.fromkeys(("references", "length", "computed"), zero)
    start |= {"used": false, "identity": PREFIX.nothing}
    maps: dict[str, Any] = {name: Cells([start[name]] * (bounds.blocks + 1)) for name in FIELDS}
    entries = bounds.entries + 1
    nobody = Cells([Cells([false] * entries)] * bounds.sequences)
    maps |= {"owners": Cells([nobody] * (bounds.blocks + 1)), "index": Map(z3.K(INT, none))}
    maps |= {"table": Cells([Cells([none] * entries)] * bounds.sequences)}
    return Ledger(**maps)


def _program(logic: BoundedTerms, model: Any) -> Collision:
    """Spell the solver's contents as blocks of two small tokens; one more token keeps the last block out of the hit."""
    number = lambda term: model.eval(term, model_completion=True).as_long()  # noqa: E731
    contents = [
        [number(content) for content in row[:length]] for row, length in zip(logic.contents, LENGTHS, strict=True)
    ]
    names = {content: position for position, content in enumerate(dict.fromkeys(itertools.chain(*contents)))}
    spelled = [[(names[content] // 2, names[content] % 2) for content in row] for row in contents]
    keys, values = {NONE: NONE}, {}
    for row, blocks in zip(logic.contents, spelled, strict=True):
        key = NONE
        for content, tokens in zip(row, blocks, strict=False):
            following = number(chain(z3.IntVal(key), content))
            values[keys[key], tokens] = keys.setdefault(following, len(keys))
            key = following
    prompts = tuple((*itertools.chain(*blocks), 9) for blocks in spelled)
    return Collision(prompts, WeakHash(values))
