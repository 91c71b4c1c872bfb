"""One implementation and the judge, side by side: every operation is performed once and ruled on at once."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from kvspec.conformance import time_limit
from kvspec.conformance.extension_calls import EXTENSION_CALLS, EXTENSION_OUTCOMES, counted
from kvspec.conformance.snapshots import Unreadable, fault_of
from kvspec.impl.adapter import Adapter, Implementation
from kvspec.impl.nano_vllm.answers import is_clear, spoken, without_addresses
from kvspec.spec import model
from kvspec.spec import operations as op
from kvspec.spec.judge import Violation, advance, begin
from kvspec.spec.state import EMPTY, Prefixes, Snapshot, State, World

NONE_MUTED: frozenset[str] = frozenset()
_ALWAYS_POSSIBLE = (op.Refused, op.Failed, op.Nonsense)
_ONLY_NUMBERS = frozenset({int})

_EXPECTED: dict[type, Any] = {
    op.Admit: op.Admitted,
    op.Reserve: op.Reserved,
    op.Commit: op.Committed,
    op.Append: op.Appended,
    op.Release: op.Released,
    **EXTENSION_OUTCOMES,
}


class CannotCreate(Exception):
    """The implementation does not make a manager for a world that its declaration allows."""


def ask(adapter: Adapter, operation: op.Operation) -> op.Outcome:
    """Perform one operation; exceptions, hangs and answers of the wrong kind become outcomes here."""
    try:
        outcome = perform(adapter, operation)
    except time_limit.TimeLimitExceeded:
        return op.Failed(f"nothing: {time_limit.NO_ANSWER} {time_limit.DEFAULT_SECONDS:g} s")
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return _raised(error)
    return outcome if _well_formed(operation, outcome) else op.Nonsense(f"the answer was {_shown(outcome)}")


def _raised(error: BaseException) -> op.Failed:
    """An exception as an outcome, even one that cannot be read."""
    try:
        return op.Failed(str(error) if isinstance(error, Unreadable) else spoken(error), clear=is_clear(error))
    except Exception:
        return op.Failed(f"{type(error).__name__}, whose message cannot be read")


def _shown(answer: Any) -> str:
    try:
        return without_addresses(repr(answer))[:200]
    except Exception:
        return f"{type(answer).__name__}, which cannot be shown"


def perform(adapter: Adapter, operation: op.Operation) -> Any:
    """The call of the adapter that an operation stands for; raises what it raises."""
    if isinstance(operation, op.Admit):
        return adapter.admit(operation.sequence, operation.tokens, operation.limit, operation.namespace)
    if isinstance(operation, op.Reserve):
        return adapter.reserve(operation.sequence, operation.count)
    if isinstance(operation, op.Commit):
        return adapter.commit(operation.sequences)
    if isinstance(operation, op.Append):
        return adapter.append(operation.sequence, operation.token)
    if isinstance(operation, op.Release):
        return adapter.release(operation.sequence, operation.cause)
    return EXTENSION_CALLS[type(operation)](adapter, operation)


def _well_formed(operation: op.Operation, outcome: Any) -> bool:
    if isinstance(outcome, _ALWAYS_POSSIBLE):
        return True
    if not isinstance(outcome, _EXPECTED[type(operation)]):
        return False
    if isinstance(outcome, op.Committed):
        asked = len(operation.sequences)  # type: ignore[union-attr]
        return len(outcome.tables) == asked and all(map(_is_table, outcome.tables))
    return all(_RIGHT[field](getattr(outcome, field)) for field in _EXPECTED[type(operation)].__slots__)


def _is_number(value: Any) -> bool:
    return type(value) is int


def _is_table(table: Any) -> bool:
    return isinstance(table, tuple) and _ONLY_NUMBERS.issuperset(map(type, table))


_RIGHT: dict[str, Callable[[Any], bool]] = {
    "cached": _is_number,
    "reserved": _is_number,
    "computed": _is_number,
    "table": _is_table,
    "fits": lambda value: type(value) is bool,
}


class Lockstep:
    """A fresh manager of `implementation` in `world`, and the judge's state beside it.

    `step(operation)` performs and rules; `operations` and `outcomes` record what was done; `counts` says what really
    happened (operations, hits, free_hits, recycles, refusals, preemptions).  `with_model`: compare with ``spec.model``
    as well (clause NANO-ORDER).  Raises CannotCreate.
    """

    def __init__(
        self,
        implementation: Implementation,
        world: World,
        muted: frozenset[str] = NONE_MUTED,
        prefixes: Prefixes | None = None,
        with_model: bool = False,
    ) -> None:
        self.implementation, self.world = implementation, world
        try:
            self.adapter = implementation.create(world)
        except (Exception, SystemExit) as error:
            size = f"{world.blocks} blocks of {world.block_size}"
            raise CannotCreate(f"{implementation.name} makes no manager of {size}: {_raised(error).error}") from error
        self._observe: Callable[[], Snapshot] | None = getattr(self.adapter, "snapshot", None)
        self.state: State = begin(world, implementation.declaration, prefixes)
        self.state.muted = muted
        self.state.key_of = key_function(implementation, self.state) if not world.weak_hash else None
        self.state.shown = self._first_look()
        self.operations: list[op.Operation] = []
        self.outcomes: list[op.Outcome] = []
        self.snapshots: list[Snapshot | None] = []
        self.counts: Counter[str] = Counter()
        chain_hash = implementation.chain_hash
        self._model = model.start(world, chain_hash) if with_model and chain_hash else None
        self._limited = time_limit.can_limit()

    def look(self) -> Snapshot | None:
        """What the manager shows of itself now, or None.  Raises snapshots.Unreadable if that is no snapshot."""
        shown = self._observe() if self._observe else None
        all_blocks = max(0, self.world.blocks + len(self.implementation.declaration.unusable))
        if fault := fault_of(shown, max(self.state.blocks, default=-1) + 1, all_blocks):
            raise Unreadable(fault)
        return shown

    def _first_look(self) -> Snapshot | None:
        try:
            return self.look()
        except (Exception, SystemExit) as error:
            size = f"{self.world.blocks} blocks of {self.world.block_size}"
            why = f"the state of a fresh manager of {size} cannot be read: {_raised(error).error}"
            raise CannotCreate(f"{self.implementation.name}: {why}") from error

    def step(self, operation: op.Operation) -> Violation | None:
        """Perform one legal operation and rule on it.  Raises spec.judge.Illegal if no scheduler may ask for it."""
        outcome = self._limit(lambda: ask(self.adapter, operation))
        try:
            shown = self._limit(self.look)
        except time_limit.TimeLimitExceeded:
            outcome, shown = op.Nonsense("its state cannot be read: snapshot() does not return"), None
        except (Exception, SystemExit) as error:
            outcome, shown = op.Nonsense(f"its state cannot be read: {_raised(error).error}"), None
        self.operations.append(operation)
        self.outcomes.append(outcome)
        self.snapshots.append(shown)
        self._count(operation, outcome)
        violation = advance(self.state, operation, outcome, shown)
        return violation or (self._compare(operation, outcome, shown) if self._model else None)

    def _compare(self, operation: op.Operation, outcome: op.Outcome, shown: Snapshot | None) -> Violation | None:
        assert self._model is not None
        self._model, expected = model.perform(self._model, operation)
        different = model.difference(self._model, expected, outcome, shown)
        return Violation("NANO-ORDER", different) if different else None

    def _limit(self, call: Callable[[], Any]) -> Any:
        if not self._limited:
            return call()
        time_limit.arm(time_limit.DEFAULT_SECONDS)
        try:
            return call()
        finally:
            time_limit.disarm()

    def _count(self, operation: op.Operation, outcome: op.Outcome) -> None:
        counts, ledger, size = self.counts, self.state.ledger, self.world.block_size
        counts["operations"] += 1
        if isinstance(outcome, op.Admitted):
            hits = outcome.table[: outcome.cached // size] if outcome.cached > 0 else ()
            counts["hits"] += len(hits)
            if hits and isinstance(operation, op.Admit) and operation.namespace:
                counts["hits in a namespace"] += 1
            counts["free_hits"] += sum(not ledger.used[block] for block in hits)
            counts["recycles"] += sum(ledger.hash[block] != EMPTY for block in outcome.table[len(hits) :])
        elif isinstance(outcome, op.Reserved) and isinstance(operation, op.Reserve):
            held = self.state.sequences[operation.sequence].table
            counts["recycles"] += sum(ledger.hash[block] != EMPTY for block in outcome.table[len(held) :])
        elif isinstance(outcome, op.Refused):
            counts["refusals"] += 1
        elif isinstance(operation, op.Release) and operation.cause is op.Cause.PREEMPTED:
            counts["preemptions"] += 1
        if isinstance(operation, op.Extension) or self.state.asked is not None:
            counts.update(counted(self.state, operation, outcome))


def answered_key(chain_hash: Callable[[tuple[int, ...], int | None], int]) -> Callable[[tuple[int, ...], Any], Any]:
    """`chain_hash`, but where it raises, the words of its error: they are no key, and the judge says them."""

    def key_after(tokens: tuple[int, ...], parent: Any) -> Any:
        if isinstance(parent, str):
            return parent
        try:
            return chain_hash(tokens, parent)
        except Exception as error:
            return f"not known, because {_raised(error).error}"

    return key_after


def key_function(implementation: Implementation, state: State) -> Callable[[int], int | None] | None:
    """The manager's chain hash as a function of block-aligned prefixes, or None where it shows none.

    A chain hash knows no namespaces: prefixes in one have no key that could be told from outside.
    """
    chain_hash = implementation.chain_hash
    if chain_hash is None:
        return None
    prefixes, size = state.prefixes, state.world.block_size
    known: dict[int, int | None] = {}
    key_after = answered_key(chain_hash)

    def key_of(prefix: int) -> int | None:
        if prefix not in known:
            before, tokens = prefixes.tail(prefix, size)
            first = prefixes.parents[before] == EMPTY
            parent = None if first else key_of(before)
            foreign = prefixes.tokens[before] != "" if first else parent is None
            known[prefix] = None if foreign else key_after(tokens, parent)  # type: ignore[arg-type]
        return known[prefix]

    return key_of
