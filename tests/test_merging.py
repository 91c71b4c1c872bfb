"""Merging, where it is declared: a table may take a findable block that holds the same in the place of its own."""

from dataclasses import replace

import pytest

from kvspec.spec import operations as op
from kvspec.spec.declaration import Covers, Declaration, Publish
from kvspec.spec.state import State

from .test_judge import admit, broken, commit, play, start

MERGING = Declaration("merging", covers=Covers.RESERVED, publish=Publish.RESERVE, same_step_hit=True, merges=True)
PLAIN = replace(MERGING, merges=False)


def decoding(declaration: Declaration) -> State:
    """A = 1 2 is live in block 0; B = 1, in block 1, has just sampled 2."""
    return play(
        start(declaration=declaration),
        admit("A", (1, 2), 0, 0),
        commit("A", 0),
        admit("B", (1,), 0, 1),
        commit("B", 1),
        (op.Append("B", 2), op.Appended()),
    )


def test_the_last_block_of_a_prompt_may_be_merged() -> None:
    """The prompt is cached as a whole; its last block is computed again, in the block that holds it."""
    state = play(start(declaration=MERGING), admit("A", (1, 2), 0, 0), commit("A", 0), admit("B", (1, 2), 0, 0))
    assert state.ledger.references[0] == 2
    state = play(state, commit("B", 0), (op.Release("A"), op.Released()))
    assert state.ledger.references[0] == 1


def test_not_where_it_is_not_declared() -> None:
    state = play(start(declaration=PLAIN), admit("A", (1, 2), 0, 0), commit("A", 0))
    assert broken(state, *admit("B", (1, 2), 0, 0)) == "FRESH"
    assert broken(decoding(PLAIN), op.Reserve("B", 1), op.Reserved((0,))) == "STABLE"


def test_a_block_that_decoding_fills_may_be_merged() -> None:
    state = play(decoding(MERGING), (op.Reserve("B", 1), op.Reserved((0,))))
    assert (state.ledger.references[0], state.ledger.references[1]) == (2, 0)
    play(state, commit("B", 0), (op.Append("B", 9), op.Appended()), (op.Reserve("B", 1), op.Reserved((0, 2))))


@pytest.mark.parametrize("tokens", [(1, 3), (3, 2)])
def test_only_with_the_same_prefix(tokens: tuple[int, ...]) -> None:
    state = play(
        start(declaration=MERGING),
        admit("A", tokens, 0, 0),
        commit("A", 0),
        admit("B", (1,), 0, 1),
        commit("B", 1),
        (op.Append("B", 2), op.Appended()),
    )
    assert broken(state, op.Reserve("B", 1), op.Reserved((0,))) == "STABLE"
    assert broken(state, *admit("C", (1, 2), 0, 0)) == "FRESH"


def test_what_is_older_than_a_reset_is_not_merged() -> None:
    state = play(
        start(declaration=MERGING),
        admit("A", (1, 2), 0, 0),
        commit("A", 0),
        (op.Release("A"), op.Released()),
        (op.Reset(), op.WasReset()),
    )
    state = play(state, admit("B", (1,), 0, 1), commit("B", 1), (op.Append("B", 2), op.Appended()))
    assert broken(state, op.Reserve("B", 1), op.Reserved((0,))) == "RESET"
    play(state, (op.Reserve("B", 1), op.Reserved((1,))))


def test_a_block_that_is_not_full_is_not_merged() -> None:
    state = play(start(declaration=MERGING), admit("A", (1,), 0, 0), commit("A", 0))
    assert broken(state, *admit("B", (1,), 0, 0)) == "FRESH"


def test_what_was_computed_must_be_in_the_new_block_when_the_step_ends() -> None:
    """A is admitted and aborted before its forward pass: its block is findable, and holds nothing."""
    hasty = replace(MERGING, release_in_flight=True)
    state = play(
        start(declaration=hasty),
        admit("B", (1,), 0, 1),
        commit("B", 1),
        (op.Append("B", 2), op.Appended()),
        admit("A", (1, 2), 0, 0),
        (op.Release("A", op.Cause.ABORTED), op.Released()),
        (op.Reserve("B", 1), op.Reserved((0,))),
    )
    assert broken(state, *commit("B", 0)) == "CONTENT"
