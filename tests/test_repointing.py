"""What caches that are radix trees do: repoint a table to an equal block, evict early, keep what was sampled at the end."""

from dataclasses import replace

import pytest

from kvspec.conformance.campaign import run_campaign
from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.explorer.search import explore, undeclared
from kvspec.conformance.explorer.world import SmallWorld
from kvspec.conformance.program import Program, run
from kvspec.impl.adapter import Implementation
from kvspec.impl.known_bad.bases.deduplicating import Deduplicating
from kvspec.impl.known_bad.bases.eager import Eager
from kvspec.impl.known_bad.bases.live import Live
from kvspec.impl.known_bad.notation import read
from kvspec.impl.known_bad.registry import direct
from kvspec.spec import operations as op
from kvspec.spec.declaration import Declaration, Publish
from kvspec.spec.judge import Violation, advance, begin
from kvspec.spec.state import Snapshot, State, World
from tests.plain_explorer import explore_plainly

DECLARATION = Declaration("tree", repoints=True)
TWINS = (op.Admit("A", (0, 1, 0), 9), op.Admit("B", (0, 1, 1), 9))
GIVEN = (op.Admitted(0, 3, (0, 1)), op.Admitted(0, 3, (2, 3)))


def state_after(declaration: Declaration, *steps: tuple[op.Operation, op.Outcome]) -> State:
    state = begin(World(6, 2), declaration)
    state.muted = frozenset({"FIFO", "TAIL-FIRST"})
    for operation, outcome in steps:
        assert advance(state, operation, outcome) is None
    return state


def committed(declaration: Declaration, first: tuple[int, ...], second: tuple[int, ...]) -> State | Violation:
    """Two sequences with an equal first block are committed, and answered with these tables."""
    state = state_after(declaration, *zip(TWINS, GIVEN, strict=True))
    return advance(state, op.Commit(("A", "B")), op.Committed((first, second))) or state


def test_an_entry_may_name_an_equal_block_after_a_commit() -> None:
    state = committed(DECLARATION, (0, 1), (0, 3))
    assert isinstance(state, State)
    assert state.sequences["B"].table == (0, 3)
    assert state.ledger.references[0] == 2
    assert 2 in state.freed
    assert not state.ledger.used[2]
    assert (state.ledger.table["B"][1], state.ledger.references[3], state.ledger.computed["B"]) == (3, 1, 1)


@pytest.mark.parametrize(
    ("first", "second", "clause"),
    [
        ((0, 1), (1, 3), "CONTENT"),  # a block that is not full, and not its own
        ((0, 1), (4, 3), "CONTENT"),  # a block that nobody computed
        ((0, 1), (99, 3), "CONTENT"),  # no block at all
        ((0, 1), (2, 1), "STABLE"),  # the entry that is not full yet
        ((0, 1), (2,), "STABLE"),
        ((0, 1), (2, 3, 4), "STABLE"),
    ],
)
def test_everything_else_stays(first: tuple[int, ...], second: tuple[int, ...], clause: str) -> None:
    found = committed(DECLARATION, first, second)
    assert isinstance(found, Violation)
    assert found.clause == clause


def test_no_entry_names_what_is_older_than_a_reset() -> None:
    old, new = op.Admit("A", (0, 1, 0), 9), op.Admit("B", (0, 1, 1), 9)
    state = state_after(DECLARATION, (old, op.Admitted(0, 3, (0, 1))), (op.Commit(("A",)), op.Committed(((0, 1),))))
    steps = ((op.Release("A"), op.Released()), (op.Reset(), op.WasReset()), (new, op.Admitted(0, 3, (2, 3))))
    for operation, outcome in steps:
        assert advance(state, operation, outcome) is None
    found = advance(state, op.Commit(("B",)), op.Committed(((0, 3),)))
    assert isinstance(found, Violation)
    assert found.clause == "RESET"


def test_who_does_not_declare_it_repoints_nothing() -> None:
    found = committed(Declaration("tree"), (0, 1), (0, 3))
    assert isinstance(found, Violation)
    assert found.clause == "STABLE"


def test_the_block_that_was_let_go_can_be_taken_anew() -> None:
    state = committed(DECLARATION, (0, 1), (0, 3))
    assert isinstance(state, State)
    assert advance(state, op.Admit("C", (1, 1), 9), op.Admitted(0, 2, (2,))) is None
    assert advance(state, op.Release("A"), op.Released()) is None
    assert state.ledger.references[0] == 1
    assert advance(state, op.Commit(("C",)), op.Committed(((2,),))) is None
    found = advance(state, op.Admit("D", (0, 1, 0, 0), 9), op.Admitted(2, 2, (2, 4)))
    assert isinstance(found, Violation)
    assert found.clause == "CONTENT"


def test_what_was_let_go_need_not_be_found() -> None:
    """The copy that is kept must be, though."""
    state = committed(DECLARATION, (0, 1), (0, 3))
    assert isinstance(state, State)
    for name in ("A", "B"):
        assert advance(state, op.Release(name), op.Released()) is None
    missed = advance(state, op.Admit("D", (0, 1, 0), 9), op.Admitted(0, 3, (4, 5)))
    assert isinstance(missed, Violation)
    assert missed.clause == "SURVIVES-RELEASE"


def test_sampled_blocks_must_be_found_only_when_their_sequence_has_finished() -> None:
    declaration = Declaration("tree", publish=Publish.PROMPT, profiles=frozenset({"pool", "prefix", "reuse"}))
    sampled = (
        (op.Admit("A", (0, 1, 0), 9), op.Admitted(0, 3, (0, 1))),
        (op.Commit(("A",)), op.Committed(((0, 1),))),
        (op.Append("A", 1), op.Appended()),
        (op.Reserve("A", 1), op.Reserved((0, 1))),
        (op.Commit(("A",)), op.Committed(((0, 1),))),
    )
    again, short = op.Admit("B", (0, 1, 0, 1, 0), 9), op.Admitted(2, 3, (0, 2, 3))
    for cause, clause in ((op.Cause.PREEMPTED, None), (op.Cause.FINISHED, "SURVIVES-RELEASE")):
        state = state_after(declaration, *sampled, (op.Release("A", cause), op.Released()))
        found = advance(state, again, short)
        assert (found and found.clause) == clause
    state = state_after(declaration, *sampled)
    missed = advance(state, again, op.Admitted(0, 5, (2, 3, 4)))
    assert missed is not None
    assert missed.clause == "NO-LOST-HIT"


EVICTING = Declaration("tree", evicts_early=True)
CACHED = Snapshot(free=(2, 3, 4, 5), owned=(0, 1))


@pytest.mark.parametrize(
    ("shown", "clause"),
    [
        (Snapshot(free=(0, 1, 2, 3, 4, 5), owned=()), None),
        (Snapshot(free=(0, 2, 3, 4, 5), owned=(1,)), None),
        (Snapshot(free=(0, 2, 3, 4, 5), owned=()), "ATOMIC"),  # one of the two is nowhere
        (Snapshot(free=(2, 3, 4), owned=(0, 1, 5)), "ATOMIC"),  # what was free is cached
    ],
)
def test_a_refusal_may_empty_the_cache_and_nothing_more(shown: Snapshot, clause: str | None) -> None:
    state = state_after(replace(EVICTING, withheld=9), (op.Admit("A", (0, 1, 0, 1), 9), op.Admitted(0, 4, (0, 1))))
    for operation, outcome in ((op.Commit(("A",)), op.Committed(((0, 1),))), (op.Release("A"), op.Released())):
        assert advance(state, operation, outcome, CACHED) is None
    found = advance(state, op.Admit("B", (1, 1), 9), op.Refused(), shown)
    assert (found and found.clause) == clause


@pytest.mark.parametrize(
    ("asked", "answer", "clause"),
    [
        (op.Probe((1, 1), 9), op.Probed(0, True), "PROBE"),
        (op.Reset(), op.Refused(op.Reason.IN_USE), "RESET"),
        (op.Release("A"), op.Released(), "RELEASE"),
    ],
)
def test_who_asks_for_no_room_empties_no_cache(asked: op.Operation, answer: op.Outcome, clause: str) -> None:
    state = state_after(EVICTING, (op.Admit("A", (0, 1, 0, 1), 9), op.Admitted(0, 4, (0, 1))))
    assert advance(state, op.Commit(("A",)), op.Committed(((0, 1),)), CACHED) is None
    assert advance(state, op.Release("A"), op.Released(), CACHED) is None
    assert advance(state, op.Admit("B", (1,), 9), op.Admitted(0, 1, (2,)), replace(CACHED, free=(3, 4, 5))) is None
    found = advance(state, asked, answer, Snapshot(free=(0, 1, 3, 4, 5), owned=()))
    assert found is not None
    assert found.clause == clause


def test_blocks_that_are_given_up_early_need_not_be_found() -> None:
    for declaration, clause in ((EVICTING, None), (Declaration("tree"), "SURVIVES-RELEASE")):
        state = state_after(declaration, (op.Admit("A", (0, 1, 0, 1), 9), op.Admitted(0, 4, (0, 1))))
        assert advance(state, op.Commit(("A",)), op.Committed(((0, 1),)), CACHED) is None
        assert advance(state, op.Release("A"), op.Released(), CACHED) is None
        emptied = Snapshot(free=(0, 1, 3, 4, 5), owned=())
        assert advance(state, op.Admit("B", (1,), 9), op.Admitted(0, 1, (2,)), emptied) is None
        found = advance(state, op.Admit("C", (0, 1, 0), 9), op.Admitted(0, 3, (3, 4)))
        assert (found and found.clause) == clause


def test_the_known_fault_of_a_table_that_was_not_repointed() -> None:
    """Three operations, as mini-sglang's scheduler makes them."""
    example = read("2x2: admit A 01 / admit B 01 / commit A B")

    class Unrepaired(Deduplicating):
        def repoint(self, live: object, entry: int, kept: int) -> None:
            self.drop(live.table[entry])  # type: ignore[attr-defined]

    lockstep, violation = run(direct(Unrepaired), Program(example.world, example.operations))
    assert violation is not None
    assert (violation.clause, len(lockstep.operations)) == ("PARTITION", 3)


BASES = {"deduplicating": direct(Deduplicating), "eager": direct(Eager)}


@pytest.mark.parametrize("name", BASES)
def test_what_is_declared_really_happens(name: str) -> None:
    """Without it, the sound manager is found to violate."""
    base = BASES[name]
    plain = replace(base, declaration=replace(base.declaration, repoints=False, evicts_early=False))
    assert not {"STABLE", "ATOMIC", "SURVIVES-RELEASE"} & run_campaign(base, CONTEXTS["chunked"], 0, 150).found.keys()
    found = {
        clause for context in ("steps", "chunked") for clause in run_campaign(plain, CONTEXTS[context], 0, 150).found
    }
    assert {"STABLE", "ATOMIC", "SURVIVES-RELEASE"} & found


class Shown(Eager):
    """Shows all that it depends on: what can be found, and of equal blocks the first is hit."""

    def publish(self, live: Live, entry: int) -> None:
        super().publish(live, entry)
        self.nodes[live.table[entry]].blocks.sort()  # type: ignore[union-attr]

    def snapshot(self) -> Snapshot:
        index = tuple([(block, block) for block, node in enumerate(self.nodes) if node is not None])
        return replace(super().snapshot(), index=index)


@pytest.mark.parametrize("base", [BASES["deduplicating"], direct(Shown)], ids=["deduplicating", "eager"])
@pytest.mark.parametrize("world", [SmallWorld(3, 1, 2, 1, 2, partial_commits=True), SmallWorld(2, 2, 2, 1, 3)])
def test_the_explorer_does_not_forget_what_the_cache_showed(base: Implementation, world: SmallWorld) -> None:
    """It remembers rulings; a plain explorer judges each transition anew."""
    muted = undeclared(base.declaration)
    certificate = explore(base, world, muted=muted).certificate
    levels, transitions, found = explore_plainly(base, world, muted)
    assert (levels, transitions, found) == (certificate.levels, certificate.transitions, [])
