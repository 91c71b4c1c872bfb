"""Ordinary kernels: equal up to rounding; what that rounding is, is measured without any block manager."""

import pytest

from kvspec.gpu_tests import needs
from kvspec.gpu_tests.by_hand import change_one_block
from kvspec.gpu_tests.catalogue import ordinary
from kvspec.gpu_tests.lanes import AttentionLane, noise_floor, tolerance

# kernel -> unit roundoff, and the largest noise floor (in unit roundoffs of a logit of size 32) that we'd believe
ROUNDOFF = {"numpy fp32": 2.0**-24, "torch float32": 2.0**-24, "torch bfloat16": 2.0**-8, "flex float32": 2.0**-24}
BELIEVABLE = 64

WITH_TORCH = [pytest.param(kernel, marks=needs.torch) for kernel in ("torch float32", "torch bfloat16", "flex float32")]
kernels = pytest.mark.parametrize("kernel", ["numpy fp32", *WITH_TORCH])


@kernels
def test_warm_is_within_four_noise_floors_of_cold(runs, kernel):
    lane = AttentionLane(ordinary(kernel), tolerance(ordinary(kernel)))
    for run in runs(1 if kernel.startswith("flex") else 5):  # FlexAttention takes twenty times as long, uncompiled
        lane.replay(run).require_none(f"{lane.name}, seed {run.workload.seed}")


@kernels
def test_the_noise_floor_is_what_rounding_explains(kernel):
    floor = noise_floor(ordinary(kernel))
    assert 0 < floor < BELIEVABLE * ROUNDOFF[kernel] * 32


@kernels
def test_a_table_changed_by_hand_is_named(sound_run, kernel):
    changed = change_one_block(sound_run)
    lane = AttentionLane(ordinary(kernel), tolerance(ordinary(kernel)))
    with pytest.raises(AssertionError) as failure:
        lane.replay(changed.run).require_none(lane.name)
    size = changed.run.world.block_size
    place = f"position {changed.entry * size}, block {changed.block}, slot {changed.block * size}"
    for part in (f"sequence {changed.sequence}", place, "the logits differ by"):
        assert part in str(failure.value)
