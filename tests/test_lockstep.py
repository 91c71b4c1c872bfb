"""Whatever an implementation does, it becomes one outcome: exceptions, hangs, exits and nonsense included."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from kvspec.conformance import time_limit
from kvspec.conformance.lockstep import CannotCreate, Lockstep
from kvspec.conformance.program import Program, run
from kvspec.impl.adapter import Implementation
from kvspec.impl.model_adapter import MODEL, ModelAdapter
from kvspec.spec import operations as op
from kvspec.spec.state import World

WORLD = World(3, 2)
ADMIT = op.Admit("A", (0, 1, 0), 99)


def implementation(**methods: Callable[..., Any]) -> Implementation:
    """The model with some methods replaced."""
    adapter = type("Changed", (ModelAdapter,), methods)
    return Implementation("changed", MODEL.declaration, adapter, chain_hash=MODEL.chain_hash)


def verdict(changed: Implementation, *operations: op.Operation) -> str | None:
    """The clause that a program breaks."""
    _, violation = run(changed, Program(WORLD, operations))
    return violation.clause if violation else None


def raising(error: BaseException) -> Callable[..., Any]:
    def method(*arguments: object) -> None:
        raise error

    return method


def test_the_model_itself_is_right() -> None:
    assert verdict(MODEL, ADMIT, op.Commit(("A",)), op.Append("A", 1), op.Release("A"), op.Release("A")) is None


@pytest.mark.parametrize("error", [IndexError("pop from an empty deque"), SystemExit(3), AssertionError()])
def test_exceptions_are_outcomes(error: BaseException) -> None:
    assert verdict(implementation(append=raising(error)), ADMIT, op.Commit(("A",)), op.Append("A", 1)) == "TOTAL"


def test_a_keyboard_interrupt_is_not_swallowed() -> None:
    with pytest.raises(KeyboardInterrupt):
        verdict(implementation(admit=raising(KeyboardInterrupt())), ADMIT)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "yes",
        op.Released(),
        op.Admitted("2", 1, (0, 1)),  # type: ignore[arg-type]
        op.Admitted(0, 3, [0, 1]),  # type: ignore[arg-type]
        op.Admitted(0, 3, (0, "1")),  # type: ignore[arg-type]
        op.Admitted(0, 3.0, (0, 1)),  # type: ignore[arg-type]
        op.Admitted(-1, 3, (0, 1)),
        op.Admitted(0, 3, (0, 10**30)),
        op.Admitted(True, 2, (0, 1)),
    ],
)
def test_nonsense_is_an_answer_of_its_own(answer: object) -> None:
    assert verdict(implementation(admit=lambda *arguments: answer), ADMIT) == "ANSWER"


def test_a_commit_answers_for_every_sequence() -> None:
    assert verdict(implementation(commit=lambda *arguments: op.Committed(())), ADMIT, op.Commit(("A",))) == "ANSWER"


def test_a_hang_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "DEFAULT_SECONDS", 0.5)

    def hang(*arguments: object) -> None:
        while True:
            try:
                time.sleep(10)
            except Exception:  # a manager that swallows everything must not live for ever
                continue

    _, violation = run(implementation(admit=hang), Program(WORLD, (ADMIT,)))
    assert violation
    assert (violation.clause, "no answer within" in violation.because) == ("TOTAL", True)


def test_a_state_that_cannot_be_read_is_nonsense() -> None:
    changed = implementation(commit=lambda self, names: setattr(self, "model", None) or op.Committed(((0, 1),)))
    assert verdict(changed, ADMIT, op.Commit(("A",))) == "ANSWER"


def test_a_manager_that_cannot_be_made() -> None:
    def refuse(self: object, world: World) -> None:
        raise RuntimeError("no GPU")

    with pytest.raises(CannotCreate, match=r"changed makes no manager of 3 blocks of 2: RuntimeError: no GPU"):
        Lockstep(implementation(__init__=refuse), WORLD)


def test_counts_say_what_happened() -> None:
    operations = (ADMIT, op.Commit(("A",)), op.Release("A", op.Cause.PREEMPTED), op.Admit("B", (0, 1, 1), 99))
    lockstep, violation = run(MODEL, Program(WORLD, operations))
    assert violation is None
    assert lockstep.counts["free_hits"] == lockstep.counts["hits"] == lockstep.counts["preemptions"] == 1


def test_the_model_is_compared_block_for_block() -> None:
    def last_free_first(self: ModelAdapter, *request: Any) -> op.Outcome:
        from dataclasses import replace

        self.model = replace(self.model, free=self.model.free[::-1])
        return ModelAdapter.admit(self, *request)

    changed = implementation(admit=last_free_first)
    assert verdict(changed, ADMIT) is None
    _, violation = run(changed, Program(WORLD, (ADMIT,)), with_model=True)
    assert violation
    assert violation.clause == "NANO-ORDER"
