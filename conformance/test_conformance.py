"""The suite: one item a clause of a profile, so that ``-k prefix`` or ``-k NO-LEAK`` select what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kvspec.conformance.examination import Examination


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """An item for each clause of each profile that was asked for."""
    if "clause" not in metafunc.fixturenames:
        return
    from kvspec.conformance.examination import decided_clauses
    from kvspec.conformance.profile_names import split_profiles
    from kvspec.spec.clauses import PROFILES

    asked = split_profiles(metafunc.config.getoption("--profiles"))
    pairs = [
        (profile, clause)
        for profile in PROFILES
        if not asked or profile in asked
        for clause in decided_clauses(profile)
    ]
    metafunc.parametrize(("profile", "clause"), pairs, ids=[f"{profile}-{clause}" for profile, clause in pairs])


def test_clause(examination: Examination, profile: str, clause: str) -> None:
    """The clause holds; where its profile is not declared it is probed, and reported without counting."""
    declared = profile in examination.implementation.declaration.profiles
    if reason := examination.untried(profile):
        if declared:
            pytest.fail(f"{profile} is declared, but cannot be tried: {reason}", pytrace=False)
        pytest.skip(f"{profile} is not declared and cannot be tried: {reason}")
    result = examination.decide(profile, clause)
    if result.counterexample is None:
        return
    from kvspec.conformance.render import plain_counterexample

    if result.known:
        pytest.xfail(f"known failure: {result.counterexample.violation.because}")
    if not declared:
        pytest.xfail(f"{profile} is not declared; probed: {result.counterexample.violation.because}")
    trace = examination.trace_of(result.counterexample)
    pytest.fail(plain_counterexample(result.counterexample, examination.implementation, trace), pytrace=False)


def test_small_worlds(examination: Examination) -> None:
    """Every program of the small worlds of this effort is right."""
    from kvspec.conformance.render import plain_counterexample

    declared = examination.implementation.declaration.profiles
    for found in examination.world_violations():
        examination.decide_worlds()
        result = examination.decide(examination.home_of(found), found.violation.clause)
        if result.known:
            pytest.xfail(f"known failure: {found.violation.because}")
        if result.profile in declared:
            trace = examination.trace_of(found)
            pytest.fail(plain_counterexample(found, examination.implementation, trace), pytrace=False)


def test_run_proves_something(examination: Examination) -> None:
    """The canary is caught, the implementation is deterministic, and what must happen in a run did happen."""
    if not examination.decided_something:  # this test alone was selected
        examination.decide("pool", "PARTITION")
    reasons = examination.report().proves_nothing
    if reasons:
        pytest.fail("the run proves nothing:\n  " + "\n  ".join(reasons), pytrace=False)


def test_known_failures_still_fail(examination: Examination) -> None:
    """A known failure that is fixed must be deleted from the list: the list can only shrink."""
    if fixed := examination.fixed_known_failures():
        pytest.fail("delete these known failures, they are fixed:\n  " + "\n  ".join(fixed), pytrace=False)
