"""Provenance: exact for ordinary kernels, which no comparison of outputs is."""

import numpy as np
import pytest

from kvspec.gpu_tests import needs
from kvspec.gpu_tests.by_hand import change_one_block
from kvspec.gpu_tests.catalogue import ordinary
from kvspec.gpu_tests.lanes import AttentionLane
from kvspec.gpu_tests.provenance import ProvenanceLane

WITH_TORCH = [pytest.param(kernel, marks=needs.torch) for kernel in ("torch float32", "torch bfloat16")]
kernels = pytest.mark.parametrize("kernel", ["numpy fp32", *WITH_TORCH])


@kernels
def test_every_byte_that_is_read_was_computed_for_that_prefix(runs, kernel):
    lane = ProvenanceLane(ordinary(kernel))
    for run in runs(5):
        lane.replay(run).require_none(f"{lane.name}, seed {run.workload.seed}")


@kernels
def test_a_table_changed_by_hand_is_named(sound_run, kernel):
    changed = change_one_block(sound_run)
    with pytest.raises(AssertionError) as failure:
        ProvenanceLane(ordinary(kernel)).replay(changed.run).require_none("provenance")
    size = changed.run.world.block_size
    place = f"position {changed.entry * size}, block {changed.block}, slot {changed.block * size}"
    for part in (f"sequence {changed.sequence}", place, "never computed for"):
        assert part in str(failure.value)


def test_the_same_prefix_has_several_versions_of_bytes(sound_run):
    """Why provenance keeps a set: the kernel is not batch invariant, and that alone is no fault."""
    decoder = ordinary("numpy fp32")
    assert AttentionLane(decoder, np.inf).replay(sound_run).unequal > 0
