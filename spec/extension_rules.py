"""The rules of the extensions, entered in the judge's tables when this module is imported.

Where an extension hides blocks it *bars* them (``State.barred``): a hit on a barred block, or an index entry that names it,
breaks the clause that stands with the bar.  A bar goes when the block is taken for new content, or when all that it holds
is confirmed.
"""

from . import operations as op
from .declaration import Publish
from .judge import (
    LEGALITY,
    RULES,
    blocks_for,
    breach,
    findable,
    give_back,
    hide_drafts,
    lift_bar,
    register,
)
from .state import SequenceState, Snapshot, State

# Several tokens, and draft tokens ---------------------------------------------------------------------------------


def _illegal_extend(state: State, operation: op.Extend) -> str | None:
    sequence = state.sequences.get(operation.sequence)
    if sequence is None or not operation.tokens:
        return "the sequence is not live, or no token joins"
    if sequence.reserved or sequence.unread or sequence.drafts:
        return "the sequence is in flight, or has draft tokens"
    left = len(sequence.tokens) - sequence.computed
    return None if left <= operation.drafts else "tokens join when all others are computed; drafts follow the last one"


def _extend(state: State, operation: op.Extend, outcome: op.Extended, shown: Snapshot | None) -> None:
    sequence = state.sequences[operation.sequence]
    sequence.tokens.extend(operation.tokens)
    sequence.prefixes.extend(state.prefixes.extend(sequence.prefixes[-1], operation.tokens))
    if operation.drafts:
        sequence.drafts = len(operation.tokens)
        hide_drafts(state, sequence)


def _illegal_truncate(state: State, operation: op.Truncate) -> str | None:
    sequence = state.sequences.get(operation.sequence)
    if sequence is None or not sequence.drafts or sequence.reserved or sequence.unread:
        return "the sequence has no draft tokens, or is in flight"
    known = len(sequence.tokens)
    within = known - sequence.drafts <= operation.length <= known
    return None if within else "only draft tokens are rejected"


def _truncate(state: State, operation: op.Truncate, outcome: op.Truncated, shown: Snapshot | None) -> None:
    sequence = state.sequences[operation.sequence]
    _check_truncated(state, operation, outcome, sequence)
    before, sequence.table = sequence.table, outcome.table
    if len(outcome.table) < len(before):
        give_back(state, operation.sequence, before, keep=len(outcome.table))
    if operation.length < len(sequence.tokens):
        for block in before[operation.length // state.world.block_size :]:
            lift_bar(state, block)
            state.barred.setdefault(block, ("TRUNCATED", "it holds a draft token that was rejected"))
    del sequence.tokens[operation.length :], sequence.prefixes[operation.length :]
    sequence.computed, sequence.drafts = outcome.computed, 0
    _publish_confirmed(state, operation.sequence, sequence)


def _check_truncated(state: State, operation: op.Truncate, outcome: op.Truncated, sequence: SequenceState) -> None:
    name, length, before = operation.sequence, operation.length, sequence.table
    computed, least = min(sequence.computed, length), min(blocks_for(state, length), len(before))
    # TRUNCATED: exactly the rejected draft tokens are dropped: nothing of them is computed or findable, and nothing else goes
    if outcome.computed != computed:
        breach(state, "TRUNCATED", f"{outcome.computed} tokens count as computed, not {computed}", sequence=name)
    if outcome.table != before[: max(least, len(outcome.table))]:
        kept = f"of the table {list(before)} the first {least} entries must stay, and others may"
        breach(state, "TRUNCATED", f"{kept}; it became {list(outcome.table)}", sequence=name)


def _publish_confirmed(state: State, name: str, sequence: SequenceState) -> None:
    """Blocks that are full of confirmed tokens may be found: at once where declared, else with the next tokens."""
    late = state.declaration.publish is Publish.RELEASE  # then they are counted as registered, and must be found later
    if state.declaration.publish_at_truncate or late:
        register(state, name, sequence.computed)
    if state.declaration.publish_at_truncate and not late:
        findable(state, sequence, sequence.findable)
    partial = sequence.table[len(sequence.tokens) // state.world.block_size :]
    for block in partial:
        if state.barred.get(block, ("",))[0] == "DRAFT-HIDDEN":
            lift_bar(state, block)


LEGALITY |= {op.Extend: _illegal_extend, op.Truncate: _illegal_truncate}
RULES |= {op.Extend: _extend, op.Truncate: _truncate}
