"""The same operations as a Hypothesis state machine: seeds, shrinking and extension as its users know them.

One call of the judge a step; the first violation raises ``Broken``.
"""

from typing import Any

from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from kvspec.conformance.contexts import Context
from kvspec.conformance.lockstep import NONE_MUTED, Lockstep
from kvspec.conformance.program import Counterexample, Program
from kvspec.conformance.time_limit import alarm_installed
from kvspec.impl.adapter import Implementation
from kvspec.spec import operations as op
from kvspec.spec.judge import illegal
from kvspec.spec.state import World

NAMES = ("A", "B", "C")
LIMIT = 1 << 20


class Broken(AssertionError):
    """A clause is broken; `counterexample` is the program so far."""

    def __init__(self, counterexample: Counterexample) -> None:
        violation = counterexample.violation
        super().__init__(f"{violation.clause}: {violation.because}")
        self.counterexample = counterexample


class BlockManagerMachine(RuleBasedStateMachine):
    """Subclass it, or use ``machine_for``; `implementation`, `context` and `muted` are class attributes."""

    implementation: Implementation
    context: Context
    muted: frozenset[str] = NONE_MUTED

    @initialize(blocks=st.integers(2, 6), block_size=st.integers(1, 3))
    def make(self, blocks: int, block_size: int) -> None:
        """A fresh manager in a small world."""
        declaration = self.implementation.declaration
        least = 1 if self.context.one else max(2, declaration.smallest_block_size)
        size = 1 if self.context.one else min(max(block_size, least), declaration.largest_block_size)
        world = World(blocks, size, self.context.weak_hash)
        self.by_steps = self.context.by_steps(declaration)
        self.lockstep = Lockstep(self.implementation, world, self.muted, with_model=self.context.model)

    def perform(self, operation: op.Operation) -> None:
        """Perform one operation if a scheduler may ask for it."""
        if illegal(self.lockstep.state, operation):
            return
        if violation := self.lockstep.step(operation):
            program = Program(self.lockstep.world, tuple(self.lockstep.operations))
            raise Broken(Counterexample(program, violation, self.context.name, self.muted))

    def flying(self) -> list[str]:
        """Sequences with a reservation that is not committed."""
        return [name for name, s in self.lockstep.state.sequences.items() if s.reserved or s.unread]

    def settle(self) -> None:
        """Where a step is committed as a whole: commit what is planned before anything but more planning."""
        if self.by_steps and self.flying():
            self.perform(op.Commit(tuple(self.flying())))

    @rule(
        name=st.sampled_from(NAMES), tokens=st.lists(st.integers(0, 1), min_size=1, max_size=9), limit=st.integers(1, 5)
    )
    def admit(self, name: str, tokens: list[int], limit: int) -> None:
        """A sequence asks in."""
        world = self.lockstep.world
        prompt = tuple(tokens * world.block_size)[: world.blocks * world.block_size]
        self.perform(op.Admit(name, prompt, limit if self.context.free else LIMIT))

    @rule(place=st.integers(0, 2), count=st.integers(1, 3))
    def reserve(self, place: int, count: int) -> None:
        """A live sequence plans its next tokens."""
        if not self.context.free:
            self.settle()
        if name := self._live(place):
            self.perform(op.Reserve(name, count))

    @precondition(lambda self: self.flying())
    @rule(mask=st.integers(1, 7))
    def commit(self, mask: int) -> None:
        """A step, or a part of one, ends."""
        flying = self.flying()
        some = tuple(name for bit, name in enumerate(flying) if mask >> bit & 1)
        self.perform(op.Commit(tuple(flying) if self.by_steps or not some else some))

    @rule(place=st.integers(0, 2), token=st.integers(0, 1))
    def append(self, place: int, token: int) -> None:
        """A live sequence samples a token."""
        self.settle()
        if name := self._live(place):
            self.perform(op.Append(name, token))

    @rule(place=st.integers(0, 2), cause=st.sampled_from(op.Cause))
    def release(self, place: int, cause: op.Cause) -> None:
        """A live sequence goes."""
        self.settle()
        if name := self._live(place):
            self.perform(op.Release(name, cause))

    def _live(self, place: int) -> str | None:
        live = list(self.lockstep.state.sequences)
        return live[place % len(live)] if live else None


class ExtensionMachine(BlockManagerMachine):
    """The same with the operations of the extensions that the context draws."""

    @precondition(lambda self: not {"extend", "draft"}.isdisjoint(self.context.draws))
    @rule(place=st.integers(0, 2), tokens=st.lists(st.integers(0, 1), min_size=1, max_size=4))
    def join(self, place: int, tokens: list[int]) -> None:
        """Several tokens, or drafts, join a live sequence."""
        self.settle()
        if name := self._live(place):
            self.perform(op.Extend(name, tuple(tokens), "draft" in self.context.draws))

    @precondition(lambda self: "truncate" in self.context.draws)
    @rule(place=st.integers(0, 2), rejected=st.integers(0, 4))
    def truncate(self, place: int, rejected: int) -> None:
        """Some drafts of a live sequence are rejected."""
        self.settle()
        if name := self._live(place):
            self.perform(op.Truncate(name, len(self.lockstep.state.sequences[name].tokens) - rejected))

    @precondition(lambda self: "reset" in self.context.draws)
    @rule()
    def reset(self) -> None:
        """The cache is to be emptied."""
        self.perform(op.Reset())

    @precondition(lambda self: "probe" in self.context.draws)
    @rule(name=st.sampled_from(NAMES), tokens=st.lists(st.integers(0, 1), min_size=1, max_size=9))
    def probe_and_admit(self, name: str, tokens: list[int]) -> None:
        """A question, and the admission that was asked about."""
        self.settle()
        self.perform(op.Probe(tuple(tokens), LIMIT))
        self.perform(op.Admit(name, tuple(tokens), LIMIT))

    @precondition(lambda self: "retain" in self.context.draws)
    @rule(place=st.integers(0, 2), owner=st.sampled_from(("K", "L")))
    def retain(self, place: int, owner: str) -> None:
        """An owner outside keeps what a live sequence has computed."""
        if name := self._live(place):
            self.perform(op.Retain(name, owner))

    @precondition(lambda self: "drop" in self.context.draws)
    @rule(owner=st.sampled_from(("K", "L")))
    def drop(self, owner: str) -> None:
        """An owner lets go."""
        self.perform(op.Drop(owner))


def machine_for(implementation: Implementation, context: Context, muted: frozenset[str]) -> type[BlockManagerMachine]:
    """A state machine class that drives `implementation`; `muted` clauses are noted only."""
    bound: dict[str, Any] = {"implementation": implementation, "context": context, "muted": muted}
    machine = ExtensionMachine if context.draws else BlockManagerMachine
    return type("BoundMachine", (machine,), bound)


def run_machine(
    implementation: Implementation,
    context: Context,
    number: int,
    examples: int,
    muted: frozenset[str] = NONE_MUTED,
) -> Counterexample | None:
    """Run the machine with seed `number`; the shrunk counterexample, or None."""
    machine = seed(number)(machine_for(implementation, context, muted))
    chosen = settings(
        max_examples=examples,
        stateful_step_count=40,
        deadline=None,
        database=None,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    try:
        with alarm_installed():
            run_state_machine_as_test(machine, settings=chosen)
    except Broken as broken:
        return broken.counterexample
    return None
