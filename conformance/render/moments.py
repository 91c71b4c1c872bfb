"""A trace as moments: after each operation, what the manager showed and what the judge knows.

Tables, pictures and histories are all made from moments, so they never disagree.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kvspec.conformance.trace.format import Header, Record, Trace
from kvspec.conformance.trace.judging import opening_state, rulings
from kvspec.spec.judge import Violation
from kvspec.spec.operations import Operation, Outcome
from kvspec.spec.state import EMPTY, Snapshot, State


@dataclass(frozen=True, slots=True)
class Moment:
    """The world after one operation; `state` is the judge's, as far as it came if the operation breaks a clause."""

    number: int
    request: Operation
    answer: Outcome
    shown: Snapshot | None
    state: State
    violation: Violation | None


@dataclass(frozen=True, slots=True)
class Story:
    """A counterexample with all its moments; `before` is the judge's state before the last operation."""

    header: Header
    moments: tuple[Moment, ...]
    violation: Violation
    keys: dict[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def clause(self) -> str:
        """The broken clause."""
        return self.violation.clause

    @property
    def before(self) -> State:
        """What the judge knew before the operation that breaks the clause."""
        return self.moments[-2].state if len(self.moments) > 1 else opening_state(self.header)


def tell(trace: Trace) -> Story:
    """Judge a stored counterexample again, moment by moment.

    Where the trace alone cannot show the violation (an unknown chain hash), the footer's words are taken.
    Raises TraceError if it names no clause.
    """
    found = trace.footer.verdict or ""
    moments = _moments(trace.header, trace.records)
    judged = moments[-1].violation if moments else None
    if judged is None or judged.clause != found:
        judged = Violation(found, trace.footer.because or "")
    return Story(trace.header, moments, judged, _keys(moments))


def _moments(header: Header, records: Sequence[Record]) -> tuple[Moment, ...]:
    state, told = opening_state(header), []
    for record, violation in rulings(header, records, state):
        told.append(Moment(record.number, record.request, record.answer, record.snapshot, state.copy(), violation))
    return tuple(told)


def _keys(moments: Sequence[Moment]) -> dict[int, tuple[int, ...]]:
    """Which prefix each key of the index stands for, where the chain hash is known."""
    if not moments or moments[-1].state.key_of is None:
        return {}
    state, found = moments[-1].state, dict[int | None, tuple[int, ...]]()
    for sequence_state in (s for moment in moments for s in moment.state.sequences.values()):
        size = state.world.block_size
        for prefix in sequence_state.prefixes[size - 1 :: size]:
            found[state.key_of(prefix)] = state.prefixes.spell(prefix)  # type: ignore[misc]
    return {key: tokens for key, tokens in found.items() if key is not None}


def held_by(state: State, block: int) -> list[str]:
    """The live sequences that hold a block, by name."""
    return sorted(name for name, sequence in state.sequences.items() if block in sequence.table)


def slot_prefix(state: State, block: int, offset: int) -> tuple[int, ...] | None:
    """The whole prefix whose K/V is in a slot, or None."""
    found = state.memory.get(block * state.world.block_size + offset, EMPTY)
    return None if found == EMPTY else state.prefixes.spell(found)
