"""The symbolic reading of ``steps``: the same text over SMT terms, for all numbers of blocks, sequences and entries.

Blocks, sequences, table indices, keys and the content of a block are integers.  A prefix is a list of contents.  Finite
sets (of the table entries that name a block; of numbers) are sorts of their own, with `member`, `put`, `drop` and `size`,
so that their facts are about finite sets only and have an intended model.
"""

from collections.abc import Callable, Iterator
from typing import Any

import z3

from ..steps import FIELDS, NONE, Step

INT, BOOL = z3.IntSort(), z3.BoolSort()
_prefix = z3.Datatype("Prefix")
_prefix.declare("nothing")
_prefix.declare("extend", ("before", _prefix), ("last", INT))
PREFIX = _prefix.create()
_place = z3.Datatype("Place")
_place.declare("place", ("holder", INT), ("entry", INT))
PLACE = _place.create()

hash_of = z3.Function("hash_of", PREFIX, INT)
chain = z3.Function("chain", INT, INT, INT)
unhash = z3.Function("unhash", INT, PREFIX)
depth = z3.Function("depth", PREFIX, INT)
prompt = z3.Function("prompt", INT, INT, PREFIX)
POOL_SIZE = z3.Int("pool_size")


def for_all(variables: list[Any], body: Any, *triggers: Any) -> Any:
    """A universally quantified statement; each of `triggers` is a term at which the solver may use it."""
    return z3.ForAll(variables, body, patterns=list(triggers)) if triggers else z3.ForAll(variables, body)


class FiniteSets:
    """The finite sets of one kind of things: what can be asked of them, and the nine facts that are taken for granted."""

    def __init__(self, name: str, thing: Any) -> None:
        self.sort = sort = z3.DeclareSort(name)
        self.member = z3.Function(f"{name}_member", sort, thing, BOOL)
        self.put, self.drop = (z3.Function(f"{name}_{verb}", sort, thing, sort) for verb in ("put", "drop"))
        self.size, self.some = z3.Function(f"{name}_size", sort, INT), z3.Function(f"{name}_some", sort, thing)
        self.empty = z3.Const(f"{name}_empty", sort)
        self.facts = dict(self._facts(z3.Const("g", sort), *z3.Consts("x y", thing)))

    def _facts(self, g: Any, x: Any, y: Any) -> Iterator[tuple[str, Any]]:
        member, size, some = self.member, self.size, self.some
        yield "a size is not negative", for_all([g], size(g) >= 0, size(g))
        inhabited = z3.Implies(member(g, x), size(g) >= 1)
        yield "a set with a member is not empty", for_all([g, x], inhabited, _both(size(g), member(g, x)))
        found = z3.Implies(size(g) >= 1, member(g, some(g)))
        yield "a set that is not empty has a member", for_all([g], found, size(g))
        alone = z3.Implies(z3.And(member(g, x), member(g, y), size(g) == 1), x == y)
        yield "a set of one has one member", for_all([g, x, y], alone, _both(size(g), member(g, x), member(g, y)))
        yield from self._changes(g, x, y)
        nothing = for_all([x], z3.Not(member(self.empty, x)), member(self.empty, x))
        yield "the empty set", z3.And(size(self.empty) == 0, nothing)

    def _changes(self, g: Any, x: Any, y: Any) -> Iterator[tuple[str, Any]]:
        member, size, put, drop = self.member, self.size, self.put(g, x), self.drop(g, x)
        more, fewer = z3.If(member(g, x), size(g), size(g) + 1), z3.If(member(g, x), size(g) - 1, size(g))
        yield "putting in adds one", for_all([g, x], size(put) == more, put)
        yield "dropping takes one away", for_all([g, x], size(drop) == fewer, drop)
        grown, shrunk = z3.Or(x == y, member(g, y)), z3.And(x != y, member(g, y))
        yield "members after putting in", for_all([g, x, y], member(put, y) == grown, member(put, y))
        yield "members after dropping", for_all([g, x, y], member(drop, y) == shrunk, member(drop, y))


_both = z3.MultiPattern
OWNERS = FiniteSets("Owners", PLACE)
NUMBERS = FiniteSets("Numbers", INT)

_s, _t = z3.Ints("s t")
_p = z3.Const("p", PREFIX)


def well_formed(prompts: Callable[..., Any] = prompt) -> Any:
    """Entry t of a sequence stands for a prefix of t + 1 blocks."""
    body = z3.And(prompts(_s, _t) != PREFIX.nothing, depth(prompts(_s, _t)) == _t + 1)
    return for_all([_s, _t], z3.Implies(_t >= 0, body), prompts(_s, _t))


HASHING: dict[str, Any] = {
    "there is a block": POOL_SIZE >= 1,
    "the chain starts with NONE": hash_of(PREFIX.nothing) == NONE,
    "NONE is no chain hash": for_all([_p], z3.Implies(_p != PREFIX.nothing, hash_of(_p) >= 0), hash_of(_p)),
    "prompts": well_formed(),
}

# The one assumption that a hash function cannot keep for certain: different prefixes have different chain hashes.
INJECTIVE = for_all([_p], unhash(hash_of(_p)) == _p, hash_of(_p))


class Map:
    """An array, or an array of arrays or sets, read with brackets."""

    def __init__(self, term: Any) -> None:
        self.term = term

    def __getitem__(self, key: Any) -> Any:
        found = self.term[key]
        return Map(found) if z3.is_array(found) else Owners(found) if found.sort() == OWNERS.sort else found

    def set(self, keys: tuple[Any, ...], value: Any) -> "Map":
        """The map that differs at `keys` only."""
        return Map(z3.Store(self.term, keys[0], self[keys[0]].set(keys[1:], value).term if keys[1:] else value))


class Owners:
    """The table entries that name a block, read with brackets like a map from (sequence, entry) to truth values."""

    def __init__(self, term: Any) -> None:
        self.term = term

    def __getitem__(self, place: tuple[Any, Any]) -> Any:
        return OWNERS.member(self.term, PLACE.place(*place))

    def set(self, keys: tuple[tuple[Any, Any]], value: Any) -> "Owners":
        """With one entry put in or dropped; the text only ever says which."""
        change = OWNERS.put if z3.is_true(value) else OWNERS.drop
        return Owners(change(self.term, PLACE.place(*keys[0])))


_ROW = z3.ArraySort(INT, INT)
SORTS = dict.fromkeys(FIELDS, INT) | {
    "used": BOOL,
    "identity": PREFIX,
    "owners": OWNERS.sort,
    "table": _ROW,
}


class Ledger:
    """The maps of ``steps``, each a term."""

    def __init__(self, **maps: Map) -> None:
        self.__dict__.update(maps)

    def after(self, step: Step) -> "Ledger":
        """The ledger after a step."""
        maps = dict(self.__dict__)
        for name, keys, value in step.assigns:
            maps[name] = maps[name].set(keys, value)
        return Ledger(**maps)

    def but(self, **maps: Map) -> "Ledger":
        """The ledger with other maps in some places."""
        return Ledger(**(self.__dict__ | maps))


def any_ledger(mark: str = "") -> Ledger:
    """A ledger of which nothing is known."""
    return Ledger(**{name: Map(z3.Array(name + mark, INT, SORTS[name])) for name in FIELDS})


def constantly(name: str, value: Any) -> tuple[Any, Any]:
    """A map that has `value` everywhere, and the statement that it has; cvc5 cannot read z3's constant arrays."""
    array, key = z3.Array(name, INT, value.sort()), z3.Int("any_key")
    return array, for_all([key], array[key] == value, array[key])


def first_ledger() -> tuple[Ledger, tuple[Any, ...]]:
    """The ledger before the first operation, nothing in use and nothing stored; and the statements that it is so."""
    row, row_is_empty = constantly("empty_row", z3.IntVal(NONE))
    start = dict.fromkeys(FIELDS, z3.IntVal(NONE)) | dict.fromkeys(("references", "length", "computed"), z3.IntVal(0))
    start |= {"used": z3.BoolVal(False), "identity": PREFIX.nothing, "owners": OWNERS.empty, "table": row}
    maps = {name: constantly(name, start[name]) for name in FIELDS}
    return Ledger(**{name: Map(array) for name, (array, _) in maps.items()}), (
        row_is_empty,
        *(fact for _, fact in maps.values()),
    )


class Terms:
    """SMT terms as the algebra of ``steps``; `prompts(o, t)` is the prefix of `o` up to and including block t."""

    true, false, nothing = z3.BoolVal(True), z3.BoolVal(False), PREFIX.nothing
    integer, all, no = staticmethod(z3.IntVal), staticmethod(z3.And), staticmethod(z3.Not)
    implies, choose = staticmethod(z3.Implies), staticmethod(z3.If)
    chain, hash_of, last, before = chain, hash_of, PREFIX.last, PREFIX.before

    def __init__(self, prompts: Callable[..., Any] = prompt) -> None:
        self.prompt = prompts

    @staticmethod
    def count(owners: Owners) -> Any:
        """How many table entries name the block."""
        return OWNERS.size(owners.term)

    @staticmethod
    def is_block(block: Any) -> Any:
        """Is this a block of the pool?"""
        return z3.And(block >= 0, block < POOL_SIZE)


def unrolled(o: Any, t: Any, prompts: Callable[..., Any] = prompt) -> Any:
    """Ghost instance: the prompt of `o` up to block `t` extends the one before, and so does its hash."""
    whole, shorter = prompts(o, t), z3.If(t == 0, PREFIX.nothing, prompts(o, t - 1))
    chained = hash_of(whole) == chain(z3.If(t == 0, NONE, hash_of(prompts(o, t - 1))), PREFIX.last(whole))
    return z3.Implies(t >= 0, z3.And(PREFIX.before(whole) == shorter, chained))
