"""The driver: seeded, complete, and never vacuous."""

from dataclasses import replace

import pytest

from kvspec.gpu_tests.faults import implementation as planted
from kvspec.gpu_tests.schedulers import drive
from kvspec.gpu_tests.workload import build
from kvspec.spec.state import World


def test_every_request_is_computed_to_its_last_token(runs):
    for run in runs(20):
        reached = {chunk.sequence: chunk.end for step in run.steps for chunk in step}
        whole = {request.name: len(request.tokens) for request in run.workload.requests}
        aborted = {name for name, end in whole.items() if reached.get(name, 0) < end}
        assert run.scheduler == "adversarial" or not aborted
        assert len(aborted) < len(whole) / 2


def test_a_seed_fixes_the_run(under_test, scheduler):
    first, again = (drive(under_test, scheduler, seed=3) for _ in range(2))
    assert (first.steps, first.counts) == (again.steps, again.counts)
    assert drive(under_test, scheduler, seed=4).steps != first.steps


def test_each_chunk_continues_where_the_sequence_stood(runs):
    for run in runs(20):
        computed: dict[str, int] = {}
        for chunk in (chunk for step in run.steps for chunk in step):
            assert chunk.start in (computed.get(chunk.sequence), chunk.cached)  # goes on, or was (re)admitted
            computed[chunk.sequence] = chunk.end


def test_a_run_that_exercised_nothing_is_refused():
    run = drive(planted("correct"), "fifo", seed=0)
    run.counts.free_hits = 0
    with pytest.raises(AssertionError, match=r"proves nothing about \['free_hits'\]"):
        run.require_everything()


def test_a_manager_that_can_not_go_on_ends_the_run_with_its_words():
    broken = planted("correct")
    workload = replace(build(0, 2, broken.declaration), world=World(blocks=2, block_size=4))
    assert "whole pool to itself" in str(drive(broken, "fifo", seed=0, workload=workload).stopped)
