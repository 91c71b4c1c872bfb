"""The rules of the extensions, entered in the judge's tables when this module is imported.

Where an extension hides blocks it *bars* them (``State.barred``): a hit on a barred block, or an index entry that names it,
breaks the clause that stands with the bar.  A bar goes when the block is taken for new content, or when all that it holds
is confirmed.
"""

from . import operations as op
from .declaration import Publish
from .judge import (
    FOLLOW_UPS,
    LEGALITY,
    REFUSALS,
    RULES,
    blocks_for,
    breach,
    check_release,
    findable,
    give_back,
    hide_drafts,
    lift_bar,
    perform,
    register,
    unchanged,
)
from .state import Owner, SequenceState, Snapshot, State

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


# Reset ------------------------------------------------------------------------------------------------------------

OLD = ("RESET", "what it holds is older than the last reset")


def _reset(state: State, operation: op.Reset, outcome: op.WasReset, shown: Snapshot | None) -> None:
    """Nothing that is held now may be found any more, nor what live sequences go on to compute from it."""
    # RESET: after a yes nothing cached before is found again and the index is empty; a no changes nothing, and is for use
    state.barred = dict.fromkeys(state.blocks, OLD)
    for sequence in state.sequences.values():
        sequence.bar = OLD
    state.copies.clear()
    state.twinned.clear()
    state.freed = dict.fromkeys(state.freed, (0, 0))  # empty blocks are recycled in any order


def _reset_refused(state: State, operation: op.Reset, outcome: op.Refused, shown: Snapshot | None) -> None:
    # RESET: after a yes nothing cached before is found again and the index is empty; a no changes nothing, and is for use
    unchanged(state, shown, "RESET")
    if outcome.reason is not op.Reason.IN_USE or not (state.sequences or state.owners):
        breach(state, "RESET", f"it was refused ({outcome.reason}), though nobody holds a block")


# Probe ------------------------------------------------------------------------------------------------------------


def _illegal_probe(state: State, operation: op.Probe) -> str | None:
    return None if operation.tokens and operation.limit >= 1 else "no tokens, or nothing may be reserved"


def _probe(state: State, operation: op.Probe, outcome: op.Probed, shown: Snapshot | None) -> None:
    # PROBE: a probe changes nothing, and the admission that follows at once gets exactly what it said
    unchanged(state, shown, "PROBE")
    if not 0 <= outcome.cached <= len(operation.tokens):
        breach(state, "ANSWER", f"{outcome.cached} of {len(operation.tokens)} tokens would be cached")
    state.asked = operation, outcome


def _probed(state: State, probe: op.Probe, said: op.Probed, operation: op.Operation, outcome: op.Outcome) -> None:
    """The same question again, or the admission: the answers must agree."""
    same = isinstance(operation, op.Probe | op.Admit) and _question(operation) == _question(probe)
    if same and (isinstance(outcome, op.Admitted | op.Refused | op.Probed) or _too_large(state, probe, outcome)):
        found = _as_probe(outcome, said)
        # PROBE: a probe changes nothing, and the admission that follows at once gets exactly what it said
        if found != said:
            breach(state, "PROBE", f"the probe just before said {_told(said)}; then it was {_told(found)}")


def _question(asked: op.Probe | op.Admit) -> tuple[tuple[int, ...], int, str]:
    return asked.tokens, asked.limit, asked.namespace


def _too_large(state: State, probe: op.Probe, outcome: op.Outcome) -> bool:
    """Is the error a refusal, because the prompt never fits?"""
    return isinstance(outcome, op.Failed) and outcome.clear and blocks_for(state, len(probe.tokens)) > len(state.blocks)


def _as_probe(outcome: op.Outcome, said: op.Probed) -> op.Probed:
    """What the probe should have said; a refusal does not tell how much was found."""
    if isinstance(outcome, op.Probed):
        return outcome
    return op.Probed(outcome.cached, True) if isinstance(outcome, op.Admitted) else op.Probed(said.cached, False)


def _told(said: op.Probed) -> str:
    return f"{said.cached} cached, {'fits' if said.fits else 'does not fit'}"


# Owners outside -----------------------------------------------------------------------------------------------------


def _illegal_retain(state: State, operation: op.Retain) -> str | None:
    sequence = state.sequences.get(operation.sequence)
    if sequence is None or sequence.drafts or sequence.unread:
        return "the sequence is not live, or it is not certain yet what it holds"
    full = sequence.confirmed >= state.world.block_size
    return None if full and Owner(operation.owner) not in state.owners else "nothing to keep, or the owner keeps some"


def _retain(state: State, operation: op.Retain, outcome: op.Retained, shown: Snapshot | None) -> None:
    """The owner is one more table, which claims the blocks; what holds of tables then holds of it."""
    sequence, owner = state.sequences[operation.sequence], Owner(operation.owner)
    kept = sequence.confirmed // state.world.block_size
    # ANSWER: an answer has the right type and lies in range
    if outcome.table != sequence.table[:kept]:
        breach(
            state, "ANSWER", f"the full computed blocks are {list(sequence.table[:kept])}, not {list(outcome.table)}"
        )
    tokens = kept * state.world.block_size
    state.owners[owner] = SequenceState(
        sequence.tokens[:tokens], sequence.prefixes[:tokens], sequence.table[:kept], tokens, 0
    )
    register(state, operation.sequence, tokens)  # draft tokens may have been confirmed that are not published yet
    for block in sequence.table[:kept]:
        perform(state, "claim", owner, block)


def _illegal_drop(state: State, operation: op.Drop) -> str | None:
    return None if Owner(operation.owner) in state.owners else "the owner keeps nothing"


def _drop(state: State, operation: op.Drop, outcome: op.Dropped, shown: Snapshot | None) -> None:
    owner = Owner(operation.owner)
    give_back(state, owner, state.owners[owner].table)
    kept = state.owners.pop(owner)
    state.ledger.forget(owner)
    if shown is not None:
        check_release(state, kept, shown)


LEGALITY |= {
    op.Extend: _illegal_extend,
    op.Truncate: _illegal_truncate,
    op.Reset: lambda state, operation: None,
    op.Probe: _illegal_probe,
    op.Retain: _illegal_retain,
    op.Drop: _illegal_drop,
}
RULES |= {
    op.Extend: _extend,
    op.Truncate: _truncate,
    op.Reset: _reset,
    op.Probe: _probe,
    op.Retain: _retain,
    op.Drop: _drop,
}
REFUSALS[op.Reset] = _reset_refused
FOLLOW_UPS[op.Probe] = _probed
