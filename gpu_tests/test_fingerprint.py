"""The fingerprint lane accepts a correct manager exactly, and names the slot when one table entry is wrong."""

import numpy as np

from kvspec.gpu_tests import fingerprint, needs
from kvspec.gpu_tests.by_hand import change_one_block, every_change
from kvspec.gpu_tests.installed import device


def test_500_runs_hit_exactly_their_own_prefix(runs):
    for run in runs(250):
        fingerprint.replay(run).require_none(f"fingerprint, seed {run.workload.seed}")


@needs.torch
def test_on_a_torch_device_the_findings_are_the_same(sound_run):
    for run in (sound_run, change_one_block(sound_run).run):
        here, there = fingerprint.replay(run), fingerprint.replay(run, device())
        assert [str(difference) for difference in here.differences] == [str(d) for d in there.differences]


def test_every_read_entry_that_is_changed_by_hand_is_found(sound_run):
    """For each chunk that reads a whole block: point that entry elsewhere, and the lane must name just this place."""
    size, found = sound_run.world.block_size, 0
    for changed in every_change(sound_run):
        first = fingerprint.replay(changed.run).differences[0]
        assert (first.step, first.sequence, first.block) == (changed.step, changed.sequence, changed.block)
        assert (first.position, first.slot) == (changed.entry * size, changed.block * size)
        found += 1
    assert found > 100


def test_a_slot_that_nobody_wrote_is_told_apart():
    pool = fingerprint.FingerprintPool(8)
    pool.scatter(np.array([1, 2]), np.array([5, 6]))
    assert pool.gather(np.arange(4)).tolist() == [-1, 5, 6, -1]
