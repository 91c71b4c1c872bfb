"""Operations, outcomes, snapshots, worlds and declarations as plain JSON values, and back, strictly.

The same values are the lines of a trace and the lines of the pipe protocol.  Unknown or missing fields and wrong types
are errors.  Fields that have a default may be left out.  Keys of the index are 64-bit numbers, which not every JSON
reader keeps exactly, so they are written as decimal text.
"""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from typing import Any

from kvspec.spec import operations as op
from kvspec.spec.declaration import Covers, Declaration, FullHit, Publish
from kvspec.spec.state import Snapshot, World


class EncodingError(ValueError):
    """A JSON value is not what it should stand for; the message names the field."""


@dataclass(frozen=True, slots=True)
class Codec:
    """How one kind of value is written and read; `read` raises EncodingError."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


# Simple values ----------------------------------------------------------------------------------------------------


def _same(value: Any) -> Any:
    return value


def _reader(kind: type, words: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise EncodingError(f"{words} was expected, not {value!r:.60}")
        return value

    return read


def _read_key(value: Any) -> int:
    if type(value) is not str or not value.lstrip("-").isdecimal():
        raise EncodingError(f"a key as decimal text was expected, not {value!r:.60}")
    return int(value)


INTEGER = Codec(_same, _reader(int, "a whole number"))
TEXT = Codec(_same, _reader(str, "text"))
TRUTH = Codec(_same, _reader(bool, "true or false"))
KEY = Codec(str, _read_key)
_read_list = _reader(list, "a list")


def _read_integers(value: Any) -> tuple[int, ...]:
    for entry in _read_list(value):
        if type(entry) is not int:
            raise EncodingError(f"a list of whole numbers was expected, not {value!r:.60}")
    return tuple(value)


INTEGERS = Codec(list, _read_integers)


def choice(kind: type[StrEnum]) -> Codec:
    """One of the values of an enumeration."""

    def read(value: Any) -> Any:
        try:
            return kind(value)
        except ValueError:
            raise EncodingError(f"one of {', '.join(kind)} was expected, not {value!r:.60}") from None

    return Codec(lambda member: member.value, read)


def many(entry: Codec) -> Codec:
    """A list of any length."""
    return Codec(
        lambda values: [entry.write(value) for value in values],
        lambda value: tuple(entry.read(each) for each in _read_list(value)),
    )


def pair(first: Codec, second: Codec) -> Codec:
    """A list of two."""

    def read(value: Any) -> tuple[Any, Any]:
        if len(_read_list(value)) != 2:
            raise EncodingError(f"a list of two was expected, not {value!r:.60}")
        return first.read(value[0]), second.read(value[1])

    return Codec(lambda values: [first.write(values[0]), second.write(values[1])], read)


def members(entry: Codec) -> Codec:
    """A set, written in order."""
    read = many(entry).read
    return Codec(lambda values: sorted(entry.write(value) for value in values), lambda value: frozenset(read(value)))


def optional(entry: Codec) -> Codec:
    """``null`` or a value."""
    return Codec(
        lambda value: None if value is None else entry.write(value),
        lambda value: None if value is None else entry.read(value),
    )


# Records ----------------------------------------------------------------------------------------------------------


class Shape:
    """A dataclass as a JSON object; `codecs` name its fields, in order.

    `sparse`: a field that is None is left out.  `later`: fields that came later, left out where they have their default,
    so that what does not use them is written as ever.
    """

    def __init__(
        self, kind: type, codecs: dict[str, Codec], sparse: bool = False, later: frozenset[str] = frozenset()
    ) -> None:
        self.kind, self.codecs, self.sparse = kind, codecs, sparse
        known = {field.name: field for field in fields(kind)}
        assert known.keys() == codecs.keys(), f"{kind.__name__} and its shape have different fields"
        self.required = {name for name, field in known.items() if field.default is MISSING}
        self._usual = {name: known[name].default for name in later}

    def write(self, value: Any) -> dict[str, Any]:
        """The JSON object of `value`."""
        written = {name: codec.write(getattr(value, name)) for name, codec in self.codecs.items()}
        for name, usual in self._usual.items():
            if getattr(value, name) == usual:
                del written[name]
        return {name: entry for name, entry in written.items() if entry is not None} if self.sparse else written

    def read(self, value: Any) -> Any:
        """The value of a JSON object.  Raises EncodingError."""
        given = read_object(value, self.required, self.codecs.keys())
        values = {name: read_field(name, self.codecs[name], entry) for name, entry in given.items()}
        try:
            return self.kind(**values)
        except ValueError as error:
            raise EncodingError(str(error)) from None


def read_object(value: Any, required: set[str], allowed: Any) -> dict[str, Any]:
    """`value` if it is an object with all `required` fields and none that is not `allowed`.  Raises EncodingError."""
    if type(value) is not dict:
        raise EncodingError(f"an object was expected, not {value!r:.60}")
    if unknown := value.keys() - set(allowed):
        raise EncodingError(f"unknown field {min(unknown)!r}")
    if missing := required - value.keys():
        raise EncodingError(f"field {min(missing)!r} is missing")
    return value


def read_field(name: str, codec: Codec | Shape, value: Any) -> Any:
    """Read one field; an error names it.  Raises EncodingError."""
    try:
        return codec.read(value)
    except EncodingError as error:
        raise EncodingError(f"field {name!r}: {error}") from None


class Choice:
    """One of several shapes, told apart by the text in the field `tag`."""

    def __init__(self, tag: str, shapes: dict[str, Shape]) -> None:
        self.tag, self.shapes = tag, shapes
        self.names = {shape.kind: name for name, shape in shapes.items()}

    def write(self, value: Any) -> dict[str, Any]:
        """The JSON object of `value`, its tag first."""
        name = self.names[type(value)]
        return {self.tag: name, **self.shapes[name].write(value)}

    def read(self, value: Any) -> Any:
        """The value of a JSON object.  Raises EncodingError."""
        if type(value) is not dict or self.tag not in value:
            raise EncodingError(f"an object with the field {self.tag!r} was expected, not {value!r:.60}")
        rest = dict(value)
        name = rest.pop(self.tag)
        if type(name) is not str or name not in self.shapes:
            raise EncodingError(f"field {self.tag!r}: one of {', '.join(self.shapes)} was expected, not {name!r:.60}")
        return self.shapes[name].read(rest)


OPERATION = Choice(
    "op",
    {
        "admit": Shape(op.Admit, {"sequence": TEXT, "tokens": INTEGERS, "limit": INTEGER, "namespace": TEXT}),
        "reserve": Shape(op.Reserve, {"sequence": TEXT, "count": INTEGER}),
        "commit": Shape(op.Commit, {"sequences": many(TEXT)}),
        "append": Shape(op.Append, {"sequence": TEXT, "token": INTEGER}),
        "release": Shape(op.Release, {"sequence": TEXT, "cause": choice(op.Cause)}),
        "extend": Shape(op.Extend, {"sequence": TEXT, "tokens": INTEGERS, "drafts": TRUTH}),
        "truncate": Shape(op.Truncate, {"sequence": TEXT, "length": INTEGER}),
        "reset": Shape(op.Reset, {}),
        "probe": Shape(op.Probe, {"tokens": INTEGERS, "limit": INTEGER, "namespace": TEXT}),
        "retain": Shape(op.Retain, {"sequence": TEXT, "owner": TEXT}),
        "drop": Shape(op.Drop, {"owner": TEXT}),
    },
)

OUTCOME = Choice(
    "outcome",
    {
        "admitted": Shape(op.Admitted, {"cached": INTEGER, "reserved": INTEGER, "table": INTEGERS}),
        "reserved": Shape(op.Reserved, {"table": INTEGERS}),
        "committed": Shape(op.Committed, {"tables": many(INTEGERS)}),
        "appended": Shape(op.Appended, {}),
        "released": Shape(op.Released, {}),
        "refused": Shape(op.Refused, {"reason": choice(op.Reason)}),
        "failed": Shape(op.Failed, {"error": TEXT, "promised": TRUTH, "clear": TRUTH}),
        "nonsense": Shape(op.Nonsense, {"answer": TEXT}),
        "extended": Shape(op.Extended, {}),
        "truncated": Shape(op.Truncated, {"computed": INTEGER, "table": INTEGERS}),
        "was_reset": Shape(op.WasReset, {}),
        "probed": Shape(op.Probed, {"cached": INTEGER, "fits": TRUTH}),
        "retained": Shape(op.Retained, {"table": INTEGERS}),
        "dropped": Shape(op.Dropped, {}),
    },
)

SNAPSHOT = Shape(
    Snapshot,
    {
        "free": optional(INTEGERS),
        "used": optional(INTEGERS),
        "owned": optional(INTEGERS),
        "references": optional(INTEGERS),
        "hashes": optional(many(optional(KEY))),
        "contents": optional(many(INTEGERS)),
        "index": optional(many(pair(KEY, INTEGER))),
    },
    sparse=True,
)

WORLD = Shape(World, {"blocks": INTEGER, "block_size": INTEGER, "weak_hash": TRUTH})

DECLARATION = Shape(
    Declaration,
    {
        "name": TEXT,
        "profiles": members(TEXT),
        "publish": choice(Publish),
        "same_step_hit": TRUTH,
        "full_hit": choice(FullHit),
        "covers": choice(Covers),
        "credits_shared": TRUTH,
        "release_in_flight": TRUTH,
        "namespaces": TRUTH,
        "extra_owners": TRUTH,
        "stale_index": TRUTH,
        "repoints": TRUTH,
        "evicts_early": TRUTH,
        "withheld": INTEGER,
        "unusable": members(INTEGER),
        "smallest_block_size": INTEGER,
        "largest_block_size": INTEGER,
        "publish_at_truncate": TRUTH,
        "merges": TRUTH,
        "namespace_axes": members(TEXT),
        "nano_vllm_order": TRUTH,
    },
    later=frozenset({"publish_at_truncate", "namespace_axes", "repoints", "evicts_early"}),
)
