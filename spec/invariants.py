"""One predicate a state invariant: what a manager shows of itself, held against what the judge knows.

Each returns an explanation where the invariant is broken, and None where it holds or where the manager does not show
enough to tell.
"""

from collections.abc import Callable

from .state import EMPTY, Snapshot, State

Predicate = Callable[[State, Snapshot], str | None]


def partition(state: State, shown: Snapshot) -> str | None:
    """Free, used and cached blocks are disjoint and all there."""
    # PARTITION: each block is exactly one of free, used or cached, and is free if nobody holds it
    if shown.free is None:
        return None
    free, cached = set(shown.free), set(shown.owned or ())
    if len(free) != len(shown.free):
        return f"the free list {list(shown.free)} names a block twice"
    held = {block for block, used in state.ledger.used.items() if used}
    if both := free & (held | cached | set(shown.used or ())):
        return f"block {min(both)} is in the free list, and also used or cached"
    if lost := state.blocks - free - held - cached:
        return f"block {min(lost)} is held by nobody, yet not free"
    if alien := free - state.blocks:
        return f"the free list names block {min(alien)}, which is not in the pool"
    aside = (cached - held) | state.declaration.unusable  # a null block may be counted as used
    if shown.used is not None and set(shown.used) - aside != state.blocks - free - (cached - held):
        return f"the used blocks {sorted(shown.used)} are not all but the free ones {sorted(free)}"
    return None


def reference_count(state: State, shown: Snapshot) -> str | None:
    """The counts agree with the tables."""
    # REFCOUNT: a reference count is the number of table entries plus declared extra owners
    if shown.references is None:
        return None
    extra = state.declaration.extra_owners
    for block in state.blocks:
        counted, held = shown.references[block], state.ledger.references[block]
        if counted != held and not (extra and counted > held):
            return f"block {block} has reference count {counted}, but {held} live table entries name it"
    return None


def index_bounded(state: State, shown: Snapshot) -> str | None:
    """Not more keys than blocks."""
    # INDEX-BOUNDED: the index never has more entries than there are blocks
    if shown.index is None or len({key for key, _ in shown.index}) <= state.world.blocks:
        return None
    return f"the index has {len(shown.index)} entries for {state.world.blocks} blocks"


def index_match(state: State, shown: Snapshot) -> str | None:
    """Each entry names a block that stores its key."""
    # INDEX-MATCH: an index entry names a block whose stored hash is the key
    if shown.index is None or shown.hashes is None or state.declaration.stale_index:
        return None
    for key, block in shown.index:
        if not 0 <= block < len(shown.hashes):
            return f"an index entry names block {block}, which is not in the pool"
        if shown.hashes[block] != key:
            return f"an index entry names block {block}, whose stored hash is not the key"
    return None


def index_tokens(state: State, shown: Snapshot) -> str | None:
    """Each findable block stores the tokens it holds."""
    # INDEX-TOKENS: the tokens stored in a findable block are those whose K/V it holds
    if shown.index is None or shown.contents is None or state.declaration.stale_index:
        return None
    for _, block in shown.index:
        prefix = state.ledger.identity[block]
        if prefix == EMPTY or not 0 <= block < len(shown.contents):
            continue
        tokens = state.prefixes.tail(prefix, state.world.block_size)[1]
        if shown.contents[block] != tokens:
            return f"block {block} stores tokens {list(shown.contents[block])}, but holds the K/V of {list(tokens)}"
    return None


def index_chain(state: State, shown: Snapshot) -> str | None:
    """Each key stands for the whole prefix of its block."""
    # INDEX-CHAIN: the whole prefix in a findable block is what its key stands for
    if shown.index is None or state.key_of is None or state.declaration.stale_index:
        return None
    for key, block in shown.index:
        prefix = state.ledger.identity[block]
        if prefix == EMPTY:
            return f"an index entry names block {block}, which holds no computed block of tokens"
        wanted = state.key_of(prefix)
        if wanted is not None and wanted != key:
            spelt = list(state.prefixes.spell(prefix))
            return f"the key {key} names block {block}, but the key of its prefix {spelt} is {wanted}"
    return None


STATE_INVARIANTS: dict[str, Predicate] = {
    "PARTITION": partition,
    "REFCOUNT": reference_count,
    "INDEX-BOUNDED": index_bounded,
    "INDEX-MATCH": index_match,
    "INDEX-TOKENS": index_tokens,
    "INDEX-CHAIN": index_chain,
}
