"""What the adapters of all nano-vllm shapes share: keeping sequences, decode or not, tables, copies."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kvspec.impl.nano_vllm.answers import Answered, ask, block_table, whole_number, yes_or_no
from kvspec.impl.nano_vllm.copying import copier
from kvspec.impl.nano_vllm.sequences import MakeSequence
from kvspec.impl.nano_vllm.sight import Sight
from kvspec.spec import operations as op
from kvspec.spec.state import Snapshot


@dataclass(frozen=True, slots=True)
class Plan:
    """What does not change during a run: how to make sequences, where to look, how the calls are spelled.

    `grow`: makes room for the last token.  `publish`: ends a forward pass.  `asks_with_sequence`: whether
    ``can_append`` takes the sequence (the first nano-vllm did not).
    """

    make: MakeSequence
    sight: Sight
    block_size: int
    grow: str = "may_append"
    publish: str = "hash_blocks"
    asks_with_sequence: bool = True


class Held:
    """One sequence object and how far it is.  `sampled`: its last token was sampled and has no K/V yet."""

    __slots__ = ("computed", "live", "planned", "preempted", "sampled", "sequence")

    def __init__(self, sequence: Any) -> None:
        self.sequence = sequence
        self.computed = 0
        self.planned = 0
        self.sampled = False
        self.live = False
        self.preempted = False

    def copy(self, sequence: Any) -> "Held":
        """The same progress with another sequence object."""
        new = object.__new__(Held)
        new.sequence, new.live, new.preempted = sequence, self.live, self.preempted
        new.computed, new.planned, new.sampled = self.computed, self.planned, self.sampled
        return new


class NanoAdapter:
    """The five operations in terms of a few hooks; subclasses translate them into the calls of one shape.

    A preempted sequence that asks in again with the same tokens is the same object, as in an engine.  A name that was
    never admitted stands for a sequence that the manager has never seen.
    """

    table_attribute = "block_table"
    tokens_attribute = "token_ids"

    def __init__(self, manager: Any, plan: Plan) -> None:
        self.manager = manager
        self._plan = plan
        self._held: dict[str, Held] = {}

    # Operations ------------------------------------------------------------------------------------------------

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        """Ask, allocate, plan.  There are no namespaces in this shape: `namespace` is ignored."""
        try:
            held = self._asking_in(sequence, tokens)
            planned = self._admit(held.sequence, len(tokens), limit)
            cached = self._cached(held.sequence, len(tokens))
            held.computed = cached
            self._schedule(held, min(limit, len(tokens) - cached) if planned is None else planned)
            held.live, held.sampled, held.preempted = True, False, False
            self._held[sequence] = held
            return op.Admitted(cached, held.planned, self._table("allocate", held))
        except Answered as early:
            return early.outcome

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        """Plan `count` tokens; a sampled token needs room first, the rest of a prompt has it since admission."""
        try:
            held = self._known(sequence)
            self._make_room(held, count)
            self._schedule(held, count)
            return op.Reserved(self._table(self._plan.grow, held))
        except Answered as early:
            return early.outcome

    def commit(self, sequences: tuple[str, ...]) -> op.Outcome:
        """The forward pass has ended for each of these sequences, in this order."""
        try:
            return op.Committed(tuple([self._committed(self._known(name)) for name in sequences]))
        except Answered as early:
            return early.outcome

    def append(self, sequence: str, token: int) -> op.Outcome:
        """A sampled token joins the sequence object."""
        try:
            held = self._known(sequence)
            self._append(held.sequence, token)
            held.sampled = True
            return op.Appended()
        except Answered as early:
            return early.outcome

    def release(self, sequence: str, cause: str) -> op.Outcome:
        """Deallocate, again too if asked again: the sequence object is kept, its table is empty by then."""
        try:
            held = self._known(sequence)
            ask("deallocate", self.manager.deallocate, held.sequence)
            self._schedule(held, 0)
            held.computed, held.sampled, held.live = 0, False, False
            held.preempted = cause == op.Cause.PREEMPTED
            self._released(held.sequence)
            return op.Released()
        except Answered as early:
            return early.outcome

    def snapshot(self) -> Snapshot:
        """What the manager shows through its usual attributes."""
        return self._plan.sight.snapshot(self.manager)

    @property
    def fingerprint(self) -> Callable[[], Any]:
        """The manager's own ``fingerprint``: what it is, beyond what it shows.  Raises AttributeError if it has none."""
        return self.manager.fingerprint  # type: ignore[no-any-return]

    def copy(self) -> "NanoAdapter":
        """An independent adapter with an independent manager and sequences in the same state."""
        return self.copier()()

    def copier(self) -> "Callable[[], NanoAdapter]":
        """What makes such copies, as long as this adapter stays in its state."""
        held = list(self._held.items())
        copies = copier(self.manager, [each.sequence for _, each in held])
        cls, plan = type(self), self._plan

        def copy() -> "NanoAdapter":
            new = object.__new__(cls)
            new._plan = plan
            new.manager, sequences = copies()
            new._held = {name: each.copy(s) for (name, each), s in zip(held, sequences, strict=True)}
            return new

        return copy

    def __deepcopy__(self, memo: dict[int, Any]) -> "NanoAdapter":
        return self.copy()

    # Hooks -----------------------------------------------------------------------------------------------------

    def _admit(self, sequence: Any, length: int, limit: int) -> int | None:
        """Ask and allocate; the number of tokens planned if the manager was told one.  Raises Answered."""
        raise NotImplementedError

    def _make_room(self, held: Held, count: int) -> None:
        """Room for the K/V of the next `count` tokens, unless admission made it.  Raises Answered."""
        if held.live and not held.sampled:
            return
        arguments = (held.sequence,) if self._plan.asks_with_sequence else ()
        answer = ask("can_append", self.manager.can_append, *arguments)
        if not yes_or_no("can_append", answer):
            raise Answered(op.Refused())
        ask(self._plan.grow, getattr(self.manager, self._plan.grow), held.sequence, promised=True)

    def _publish(self, held: Held) -> None:
        """What the engine does when the forward pass of a sequence has ended.  Raises Answered."""

    def _append(self, sequence: Any, token: int) -> None:
        ask("append_token", sequence.append_token, token)

    def _released(self, sequence: Any) -> None:
        """What the engine does to a sequence that was released."""

    def _schedule(self, held: Held, count: int) -> None:
        """`count` tokens are planned: note it where the manager may read it."""
        held.planned = count
        if hasattr(held.sequence, "num_scheduled_tokens"):
            held.sequence.num_scheduled_tokens = count

    # Shared ----------------------------------------------------------------------------------------------------

    def _asking_in(self, name: str, tokens: tuple[int, ...]) -> Held:
        held = self._held.get(name)
        if held is not None and (held.live or (held.preempted and self._has_tokens(held.sequence, tokens))):
            return held
        return Held(ask("the constructor of the sequence", self._plan.make, list(tokens)))

    def _has_tokens(self, sequence: Any, tokens: tuple[int, ...]) -> bool:
        return tuple(getattr(sequence, self.tokens_attribute, ())) == tokens

    def _known(self, name: str) -> Held:
        held = self._held.get(name)
        return held if held is not None else Held(ask("the constructor of the sequence", self._plan.make, [0]))

    def _committed(self, held: Held) -> tuple[int, ...]:
        self._publish(held)
        held.computed += held.planned
        held.sampled = False
        self._schedule(held, 0)
        return self._table(self._plan.publish, held)

    def _cached(self, sequence: Any, length: int) -> int:
        return whole_number(
            "num_cached_tokens after allocate", sequence.num_cached_tokens, 0, length, "the cached tokens"
        )

    def _table(self, call: str, held: Held) -> tuple[int, ...]:
        return block_table(f"the block table after {call}", getattr(held.sequence, self.table_attribute))

    def _allowed(self, call: str, *arguments: Any) -> None:
        """Ask a yes-or-no question about admission.  Raises Answered(Refused) on no."""
        if not yes_or_no(call, ask(call, getattr(self.manager, call), *arguments)):
            raise Answered(op.Refused())


def numbers(call: str, answer: Any, count: int, most: int) -> Iterable[int]:
    """An answer that is a tuple of `count` whole numbers from 0 to `most`.  Raises Answered(Nonsense)."""
    if not isinstance(answer, tuple | list) or len(answer) != count:
        raise Answered(op.Nonsense(f"{call} gave {answer!r:.80}; expected {count} numbers"))
    return [whole_number(call, value, 0, most, "a number of tokens") for value in answer]
