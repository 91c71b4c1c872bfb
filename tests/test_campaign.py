"""Campaigns decide by seed alone, find what is planted, shrink it, and do not let one fault hide another."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from kvspec.conformance.campaign import run_campaign
from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.generator import Generator
from kvspec.conformance.lockstep import Lockstep
from kvspec.conformance.program import others_muted, run
from kvspec.conformance.shrink import shrink
from kvspec.conformance.state_machine import run_machine
from kvspec.impl.adapter import Implementation
from kvspec.impl.known_bad.bases.named import Layout
from kvspec.impl.loader import load
from kvspec.impl.model_adapter import MODEL, ModelAdapter
from kvspec.spec import operations as op
from kvspec.spec.clauses import CLAUSES
from kvspec.spec.declaration import Declaration
from kvspec.spec.state import World

SURVIVABLE = frozenset(slug for slug, clause in CLAUSES.items() if clause.survivable)


class Liar(ModelAdapter):
    """Two faults: it claims one cached block too many when it can, and refuses every third admission."""

    asked = 0

    def admit(self, *request: Any) -> op.Outcome:
        self.asked += 1
        if self.asked % 3 == 0:
            return op.Refused()
        outcome = super().admit(*request)
        size = self.model.world.block_size
        if isinstance(outcome, op.Admitted) and outcome.reserved > size:
            return op.Admitted(outcome.cached + size, outcome.reserved - size, outcome.table)
        return outcome


LIAR = Implementation("liar", MODEL.declaration, Liar, chain_hash=MODEL.chain_hash)


@pytest.mark.parametrize("name", CONTEXTS)
def test_everything_worth_seeing_happens(name: str) -> None:
    target = (
        MODEL if CONTEXTS[name].model else load("extended")
    )  # it offers every extension, and has no order of blocks
    assert not CONTEXTS[name].possible(target.declaration)
    counts = run_campaign(target, CONTEXTS[name], seed=1, programs=300).counts
    assert all(counts[what] > 0 for what in ("hits", "free_hits", "recycles", "refusals", "preemptions")), counts


def test_the_seed_decides() -> None:
    first, again, other = (run_campaign(MODEL, CONTEXTS["chunked"], seed, 60).counts for seed in (1, 1, 2))
    assert first == again != other


def test_one_fault_does_not_hide_the_other() -> None:
    assert {"CONTENT", "NO-MEANS-NO"} <= run_campaign(LIAR, CONTEXTS["steps"], seed=3, programs=300).found.keys()


def test_shrinking_keeps_the_clause_and_ends_with_the_breach() -> None:
    found = run_campaign(LIAR, CONTEXTS["steps"], seed=3, programs=300).found
    for clause in ("CONTENT", "NO-MEANS-NO"):
        short = shrink(LIAR, found[clause])
        lockstep, violation = run(LIAR, short.program, short.muted)
        assert violation == short.violation
        assert violation.clause == clause
        assert len(lockstep.operations) == len(short.program.operations)


def test_shrinking_reaches_the_shortest_programs() -> None:
    found = run_campaign(LIAR, CONTEXTS["steps"], seed=3, programs=300).found
    assert len(shrink(LIAR, found["CONTENT"]).program.operations) == 1
    assert len(shrink(LIAR, found["NO-MEANS-NO"]).program.operations) == 3  # the third admission is refused


def test_shrinking_stays_in_the_declared_block_sizes() -> None:
    coarse = replace(LIAR, declaration=replace(MODEL.declaration, smallest_block_size=2))
    found = run_campaign(coarse, CONTEXTS["steps"], seed=3, programs=300).found
    assert shrink(coarse, found["NO-MEANS-NO"]).program.world.block_size == 2


def test_hypothesis_finds_and_shrinks() -> None:
    found = run_machine(LIAR, CONTEXTS["steps"], number=1, examples=200, muted=SURVIVABLE)
    assert found
    assert found.violation.clause == "CONTENT"
    assert len(found.program.operations) <= 2
    assert run_machine(MODEL, CONTEXTS["chunked"], number=1, examples=50, muted=SURVIVABLE) is None


def test_muting_is_per_clause() -> None:
    assert "TWIN" not in others_muted("TWIN")
    assert "FIFO" in others_muted("TWIN")
    assert "CONTENT" not in others_muted("TWIN")


def test_contexts_say_why_they_cannot_be_tried() -> None:
    early = Declaration("early", same_step_hit=True)
    assert "committed as a whole" in str(CONTEXTS["model"].possible(replace(early, nano_vllm_order=True)))
    assert "no namespaces" in str(CONTEXTS["namespace"].possible(early))
    assert CONTEXTS["steps"].possible(early) is None


def test_parts_are_planned_and_steps_are_whole_where_hits_inside_a_step_are_declared() -> None:
    lockstep = Lockstep(Layout.implementation(), World(4, 2), SURVIVABLE)
    generator = Generator(Random("parts"), CONTEXTS["chunked"], lockstep.state)
    parts = together = 0
    for _ in range(300):
        operation = generator.next()
        parts += isinstance(operation, op.Admit) and operation.limit < len(operation.tokens)
        together += isinstance(operation, op.Commit) and len(operation.sequences) > 1
        assert lockstep.step(operation) is None  # it raises Illegal if only a part of a step is committed
    assert parts > 5
    assert together > 2
