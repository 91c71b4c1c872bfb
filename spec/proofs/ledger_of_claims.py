"""The ledger of claims: of each clause, the strongest that can be said, what it rests on, and how to see it again.

The table is data; `tests/test_proofs.py` holds it against what is really proved, so it cannot claim more.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ..clauses import CLAUSES
from ..steps import STEPS

ALL_SIZES = "proved for all sizes"
BOUNDED = "proved for the stated bounds"
EXHAUSTED = "exhausted"
TESTED = "tested"

RIGHT_HITS = "injective chain hash, or the repaired hit rule"
PROVE = "kvspec prove --each"
WORLDS = "pytest tests/test_proofs.py -k small_world"


@dataclass(frozen=True)
class SmallWorld:
    """A world of which every state of the model was visited and every transition judged; its certificate."""

    blocks: int
    block_size: int
    longest: int
    alphabet: int
    states: int
    transitions: int


SMALL_WORLDS = (
    SmallWorld(2, 1, 2, 2, 762, 4644),
    SmallWorld(3, 1, 3, 1, 2292, 9828),
    SmallWorld(2, 2, 4, 1, 360, 1720),
)


@dataclass(frozen=True)
class Claim:
    """What is claimed of a clause.

    `strength`: one of the four words above.  `says`: what exactly was shown.  `conditions`: the conditions of
    ``prover`` that show it.  `assumption`: what these need besides the trusted base.
    """

    strength: str
    says: str
    conditions: tuple[str, ...] = ()
    assumption: str = ""
    command: str = PROVE


def _kept(slug: str) -> tuple[str, ...]:
    """The first state has the invariant, and all that happens to a ledger keeps it."""
    return (f"the first state has {slug}", *(f"{step} keeps {slug}" for step in (*STEPS, "append", "forget")))


def _each(sentence: str) -> tuple[str, ...]:
    return tuple(sentence.format(step) for step in STEPS)


def _tested(where: str) -> Claim:
    return Claim(TESTED, "no more than that", command=where)


def _exhausted(says: str) -> Claim:
    states = ", ".join(f"{world.states:,}" for world in SMALL_WORLDS)
    return Claim(EXHAUSTED, f"{says}: the model, in small worlds of {states} states", command=WORLDS)


_ROBUST = _tested("pytest conformance -k robust")

CLAIMS: dict[str, Claim] = {
    "ANSWER": _exhausted("answers are in range"),
    "TOTAL": _exhausted("every legal operation gets an answer"),
    "YES-MEANS-YES": Claim(
        ALL_SIZES,
        "if the blocks needed, less the hits in use, are free, then every take of an admission is possible",
        ("with enough room every take is possible", *_each("the number of free blocks after {}")),
    ),
    "NO-MEANS-NO": Claim(
        ALL_SIZES,
        "and only if: an admission that went through had that room; a claim costs a block exactly if it was free",
        (
            "an admission begins",
            "a claim costs a block only if it was free",
            "a claim changes only its own block",
            "a take needs a free block",
            "all takes done means that there was room",
        ),
        RIGHT_HITS,
    ),
    "FRESH": Claim(ALL_SIZES, "a block that is taken had no reference", ("take ensures FRESH", *_kept("PARTITION"))),
    "COVERS": Claim(
        ALL_SIZES,
        "tokens divided by the block size, rounded up, is neither too few nor too many blocks, block size 1 included",
        ("rounding up is exact",),
    ),
    "STABLE": Claim(
        ALL_SIZES, "no step changes a table entry that stays", _each("{} changes no table entry that stays")
    ),
    "ATOMIC": Claim(
        ALL_SIZES,
        "room is known before the first step, so a refusal is no step at all; claims that were made can be taken back",
        ("a claim taken back leaves every block and every length as it was",),
    ),
    "RELEASE": Claim(
        ALL_SIZES,
        "pop drops one reference, and there was one",
        ("pop ensures RELEASE", "pop keeps REFCOUNT", "pop keeps PARTITION"),
    ),
    "NO-LEAK": Claim(
        ALL_SIZES, "with all tables empty every block is free", ("with all tables empty every block is free",)
    ),
    "PARTITION": Claim(ALL_SIZES, "a block is in use exactly if somebody refers to it", _kept("PARTITION")),
    "REFCOUNT": Claim(
        ALL_SIZES, "a reference count is the number of table entries that name the block", _kept("REFCOUNT")
    ),
    "CONTENT": Claim(
        ALL_SIZES,
        "a hit holds exactly the prefix that is asked for, and computed entries go on holding theirs",
        ("claim ensures CONTENT", "computed entries hold the prefix of their sequence", *_kept("CONTENT")),
        RIGHT_HITS,
    ),
    "COMPUTED": Claim(
        ALL_SIZES, "a block that is hit is not waiting to be computed", ("a block that is hit is no uncomputed entry",)
    ),
    "NO-CLOBBER": Claim(
        ALL_SIZES,
        "a block that is written belongs to one sequence; shared blocks hold equal computed prefixes",
        (
            "register ensures NO-CLOBBER",
            "tables share equal computed prefixes only",
            *_each("{} overwrites no computed entry"),
        ),
        RIGHT_HITS,
    ),
    "PROGRESS": Claim(
        ALL_SIZES,
        "a hit that leaves out the last block leaves a token, for any block size",
        ("all blocks but the last leave a token",),
    ),
    "ALIGNED": _exhausted("hits are whole blocks"),
    "INDEX-BOUNDED": Claim(
        ALL_SIZES,
        "entries name different blocks of the pool, so they are not more than the pool has",
        (
            "a set named in no blocks is empty",
            "one block more, which nobody names",
            "one block more, which one key names",
            "the index has at most one entry a block",
        ),
    ),
    "INDEX-MATCH": Claim(
        ALL_SIZES,
        "an entry names a block whose stored hash is the key, and 'no hash' is no key",
        ("what the index names under a key has that key", *_kept("INDEX-MATCH")),
    ),
    "INDEX-TOKENS": Claim(
        ALL_SIZES, "the tokens stored with a hash are the last block of the prefix in it", _kept("INDEX-CHAIN")
    ),
    "INDEX-CHAIN": Claim(
        ALL_SIZES,
        "a stored hash is the chain hash of the whole prefix in the block",
        ("register ensures INDEX-CHAIN", *_kept("INDEX-CHAIN")),
    ),
    "NO-LOST-HIT": Claim(
        BOUNDED,
        "the model's look-up finds the longest cached prefix (2 blocks, 3 tokens)",
        ("the hit is the longest cached prefix",),
        command="kvspec prove --section contracts --each",
    ),
    "SURVIVES-RELEASE": Claim(
        ALL_SIZES,
        "pop and claim leave all content as it is, and take touches no other block: what was not recycled can be claimed",
        (
            "pop leaves all content findable",
            "claim leaves all content findable",
            "take leaves every other block and its index entry",
        ),
    ),
    "TWIN": Claim(
        ALL_SIZES,
        "recycling a block leaves the content of its twin, and its entry if it has one; that a manager looks for it is not",
        ("take leaves every other block and its index entry",),
    ),
    "TAIL-FIRST": _exhausted("the tail is recycled first"),
    "FIFO": _exhausted("recycling is first in, first out"),
    "NANO-ORDER": _tested("pytest conformance"),
    "HASH-BYTES": Claim(
        BOUNDED,
        "different (parent, token) are hashed as different bytes (64-bit values, one token); the bytes and xxh64 are tested",
        ("different blocks are hashed as different bytes",),
        command="kvspec prove --section contracts --each",
    ),
    "EMPTY-PROMPT": _ROBUST,
    "OVERSIZED": _ROBUST,
    "REPEATED": _ROBUST,
    "UNKNOWN": _ROBUST,
    "BAD-POOL": _ROBUST,
    "DRAFT-HIDDEN": _tested("kvspec check extended --profiles truncate"),
    "TRUNCATED": _tested("kvspec check extended --profiles truncate"),
    "RESET": _tested("kvspec check extended --profiles reset"),
    "PROBE": _tested("kvspec check extended --profiles probe"),
    "AXES-AGREE": _tested("kvspec check extended --profiles axes"),
}

SCEPTIC = """\
The specification is proved; implementations are checked against it. Nothing here proves a manager: a manager is run,
and each of its operations is replayed as the steps that are proved. The words mean: *proved for all sizes*, any number
of blocks, sequences and table entries; *proved for the stated bounds*, the same within small numbers; *exhausted*, all
of a small world, with the number of its states and transitions; *no counterexample within a budget*, searched and not
found; *tested*, some cases.

**What the proofs rest on.**

- z3, and cvc5 where it is installed, which is given the same SMT-LIB text and must agree on every condition proved for
  all sizes. `kvspec prove --export FOLDER` writes that text for a solver of your own.
- Nine facts about finite sets (`proofs/terms.py`, `FiniteSets`): a size is not negative, a set with a
  member is not empty and the reverse, a set of one has one member, putting in and dropping change the size by one. For
  fixed sizes the conditions are proved again with the counts added up, without these facts.
- Induction, done by hand: each condition says that one step keeps what held before; that therefore every reachable
  state has it is not said to the solver.
- The reading of operations as micro-steps (`judge.py`), Python, and the adapter that says what a manager did. So the
  proved invariants are evaluated, too (`proofs/link.py`), in the judge's ledger after each operation: for the model and
  the bundled manager in the tests, for yours with `kvspec explore FILE.py:Class --invariants`, after every transition of
  the small worlds that it exhausts. A wrong step, a wrong invariant and a wrong manager are each noticed there.
- Where the table says so: that different prefixes have different chain hashes. Reference counts, the pool and the
  index are right under any hash; what a hit holds is not. No hash of 64 bits keeps the assumption for certain: by
  chance, two of a million prefixes share a key about once in 37 million such sets, and xxh64 is not made to withstand
  somebody who looks for a collision. Comparing the block's own tokens does not help: the solver finds a program of three
  prompts and a hash with a single collision after which a hit returns another prefix, and the bundled manager fails on
  it. Comparing the prefix before the block, too, does help (the *repaired hit rule*): with it every condition is proved
  under any hash.

**Why the proofs are not empty.** Each step is shown to be possible in every interesting case. Each invariant is taken
out in turn, and something else then has no proof (`kvspec prove --without SLUG` turns red). Wrong texts are planted,
each must break the condition that it names, and a state is shown in which it fails. A function that is wrong is put
before CrossHair, which must refute it. The solver cannot show that the premises for all sizes have a model; that they
do for fixed sizes is shown, and a plain falsehood does not follow from them.

**What CrossHair says of a manager.** `pytest conformance --impl … -k contracts` runs the manager's own class on symbolic
integers: lengths, tokens, limits and pool sizes of short programs in fixed shapes, with a pure chain hash in the place of
its own, because CrossHair does not see into C (numpy or a C library in any other method: the manager is not tried). Each
path ends with one concrete program, which the judge rules on in an ordinary run of the untouched class; so a refutation
is a call that fails without CrossHair, too. What is claimed is *no counterexample within a budget*, with the paths that
were gone through; never more, even where a shape has no path left. In the same run 14 known-bad managers are planted, and
each must be refuted for its own clause, else the run proves nothing (exit code 3). The default budget is a number of paths,
so that every machine gives the same verdict; `--contracts-budget SECONDS`, or `--effort deep`, looks as long as that. What
such programs cannot show: collisions and the bytes of the hash, nano-vllm's very order, namespaces, bad requests, longer
tables, and the operations of the extensions. Not offered, because it does not work today: state machines of Hypothesis
with `backend="crosshair"`, which end in internal errors (*Not Deterministic*) and found 2 faults of 5; `crosshair
diffbehavior` between manager and model, which ignores preconditions, found 2 of 6, and takes 30 s for inputs that can be
tried one by one in a fraction of a second.

**What is not proved.**

- That any manager, the bundled ones included, conforms: that is exhausted in small worlds and tested beyond.
- That the index is closed under prefixes. It is not: a block can be recycled while the one after it stays findable.
- That every intact prefix is found, by any manager; in which order blocks are recycled; that bad requests are rejected.
- What happens inside a block that is not full: steps speak of whole blocks, the judge's shadow KV memory of each token.
  So computing the last token of a fully cached prompt again in place (`FullHit.LAST_TOKEN`) is judged, not proved.
- A hit on the first slots of a block whose other slots the sequence then writes itself: the judge follows it with a
  move of its own (`judge._share`), which is none of the four steps.
- Hits within a step and publishing before the forward pass (`same_step_hit`, `Publish.RESERVE`): `register` then stands
  for a promise that the judge checks when the step ends.
- Anything about time, threads, or the GPU.
"""


def rows() -> Iterator[tuple[str, Claim]]:
    """Each clause of the registry with its claim, in the order of the registry.

    Raises KeyError if a clause has none.
    """
    return ((slug, CLAIMS[slug]) for slug in CLAUSES)


def ledger_table() -> str:
    """The table of claims in Markdown."""
    lines = ["| clause | strongest claim | what was shown | assumption | show it again |", "|---|---|---|---|---|"]
    for slug, claim in rows():
        cells = (f"`{slug}`", claim.strength, claim.says, claim.assumption or "none", f"`{claim.command}`")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def ledger_markdown() -> str:
    """Table and text, for ``spec/README.md``."""
    return f"{ledger_table()}\n\n{SCEPTIC}".rstrip()
