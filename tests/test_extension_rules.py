"""The judge rules right on extensions: for each clause a transition that keeps it and one that breaks it."""

from dataclasses import replace

import pytest

from kvspec.spec import operations as op
from kvspec.spec.clauses import CLAUSES
from kvspec.spec.declaration import Covers, Declaration, Publish
from kvspec.spec.judge import Illegal, begin, illegal, judge
from kvspec.spec.namespaces import AXES, parse, spell
from kvspec.spec.state import Snapshot, State, World

from .test_judge import admit, broken, commit, play

KNOWN = Declaration("test", covers=Covers.KNOWN)
AT_ONCE = replace(KNOWN, publish_at_truncate=True)


def start(blocks: int = 6, size: int = 2, declaration: Declaration = KNOWN) -> State:
    return begin(World(blocks, size), declaration)


def extend(name: str, *tokens: int) -> tuple[op.Extend, op.Extended]:
    return op.Extend(name, tokens), op.Extended()


def draft(name: str, *tokens: int) -> tuple[op.Extend, op.Extended]:
    return op.Extend(name, tokens, drafts=True), op.Extended()


def reserve(name: str, count: int, *table: int) -> tuple[op.Reserve, op.Reserved]:
    return op.Reserve(name, count), op.Reserved(table)


def truncate(name: str, length: int, computed: int, *table: int) -> tuple[op.Truncate, op.Truncated]:
    return op.Truncate(name, length), op.Truncated(computed, table)


def release(name: str) -> tuple[op.Release, op.Released]:
    return op.Release(name), op.Released()


def may_not(state: State, operation: op.Operation, why: str) -> None:
    assert why in (illegal(state, operation) or "")
    with pytest.raises(Illegal):
        judge(state, operation, op.Nonsense("never looked at"))


def computed(declaration: Declaration = KNOWN, blocks: int = 6) -> State:
    """A = 1 2 3 is live and computed in blocks 0 and 1."""
    return play(start(blocks, declaration=declaration), admit("A", (1, 2, 3), 0, 0, 1), commit("A", 0, 1))


def drafted(declaration: Declaration = KNOWN) -> State:
    """A = 1 2 3, then the drafts 4 5 6 in the rest of block 1 and in block 2; all computed."""
    state = play(computed(declaration), draft("A", 4, 5, 6), reserve("A", 3, 0, 1, 2))
    return play(state, commit("A", 0, 1, 2))


# --- several ----------------------------------------------------------------------------------------------------------


def test_several_tokens_are_computed_and_found() -> None:
    state = play(computed(), extend("A", 4, 5, 6), reserve("A", 3, 0, 1, 2), commit("A", 0, 1, 2))
    assert state.sequences["A"].computed == 6
    play(state, admit("B", (1, 2, 3, 4, 5, 6, 7), 6, 0, 1, 2, 3))
    assert broken(state, *admit("B", (1, 2, 3, 4, 5, 7, 7), 6, 0, 1, 2, 3)) == "CONTENT"
    assert broken(state, *admit("B", (1, 2, 3, 4, 5, 6, 7), 4, 0, 1, 3, 4)) == "NO-LOST-HIT"


def test_room_for_several_tokens() -> None:
    state = play(computed(), extend("A", 4, 5, 6))
    assert broken(state, *reserve("A", 3, 0, 1)) == "COVERS"
    assert broken(state, *reserve("A", 1, 0, 1)) == "COVERS", "all known tokens are covered, as is declared"
    assert broken(state, *reserve("A", 3, 0, 1, 2, 3)) == "COVERS"
    assert broken(state, op.Reserve("A", 3), op.Refused()) == "NO-MEANS-NO"
    planned = replace(KNOWN, covers=Covers.RESERVED)
    state = play(computed(planned), extend("A", 4, 5, 6))
    play(state, reserve("A", 1, 0, 1), commit("A", 0, 1), reserve("A", 2, 0, 1, 2))
    assert broken(state, *reserve("A", 1, 0, 1, 2)) == "COVERS"


def test_a_refusal_counts_what_all_known_tokens_need() -> None:
    full = play(computed(blocks=2), extend("A", 4, 5))
    play(full, (op.Reserve("A", 1), op.Refused()))
    planned = play(computed(replace(KNOWN, covers=Covers.RESERVED), blocks=2), extend("A", 4, 5))
    assert broken(planned, op.Reserve("A", 1), op.Refused()) == "NO-MEANS-NO"
    play(planned, (op.Reserve("A", 2), op.Refused()))


def test_when_tokens_may_join() -> None:
    state = play(computed(), extend("A", 4, 5))
    may_not(state, op.Extend("A", (6,)), "when all others are computed")
    may_not(state, op.Extend("B", (6,)), "not live")
    may_not(state, op.Extend("A", ()), "no token")
    may_not(play(state, reserve("A", 2, 0, 1, 2)), op.Extend("A", (6,)), "in flight")
    with pytest.raises(Illegal):
        judge(state, op.Append("A", 6), op.Appended())


# --- drafts -----------------------------------------------------------------------------------------------------------


def test_draft_tokens_are_not_found() -> None:
    state = drafted()
    assert broken(state, *admit("B", (1, 2, 3, 4, 9), 4, 0, 1, 3)) == "DRAFT-HIDDEN"
    play(state, admit("B", (1, 2, 3, 4, 9), 2, 0, 3, 4))
    assert broken(state, *release("A"), Snapshot(index=((77, 1),))) == "DRAFT-HIDDEN"
    play(state, (*release("A"), Snapshot(index=((77, 0),))))


def test_abandoned_drafts_are_never_found() -> None:
    state = play(drafted(), release("A"))
    assert broken(state, *admit("B", (1, 2, 3, 4, 9), 4, 0, 1, 3)) == "DRAFT-HIDDEN"
    state = play(state, admit("B", (1, 2, 3, 4, 9), 2, 0, 3, 4), admit("C", (7,) * 5, 0, 5, 2, 1), commit("C", 5, 2, 1))
    play(state, commit("B", 0, 3, 4), (*release("B"), Snapshot(index=((77, 0), (78, 2)))))


def test_a_draft_may_follow_one_sampled_token() -> None:
    state = play(computed(), (op.Append("A", 4), op.Appended()), draft("A", 5), reserve("A", 2, 0, 1, 2))
    state = play(state, commit("A", 0, 1, 2))
    play(state, admit("B", (1, 2, 3, 4, 9), 4, 0, 1, 3))  # the sampled token is none
    may_not(play(computed(), extend("A", 4, 5)), op.Extend("A", (6,), drafts=True), "drafts follow the last one")


def test_what_may_be_asked_of_a_sequence_with_drafts() -> None:
    state = drafted()
    may_not(state, op.Append("A", 9), "no guess")
    may_not(state, op.Extend("A", (9,)), "draft tokens")
    may_not(state, op.Extend("A", (9,), drafts=True), "draft tokens")
    may_not(state, op.Truncate("A", 2), "only draft tokens")
    may_not(state, op.Truncate("A", 7), "only draft tokens")
    may_not(computed(), op.Truncate("A", 3), "no draft tokens")
    may_not(play(computed(), draft("A", 4), reserve("A", 1, 0, 1)), op.Truncate("A", 3), "in flight")


# --- truncate ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "tables"), [(3, [(0, 1), (0, 1, 2)]), (5, [(0, 1, 2)]), (6, [(0, 1, 2)])])
def test_what_a_truncate_may_do(length: int, tables: list[tuple[int, ...]]) -> None:
    for table in tables:
        state = play(drafted(), truncate("A", length, length, *table))
        assert len(state.sequences["A"].tokens) == state.sequences["A"].computed == length
    assert broken(drafted(), *truncate("A", length, length, *tables[0][:-1])) == "TRUNCATED"
    assert broken(drafted(), *truncate("A", length, length, *tables[0][:-1], 5)) == "TRUNCATED"
    assert broken(drafted(), *truncate("A", length, length, 0, 1, 2, 3)) == "TRUNCATED"
    assert broken(drafted(), *truncate("A", length, length - 1, *tables[0])) == "TRUNCATED"
    assert broken(drafted(), op.Truncate("A", length), op.Refused()) == "ANSWER"
    assert broken(drafted(), op.Truncate("A", length), op.Failed("KeyError: 1")) == "TOTAL"


def test_rejected_tokens_do_not_count_as_computed() -> None:
    assert broken(drafted(), *truncate("A", 4, 6, 0, 1)) == "TRUNCATED"
    assert broken(drafted(), *truncate("A", 4, 3, 0, 1)) == "TRUNCATED"


def test_drafts_that_were_never_computed() -> None:
    state = play(computed(), draft("A", 4, 5, 6))
    assert broken(state, *truncate("A", 5, 5, 0, 1)) == "TRUNCATED"
    state = play(state, truncate("A", 5, 3, 0, 1))
    play(state, reserve("A", 2, 0, 1, 2), commit("A", 0, 1, 2), (op.Append("A", 7), op.Appended()))


def test_rejected_tokens_are_not_found() -> None:
    state = play(drafted(AT_ONCE), truncate("A", 3, 3, 0, 1, 2))
    assert broken(state, *admit("B", (1, 2, 3, 4, 9), 4, 0, 1, 3)) == "TRUNCATED"
    assert broken(state, *release("A"), Snapshot(index=((77, 1),))) == "TRUNCATED"
    assert broken(state, *release("A"), Snapshot(index=((77, 2),))) == "TRUNCATED"
    state = play(state, release("A"))
    assert broken(state, *admit("B", (1, 2, 3, 4, 9), 4, 0, 1, 3)) == "TRUNCATED"


def test_what_follows_a_rejected_token_is_found_under_its_own_name() -> None:
    state = play(drafted(), truncate("A", 3, 3, 0, 1), (op.Append("A", 9), op.Appended()), reserve("A", 1, 0, 1))
    state = play(state, commit("A", 0, 1))
    play(state, admit("B", (1, 2, 3, 9, 9), 4, 0, 1, 3))
    assert broken(state, *admit("B", (1, 2, 3, 4, 9), 4, 0, 1, 3)) == "CONTENT"
    assert broken(state, *admit("B", (1, 2, 3, 9, 9), 2, 0, 3, 4)) == "NO-LOST-HIT"


def test_blocks_of_rejected_tokens_are_free() -> None:
    state = play(drafted(), truncate("A", 3, 3, 0, 1))
    play(state, admit("B", (7,) * 7, 0, 3, 4, 5, 2))
    kept = play(drafted(), truncate("A", 3, 3, 0, 1, 2))
    assert broken(kept, *admit("B", (7, 7), 0, 2)) == "FRESH"
    shown = Snapshot(free=(3, 4, 5), references=(1, 1, 1, 0, 0, 0))
    assert broken(drafted(), *truncate("A", 3, 3, 0, 1), shown) == "PARTITION"
    assert broken(drafted(), *truncate("A", 3, 3, 0, 1), replace(shown, free=None)) == "REFCOUNT"


def test_confirmed_tokens_are_found_at_once_where_declared() -> None:
    state = play(drafted(AT_ONCE), truncate("A", 5, 5, 0, 1, 2))
    play(state, admit("B", (1, 2, 3, 4, 9), 4, 0, 1, 3))
    assert broken(state, *admit("B", (1, 2, 3, 4, 9), 2, 0, 3, 4)) == "NO-LOST-HIT"
    assert broken(state, *admit("B", (1, 2, 3, 4, 5, 6, 7), 6, 0, 1, 2, 3)) == "TRUNCATED"


def test_confirmed_tokens_are_found_with_the_next_ones_elsewhere() -> None:
    state = play(drafted(), truncate("A", 5, 5, 0, 1, 2))
    assert broken(state, *admit("B", (1, 2, 3, 4, 9), 4, 0, 1, 3)) == "DRAFT-HIDDEN"
    play(state, admit("B", (1, 2, 3, 4, 9), 2, 0, 3, 4))
    state = play(state, (op.Append("A", 8), op.Appended()), reserve("A", 1, 0, 1, 2), commit("A", 0, 1, 2))
    play(state, admit("B", (1, 2, 3, 4, 5, 8, 9), 6, 0, 1, 2, 3))
    assert broken(state, *admit("B", (1, 2, 3, 4, 9), 2, 0, 3, 4)) == "NO-LOST-HIT"


def test_confirmed_tokens_of_managers_that_publish_at_reserve_and_at_release() -> None:
    early = play(drafted(replace(KNOWN, publish=Publish.RESERVE)), truncate("A", 5, 5, 0, 1, 2))
    early = play(early, (op.Append("A", 8), op.Appended()), reserve("A", 1, 0, 1, 2))
    play(early, admit("B", (1, 2, 3, 4, 9), 4, 0, 1, 3))
    late = play(drafted(replace(KNOWN, publish=Publish.RELEASE)), truncate("A", 5, 5, 0, 1, 2), release("A"))
    play(late, admit("B", (1, 2, 3, 4, 9), 4, 0, 1, 3))
    assert broken(late, *admit("B", (1, 2, 3, 4, 9), 2, 0, 3, 4)) == "SURVIVES-RELEASE"
    assert broken(late, *admit("B", (1, 2, 3, 4, 5, 6, 7), 6, 0, 1, 2, 3)) == "TRUNCATED"


def test_a_table_that_kept_its_blocks_may_go_on_with_them() -> None:
    state = play(drafted(), truncate("A", 3, 3, 0, 1, 2), (op.Append("A", 9), op.Appended()))
    play(state, reserve("A", 1, 0, 1, 2), commit("A", 0, 1, 2))
    assert broken(state, *reserve("A", 1, 0, 1)) == "STABLE"
    assert broken(state, *reserve("A", 1, 0, 1, 2, 3)) == "COVERS"


def test_the_tail_that_a_truncate_gives_back_is_recycled_in_order() -> None:
    state = play(computed(AT_ONCE), draft("A", 4, 5, 6, 7, 8), reserve("A", 5, 0, 1, 2, 3), commit("A", 0, 1, 2, 3))
    state = play(state, truncate("A", 3, 3, 0, 1), admit("B", (7, 7, 7, 7), 0, 4, 5))
    assert broken(state, *admit("C", (6,), 0, 2)) == "TAIL-FIRST"
    play(state, admit("C", (6,), 0, 3))


def test_a_snapshot_without_the_rejected_tokens_passes() -> None:
    shown = Snapshot(
        (3, 4, 5, 2), (0, 1), None, (1, 1, 0, 0, 0, 0), (77,) + (None,) * 5, ((1, 2),) + ((),) * 5, ((77, 0),)
    )
    play(drafted(), (*truncate("A", 3, 3, 0, 1), shown))


# --- reset ------------------------------------------------------------------------------------------------------------

YES = (op.Reset(), op.WasReset())
NO = (op.Reset(), op.Refused(op.Reason.IN_USE))


def idle(declaration: Declaration = KNOWN) -> State:
    """1 2 3 was computed in blocks 0 and 1, and nobody holds a block."""
    return play(computed(declaration), release("A"))


def test_after_a_reset_nothing_old_is_found() -> None:
    state = play(idle(), YES)
    assert broken(state, *admit("B", (1, 2, 9), 2, 0, 2)) == "RESET"
    state = play(state, admit("B", (1, 2, 9), 0, 0, 1), commit("B", 0, 1))
    play(state, admit("C", (1, 2, 8), 2, 0, 2))
    assert broken(state, *admit("C", (1, 2, 8), 0, 2, 3)) == "NO-LOST-HIT"


def test_after_a_reset_the_index_is_empty() -> None:
    play(idle(), (*YES, Snapshot(index=())))
    assert broken(idle(), *YES, Snapshot(index=((77, 0),))) == "RESET"
    assert broken(idle(), *YES, Snapshot(index=((77, 5),))) == "RESET"
    assert broken(idle(), *YES, Snapshot(free=(0, 1, 2, 3, 4))) == "PARTITION"
    stale = replace(KNOWN, stale_index=True)
    state = play(idle(stale), (*YES, Snapshot(index=((77, 0),))))
    assert broken(state, *admit("B", (1, 2, 9), 2, 0, 2)) == "RESET"


def test_empty_blocks_are_recycled_in_any_order_and_later_ones_in_theirs() -> None:
    state = play(idle(), YES, admit("B", (7, 7), 0, 0), commit("B", 0), release("B"))
    play(state, admit("C", (8,), 0, 3), admit("D", (8,), 0, 1))
    assert broken(state, *admit("C", (8,), 0, 0)) == "FIFO"


def test_a_reset_is_refused_for_use_only() -> None:
    play(computed(), NO)
    assert broken(idle(), *NO) == "RESET"
    assert broken(computed(), op.Reset(), op.Refused()) == "RESET"
    assert broken(computed(), op.Reset(), op.Failed("KeyError: 1")) == "TOTAL"
    kept = play(computed(), retain("A", "K", 0), release("A"))
    play(kept, NO)


def test_a_refused_reset_changes_nothing() -> None:
    before = Snapshot(free=(2, 3, 4, 5), index=((77, 0),))
    state = play(start(), admit("A", (1, 2, 3), 0, 0, 1), (*commit("A", 0, 1), before))
    play(state, (*NO, before))
    assert broken(state, *NO, replace(before, index=())) == "RESET"


def test_a_reset_beside_live_sequences_hides_their_blocks_for_good() -> None:
    state = play(computed(), (*YES, Snapshot(free=(2, 3, 4, 5), references=(1, 1, 0, 0, 0, 0), index=())))
    assert broken(state, *admit("B", (1, 2, 9), 2, 0, 2)) == "RESET"
    assert broken(computed(), *YES, Snapshot(index=((77, 0),))) == "RESET"
    assert broken(computed(), *YES, Snapshot(references=(0,) * 6)) == "REFCOUNT"
    state = play(state, (op.Append("A", 4), op.Appended()), reserve("A", 1, 0, 1), commit("A", 0, 1))
    assert broken(state, *release("A"), Snapshot(index=((77, 1),))) == "RESET"  # computed after it, from what is older
    state = play(state, (op.Append("A", 5), op.Appended()), reserve("A", 1, 0, 1, 2), commit("A", 0, 1, 2))
    play(state, release("A"), admit("B", (1, 2, 9), 0, 3, 4), commit("B", 3, 4), admit("C", (1, 2, 8), 2, 3, 5))


def test_drafts_of_before_a_reset_stay_hidden() -> None:
    state = play(drafted(AT_ONCE), YES, truncate("A", 6, 6, 0, 1, 2))
    assert broken(state, *admit("B", (1, 2, 3, 4, 9), 4, 0, 1, 3)) == "RESET"
    play(state, admit("B", (1, 2, 3, 4, 9), 0, 3, 4, 5))


# --- probe ------------------------------------------------------------------------------------------------------------


def probe(tokens: tuple[int, ...], cached: int, fits: bool = True) -> tuple[op.Probe, op.Probed]:
    return op.Probe(tokens, 99), op.Probed(cached, fits)


def test_the_admission_gets_what_the_probe_said() -> None:
    asked = (1, 2, 9)
    play(computed(), probe(asked, 2), probe(asked, 2), admit("B", asked, 2, 0, 2))
    state = play(computed(), probe(asked, 0))
    assert broken(state, *admit("B", asked, 2, 0, 2)) == "PROBE"
    assert broken(play(computed(), probe(asked, 2, False)), *admit("B", asked, 2, 0, 2)) == "PROBE"
    assert broken(play(computed(), probe(asked, 2)), op.Admit("B", asked, 99), op.Refused()) == "PROBE"
    assert broken(play(computed(), probe(asked, 2)), *probe(asked, 2, False)) == "PROBE"


def test_a_refusal_agrees_with_a_probe_that_said_so() -> None:
    large = (5,) * 10
    play(computed(), probe(large, 0, False), (op.Admit("B", large, 99), op.Refused()))
    assert broken(play(computed(), probe(large, 0)), op.Admit("B", large, 99), op.Refused()) == "PROBE"
    play(
        computed(), probe(large, 2, False), (op.Admit("B", large, 99), op.Refused())
    )  # how much was found, nobody sees


def test_an_error_for_what_never_fits_agrees_with_a_probe_that_said_so() -> None:
    large, error = (5,) * 13, op.Failed("ValueError: never fits", clear=True)
    play(computed(), probe(large, 0, False), (op.Admit("B", large, 99), error))
    assert broken(play(computed(), probe(large, 0)), op.Admit("B", large, 99), error) == "PROBE"
    assert broken(play(computed(), probe(large[1:], 0, False)), op.Admit("B", large[1:], 99), error) == "TOTAL"


def test_a_probe_binds_what_follows_at_once_only() -> None:
    state = play(computed(), probe((1, 2, 9), 0), (op.Append("A", 4), op.Appended()))
    play(state, admit("B", (1, 2, 9), 2, 0, 2))
    play(play(computed(), probe((1, 2, 9), 0)), admit("B", (1, 2, 8), 2, 0, 2))
    other = op.Admit("B", (1, 2, 9), 1)
    play(play(computed(), probe((1, 2, 9), 0)), (other, op.Admitted(2, 1, (0, 2))))


def test_a_probe_changes_nothing() -> None:
    before = Snapshot(free=(2, 3, 4, 5), references=(1, 1, 0, 0, 0, 0))
    state = play(start(), admit("A", (1, 2, 3), 0, 0, 1), (*commit("A", 0, 1), before))
    play(state, (*probe((1, 2, 9), 2), before))
    assert broken(state, *probe((1, 2, 9), 2), replace(before, free=(3, 2, 4, 5))) == "PROBE"
    assert broken(state, *probe((1, 2, 9), 2), replace(before, references=(2, 1, 0, 0, 0, 0))) == "PROBE"
    assert broken(state, *probe((1, 2, 9), 4)) == "ANSWER"
    may_not(state, op.Probe((), 1), "no tokens")
    assert broken(state, op.Probe((1,), 1), op.Refused()) == "ANSWER"


# --- owners -----------------------------------------------------------------------------------------------------------


def retain(name: str, owner: str, *table: int) -> tuple[op.Retain, op.Retained]:
    return op.Retain(name, owner), op.Retained(table)


def drop(owner: str) -> tuple[op.Drop, op.Dropped]:
    return op.Drop(owner), op.Dropped()


def test_what_an_owner_keeps_outlives_the_sequence() -> None:
    state = play(computed(), retain("A", "K", 0), release("A"))
    assert broken(state, *admit("B", (5,) * 11, 0, 2, 3, 4, 5, 1, 0)) == "FRESH"
    state = play(state, admit("B", (5,) * 10, 0, 2, 3, 4, 5, 1))
    assert broken(state, *commit("B", 2, 3, 4, 5, 1), Snapshot(references=(0, 1, 1, 1, 1, 1))) == "REFCOUNT"
    state = play(state, (*commit("B", 2, 3, 4, 5, 1), Snapshot(free=(), references=(1, 1, 1, 1, 1, 1))))
    play(state, drop("K"), admit("C", (6,), 0, 0))


def test_what_an_owner_keeps_is_found_and_needs_no_room() -> None:
    state = play(computed(blocks=2), retain("A", "K", 0), release("A"))
    assert broken(state, op.Admit("B", (1, 2, 9), 99), op.Refused()) == "NO-MEANS-NO"
    play(state, admit("B", (1, 2, 9), 2, 0, 1))
    play(state, (op.Admit("B", (5, 6, 9), 99), op.Refused()))
    assert broken(play(state, drop("K")), op.Admit("B", (5, 6, 9), 99), op.Refused()) == "NO-MEANS-NO"


def test_an_owner_keeps_exactly_the_full_computed_blocks() -> None:
    assert broken(computed(), *retain("A", "K", 0, 1)) == "ANSWER"
    assert broken(computed(), *retain("A", "K")) == "ANSWER"
    assert broken(computed(), *retain("A", "K", 2)) == "ANSWER"
    state = play(computed(), retain("A", "K", 0), retain("A", "L", 0))
    play(state, (op.Append("A", 4), op.Appended(), Snapshot(references=(3, 1, 0, 0, 0, 0))))


def test_an_owner_keeps_confirmed_draft_tokens_that_are_not_published_yet() -> None:
    state = play(drafted(), truncate("A", 6, 6, 0, 1, 2), (op.Retain("A", "K"), op.Retained((0, 1, 2))))
    state = play(state, (op.Append("A", 7), op.Appended()), reserve("A", 1, 0, 1, 2, 3), commit("A", 0, 1, 2, 3))
    play(state, release("A"), admit("B", (1, 2, 3, 4, 5, 6, 9), 6, 0, 1, 2, 4))


def test_an_owner_lets_go_of_its_own_references() -> None:
    state = play(computed(), retain("A", "K", 0))
    play(state, (*drop("K"), Snapshot(free=(2, 3, 4, 5), references=(1, 1, 0, 0, 0, 0))))
    assert broken(state, *drop("K"), Snapshot(references=(2, 1, 0, 0, 0, 0))) == "RELEASE"
    assert broken(state, *drop("K"), Snapshot(free=(2, 3, 4, 5, 0))) == "PARTITION"
    gone = play(state, release("A"))
    assert broken(gone, *drop("K"), Snapshot(free=(2, 3, 4, 5, 1))) == "NO-LEAK"
    play(gone, (*drop("K"), Snapshot(free=(2, 3, 4, 5, 1, 0))))


def test_all_sequences_gone_is_no_leak_while_an_owner_keeps_some() -> None:
    state = play(computed(), retain("A", "K", 0))
    play(state, (*release("A"), Snapshot(free=(2, 3, 4, 5, 1))))
    assert broken(state, *release("A"), Snapshot(free=(2, 3, 4, 5, 1, 0))) == "PARTITION"


def test_nobody_writes_what_an_owner_keeps() -> None:
    """A sequence is led to write a block that is kept: its take is let pass by a muted judge, as a blind one would."""
    state = play(computed(), retain("A", "K", 0), release("A"))
    state.muted = frozenset(CLAUSES) - {"NO-CLOBBER"}
    state = play(state, admit("B", (5, 6), 0, 0))
    assert broken(state, *commit("B", 0)) == "NO-CLOBBER"


def test_when_blocks_may_be_kept_and_let_go() -> None:
    may_not(computed(), op.Retain("B", "K"), "not live")
    may_not(drafted(), op.Retain("A", "K"), "not certain")
    may_not(play(computed(), retain("A", "K", 0)), op.Retain("A", "K"), "the owner keeps some")
    may_not(play(start(), admit("A", (1,), 0, 0), commit("A", 0)), op.Retain("A", "K"), "nothing to keep")
    may_not(computed(), op.Drop("K"), "keeps nothing")


def test_an_owner_is_no_sequence_of_that_name() -> None:
    state = play(computed(), retain("A", "A", 0), release("A"), drop("A"))
    assert not state.owners
    state = play(computed(), retain("A", "B", 0), admit("B", (1, 2, 9), 2, 0, 2), commit("B", 0, 2), release("B"))
    play(state, drop("B"), release("A"))


# --- axes -------------------------------------------------------------------------------------------------------------

WITH_AXES = replace(KNOWN, namespaces=True, namespace_axes=frozenset(AXES))


def admit_in(namespace: str, name: str, tokens: tuple[int, ...], cached: int, *table: int) -> tuple:
    return op.Admit(name, tokens, 99, namespace), op.Admitted(cached, len(tokens) - cached, table)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"salt": "a"}, {"adapter": "a"}),
        ({"salt": "a"}, {}),
        ({"adapter": "a", "salt": "aa"}, {"adapter": "aa", "salt": "a"}),
        ({"adapter": "a"}, {"adapter": "a", "salt": "a"}),
        ({"adapter": "a,salt=b"}, {"adapter": "a", "salt": "b"}),
    ],
)
def test_axes_tell_prefixes_apart_and_those_that_agree_share(one: dict[str, str], other: dict[str, str]) -> None:
    state = play(start(declaration=WITH_AXES), admit_in(spell(one), "A", (1, 2, 3), 0, 0, 1), commit("A", 0, 1))
    assert broken(state, *admit_in(spell(other), "B", (1, 2, 9), 2, 0, 2)) == "CONTENT"
    play(state, admit_in(spell(other), "B", (1, 2, 9), 0, 2, 3))
    play(state, admit_in(spell(one), "B", (1, 2, 9), 2, 0, 2))
    lost = broken(state, *admit_in(spell(one), "B", (1, 2, 9), 0, 2, 3))
    assert lost == ("AXES-AGREE" if one else "NO-LOST-HIT")


def test_what_agrees_must_be_shared_only_while_it_is_in_use() -> None:
    state = play(start(declaration=WITH_AXES), admit_in("salt=a", "A", (1, 2, 3), 0, 0, 1), commit("A", 0, 1))
    assert broken(play(state, release("A")), *admit_in("salt=a", "B", (1, 2, 9), 0, 2, 3)) == "SURVIVES-RELEASE"
    plain = replace(KNOWN, namespaces=True)
    state = play(start(declaration=plain), admit_in("salt=a", "A", (1, 2, 3), 0, 0, 1), commit("A", 0, 1))
    assert broken(state, *admit_in("salt=a", "B", (1, 2, 9), 0, 2, 3)) == "NO-LOST-HIT"


@pytest.mark.parametrize(
    ("axes", "text"),
    [
        ({}, ""),
        ({"salt": ""}, ""),
        ({"salt": "b", "adapter": "a"}, "adapter=a,salt=b"),
        ({"salt": "a=b,c%2C"}, "salt=a%3Db%2Cc%252C"),
        ({"salt": "%3D"}, "salt=%253D"),
    ],
)
def test_namespaces_are_spelled_and_parsed(axes: dict[str, str], text: str) -> None:
    assert spell(axes) == text
    assert parse(text) == {name: value for name, value in axes.items() if value}


@pytest.mark.parametrize("text", ["x", "salt=", "salt=b,adapter=a", "salt=a=b", "salt=a,salt=a", ",", "salt=%"])
def test_what_is_not_spelled_so_is_no_namespace_of_axes(text: str) -> None:
    with pytest.raises(ValueError, match="is not written as axes"):
        parse(text)
