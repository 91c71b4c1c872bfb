"""The registry: every rule that a block manager can break, under a slug that is never reused.

`kind`: ``state`` clauses hold of every snapshot, ``operation`` clauses of every transition, ``completeness`` clauses say
what must be found.  `survivable`: after a breach the judge can go on with what the manager did, so that one fault does
not hide the next.  `implies`: clauses which a breach of this one may break as well.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clause:
    """One rule: its slug, its sentence, the profile it belongs to, and since which version of the spec it stands."""

    slug: str
    profile: str
    kind: str
    sentence: str
    survivable: bool = False
    implies: tuple[str, ...] = ()
    since: str = "0.1"


@dataclass(frozen=True, slots=True)
class Profile:
    """A set of clauses under certain conditions; the unit that an adapter declares and that gets a verdict."""

    name: str
    sentence: str


PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("pool", "blocks are handed out, counted and taken back correctly"),
        Profile("prefix", "a cached token is always backed by the K/V of exactly its prefix"),
        Profile("reuse", "what is still there is found again"),
        Profile("order", "blocks are recycled in the order that keeps useful prefixes longest"),
        Profile("chunked", "pool and prefix under partial commits and arbitrary interleaving"),
        Profile("one", "pool and prefix at block size 1"),
        Profile("collision", "pool and prefix under a chain hash that collides"),
        Profile("namespace", "equal tokens of different namespaces are different prefixes"),
        Profile("hash", "the chain hash has nano-vllm's bytes"),
        Profile("robust", "bad requests get a clear error and change nothing"),
        Profile("several", "pool and prefix where several tokens join at once"),
        Profile("truncate", "draft tokens stay hidden until they are confirmed, and go without a trace when rejected"),
        Profile("reset", "the cache is emptied as a whole, or not at all, and the answer is true"),
        Profile("probe", "a question about an admission changes nothing and is answered truly"),
        Profile("owners", "owners outside keep blocks beyond the life of their sequence"),
        Profile(
            "axes",
            "each axis of a namespace (adapter, media, salt) tells prefixes apart, and where all agree is shared",
        ),
    )
}

# Profiles that have no clauses of their own: the clauses of these profiles, under the conditions that they name.
BORROWED: dict[str, tuple[str, ...]] = {
    "chunked": ("pool", "prefix"),
    "one": ("pool", "prefix"),
    "collision": ("pool", "prefix"),
    "namespace": ("pool", "prefix"),
    "several": ("pool", "prefix"),
    "truncate": ("pool", "prefix"),
    "reset": ("pool", "prefix"),
    "probe": ("pool", "prefix"),
    "owners": ("pool", "prefix"),
    "axes": ("pool", "prefix"),
}

# What only some engines can do: never asked of an adapter that does not declare it.
EXTENSIONS: tuple[str, ...] = ("several", "truncate", "reset", "probe", "owners", "axes")

_CLAUSES = (
    Clause("ANSWER", "pool", "operation", "an answer has the right type and lies in range"),
    Clause("TOTAL", "pool", "operation", "a legal operation gets an answer, not an exception"),
    Clause("YES-MEANS-YES", "pool", "operation", "an affirmative answer is followed by success"),
    Clause("NO-MEANS-NO", "pool", "operation", "a request is refused only if it truly does not fit", survivable=True),
    Clause("FRESH", "pool", "operation", "a block handed out as new was free and is in no live table"),
    Clause("COVERS", "pool", "operation", "the table has room for what is reserved, exactly where declared"),
    Clause("STABLE", "pool", "operation", "table entries of a live sequence never change"),
    Clause("ATOMIC", "pool", "operation", "a refused or failed operation changes nothing"),
    Clause("RELEASE", "pool", "operation", "a release drops exactly the sequence's own references, once"),
    # implies: a block is lost while other sequences live, too: then it is neither held nor free
    Clause("NO-LEAK", "pool", "operation", "when all sequences are gone every block is free", implies=("PARTITION",)),
    Clause(
        "PARTITION",
        "pool",
        "state",
        "each block is exactly one of free, used or cached, and is free if nobody holds it",
    ),
    Clause("REFCOUNT", "pool", "state", "a reference count is the number of table entries plus declared extra owners"),
    Clause("CONTENT", "prefix", "operation", "each cached token is backed by K/V of exactly its prefix and namespace"),
    # implies: the entry through which it was hit names a block that holds nothing yet
    Clause(
        "COMPUTED", "prefix", "operation", "a block is hit only after its K/V was computed", implies=("INDEX-CHAIN",)
    ),
    Clause("NO-CLOBBER", "prefix", "operation", "slots of computed tokens of a live sequence are never overwritten"),
    Clause("PROGRESS", "prefix", "operation", "at least one token is left to compute", survivable=True),
    Clause("ALIGNED", "prefix", "operation", "a hit is a whole number of blocks", survivable=True),
    Clause(
        "INDEX-BOUNDED", "prefix", "state", "the index never has more entries than there are blocks", survivable=True
    ),
    # implies: an entry that outlives its block names other content, and entries add up
    Clause(
        "INDEX-MATCH",
        "prefix",
        "state",
        "an index entry names a block whose stored hash is the key",
        survivable=True,
        implies=("INDEX-BOUNDED", "INDEX-CHAIN"),
    ),
    Clause(
        "INDEX-TOKENS",
        "prefix",
        "state",
        "the tokens stored in a findable block are those whose K/V it holds",
        survivable=True,
    ),
    # implies: under a wrong key a block is not found, and what is not shared needs room of its own
    Clause(
        "INDEX-CHAIN",
        "prefix",
        "state",
        "the whole prefix in a findable block is what its key stands for",
        survivable=True,
        implies=("NO-MEANS-NO", "NO-LOST-HIT", "SURVIVES-RELEASE", "TWIN"),
    ),
    # implies: what is not shared needs room of its own; where two copies existed, a lost hit counts as TWIN
    Clause(
        "NO-LOST-HIT",
        "reuse",
        "completeness",
        "the hit is the longest chain that is still intact",
        survivable=True,
        implies=("NO-MEANS-NO", "TWIN"),
    ),
    # implies: where two copies existed, a lost hit counts as TWIN
    Clause(
        "SURVIVES-RELEASE",
        "reuse",
        "completeness",
        "a released block can be hit until it is recycled",
        survivable=True,
        implies=("TWIN",),
    ),
    Clause(
        "TWIN", "reuse", "completeness", "recycling one of two equal blocks does not lose the other", survivable=True
    ),
    Clause("TAIL-FIRST", "order", "operation", "of one sequence the tail is recycled before its head", survivable=True),
    # implies: a queue that is out of order is so within one release, too
    Clause(
        "FIFO",
        "order",
        "operation",
        "blocks are recycled in the order in which they became free",
        survivable=True,
        implies=("TAIL-FIRST",),
    ),
    Clause(
        "NANO-ORDER",
        "order",
        "operation",
        "a manager that declares nano-vllm's order does what the model does, block for block",
    ),
    Clause(
        "HASH-BYTES",
        "hash",
        "operation",
        "the chain hash is xxh64 over the parent hash and the tokens, each as 8 little-endian bytes",
    ),
    Clause(
        "EMPTY-PROMPT",
        "robust",
        "operation",
        "a prompt without tokens is rejected with a clear error, and nothing changes",
    ),
    Clause(
        "OVERSIZED",
        "robust",
        "operation",
        "a prompt that can never fit is told apart from a pool that is full now",
        survivable=True,
    ),
    Clause(
        "REPEATED",
        "robust",
        "operation",
        "admitting a live sequence again is rejected with a clear error, and nothing changes",
    ),
    Clause(
        "UNKNOWN",
        "robust",
        "operation",
        "naming a sequence that was never admitted is a clear error (or, for release, harmless), and nothing changes",
    ),
    Clause(
        "BAD-POOL", "robust", "operation", "an impossible number of blocks or block size is rejected with a clear error"
    ),
    # implies: what is findable too early is so when it is rejected as well
    Clause(
        "DRAFT-HIDDEN",
        "truncate",
        "operation",
        "a block that holds a draft token is not findable until the token is confirmed",
        implies=("COMPUTED", "INDEX-CHAIN", "INDEX-TOKENS", "TRUNCATED"),
    ),
    # implies: a rejected token that is taken for computed is published with the block that it lies in
    Clause(
        "TRUNCATED",
        "truncate",
        "operation",
        "exactly the rejected draft tokens are dropped: nothing of them is computed or findable, and nothing else goes",
        implies=("REFCOUNT", "PARTITION", "INDEX-CHAIN", "INDEX-TOKENS", "CONTENT"),
    ),
    Clause(
        "RESET",
        "reset",
        "operation",
        "after a yes nothing cached before is found again and the index is empty; a no changes nothing, and is for use",
    ),
    Clause(
        "PROBE",
        "probe",
        "operation",
        "a probe changes nothing, and the admission that follows at once gets exactly what it said",
    ),
    # implies: what is not shared needs room of its own
    Clause(
        "AXES-AGREE",
        "axes",
        "completeness",
        "a prefix in use is shared with a sequence of the same namespace, whatever axes that has",
        survivable=True,
        implies=("NO-MEANS-NO",),
    ),
)

CLAUSES: dict[str, Clause] = {clause.slug: clause for clause in _CLAUSES}


def clauses_of(profile: str) -> tuple[Clause, ...]:
    """The clauses that decide `profile`, borrowed ones included, in the order of the registry.

    Raises KeyError if there is no such profile.
    """
    owners = (PROFILES[profile].name, *BORROWED.get(profile, ()))
    return tuple(clause for clause in _CLAUSES if clause.profile in owners)
