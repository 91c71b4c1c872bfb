"""Merging: a full block of a table is replaced by a findable one that holds the same prefix (``Declaration.merges``).

The replaced block is given back, and the one in its place is a hit, whose tokens may be computed again in place.
"""

from typing import Any

from .state import EMPTY, SequenceState, State


def holds_same(state: State, sequence: SequenceState, entry: int, block: int) -> bool:
    """Does a block that is or becomes findable hold the full block `entry` of the sequence?"""
    end = (entry + 1) * state.world.block_size - 1
    return end < len(sequence.prefixes) and state.ledger.hash[block] == sequence.prefixes[end] != EMPTY


def kept_entries(state: State, sequence: SequenceState, before: tuple[int, ...], after: tuple[int, ...]) -> int:
    """How many leading entries of a table stay, if all the others were merged; all of them if that is not declared."""
    pairs = zip(before, after, strict=False)
    kept = next((entry for entry, (old, new) in enumerate(pairs) if old != new), len(before))
    merged = range(kept, min(len(before), len(after)))
    legal = state.declaration.merges and len(after) >= len(before)
    return kept if legal and all(holds_same(state, sequence, entry, after[entry]) for entry in merged) else len(before)


def is_merged(state: State, name: Any, sequence: SequenceState, block: int) -> bool:
    """Is the next block of the sequence, beyond its hits, one that is merged and not a fresh one?"""
    entry = state.ledger.length[name]
    return (
        state.declaration.merges and state.ledger.computed[name] == entry and holds_same(state, sequence, entry, block)
    )
