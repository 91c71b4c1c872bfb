"""A real model end to end, where its weights are installed: log-probabilities and greedy tokens, cold against warm."""

import pytest

from kvspec.gpu_tests import needs
from kvspec.gpu_tests.by_hand import change_one_block
from kvspec.gpu_tests.lanes import AttentionLane, noise_floor
from kvspec.gpu_tests.provenance import ProvenanceLane
from kvspec.gpu_tests.schedulers import drive
from kvspec.gpu_tests.workload import build

pytestmark = needs.language_model


@pytest.fixture(scope="module")
def model():
    from kvspec.gpu_tests.language_model import LanguageModel

    return LanguageModel()


@pytest.fixture(scope="module")
def run(under_test):
    recorded = drive(under_test, "fifo", 0, workload=build(0, 9, under_test.declaration, count=6))
    assert recorded.stopped is None
    assert recorded.counts.hits
    return recorded


def test_cold_and_warm_agree(model, run):
    limit = 4 * noise_floor(model, samples=4)
    assert limit < 1e-2
    findings = AttentionLane(model, limit).replay(run)
    findings.require_none(model.name)
    assert findings.flips == 0


def test_every_byte_that_is_read_was_computed_for_that_prefix(model, run):
    ProvenanceLane(model).replay(run).require_none(model.name)


def test_one_wrong_block_is_seen(model, run):
    findings = AttentionLane(model, 4 * noise_floor(model, samples=4)).replay(change_one_block(run).run)
    assert not findings.clean
    assert findings.largest > 0.1


def test_the_model_is_the_model(model):
    """It has learned something: a repeated sentence is predicted far better the second time."""
    tokens = tuple(range(12)) * 2
    logits = model.cold(tokens)
    losses = [-logits[position, model._words[tokens[position + 1]]] for position in range(23)]
    assert sum(losses[12:]) < sum(losses[:11]) / 2
