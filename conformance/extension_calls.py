"""The operations of the extensions as calls of an adapter, what they must answer, and what of them really happened."""

from collections.abc import Callable, Iterator
from typing import Any

from kvspec.spec import operations as op
from kvspec.spec.clauses import EXTENSIONS
from kvspec.spec.declaration import Declaration
from kvspec.spec.state import Owner, State

EXTENSION_CALLS: dict[type, Callable[[Any, Any], Any]] = {
    op.Extend: lambda adapter, asked: adapter.extend(asked.sequence, asked.tokens, asked.drafts),
    op.Truncate: lambda adapter, asked: adapter.truncate(asked.sequence, asked.length),
    op.Reset: lambda adapter, asked: adapter.reset(),
    op.Probe: lambda adapter, asked: adapter.probe(asked.tokens, asked.limit, asked.namespace),
    op.Retain: lambda adapter, asked: adapter.retain(asked.sequence, asked.owner),
    op.Drop: lambda adapter, asked: adapter.drop(asked.owner),
}

EXTENSION_OUTCOMES: dict[type, type] = {
    op.Extend: op.Extended,
    op.Truncate: op.Truncated,
    op.Reset: op.WasReset,
    op.Probe: op.Probed,
    op.Retain: op.Retained,
    op.Drop: op.Dropped,
}

# The methods that an adapter must have for a profile.
METHODS: dict[str, tuple[str, ...]] = {
    "several": ("extend",),
    "truncate": ("extend", "truncate"),
    "reset": ("reset",),
    "probe": ("probe",),
    "owners": ("retain", "drop"),
}


def not_offered(profile: str, declaration: Declaration, adapter: Any) -> str | None:
    """Why the profile of an extension cannot be tried, or None."""
    if profile not in EXTENSIONS:
        return None
    if profile not in declaration.profiles:
        return "not offered"
    lacking = [name for name in METHODS.get(profile, ()) if not callable(getattr(adapter, name, None))]
    return f"the adapter has no method {' and no '.join(lacking)}" if lacking else None


def counted(state: State, operation: op.Operation, outcome: op.Outcome) -> Iterator[str]:
    """What an extension did, or what followed it, as names to count; `state` is the judge's before the operation."""
    if state.asked is not None and isinstance(operation, op.Admit):
        probe = state.asked[0]
        if (probe.tokens, probe.limit, probe.namespace) == (operation.tokens, operation.limit, operation.namespace):
            yield "probes kept"
    if isinstance(operation, op.Extend) and isinstance(outcome, op.Extended):
        yield "drafts" if operation.drafts else "extensions"
    elif isinstance(operation, op.Truncate) and isinstance(outcome, op.Truncated):
        sequence = state.sequences[operation.sequence]
        if operation.length < sequence.computed:
            yield "rejections"
        if operation.length > len(sequence.tokens) - sequence.drafts:
            yield "confirmations"
    else:
        yield from _counted_by_answer(state, operation, outcome)


def _counted_by_answer(state: State, operation: op.Operation, outcome: op.Outcome) -> Iterator[str]:
    if isinstance(operation, op.Reset) and isinstance(outcome, op.WasReset | op.Refused):
        if isinstance(outcome, op.WasReset):
            yield "resets"
        if state.sequences or state.owners:
            yield "resets in use"
    elif isinstance(outcome, op.Probed):
        yield "probes"
    elif isinstance(outcome, op.Retained):
        yield "retained"
    elif isinstance(operation, op.Drop) and isinstance(outcome, op.Dropped):
        yield "dropped"
        kept = state.owners[Owner(operation.owner)].table
        if not any(set(kept) & set(sequence.table) for sequence in state.sequences.values()):
            yield "outlived"
