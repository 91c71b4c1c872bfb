"""The symbolic reading of ``steps``: the same text over SMT terms, for all numbers of blocks, sequences and entries.

Blocks, sequences, table indices, keys and the content of a block are integers.  A prefix is a list of contents.  A
*group* is a finite set of integers: a sort of its own with `member`, `put`, `drop` and `size`, so that ``FINITE_SETS``
states facts about finite sets only and has an intended model.
"""

from collections.abc import Callable
from typing import Any

import z3

from ..steps import FIELDS, NONE, Step

INT, BOOL = z3.IntSort(), z3.BoolSort()
_prefix = z3.Datatype("Prefix")
_prefix.declare("nothing")
_prefix.declare("extend", ("before", _prefix), ("last", INT))
PREFIX = _prefix.create()
GROUP = z3.DeclareSort("Group")

member = z3.Function("member", GROUP, INT, BOOL)
put = z3.Function("put", GROUP, INT, GROUP)
drop = z3.Function("drop", GROUP, INT, GROUP)
size = z3.Function("size", GROUP, INT)
some = z3.Function("some", GROUP, INT)
nobody = z3.Const("nobody", GROUP)

hash_of = z3.Function("hash_of", PREFIX, INT)
chain = z3.Function("chain", INT, INT, INT)
unhash = z3.Function("unhash", INT, PREFIX)
depth = z3.Function("depth", PREFIX, INT)
prompt = z3.Function("prompt", INT, INT, PREFIX)
POOL_SIZE = z3.Int("pool_size")


def for_all(variables: list[Any], body: Any, *triggers: Any) -> Any:
    """A universally quantified statement; each of `triggers` is a term at which the solver may use it."""
    return z3.ForAll(variables, body, patterns=list(triggers)) if triggers else z3.ForAll(variables, body)


_g = z3.Const("g", GROUP)
_x, _y, _s, _t = z3.Ints("x y s t")
_p = z3.Const("p", PREFIX)
_both = z3.MultiPattern

FINITE_SETS: dict[str, Any] = {
    "a size is not negative": for_all([_g], size(_g) >= 0, size(_g)),
    "a set with a member is not empty": for_all(
        [_g, _x], z3.Implies(member(_g, _x), size(_g) >= 1), _both(size(_g), member(_g, _x))
    ),
    "a set that is not empty has a member": for_all([_g], z3.Implies(size(_g) >= 1, member(_g, some(_g))), size(_g)),
    "a set of one has one member": for_all(
        [_g, _x, _y],
        z3.Implies(z3.And(member(_g, _x), member(_g, _y), size(_g) == 1), _x == _y),
        _both(size(_g), member(_g, _x), member(_g, _y)),
    ),
    "putting in adds one": for_all(
        [_g, _x], size(put(_g, _x)) == z3.If(member(_g, _x), size(_g), size(_g) + 1), put(_g, _x)
    ),
    "dropping takes one away": for_all(
        [_g, _x], size(drop(_g, _x)) == z3.If(member(_g, _x), size(_g) - 1, size(_g)), drop(_g, _x)
    ),
    "members after putting in": for_all(
        [_g, _x, _y], member(put(_g, _x), _y) == z3.Or(_x == _y, member(_g, _y)), member(put(_g, _x), _y)
    ),
    "members after dropping": for_all(
        [_g, _x, _y], member(drop(_g, _x), _y) == z3.And(_x != _y, member(_g, _y)), member(drop(_g, _x), _y)
    ),
    "the empty set": z3.And(size(nobody) == 0, for_all([_x], z3.Not(member(nobody, _x)), member(nobody, _x))),
}


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
    """An array, or an array of arrays or groups, read with brackets."""

    def __init__(self, term: Any) -> None:
        self.term = term

    def __getitem__(self, key: Any) -> Any:
        found = self.term[key]
        return Map(found) if z3.is_array(found) else Group(found) if found.sort() == GROUP else found

    def set(self, keys: tuple[Any, ...], value: Any) -> "Map":
        """The map that differs at `keys` only."""
        return Map(z3.Store(self.term, keys[0], self[keys[0]].set(keys[1:], value).term if keys[1:] else value))


class Group:
    """A group, read with brackets like a map to truth values."""

    def __init__(self, term: Any) -> None:
        self.term = term

    def __getitem__(self, name: Any) -> Any:
        return member(self.term, name)

    def set(self, keys: tuple[Any, ...], value: Any) -> "Group":
        """The group with `keys[0]` put in or dropped; the text only ever says which."""
        return Group(put(self.term, keys[0]) if z3.is_true(value) else drop(self.term, keys[0]))


_ROW = z3.ArraySort(INT, INT)
SORTS = dict.fromkeys(FIELDS, INT) | {
    "used": BOOL,
    "identity": PREFIX,
    "owners": GROUP,
    "position": _ROW,
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
    start |= {"used": z3.BoolVal(False), "identity": PREFIX.nothing, "owners": nobody, "position": row, "table": row}
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
    def count(group: Group) -> Any:
        """How many sequences hold the block."""
        return size(group.term)

    @staticmethod
    def is_block(block: Any) -> Any:
        """Is this a block of the pool?"""
        return z3.And(block >= 0, block < POOL_SIZE)


def unrolled(o: Any, t: Any, prompts: Callable[..., Any] = prompt) -> Any:
    """Ghost instance: the prompt of `o` up to block `t` extends the one before, and so does its hash."""
    whole, shorter = prompts(o, t), z3.If(t == 0, PREFIX.nothing, prompts(o, t - 1))
    chained = hash_of(whole) == chain(z3.If(t == 0, NONE, hash_of(prompts(o, t - 1))), PREFIX.last(whole))
    return z3.Implies(t >= 0, z3.And(PREFIX.before(whole) == shorter, chained))
