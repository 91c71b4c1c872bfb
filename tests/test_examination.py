"""A run says what it is worth: it counts what happened, plants a canary, asks twice, and never hides a probe."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kvspec.conformance import examination as module
from kvspec.conformance.examination import Examination, Options
from kvspec.conformance.verdict import ExitCode, Standing
from kvspec.impl.adapter import Implementation
from kvspec.impl.loader import load
from kvspec.impl.model_adapter import MODEL, ModelAdapter
from kvspec.spec import operations as op
from kvspec.spec.state import Snapshot


def examined(implementation: Implementation, *pairs: tuple[str, str], **options: Any) -> Examination:
    """A smoke run that decides only these clauses."""
    examination = Examination(implementation, Options(effort="smoke", **options))
    for profile, clause in pairs:
        examination.decide(profile, clause)
    return examination


def standings(examination: Examination) -> dict[str, Standing]:
    return {verdict.profile: verdict.standing for verdict in examination.report().profiles()}


def test_a_profile_conforms_only_as_a_whole() -> None:
    examination = examined(load("bundled"), ("hash", "HASH-BYTES"), ("prefix", "CONTENT"))
    assert standings(examination)["hash"] is Standing.CONFORMS
    assert standings(examination)["prefix"] is Standing.INCOMPLETE


def test_a_right_manager_conforms() -> None:
    pairs = [(profile, clause) for profile in ("pool", "prefix") for clause in module.decided_clauses(profile)]
    examination = examined(load("bundled"), *pairs)
    report = examination.report()
    assert report.exit_code() is ExitCode.CONFORMS
    assert standings(examination)["pool"] is standings(examination)["prefix"] is Standing.CONFORMS
    assert report.counts["steps"]["hits"] > 100


def test_what_a_manager_does_not_show_is_said() -> None:
    class Closed(ModelAdapter):
        def snapshot(self) -> Snapshot:
            return replace(super().snapshot(), index=None)

    closed = replace(MODEL, create=Closed, chain_hash=None)
    report = examined(closed, ("prefix", "CONTENT")).report()
    unseen = "INDEX-BOUNDED INDEX-MATCH INDEX-TOKENS INDEX-CHAIN"
    assert report.notes == [f"not seen from outside, judged by answers alone: {unseen}"]
    assert report.untried["hash"] == "the adapter shows no chain hash"
    assert examined(MODEL, ("prefix", "CONTENT")).report().notes == []


def test_a_wrong_manager_violates_with_its_clause_and_leaves_a_trace(tmp_path: Path) -> None:
    examination = examined(load("known-bad:stale-index-entry"), ("prefix", "CONTENT"), traces=tmp_path)
    report = examination.report()
    assert report.exit_code() is ExitCode.VIOLATES
    assert [result.clause for result in report.broken()] == ["CONTENT"]
    trace = examination.trace_of(report.broken()[0].counterexample)  # type: ignore[arg-type]
    assert trace
    assert trace.exists()


def test_what_is_not_declared_is_probed_and_does_not_count() -> None:
    examination = examined(load("bundled"), ("pool", "PARTITION"), ("reuse", "TWIN"))
    assert standings(examination)["reuse"] is Standing.NOT_DECLARED
    assert examination.report().exit_code() is ExitCode.CONFORMS
    assert [r.clause for r in examination.report().results if r.counterexample] == ["TWIN"]


def test_only_undeclared_clauses_prove_nothing() -> None:
    report = examined(load("bundled"), ("robust", "BAD-POOL")).report()
    assert report.exit_code() is ExitCode.PROVES_NOTHING
    assert "no clause of a declared profile was tried" in report.proves_nothing


def test_a_declared_profile_cannot_be_skipped() -> None:
    claims = replace(MODEL.declaration, profiles=frozenset({"pool", "namespace"}))
    report = examined(replace(MODEL, declaration=claims), ("pool", "PARTITION")).report()
    assert report.exit_code() is ExitCode.PROVES_NOTHING
    assert any("namespace is declared, but cannot be tried" in reason for reason in report.proves_nothing)


def test_a_missed_canary_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CANARY_PROGRAMS", 0)
    report = examined(MODEL, ("pool", "PARTITION")).report()
    assert report.exit_code() is ExitCode.PROVES_NOTHING
    assert "known-bad manager stale-index-entry was not caught" in " ".join(report.proves_nothing)


def test_a_manager_that_answers_differently_proves_nothing() -> None:
    made = itertools.count()

    class Moody(ModelAdapter):
        """Every second manager turns its free list around."""

        def __init__(self, world: Any) -> None:
            super().__init__(world)
            if next(made) % 2:
                self.model = replace(self.model, free=self.model.free[::-1])

    free = replace(MODEL.declaration, nano_vllm_order=False)
    moody = Implementation("moody", free, Moody, chain_hash=MODEL.chain_hash)
    report = examined(moody, ("pool", "PARTITION")).report()
    assert report.exit_code() is ExitCode.PROVES_NOTHING
    assert "operation 1" in " ".join(report.proves_nothing)


def test_a_run_without_hits_proves_nothing() -> None:
    class Forgetful(ModelAdapter):
        """No cache at all: legal, but then nothing is known of hits."""

        def commit(self, sequences: tuple[str, ...]) -> op.Outcome:
            outcome = super().commit(sequences)
            self.model = replace(self.model, index={})
            return outcome

    plain = replace(MODEL.declaration, nano_vllm_order=False, profiles=frozenset({"prefix"}), credits_shared=False)
    forgetful = Implementation("forgetful", plain, Forgetful)
    report = examined(forgetful, ("prefix", "CONTENT")).report()
    assert report.exit_code() is ExitCode.PROVES_NOTHING
    assert "no hits in context steps" in report.proves_nothing


def test_the_seed_decides_everything(tmp_path: Path) -> None:
    bad = load("known-bad:stale-index-entry")
    first, again = (examined(bad, ("prefix", "CONTENT"), seed=5, traces=tmp_path) for _ in range(2))
    assert first.report().results == again.report().results
    assert first.report().counts == again.report().counts


@pytest.mark.parametrize("slug", ["layout-half-block-listed", "half-block-under-full-key"])
def test_a_fault_that_only_parts_of_a_prompt_show_counts_for_chunked_alone(slug: str) -> None:
    """In random programs and in small worlds; with hits inside a step, and without."""
    examination = Examination(load(f"known-bad:{slug}"), Options(effort="smoke"))
    examination.decide_all()
    standing = standings(examination)
    assert standing["chunked"] is Standing.VIOLATES
    assert standing["pool"] is standing["prefix"] is Standing.CONFORMS
