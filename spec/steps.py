"""The heart of the specification: four micro-steps and the invariants they keep, written once and read twice.

Every operation of every manager is a sequence of four micro-steps on block granularity, with blocks of the manager's own
choice: *take* a fresh block, *claim* a hit, *register* a computed block, *pop* one reference.

    admit   = claim … claim take … take        commit  = register … register
    reserve = take … take                      release = pop … pop, from the tail

The text below is written over a small algebra (``logic``) and never uses ``and``, ``or``, ``not`` or ``if`` on state, so
it has two readings.  With ``ledger.Concrete`` it is plain Python and the judge executes it.  With SMT terms
(``proofs``) each step is proved to keep each invariant, for any number of blocks, sequences and table entries.

The state ``z`` is a set of total maps; NONE stands for "no block", "no hash":

    references[b], used[b]    reference count, in use?        index[h]         the block that key h names
    hash[b], content[b]       key and last block of tokens    owners[b][o, t]  does entry t of o name b?
    identity[b]               the whole prefix in the block   table[o][t]      block table
    length[o]                 its length                      computed[o]      leading table entries that are computed

``content``, ``identity`` and ``owners`` are bookkeeping of the specification: a manager need not have them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

NONE = -1

FIELDS = (
    "references",
    "used",
    "hash",
    "content",
    "identity",
    "index",
    "owners",
    "table",
    "length",
    "computed",
)


class Step(NamedTuple):
    """A guarded set of assignments.

    `requires`: what the manager's choice must satisfy before.  `assigns`: (map, keys, value), all values taken from the
    state before.  `ensures`: what then is certain, given the invariants.  Both dictionaries are keyed by slug.
    """

    requires: dict[str, Any]
    assigns: tuple[tuple[str, tuple[Any, ...], Any], ...]
    ensures: dict[str, Any]


def key_of(logic: Any, z: Any, o: Any, t: Any) -> Any:
    """The chain hash of the prompt of `o` up to and including block `t`, computed from scratch."""
    parent = logic.choose(t == 0, logic.integer(NONE), logic.hash_of(logic.prompt(o, t - 1)))
    return logic.chain(parent, logic.last(logic.prompt(o, t)))


def take(logic: Any, z: Any, o: Any, b: Any) -> Step:
    """Give the free block `b` to sequence `o` for new content; what it held is forgotten, its index entry too."""
    key, t = z.hash[b], z.length[o]
    named = logic.all(key != NONE, z.index[key] == b)
    return Step(
        requires={"FRESH": logic.all(logic.is_block(b), logic.no(z.used[b]))},
        assigns=(
            ("references", (b,), logic.integer(1)),
            ("used", (b,), logic.true),
            ("index", (key,), logic.choose(named, logic.integer(NONE), z.index[key])),
            ("hash", (b,), logic.integer(NONE)),
            ("content", (b,), logic.integer(NONE)),
            ("identity", (b,), logic.nothing),
            ("owners", (b, (o, t)), logic.true),
            ("table", (o, t), b),
            ("length", (o,), t + 1),
        ),
        ensures={"FRESH": z.references[b] == 0},
    )


def claim(logic: Any, z: Any, o: Any, b: Any) -> Step:
    """A hit: `o` shares block `b`, which holds the next block of its prompt; hits come before anything uncomputed."""
    t = z.length[o]
    prefix, key = logic.prompt(o, t), key_of(logic, z, o, t)
    return Step(
        requires={
            "HEAD": z.computed[o] == t,
            "CONTENT": logic.all(logic.is_block(b), z.hash[b] == key, z.content[b] == logic.last(prefix)),
        },
        assigns=(
            ("references", (b,), z.references[b] + 1),
            ("used", (b,), logic.true),
            ("index", (key,), b),
            ("owners", (b, (o, t)), logic.true),
            ("table", (o, t), b),
            ("length", (o,), t + 1),
            ("computed", (o,), t + 1),
        ),
        ensures={"CONTENT": z.identity[b] == prefix},
    )


def register(logic: Any, z: Any, o: Any) -> Step:
    """The K/V of the next block of `o` has been computed: chain its hash to the block before, and make it findable."""
    t = z.computed[o]
    b, prefix = z.table[o][t], logic.prompt(o, t)
    parent = logic.choose(t == 0, logic.integer(NONE), z.hash[z.table[o][t - 1]])
    key = logic.chain(parent, logic.last(prefix))
    return Step(
        requires={"COVERS": t < z.length[o]},
        assigns=(
            ("hash", (b,), key),
            ("content", (b,), logic.last(prefix)),
            ("identity", (b,), prefix),
            ("index", (key,), b),
            ("computed", (o,), t + 1),
        ),
        ensures={"NO-CLOBBER": z.references[b] == 1, "INDEX-CHAIN": key == logic.hash_of(prefix)},
    )


def pop(logic: Any, z: Any, o: Any) -> Step:
    """Drop the reference of `o` to its last block; nothing is erased, so the block can still be hit."""
    t = z.length[o] - 1
    b = z.table[o][t]
    left = z.references[b] - 1
    return Step(
        requires={"RELEASE": t >= 0},
        assigns=(
            ("references", (b,), left),
            ("used", (b,), logic.all(z.used[b], left != 0)),
            ("owners", (b, (o, t)), logic.false),
            ("length", (o,), t),
            ("computed", (o,), logic.choose(z.computed[o] > t, t, z.computed[o])),
        ),
        ensures={"RELEASE": z.references[b] >= 1},
    )


STEPS: dict[str, tuple[Callable[..., Step], str]] = {
    "take": (take, "ob"),
    "claim": (claim, "ob"),
    "register": (register, "o"),
    "pop": (pop, "o"),
}


class Invariant(NamedTuple):
    """`holds(logic, z, *variables)` for all values of `variables`: s sequence, t table index, b block, h key."""

    variables: str
    sentence: str
    holds: Callable[..., Any]


INVARIANTS: dict[str, Invariant] = {
    "BOUNDS": Invariant(
        "s",
        "the computed entries of a table are its first ones",
        lambda L, z, s: L.all(0 <= z.computed[s], z.computed[s] <= z.length[s]),
    ),
    "RANGE": Invariant(
        "st",
        "a table names blocks of the pool only",
        lambda L, z, s, t: L.implies(L.all(0 <= t, t < z.length[s]), L.is_block(z.table[s][t])),
    ),
    "PARTITION": Invariant(
        "b",
        "a block is in use exactly if somebody refers to it",
        lambda L, z, b: L.implies(L.is_block(b), z.used[b] == (z.references[b] > 0)),
    ),
    "REFCOUNT": Invariant(
        "b",
        "the reference count is the number of table entries that name the block",
        lambda L, z, b: L.implies(L.is_block(b), z.references[b] == L.count(z.owners[b])),
    ),
    "OWNER-HOLDS": Invariant(
        "stb",
        "an owner of a block is a table entry that names it",
        lambda L, z, s, t, b: L.implies(z.owners[b][s, t], L.all(0 <= t, t < z.length[s], z.table[s][t] == b)),
    ),
    "HOLDER-OWNS": Invariant(
        "st",
        "each table entry is an owner of the block that it names",
        lambda L, z, s, t: L.implies(L.all(0 <= t, t < z.length[s]), z.owners[z.table[s][t]][s, t]),
    ),
    "INDEX-MATCH": Invariant(
        "h",
        "an index entry names a block whose stored hash is the key; the value for 'no hash' is never a key",
        lambda L, z, h: L.implies(
            z.index[h] != NONE, L.all(L.is_block(z.index[h]), z.hash[z.index[h]] == h, h != NONE)
        ),
    ),
    "INDEX-CHAIN": Invariant(
        "b",
        "a stored hash is the chain hash of the whole prefix that the block holds, and the stored tokens are its last block",
        lambda L, z, b: L.implies(
            L.all(L.is_block(b), z.hash[b] != NONE),
            L.all(
                z.identity[b] != L.nothing,
                z.hash[b] == L.hash_of(z.identity[b]),
                z.content[b] == L.last(z.identity[b]),
            ),
        ),
    ),
    "COMPUTED-KEYED": Invariant(
        "st",
        "a computed entry stores the chain hash of its prefix",
        lambda L, z, s, t: L.implies(
            L.all(0 <= t, t < z.computed[s]), z.hash[z.table[s][t]] == L.hash_of(L.prompt(s, t))
        ),
    ),
    "CONTENT": Invariant(
        "st",
        "a computed entry holds exactly the prefix of its sequence",
        lambda L, z, s, t: L.implies(L.all(0 <= t, t < z.computed[s]), z.identity[z.table[s][t]] == L.prompt(s, t)),
    ),
    "UNCOMPUTED-KEYLESS": Invariant(
        "st",
        "an entry that is not computed yet has no stored hash",
        lambda L, z, s, t: L.implies(L.all(z.computed[s] <= t, t < z.length[s]), z.hash[z.table[s][t]] == NONE),
    ),
    "UNCOMPUTED-PRIVATE": Invariant(
        "st",
        "an entry that is not computed yet belongs to one sequence only",
        lambda L, z, s, t: L.implies(L.all(z.computed[s] <= t, t < z.length[s]), z.references[z.table[s][t]] == 1),
    ),
}
