"""The bounded reading of ``steps``: the same text for a fixed number of blocks, sequences and table entries.

No quantifiers and no facts about finite sets: reference counts are added up.  So it is an independent check, and where
a condition does not hold it answers with a state that shows it, which the reading for all sizes cannot.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from ..steps import FIELDS, NONE, Step
from .conditions import ARGUMENTS, TEXT, Text
from .terms import BOOL, INT, PREFIX, SORTS, Ledger, Map, Terms, chain, hash_of


@dataclass(frozen=True)
class Bounds:
    """How many blocks, sequences, and entries a table."""

    blocks: int
    sequences: int
    entries: int

    def __str__(self) -> str:
        return f"{self.blocks} blocks, {self.sequences} sequences, {self.entries} entries a table"


SMALL = Bounds(2, 2, 2)
USUAL = Bounds(3, 2, 2)


class Cells:
    """A map as a row of terms, or of rows; reading at an unknown key is a choice between all cells.

    Each row has one cell more than its bound, for the first number that is no block and no entry, so that a text that
    leaves the bounds is seen doing so.  Larger numbers are not looked at.
    """

    def __init__(self, cells: Sequence[Any]) -> None:
        self.cells = list(cells)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            return self[key[0]][key[1]]
        if z3.is_int_value(key):
            return self.cells[min(max(key.as_long(), 0), len(self.cells) - 1)]
        found = self.cells[-1]
        for number in range(len(self.cells) - 2, -1, -1):
            found = _choose(key == number, self.cells[number], found)
        return found

    def set(self, keys: tuple[Any, ...], value: Any) -> "Cells":
        """The map that differs at `keys` only."""
        if isinstance(keys[0], tuple):
            return self.set(keys[0], value)
        return Cells(
            [
                _choose(keys[0] == number, cell.set(keys[1:], value) if keys[1:] else value, cell)
                for number, cell in enumerate(self.cells)
            ]
        )


def _choose(condition: Any, then: Any, otherwise: Any) -> Any:
    if isinstance(then, Cells):
        return Cells([_choose(condition, a, b) for a, b in zip(then.cells, otherwise.cells, strict=True)])
    return z3.If(condition, then, otherwise)


class BoundedTerms(Terms):
    """SMT terms for a fixed size; each prompt is a list of `entries` unknown contents."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.contents = [
            [z3.Int(f"content_{s}_{t}") for t in range(bounds.entries + 1)] for s in range(bounds.sequences)
        ]
        self.prompts = Cells([Cells(_prefixes(row)) for row in self.contents])
        super().__init__(lambda o, t: self.prompts[o][t])

    @staticmethod
    def count(owners: Cells) -> Any:
        """How many table entries name the block, added up."""
        return z3.Sum([z3.If(cell, 1, 0) for row in owners.cells for cell in row.cells])

    def is_block(self, block: Any) -> Any:
        """Is this a block of the pool?"""
        return z3.And(block >= 0, block < self.bounds.blocks)


def _prefixes(contents: list[Any]) -> list[Any]:
    return list(itertools.accumulate(contents, PREFIX.extend, initial=PREFIX.nothing))[1:]


def some_ledger(bounds: Bounds) -> Ledger:
    """A ledger of the given size of which nothing is known."""
    blocks, entries = bounds.blocks + 1, bounds.entries + 1
    sizes = dict.fromkeys(FIELDS, (blocks,)) | {
        "owners": (blocks, bounds.sequences, entries),
        "table": (bounds.sequences, entries),
        "length": (bounds.sequences,),
        "computed": (bounds.sequences,),
    }
    sorts = SORTS | {"owners": BOOL, "table": INT}
    maps = {name: _unknown(name, sizes[name], sorts[name]) for name in FIELDS if name != "index"}
    return Ledger(index=Map(z3.Array("index", INT, INT)), **maps)


def _unknown(name: str, size: tuple[int, ...], sort: Any) -> Cells:
    if len(size) == 1:
        return Cells([z3.Const(f"{name}_{number}", sort) for number in range(size[0])])
    return Cells([_unknown(f"{name}_{number}", size[1:], sort) for number in range(size[0])])


def hashing(logic: BoundedTerms, z: Ledger, injective: bool) -> Iterator[Any]:
    """What is true of the chain hash, at every prefix that occurs and at all that these extend."""
    occurring = [prefix for row in logic.prompts.cells for prefix in row.cells]
    for identity in z.identity.cells:
        for _ in range(logic.bounds.entries + 1):
            occurring.append(identity)
            identity = z3.If(identity == PREFIX.nothing, PREFIX.nothing, PREFIX.before(identity))
        yield identity == PREFIX.nothing
    yield hash_of(PREFIX.nothing) == NONE
    for prefix in occurring:
        chained = hash_of(prefix) == chain(hash_of(PREFIX.before(prefix)), PREFIX.last(prefix))
        yield z3.Implies(prefix != PREFIX.nothing, z3.And(hash_of(prefix) >= 0, chained))
    for one, other in itertools.combinations(occurring, 2) if injective else ():
        yield z3.Implies(hash_of(one) == hash_of(other), one == other)


@dataclass(frozen=True)
class BoundedStep:
    """A step of the text in some ledger of a fixed size: what is known before, and the ledger after."""

    text: Text
    logic: BoundedTerms
    before: Ledger
    step: Step
    after: Ledger
    premises: tuple[Any, ...]

    def goal(self, name: str) -> Any:
        """What `<step> keeps <slug>` or `<step> ensures <slug>` says."""
        _, kind, slug = name.split()
        if kind == "ensures":
            return self.step.ensures.get(slug, z3.BoolVal(False))
        return everywhere_bounded(self.text, slug, self.after, self.logic, [z3.Int("any_key")])

    def script(self, *further: Any) -> str:
        """The premises and what else is asked for, as SMT-LIB text."""
        solver = z3.Solver()
        solver.add(*self.premises, *further)
        return solver.to_smt2()

    def denial(self, name: str) -> str:
        """SMT-LIB text that has a model exactly if the named condition fails within these bounds."""
        return self.script(z3.Not(self.goal(name)))


def perform_bounded(
    name: str, bounds: Bounds = USUAL, injective: bool = True, text: Text = TEXT, goals: Text | None = None
) -> BoundedStep:
    """Apply step `name` to a ledger that has the invariants of `text`; conditions are about those of `goals`."""
    logic, z = BoundedTerms(bounds), some_ledger(bounds)
    step_text, letters = text.steps[name]
    step = step_text(logic, z, *(ARGUMENTS[letter] for letter in letters))
    keys = [z3.Int("any_key"), z3.IntVal(NONE), *z.hash.cells]
    keys += [written[0] for field, written, _ in step.assigns if field == "index"]
    held = [everywhere_bounded(text, slug, z, logic, keys) for slug in text.invariants]
    premises = (*_in_bounds(name, bounds, z), *hashing(logic, z, injective), *held, *step.requires.values())
    return BoundedStep(goals or text, logic, z, step, z.after(step), premises)


def _in_bounds(name: str, bounds: Bounds, z: Ledger) -> Iterator[Any]:
    o, b = ARGUMENTS["o"], ARGUMENTS["b"]
    yield z3.And(o >= 0, o < bounds.sequences, b >= 0, b <= bounds.blocks)
    yield from (z3.And(block >= 0, block <= bounds.blocks) for row in z.table.cells for block in row.cells)
    yield from (z3.And(count >= 0, count <= bounds.entries) for count in (*z.length.cells, *z.computed.cells))
    if name in ("take", "claim"):
        yield z.length[o] < bounds.entries


def everywhere_bounded(text: Text, slug: str, z: Ledger, logic: BoundedTerms, keys: list[Any]) -> Any:
    """The invariant at all values of its variables; for keys, which have no bound, at those that matter."""
    bounds, invariant = logic.bounds, text.invariants[slug]
    values = {"s": range(bounds.sequences), "t": range(bounds.entries + 1), "b": range(bounds.blocks + 1)}
    domains = {letter: [z3.IntVal(value) for value in numbers] for letter, numbers in values.items()} | {"h": keys}
    everything = itertools.product(*(domains[letter] for letter in invariant.variables))
    return z3.And(*(invariant.holds(logic, z, *chosen) for chosen in everything))
