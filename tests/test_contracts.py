"""CrossHair on real managers: what it must refute, what it must leave alone, and what it must not claim."""

import itertools
import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kvspec.conformance.contracts import PLANTED, Budget, ContractResult, refute, refuting
from kvspec.conformance.contracts.injection import CannotBeTried, chain, injected
from kvspec.conformance.contracts.shapes import SHAPES, Shape, chosen
from kvspec.conformance.effort import EFFORTS
from kvspec.conformance.examination import Examination, Options
from kvspec.conformance.lockstep import Lockstep
from kvspec.conformance.program import run
from kvspec.conformance.verdict import ExitCode
from kvspec.impl.adapter import Implementation
from kvspec.impl.block_manager import BlockManager
from kvspec.impl.known_bad import KNOWN_BAD
from kvspec.impl.loader import load
from kvspec.impl.nano_vllm import implementation_of

ROOT = Path(__file__).resolve().parents[1]
SMALL = Budget(paths=20, seconds=60.0)


def tried(implementation: Implementation, budget: Budget = SMALL) -> ContractResult:
    """The search by itself, without planted managers."""
    return refute(implementation, budget, ()).own


# --- what is refuted, and what is not -------------------------------------------------------------------------------


def test_planted_managers_are_refuted_for_their_clause_and_right_ones_are_not() -> None:
    """One run, as ``pytest conformance -k contracts`` makes it: about 7 s of processor time."""
    assert len(PLANTED) >= 12
    found = refute(load("bundled"), Budget(paths=40, seconds=60.0))
    assert found.missed() == []
    assert found.own.sentence == (
        "no counterexample within the budget of 40 paths a shape and 60 s CPU (240 paths over 6 shapes)"
    )
    for slug, result in found.planted.items():
        assert result.refutation is not None
        shown = result.refutation.counterexample
        assert shown.violation.clause == KNOWN_BAD[slug].clause
        assert result.sentence == f"{KNOWN_BAD[slug].clause} is refuted by {result.refutation.call}"
        _, again = run(KNOWN_BAD[slug].implementation(), shown.program, shown.muted)
        assert again == shown.violation


def test_the_hardened_manager_has_no_counterexample_at_any_block_size() -> None:
    result = tried(load("hardened"))
    assert result.sentence.startswith("no counterexample within the budget")
    assert (result.shapes, result.paths) == (7, 140)  # one of them in blocks of one token


def test_the_same_is_found_again() -> None:
    bad = load("known-bad:late-free-hits-are-room")
    first, again = (tried(bad, Budget(paths=60, seconds=120.0)) for _ in range(2))
    assert first.refutation is not None
    assert first.refutation == again.refutation
    assert first.paths == again.paths


def test_a_manager_without_a_chain_hash_is_tried_as_it_is() -> None:
    class Unhashed(BlockManager):
        """Keys are the whole prefixes, which need no hash."""

        compute_hash = None  # type: ignore[assignment]

        def can_allocate(self, seq: Any) -> int:
            return 0 if len(self.free_block_ids) >= seq.num_blocks else -1

        def hash_blocks(self, seq: Any) -> None:
            pass

    found = implementation_of(Unhashed)
    declared = replace(found.declaration, profiles=frozenset({"pool"}), credits_shared=False)
    result = tried(replace(found, declaration=declared))
    assert result.sentence.startswith("no counterexample"), result.sentence


# --- a wrong refutation is not reported -----------------------------------------------------------------------------


def test_what_only_the_injected_hash_shows_is_no_refutation() -> None:
    class WantsLongKeys(BlockManager):
        """Right with its own hash, and offended by the one that is put in its place."""

        def hash_blocks(self, seq: Any) -> None:
            super().hash_blocks(seq)
            if any(key < 1000 for key in self.hash_to_block_id):
                raise ValueError("such a short key")

    result = tried(implementation_of(WantsLongKeys))
    assert result.refutation is None
    assert result.sentence.startswith("cannot be tried: CrossHair does not follow this manager: ")
    assert "such a short key" in result.sentence


def test_what_is_not_seen_again_is_no_refutation() -> None:
    here = os.getpid()

    class RightAtHome(BlockManager):
        """Wrong in every process but the one that it was made in."""

        def can_allocate(self, seq: Any) -> int:
            return super().can_allocate(seq) if os.getpid() == here else -1

    result = tried(implementation_of(RightAtHome))
    assert result.refutation is None
    assert "broke NO-MEANS-NO under CrossHair, and not when it ran again" in result.sentence


def test_undeclared_clauses_are_not_refuted() -> None:
    bad = load("known-bad:late-forward-release")
    modest = replace(bad, declaration=replace(bad.declaration, profiles=frozenset({"pool", "prefix"})))
    assert tried(modest).refutation is None


# --- what cannot be tried -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["model", "known-bad:released-twice"])
def test_other_adapters_are_told_why(target: str) -> None:
    result = tried(load(target))
    assert result.sentence == f"cannot be tried: {target} is not a Python class with the calls of nano-vllm's managers"


def test_compiled_code_is_kept_away() -> None:
    class Numeric(BlockManager):
        """Counts with numpy outside of its hash, which would be replaced."""

        def can_append(self, seq: Any) -> bool:
            return bool(np.int64(len(self.free_block_ids)) >= (len(seq) % self.block_size == 1))

    with pytest.raises(CannotBeTried, match=r"Numeric\.can_append uses numpy"):
        injected(implementation_of(Numeric), 2)
    assert tried(implementation_of(Numeric)).sentence.startswith("cannot be tried: Numeric.can_append uses numpy")


def test_a_call_that_does_not_return_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refuting, "_ROUND_SECONDS", 2.0)

    class Hangs(BlockManager):
        """Waits for ever for a third block."""

        def allocate(self, seq: Any, num_cached_blocks: int) -> None:
            while seq.num_blocks > 2:
                pass
            super().allocate(seq, num_cached_blocks)

    result = tried(implementation_of(Hangs))
    assert result.sentence == "cannot be tried: the process ended (SIGXCPU: a call of the manager does not return)"


def test_a_call_that_waits_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refuting, "_SILENCE", 10.0)
    here = os.getpid()

    class Waits(BlockManager):
        """Waits for somebody who never comes, in every process but the one that it was made in."""

        def can_allocate(self, seq: Any) -> int:
            if os.getpid() != here:
                signal.pause()
            return super().can_allocate(seq)

    result = tried(implementation_of(Waits))
    assert result.sentence == (
        "cannot be tried: the process was silent for 10 s: a call of the manager waits for something"
    )


# --- what a run says ------------------------------------------------------------------------------------------------


def examined(target: str, seconds: float | None) -> Examination:
    examination = Examination(load(target), Options(effort="smoke", contracts=seconds))
    examination.decide_contracts()
    return examination


def test_a_planted_falsehood_that_is_not_refuted_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refuting, "PLANTED_BUDGET", Budget(paths=0, seconds=60.0))
    report = examined("bundled", 1.0).report()
    assert report.exit_code() is ExitCode.PROVES_NOTHING
    assert any("late-double-free was not refuted" in reason for reason in report.proves_nothing)


def test_a_refutation_counts_like_any_other_violation() -> None:
    report = examined("known-bad:late-double-free", 60.0).report()
    assert report.exit_code() is ExitCode.VIOLATES
    assert [result.clause for result in report.broken()] == ["PARTITION"]
    assert any(note.startswith("contracts: PARTITION is refuted by share(") for note in report.notes)


def test_the_least_effort_has_no_budget() -> None:
    assert EFFORTS["smoke"].contracts is None
    assert examined("bundled", None).contracts is None
    assert examined("bundled", 0.0).contracts is None


def conformance(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """``pytest conformance -k contracts OPTIONS``; modules in `folder` can be named as plugins."""
    suite = str(ROOT / "conformance")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rs",
        "-p",
        "no:cacheprovider",
        suite,
        "-k",
        "contracts",
        *options,
    ]
    paths = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    environment = os.environ | {"PYTHONPATH": paths}
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False, env=environment
    )


def test_the_suite_exits_with_3_where_planted_managers_are_missed(tmp_path: Path) -> None:
    (tmp_path / "blind.py").write_text(
        "from kvspec.conformance.contracts import Budget, refuting\n\n\n"
        "def pytest_configure():\n    refuting.PLANTED_BUDGET = Budget(paths=0, seconds=60.0)\n"
    )
    ran = conformance(tmp_path, "-p", "blind", "--contracts-budget", "1")
    assert ran.returncode == 3, ran.stdout
    assert "the planted known-bad manager late-double-free was not refuted" in ran.stdout
    assert "PROVES NOTHING" in ran.stdout


def test_the_suite_refutes_the_manager_of_a_user(tmp_path: Path) -> None:
    ran = conformance(tmp_path, "--impl", "known-bad:late-table-kept")
    assert ran.returncode == 1, ran.stdout
    assert "RELEASE is refuted by share(" in ran.stdout
    assert "VIOLATES  RELEASE" in ran.stdout


def test_the_suite_says_why_an_adapter_cannot_be_tried(tmp_path: Path) -> None:
    ran = conformance(tmp_path, "--impl", "model")
    assert ran.returncode == 3, ran.stdout
    assert "cannot be tried: model is not a Python class with the calls of nano-vllm's managers" in ran.stdout


@pytest.mark.parametrize("document", ["README.md", "spec/README.md"])
def test_documents_name_the_number_of_planted_managers(document: str) -> None:
    assert f"{len(PLANTED)} known-bad managers" in (ROOT / document).read_text(encoding="utf-8")


# --- the parts ------------------------------------------------------------------------------------------------------


def test_every_entry_can_be_chosen() -> None:
    for length in range(1, 8):
        assert [chosen(number, range(length)) for number in range(length)] == list(range(length))


def test_the_pure_hash_is_injective() -> None:
    prompts = [tokens for length in range(7) for tokens in itertools.product((0, 1), repeat=length)]
    keys = {chain(tokens[2:], chain(tokens[:2], -1)) if len(tokens) > 2 else chain(tokens, -1) for tokens in prompts}
    assert len(keys) == len(prompts)
    assert chain(-1, (1, 0)) == chain((1, 0), None) == chain([1, 0])


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_shape_asks_only_what_a_scheduler_may_ask(shape: Shape) -> None:
    """An illegal operation would be left out when the program is run again."""
    hardened, drawn = load("hardened"), random.Random(shape.name)
    for _ in range(200):
        integers = {name: drawn.randint(*bounds) for name, bounds in shape.bounds.items()}
        world, script = shape(shape.block_size(hardened.declaration), integers)
        lockstep = Lockstep(hardened, world)
        operation = next(script)
        for _ in range(40):
            assert lockstep.step(operation) is None  # raises where the operation is illegal
            try:
                operation = script.send(lockstep.outcomes[-1])
            except StopIteration:
                break
        assert all(not owners for owners in lockstep.state.ledger.owners.values()), "the script ends with an empty pool"
