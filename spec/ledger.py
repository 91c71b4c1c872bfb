"""The concrete reading of ``steps``: total maps as dictionaries, conditions as Python truth values."""

from typing import Any

from .steps import FIELDS, NONE, Step


class Numbers(dict[Any, int]):
    """A map to whole numbers that is 0 where nothing was written."""

    __slots__ = ()

    def __missing__(self, key: Any) -> int:
        return 0


class Names(dict[Any, int]):
    """A map to blocks, hashes or prefixes that is NONE where nothing was written."""

    __slots__ = ()

    def __missing__(self, key: Any) -> int:
        return NONE


class Flags(dict[Any, bool]):
    """A map to truth values that is false where nothing was written."""

    __slots__ = ()

    def __missing__(self, key: Any) -> bool:
        return False


class Members(set[Any]):
    """A set read and written as a map to truth values."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> bool:
        return key in self

    def __setitem__(self, key: Any, value: bool) -> None:
        (self.add if value else self.discard)(key)


class Sets(dict[Any, Members]):
    """A map to sets, each made when first needed."""

    __slots__ = ()

    def __missing__(self, key: Any) -> Members:
        made = self[key] = Members()
        return made


class Rows(dict[Any, Names]):
    """A map to maps, each made when first needed."""

    __slots__ = ()

    def __missing__(self, key: Any) -> Names:
        made = self[key] = Names()
        return made


class Ledger:
    """The maps of ``steps``; `apply` performs assignments in place."""

    __slots__ = FIELDS

    def __init__(self) -> None:
        self.references, self.length, self.computed = Numbers(), Numbers(), Numbers()
        self.hash, self.content, self.identity, self.index = Names(), Names(), Names(), Names()
        self.used, self.owners, self.table = Flags(), Sets(), Rows()

    def apply(self, step: Step) -> None:
        """Perform the assignments of a step."""
        for name, keys, value in step.assigns:
            if len(keys) == 1:
                getattr(self, name)[keys[0]] = value
            else:
                getattr(self, name)[keys[0]][keys[1]] = value

    def forget(self, sequence: Any) -> None:
        """Drop what is left of a sequence whose table is empty, so that memory follows live state only."""
        for field in (self.table, self.length, self.computed):
            field.pop(sequence, None)

    def copy(self) -> "Ledger":
        """An independent ledger."""
        other = Ledger.__new__(Ledger)
        other.references, other.length, other.computed = (
            Numbers(self.references),
            Numbers(self.length),
            Numbers(self.computed),
        )
        other.hash, other.content = Names(self.hash), Names(self.content)
        other.identity, other.index = Names(self.identity), Names(self.index)
        other.used = Flags(self.used)
        other.owners = Sets([(block, Members(entries)) for block, entries in self.owners.items()])
        other.table = Rows([(sequence, Names(row)) for sequence, row in self.table.items()])
        return other


class Concrete:
    """Python's truth values as the algebra of ``steps``.

    A prefix is its hash-consed number, which serves as its own chain hash (injective by construction) and as the name of
    its last block.  What depends on the judge's state (`is_block`, `prompt`, `parent`) is supplied by a subclass.
    """

    __slots__ = ()
    true, false, nothing = True, False, NONE

    def is_block(self, block: int) -> bool:
        """Is this a block that may be handed out?"""
        raise NotImplementedError

    def prompt(self, sequence: str, entry: int) -> int:
        """The prefix of `sequence` that ends with its full block `entry`."""
        raise NotImplementedError

    def parent(self, prefix: int) -> int:
        """The prefix one block shorter."""
        raise NotImplementedError

    @staticmethod
    def integer(value: int) -> int:
        return value

    @staticmethod
    def all(*conditions: bool) -> bool:
        return all(conditions)

    @staticmethod
    def no(condition: bool) -> bool:
        return not condition

    @staticmethod
    def implies(condition: bool, conclusion: bool) -> bool:
        return not condition or conclusion

    @staticmethod
    def choose(condition: bool, then: Any, otherwise: Any) -> Any:
        return then if condition else otherwise

    @staticmethod
    def count(members: Members) -> int:
        return len(members)

    @staticmethod
    def hash_of(prefix: int) -> int:
        return prefix

    @staticmethod
    def last(prefix: int) -> int:
        return prefix

    def chain(self, key: int, last: int) -> int:
        """The prefix that follows `key` with the block that ends `last`; no prefix if `last` follows another one."""
        return last if last != NONE and self.parent(last) == key else NONE - 1
