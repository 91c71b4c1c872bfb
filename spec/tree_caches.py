"""The rules of caches that are trees, entered in the judge's table when this module is imported.

Such a cache shows its blocks as a pool of its own (``Snapshot.owned``), keeps one of two equal blocks and repoints the
tables that name the other (``Declaration.repoints``), and evicts whole nodes, more than is needed (``evicts_early``).
"""

from collections.abc import Iterable
from dataclasses import replace

from .judge import CACHE_RULES, breach, check_bars, perform, read, uncopy
from .state import SequenceState, Snapshot, State


def _repointed(state: State, name: str, sequence: SequenceState, table: tuple[int, ...]) -> None:
    """Entries name other blocks that hold the same: give back from the tail, claim those, keep what is not full."""
    before, full = sequence.table, sequence.confirmed // state.world.block_size
    # STABLE: table entries of a live sequence never change
    if len(table) != len(before) or table[full:] != before[full:]:
        breach(state, "STABLE", f"the table of {name} was {list(before)} and became {list(table)}", sequence=name)
        return
    sequence.table = table
    changed = [entry for entry, block in enumerate(table[:full]) if block != before[entry]]
    check_bars(state, name, tuple([table[entry] for entry in changed]))
    read(state, name, sequence, full * state.world.block_size)
    for _ in before[changed[0] :]:
        perform(state, "pop", name)
    for entry, block in enumerate(table[changed[0] :], changed[0]):
        perform(state, "claim" if entry < full else "take", name, block)
        state.freed.pop(block, None)
    _let_go(state, sequence, before, changed)


def _let_go(state: State, sequence: SequenceState, before: tuple[int, ...], changed: Iterable[int]) -> None:
    """What the entries named before is free, if nobody else holds it, and need not be found any more."""
    state.releases += 1
    for entry in changed:
        if not state.ledger.used[before[entry]]:
            state.freed[before[entry]] = (state.releases, entry)
            uncopy(state, sequence.prefixes[(entry + 1) * state.world.block_size - 1], before[entry])


def _shown(state: State, shown: Snapshot) -> None:
    """What the cache need not find any more: what it gave up early, and spare copies of what it keeps."""
    owned, before = frozenset(shown.owned or ()), frozenset((state.shown and state.shown.owned) or ())
    for prefix, copies in list(state.copies.items()):
        idle = {block for block in copies - owned if not state.ledger.used[block]}
        given_up = idle & before if state.declaration.evicts_early else set()
        spare = idle if state.declaration.repoints and copies & owned else set()
        for block in given_up | spare:
            uncopy(state, prefix, block)
        if spare and len(copies) == 1:
            state.twinned.discard(prefix)


def _refused(before: Snapshot | None, shown: Snapshot | None) -> Snapshot | None:
    """What was shown before, as it is after the cache has given up what it now shows as free."""
    if before is None or shown is None or not before.owned or before.free is None or shown.free is None:
        return before
    evicted = set(before.owned) - set(shown.owned or ())
    if set(shown.free) != set(before.free) | evicted:
        return before
    index = before.index and tuple([entry for entry in before.index if entry[1] not in evicted])
    return replace(before, free=shown.free, owned=shown.owned, index=index)


CACHE_RULES |= {"repointed": _repointed, "shown": _shown, "refused": _refused}
