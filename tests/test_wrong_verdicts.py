"""Managers that once got a wrong verdict, or a traceback of ours: each stays here with the answer it must get."""

import sys
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from kvspec.conformance import time_limit
from kvspec.conformance.campaign import ENOUGH_HANGS, run_campaign
from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.explorer import SmallWorld
from kvspec.conformance.explorer.search import explore
from kvspec.conformance.lockstep import CannotCreate, Lockstep
from kvspec.conformance.program import Program, run
from kvspec.conformance.robustness import check_robust
from kvspec.conformance.shrink import shrink
from kvspec.impl.adapter import Implementation
from kvspec.impl.model_adapter import MODEL, ModelAdapter
from kvspec.spec import operations as op
from kvspec.spec.declaration import Publish
from kvspec.spec.state import Snapshot, World

WORLD = World(3, 2)
ADMIT = op.Admit("A", (0, 1, 0), 99)


def changed(**methods: Any) -> Implementation:
    """The model with some methods replaced."""
    adapter = type("Changed", (ModelAdapter,), methods)
    return Implementation("changed", MODEL.declaration, adapter, chain_hash=MODEL.chain_hash)


def verdict(implementation: Implementation, *operations: op.Operation) -> tuple[str, str] | None:
    _, violation = run(implementation, Program(WORLD, operations))
    return (violation.clause, violation.because) if violation else None


def later(show: Callable[[ModelAdapter], Any]) -> Callable[[ModelAdapter], Any]:
    """Show junk, but not at once: a fresh manager looks right."""

    def snapshot(self: ModelAdapter) -> Any:
        return show(self) if self.model.sequences else ModelAdapter.snapshot(self)

    return snapshot


def but(**fields: Any) -> Callable[[ModelAdapter], Snapshot]:
    return lambda self: replace(ModelAdapter.snapshot(self), **fields)


JUNK = {
    "too few counts": but(references=(1,)),
    "too many counts": but(references=(1, 1, 0, 0)),
    "no blocks": but(free=(None, "a")),
    "lists": but(free=([1], [2])),
    "a number": but(free=5),
    "half pairs": but(index=((1, 2, 3),)),
    "no numbers": but(index=(("key", "block"),)),
    "unhashable keys": but(index=(([1], 0),)),
    "a dictionary": lambda self: {"free": [1]},
    "nothing readable": lambda self: sys.exit(4),
}


@pytest.mark.parametrize("show", JUNK.values(), ids=JUNK)
def test_a_junk_snapshot_is_a_finding(show: Callable[[ModelAdapter], Any]) -> None:
    found = verdict(changed(snapshot=later(show)), ADMIT)
    assert found
    assert found[0] == "ANSWER"
    assert found[1].startswith("its state cannot be read: ")


@pytest.mark.parametrize("show", JUNK.values(), ids=JUNK)
def test_junk_of_a_fresh_manager_is_a_clear_error(show: Callable[[ModelAdapter], Any]) -> None:
    with pytest.raises(CannotCreate, match="the state of a fresh manager of 3 blocks of 2 cannot be read: "):
        Lockstep(changed(snapshot=show), WORLD)


def test_a_snapshot_that_hangs_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(self: ModelAdapter) -> None:
        while True:
            pass

    monkeypatch.setattr(time_limit, "DEFAULT_SECONDS", 0.05)
    found = verdict(changed(snapshot=later(hang)), ADMIT)
    assert found == ("ANSWER", "its state cannot be read: snapshot() does not return")


def test_a_chain_hash_that_raises_is_a_finding() -> None:
    def broken(tokens: tuple[int, ...], prefix: int | None) -> int:
        raise RuntimeError("out of order")

    found = verdict(replace(MODEL, chain_hash=broken), op.Admit("A", (0, 1), 99), op.Commit(("A",)))
    assert found
    assert found[0] == "INDEX-CHAIN"
    assert found[1].endswith("the key of its prefix [0, 1] is not known, because RuntimeError: out of order")


def test_a_refused_prompt_that_never_fits_is_told_with_its_size() -> None:
    def admit(self: ModelAdapter, *asked: Any) -> op.Outcome:
        outcome = ModelAdapter.admit(self, *asked)
        return op.Refused(op.Reason.NO_SPACE) if isinstance(outcome, op.Refused) else outcome

    found = check_robust(changed(admit=admit))["OVERSIZED"]
    assert found
    assert found.because.startswith("a prompt of 7 tokens in 3 blocks of 2: ")


def test_a_manager_of_nothing_that_shows_something_was_made() -> None:
    found = check_robust(changed(__init__=lambda self, world: ModelAdapter.__init__(self, WORLD)))["BAD-POOL"]
    assert found
    assert "a manager was made" in found.because


class Unreadable(BaseException):
    """An exception that is not even an Exception, and raises when it is printed."""

    def __str__(self) -> str:
        raise ValueError

    __repr__ = __str__


@pytest.mark.parametrize("error", [GeneratorExit(), Unreadable()])
def test_odd_exceptions_are_outcomes(error: BaseException) -> None:
    def admit(*request: object) -> None:
        raise error

    found = verdict(changed(admit=admit), ADMIT)
    assert found
    assert found[0] == "TOTAL"


def test_an_answer_that_cannot_be_shown_is_nonsense() -> None:
    found = verdict(changed(admit=lambda *request: Unreadable()), ADMIT)
    assert found == ("ANSWER", "the answer was Unreadable, which cannot be shown")


def test_a_manager_that_exits_is_not_made() -> None:
    with pytest.raises(CannotCreate, match="SystemExit: 3"):
        Lockstep(changed(__init__=lambda self, world: sys.exit(3)), WORLD)


class Clocked(ModelAdapter):
    """Right, but it counts calls: no two of its states are ever equal."""

    calls = 0

    def admit(self, *request: Any) -> op.Outcome:
        self.calls += 1
        return super().admit(*request)

    def copy(self) -> "Clocked":
        other = Clocked.__new__(Clocked)
        other.model, other.calls = self.model, self.calls
        return other

    def snapshot(self) -> Snapshot:
        return replace(super().snapshot(), index=None)


def test_a_small_world_without_end_is_given_up() -> None:
    clocked = Implementation("clocked", MODEL.declaration, Clocked)
    found = explore(clocked, SmallWorld(2, 2, 2, 1, 4), limit_states=1500)
    assert (found.counterexample, found.certificate.exhausted) == (None, False)
    assert found.certificate.stopped == "limit of 1,500 states"


def test_a_manager_that_hangs_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    hung = []

    def hang(*request: object) -> None:
        hung.append(request)
        while True:
            pass

    monkeypatch.setattr(time_limit, "DEFAULT_SECONDS", 0.2)
    hanging = changed(append=hang)
    found = run_campaign(hanging, CONTEXTS["steps"], seed=0, programs=400)
    assert (len(hung), list(found.found)) == (ENOUGH_HANGS, ["TOTAL"])
    assert shrink(hanging, found.found["TOTAL"]).violation.clause == "TOTAL"
    assert len(hung) < 20


class Moody(ModelAdapter):
    """Refuses now and then, whatever it is asked."""

    moods = Random(0)

    def admit(self, *request: Any) -> op.Outcome:
        return op.Refused() if self.moods.random() < 0.05 else super().admit(*request)


def test_a_breach_that_cannot_be_repeated_is_kept_as_it_is() -> None:
    moody = Implementation("moody", MODEL.declaration, Moody, chain_hash=MODEL.chain_hash)
    found = run_campaign(moody, CONTEXTS["steps"], seed=0, programs=60).found["NO-MEANS-NO"]
    for _ in range(20):
        assert shrink(moody, found).violation.clause == "NO-MEANS-NO"


def test_bad_requests_to_a_manager_that_admits_nobody() -> None:
    found = check_robust(changed(admit=lambda *request: op.Refused()))["REPEATED"]
    assert found
    assert found.because.startswith("it cannot be tried: of a fresh manager admit of A was answered with Refused")


class Early(ModelAdapter):
    """Publishes at admission, claims that a sequence may go at any time, and does not withdraw what it published."""

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        outcome = super().admit(sequence, tokens, limit, namespace)
        if isinstance(outcome, op.Admitted):
            before = self.model.sequences[sequence]
            super().commit((sequence,))
            self.model = replace(self.model, sequences={**self.model.sequences, sequence: before})
        return outcome

    def snapshot(self) -> Snapshot:
        return Snapshot()


def test_a_hit_on_what_was_withdrawn_within_the_step_is_found() -> None:
    declared = replace(MODEL.declaration, publish=Publish.RESERVE, same_step_hit=True)
    honest = Implementation("early", replace(declared, release_in_flight=False), Early)
    assert not run_campaign(honest, CONTEXTS["steps"], seed=0, programs=150).found.keys() & {"CONTENT"}
    found = run_campaign(replace(honest, declaration=declared), CONTEXTS["steps"], seed=0, programs=150).found
    assert "CONTENT" in found
