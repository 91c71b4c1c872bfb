"""Judge a trace by itself: no implementation is run, the recorded answers are ruled on."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kvspec.conformance.hash_check import reference_hash
from kvspec.conformance.lockstep import key_function
from kvspec.conformance.trace.format import WITHOUT_OPERATIONS, Header, Record, TraceError
from kvspec.conformance.trace.reader import stream_trace
from kvspec.conformance.trace.writer import KNOWN_HASH
from kvspec.impl.adapter import Adapter, Implementation
from kvspec.spec import model
from kvspec.spec.judge import Illegal, Violation, advance, begin
from kvspec.spec.state import State, World

NEEDS_HASH = frozenset({"INDEX-CHAIN", "NANO-ORDER"})  # cannot be judged where the chain hash is unknown


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a trace shows: how many operations were judged, and the violation with which it ends, if any."""

    header: Header
    operations: int
    violation: Violation | None


def recorded_implementation(header: Header) -> Implementation:
    """The implementation as far as a trace tells: its declaration and, where known, its chain hash."""
    chain_hash = reference_hash if header.chain_hash == KNOWN_HASH else None
    return Implementation(header.implementation, header.declaration, _no_manager, header.target, chain_hash=chain_hash)


def _no_manager(world: World) -> Adapter:
    raise TypeError(f"a trace has no manager for {world}")


def opening_state(header: Header) -> State:
    """The judge's state before the first operation of a trace."""
    state = begin(header.world, header.declaration)
    state.muted = header.muted
    state.shown = header.snapshot
    if not header.world.weak_hash:
        state.key_of = key_function(recorded_implementation(header), state)
    return state


def rulings(header: Header, records: Iterable[Record], state: State) -> Iterator[tuple[Record, Violation | None]]:
    """Rule on each record in turn; `state` moves along.  Raises TraceError if a request is illegal."""
    compare = _comparison(header)
    for record in records:
        try:
            violation = advance(state, record.request, record.answer, record.snapshot)
        except Illegal as error:
            raise TraceError(f"operation {record.number} is one that no scheduler may ask for: {error}") from None
        yield record, violation or compare(record)


class _Comparison:
    """The model, moving beside the records."""

    def __init__(self, header: Header) -> None:
        self._model = model.start(header.world, reference_hash)

    def __call__(self, record: Record) -> Violation | None:
        self._model, expected = model.perform(self._model, record.request)
        different = model.difference(self._model, expected, record.answer, record.snapshot)
        return Violation("NANO-ORDER", different) if different else None


def _comparison(header: Header) -> "_Comparison | partial[None]":
    if header.context == "model" and header.chain_hash == KNOWN_HASH:
        return _Comparison(header)
    return partial(_nothing)


def _nothing(record: Record) -> None:
    return None


def judge_trace(path: Path) -> Judgement:
    """Read and judge a trace in constant memory; what it claims must be what the judge says.  Raises TraceError.

    A trace that claims nothing (a production log) may break a clause anywhere; it is judged up to there.
    """
    with stream_trace(path) as reader:
        header = reader.header
        judged, total, violation = _judge_all(header, reader.records())
        assert reader.footer is not None
        claimed = reader.footer.verdict
        if claimed and violation and judged < total:
            raise TraceError(f"operation {judged} breaks {violation.clause}, but the trace goes on to break {claimed}")
        check_verdict(header, claimed, violation)
        return Judgement(header, judged, violation)


def _judge_all(header: Header, records: Iterable[Record]) -> tuple[int, int, Violation | None]:
    """How many operations were judged, how many there are, and the first violation; always reads to the footer."""
    records, state, judged = iter(records), opening_state(header), 0
    for record, violation in rulings(header, records, state):
        judged = record.number
        state.noted.clear()
        if violation:
            return judged, judged + sum(1 for _ in records), violation
    return judged, judged, None


def check_verdict(header: Header, claimed: str | None, violation: Violation | None) -> None:
    """What a trace claims must be what was judged.  Raises TraceError."""
    judged = violation.clause if violation else None
    if claimed is None or judged == claimed:
        return
    if header.context in WITHOUT_OPERATIONS or (claimed in NEEDS_HASH and header.chain_hash is None):
        raise TraceError(f"{claimed} cannot be judged from the trace alone: replay it against the implementation")
    says = f"breaks {judged}" if judged else "breaks no clause"
    raise TraceError(f"the trace claims to break {claimed}, but {says}")
