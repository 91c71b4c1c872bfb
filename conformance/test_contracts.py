"""CrossHair drives the manager through short symbolic programs, and must refute the managers planted beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kvspec.conformance.contracts.planted import PLANTED

if TYPE_CHECKING:
    from kvspec.conformance.contracts import ContractRun
    from kvspec.conformance.examination import Examination


def test_contracts(examination: Examination, contract_run: ContractRun) -> None:
    """No counterexample within the budget; the summary says how far that went."""
    own = contract_run.own
    if own.untried:
        pytest.skip(own.sentence)
    result = examination.decide_contracts()
    if result is None or result.counterexample is None:
        return
    if result.known:
        pytest.xfail(f"known failure: {result.counterexample.violation.because}")
    from kvspec.conformance.render import plain_counterexample

    trace = examination.trace_of(result.counterexample)
    shown = plain_counterexample(result.counterexample, examination.implementation, trace)
    pytest.fail(f"{own.sentence}\n\n{shown}", pytrace=False)


@pytest.mark.parametrize("slug", PLANTED)
def test_contracts_run_proves_something(contract_run: ContractRun, slug: str) -> None:
    """The planted known-bad manager is refuted in the same run; where one is not, the run proves nothing."""
    if contract_run.own.untried:
        pytest.skip(f"nothing is claimed: {contract_run.own.sentence}")
    planted = contract_run.planted[slug]
    if planted.refutation is None:
        pytest.fail(f"the planted known-bad manager {slug} was not refuted: {planted.sentence}", pytrace=False)
