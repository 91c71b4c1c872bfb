"""The judge rules right: for each clause a transition that keeps it and one that breaks it, nothing else changed."""

import pytest

from kvspec.spec import operations as op
from kvspec.spec.clauses import CLAUSES
from kvspec.spec.declaration import Covers, Declaration, FullHit, Publish
from kvspec.spec.judge import Illegal, Violation, begin, judge
from kvspec.spec.state import Snapshot, State, World

KNOWN = Declaration("test", covers=Covers.KNOWN)
LIMIT = 99


def play(state: State, *pairs: tuple) -> State:
    """Play (operation, outcome[, snapshot]) and demand that each is right."""
    for pair in pairs:
        state = judge(state, *pair)
        assert isinstance(state, State), state
    return state


def broken(state: State, *pair: object) -> str:
    """The clause that a transition breaks."""
    violation = judge(state, *pair)  # type: ignore[arg-type]
    assert isinstance(violation, Violation), "nothing was broken"
    return violation.clause


def admit(name: str, tokens: tuple[int, ...], cached: int, *table: int) -> tuple[op.Admit, op.Admitted]:
    return op.Admit(name, tokens, LIMIT), op.Admitted(cached, len(tokens) - cached, table)


def commit(name: str, *table: int) -> tuple[op.Commit, op.Committed]:
    return op.Commit((name,)), op.Committed((table,))


def start(blocks: int = 4, size: int = 2, declaration: Declaration = KNOWN) -> State:
    return begin(World(blocks, size), declaration)


@pytest.fixture
def computed() -> State:
    """A = 1 2 3 is live and computed in blocks 0 and 1."""
    return play(start(), admit("A", (1, 2, 3), 0, 0, 1), commit("A", 0, 1))


def test_judge_leaves_the_given_state_alone(computed: State) -> None:
    judge(computed, op.Append("A", 4), op.Appended())
    assert computed.sequences["A"].tokens == [1, 2, 3]


def test_hit_on_right_content(computed: State) -> None:
    play(computed, admit("B", (1, 2, 9), 2, 0, 2))


def test_content(computed: State) -> None:
    assert broken(computed, *admit("B", (1, 3, 9), 2, 0, 2)) == "CONTENT"


def test_content_names_the_place(computed: State) -> None:
    violation = judge(computed, *admit("B", (1, 3, 9), 2, 0, 2))
    assert isinstance(violation, Violation)
    assert (violation.sequence, violation.position, violation.block) == ("B", 1, 0)


def test_equal_tokens_of_another_namespace_are_another_prefix(computed: State) -> None:
    other = op.Admit("B", (1, 2, 9), LIMIT, "tenant")
    assert broken(computed, other, op.Admitted(2, 1, (0, 2))) == "CONTENT"


def test_computed_before_the_forward_pass() -> None:
    state = play(start(), admit("A", (1, 2, 3), 0, 0, 1))
    assert broken(state, *admit("B", (1, 2, 9), 2, 0, 2)) == "COMPUTED"


def test_hit_within_a_step_where_declared() -> None:
    early = Declaration("early", covers=Covers.KNOWN, publish=Publish.RESERVE, same_step_hit=True)
    state = play(start(declaration=early), admit("A", (1, 2, 3), 0, 0, 1), admit("B", (1, 2, 9), 2, 0, 2))
    both = op.Commit(("A", "B"))
    play(state, (both, op.Committed(((0, 1), (0, 2)))))
    with pytest.raises(Illegal, match="as a whole"):
        judge(state, *commit("A", 0, 1))


def test_fresh_blocks_must_be_free(computed: State) -> None:
    assert broken(computed, *admit("B", (5, 6), 0, 1)) == "FRESH"
    assert broken(computed, *admit("B", (5, 6, 7), 0, 2, 2)) == "FRESH"


def test_tables_name_blocks_of_the_pool(computed: State) -> None:
    assert broken(computed, *admit("B", (5, 6), 0, 4)) == "ANSWER"
    assert broken(computed, *admit("B", (5, 6), 0, -1)) == "ANSWER"


def test_counts_lie_in_range(computed: State) -> None:
    assert broken(computed, *admit("B", (5, 6), -2, 2)) == "ANSWER"
    assert broken(computed, op.Admit("B", (5, 6), 1), op.Admitted(0, 2, (2,))) == "ANSWER"


def test_covers(computed: State) -> None:
    assert broken(computed, *admit("B", (5, 6, 7), 0, 2)) == "COVERS"
    assert broken(computed, *admit("B", (5, 6), 0, 2, 3)) == "COVERS"


def test_covers_in_decode(computed: State) -> None:
    state = play(
        computed, (op.Append("A", 4), op.Appended()), (op.Reserve("A", 1), op.Reserved((0, 1))), commit("A", 0, 1)
    )
    state = play(state, (op.Append("A", 5), op.Appended()))
    assert broken(state, op.Reserve("A", 1), op.Reserved((0, 1))) == "COVERS"
    play(state, (op.Reserve("A", 1), op.Reserved((0, 1, 2))))


def test_stable(computed: State) -> None:
    state = play(computed, (op.Append("A", 4), op.Appended()))
    assert broken(state, op.Reserve("A", 1), op.Reserved((0, 2))) == "STABLE"


def test_commit_does_not_grow_a_table() -> None:
    state = play(start(), admit("A", (1, 2, 3), 0, 0, 1))
    assert broken(state, *commit("A", 0, 1, 2)) == "STABLE"


def test_progress_and_alignment(computed: State) -> None:
    state = play(
        computed, (op.Append("A", 4), op.Appended()), (op.Reserve("A", 1), op.Reserved((0, 1))), commit("A", 0, 1)
    )
    assert broken(state, *admit("B", (1, 2), 2, 0)) == "PROGRESS"
    assert broken(state, *admit("B", (1, 2, 3, 4, 5), 3, 0, 1, 2)) == "ALIGNED"


def test_last_token_policy_shares_every_block(computed: State) -> None:
    step_back = Declaration("step back", covers=Covers.KNOWN, full_hit=FullHit.LAST_TOKEN)
    state = play(start(declaration=step_back), admit("A", (1, 2), 0, 0), commit("A", 0))
    play(state, admit("B", (1, 2), 1, 0), commit("B", 0))


def test_no_means_no(computed: State) -> None:
    assert broken(computed, op.Admit("B", (5, 6, 7, 8), LIMIT), op.Refused()) == "NO-MEANS-NO"
    play(computed, (op.Admit("B", (5, 6, 7, 8, 9), LIMIT), op.Refused()))


def test_a_hit_on_a_block_in_use_needs_no_room() -> None:
    state = play(start(blocks=3), admit("A", (1, 2, 3), 0, 0, 1), commit("A", 0, 1))
    asked = op.Admit("B", (1, 2, 9), LIMIT)
    assert broken(state, asked, op.Refused()) == "NO-MEANS-NO"
    generous = Declaration("no credit", covers=Covers.KNOWN, credits_shared=False)
    state = play(start(blocks=2, declaration=generous), admit("A", (1, 2), 0, 0), commit("A", 0))
    play(state, (op.Admit("B", (1, 2, 9), LIMIT), op.Refused()))


def test_oversized_is_told_apart(computed: State) -> None:
    asked = op.Admit("B", tuple(range(9)), LIMIT)
    assert broken(computed, asked, op.Refused(op.Reason.NO_SPACE)) == "OVERSIZED"
    play(computed, (asked, op.Refused(op.Reason.TOO_LARGE)))
    fits = op.Admit("B", (5, 6, 7, 8, 9), LIMIT)
    assert broken(computed, fits, op.Refused(op.Reason.TOO_LARGE)) == "OVERSIZED"
    assert broken(computed, asked, op.Failed("ValueError: no", promised=True, clear=True)) == "YES-MEANS-YES"
    play(computed, (asked, op.Failed("ValueError: 9 tokens need 5 blocks", clear=True)))
    assert broken(computed, asked, op.Failed("IndexError: pop from an empty deque")) == "TOTAL"


def test_exceptions(computed: State) -> None:
    assert broken(computed, op.Append("A", 4), op.Failed("KeyError: 4")) == "TOTAL"
    assert broken(computed, op.Admit("B", (5,), LIMIT), op.Failed("IndexError", promised=True)) == "YES-MEANS-YES"
    assert broken(computed, op.Append("A", 4), op.Nonsense("the answer was 'yes'")) == "ANSWER"


def test_lost_hit_has_three_names() -> None:
    alone = play(start(blocks=6), admit("A", (1, 2, 3), 0, 0, 1), commit("A", 0, 1))
    assert broken(alone, *admit("B", (1, 2, 9), 0, 2, 3)) == "NO-LOST-HIT"
    gone = play(alone, (op.Release("A"), op.Released()))
    assert broken(gone, *admit("B", (1, 2, 9), 0, 2, 3)) == "SURVIVES-RELEASE"
    twins = play(start(blocks=6), admit("A", (1, 2, 3), 0, 0, 1), admit("B", (1, 2, 3), 0, 2, 3))
    twins = play(twins, commit("A", 0, 1), commit("B", 2, 3))
    assert broken(twins, *admit("C", (1, 2, 9), 0, 4, 5)) == "TWIN"


def test_a_recycled_block_is_not_missed() -> None:
    state = play(start(blocks=2), admit("A", (1, 2, 3), 0, 0, 1), commit("A", 0, 1), (op.Release("A"), op.Released()))
    state = play(state, admit("B", (5, 6, 7), 0, 1, 0), commit("B", 1, 0), (op.Release("B"), op.Released()))
    play(state, admit("C", (1, 2, 9), 0, 0, 1))


def test_order() -> None:
    state = play(start(blocks=5), admit("A", (1, 2, 3), 0, 0, 1), admit("B", (4, 5, 6), 0, 2, 3))
    state = play(
        state, commit("A", 0, 1), commit("B", 2, 3), (op.Release("A"), op.Released()), (op.Release("B"), op.Released())
    )
    assert broken(state, *admit("C", (7, 8), 0, 1)) == "FIFO"
    state = play(state, admit("D", (7,), 0, 4))
    assert broken(state, *admit("C", (7, 8), 0, 0)) == "TAIL-FIRST"
    play(state, admit("C", (7, 8, 9), 0, 1, 0))


def test_release_twice_is_harmless(computed: State) -> None:
    shown = Snapshot(free=(2, 3, 1, 0), references=(0, 0, 0, 0))
    state = play(computed, (op.Release("A"), op.Released(), shown), (op.Release("A"), op.Released(), shown))
    again = Snapshot(free=(2, 3, 1, 0, 1), references=(0, -1, 0, 0))
    assert broken(state, op.Release("A"), op.Released(), again) == "RELEASE"


def test_release_and_leak(computed: State) -> None:
    assert (
        broken(computed, op.Release("A"), op.Released(), Snapshot((2, 3, 1, 0), references=(0, 1, 0, 0))) == "RELEASE"
    )
    assert broken(computed, op.Release("A"), op.Released(), Snapshot(free=(2, 3, 1))) == "NO-LEAK"


@pytest.mark.parametrize(
    ("shown", "clause"),
    [
        (Snapshot(free=(2, 3, 2)), "PARTITION"),
        (Snapshot(free=(2,)), "PARTITION"),
        (Snapshot(free=(1, 2, 3)), "PARTITION"),
        (Snapshot(free=(2, 3, 9)), "PARTITION"),
        (Snapshot(free=(2, 3), used=(0, 1, 2)), "PARTITION"),
        (Snapshot(references=(1, 2, 0, 0)), "REFCOUNT"),
        (Snapshot(index=tuple((key, 0) for key in range(5))), "INDEX-BOUNDED"),
        (Snapshot(index=((77, 0),), hashes=(78, None, None, None)), "INDEX-MATCH"),
        (Snapshot(index=((77, 9),), hashes=(77, None, None, None)), "INDEX-MATCH"),
        (Snapshot(index=((77, 0),), hashes=(77,) + (None,) * 3, contents=((2, 1), (), (), ())), "INDEX-TOKENS"),
    ],
)
def test_snapshots(computed: State, shown: Snapshot, clause: str) -> None:
    assert broken(computed, op.Append("A", 4), op.Appended(), shown) == clause


def test_index_chain(computed: State) -> None:
    computed.key_of = lambda prefix: 77
    shown = Snapshot(index=((77, 0),))
    state = play(computed, (op.Append("A", 4), op.Appended(), shown))
    assert broken(state, op.Reserve("A", 1), op.Reserved((0, 1)), Snapshot(index=((78, 0),))) == "INDEX-CHAIN"
    assert broken(state, op.Reserve("A", 1), op.Reserved((0, 1)), Snapshot(index=((77, 1),))) == "INDEX-CHAIN"


def test_a_good_snapshot_passes(computed: State) -> None:
    shown = Snapshot((2, 3), (0, 1), None, (1, 1, 0, 0), (77, None, None, None), ((1, 2), (), (), ()), ((77, 0),))
    play(computed, (op.Append("A", 4), op.Appended(), shown))


def test_refusal_changes_nothing(computed: State) -> None:
    state = play(computed, (op.Append("A", 4), op.Appended(), Snapshot(free=(2, 3))))
    asked = op.Admit("B", (5, 6, 7, 8, 9), LIMIT)
    assert broken(state, asked, op.Refused(), Snapshot(free=(3, 2))) == "ATOMIC"


def test_clobber() -> None:
    """Two sequences are led to write one slot: B's claim is let pass by a muted judge, as a blind one would."""
    state = play(start(), admit("A", (1, 2, 3), 0, 0, 1), commit("A", 0, 1))
    state.muted = frozenset(CLAUSES) - {"NO-CLOBBER"}
    state = play(state, admit("B", (5, 6), 0, 0))
    assert broken(state, *commit("B", 0)) == "NO-CLOBBER"


@pytest.mark.parametrize(
    "operation",
    [
        op.Admit("A", (1,), LIMIT),
        op.Admit("B", (), LIMIT),
        op.Reserve("A", 1),
        op.Reserve("X", 1),
        op.Commit(("A",)),
        op.Commit(()),
        op.Release("X"),
        op.Append("X", 1),
    ],
)
def test_what_no_scheduler_may_ask_for(computed: State, operation: op.Operation) -> None:
    with pytest.raises(Illegal):
        judge(computed, operation, op.Released())


def test_unfinished_sequences_sample_nothing() -> None:
    state = play(start(), (op.Admit("A", (1, 2, 3), 2), op.Admitted(0, 2, (0, 1))), commit("A", 0, 1))
    with pytest.raises(Illegal, match="sampled only when all"):
        judge(state, op.Append("A", 4), op.Appended())


def test_a_null_block_may_be_counted_as_used_and_never_as_free() -> None:
    state = start(blocks=3, declaration=Declaration("null", unusable=frozenset({0})))
    for used in ((1, 2), (0, 1, 2)):
        play(state, (*admit("A", (1, 2, 3), 0, 1, 2), Snapshot(free=(3,), used=used)))
    assert broken(state, *admit("A", (1, 2, 3), 0, 1, 2), Snapshot(free=(0, 3))) == "PARTITION"
    assert broken(state, *admit("A", (1, 2, 3), 0, 1, 2), Snapshot(free=(3,), used=(0, 1, 2, 3))) == "PARTITION"
