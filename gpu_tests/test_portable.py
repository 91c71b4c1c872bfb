"""The portable decoder: bitwise by construction, so warm must equal cold, and torch must equal NumPy."""

import numpy as np
import pytest

from kvspec.gpu_tests import needs
from kvspec.gpu_tests.backends import NumPyBackend, TorchBackend
from kvspec.gpu_tests.by_hand import change_one_block
from kvspec.gpu_tests.catalogue import portable
from kvspec.gpu_tests.decoder import Decoder
from kvspec.gpu_tests.engine import Chunk
from kvspec.gpu_tests.lanes import AttentionLane, bits, noise_floor
from kvspec.gpu_tests.portable import Portable, ordered_sum, tree_sum

backends = pytest.mark.parametrize("backend", ["numpy", pytest.param("torch", marks=needs.torch)])


@backends
def test_warm_equals_cold_to_the_bit(runs, backend):
    lane = AttentionLane(portable(backend))
    for run in runs(10):
        findings = lane.replay(run)
        findings.require_none(f"{lane.name}, seed {run.workload.seed}")
        assert findings.unequal == findings.flips == findings.poisoned == 0


@backends
def test_no_chunking_changes_a_bit(backend):
    assert noise_floor(portable(backend)) == 0.0


@needs.torch
def test_torch_and_numpy_agree_to_the_bit():
    here, there = portable("numpy"), Decoder(Portable(TorchBackend("cpu")))
    rng = np.random.default_rng(3)
    for length in (1, 2, 15, 16, 17, 40):
        tokens = tuple(rng.integers(0, 97, size=length).tolist())
        assert (bits(here.cold(tokens)) == bits(there.cold(tokens))).all()


@backends
def test_neither_block_size_nor_place_nor_company_changes_a_bit(backend):
    rng = np.random.default_rng(5)
    first, other = (tuple(rng.integers(0, 97, size=20).tolist()) for _ in range(2))
    for size, tables in ((4, ((7, 2, 9, 0, 4), (1, 3, 8, 5, 6))), (16, ((3, 1), (0, 2)))):
        model = portable(backend)
        named = zip("AB", (first, other), tables, strict=True)
        chunks = [Chunk(name, tokens, 0, table, 0) for name, tokens, table in named]
        together = model.forward(model.new_pool(10 * size), chunks, size)
        for logits, tokens in zip(together, (first, other), strict=True):
            assert (bits(logits) == bits(model.cold(tokens))).all()


@backends
def test_a_table_changed_by_hand_is_named(sound_run, backend):
    changed = change_one_block(sound_run)
    with pytest.raises(AssertionError) as failure:
        AttentionLane(portable(backend)).replay(changed.run).require_none("portable")
    size = changed.run.world.block_size
    place = f"position {changed.entry * size}, block {changed.block}, slot {changed.block * size}"
    for part in (f"sequence {changed.sequence}", place, "the logits differ by"):
        assert part in str(failure.value)


def test_sums_keep_their_order():
    values = np.array([1e8, 1.0, -1e8, 1.0], dtype=np.float32)
    assert tree_sum(values) == (np.float32(1e8) + np.float32(-1e8)) + (np.float32(1) + np.float32(1))
    short, long = np.zeros(16, dtype=np.float32), np.zeros(32, dtype=np.float32)
    short[:3] = long[:3] = [0.1, -0.3, 0.7]
    assert ordered_sum(short) == ordered_sum(long)
    assert not np.signbit(ordered_sum(np.full(16, -0.0, dtype=np.float32)))


def test_powers_of_two_are_close_enough_to_be_softmax_weights():
    x = -np.linspace(0, 60, 4001, dtype=np.float32)
    assert np.abs(Portable(NumPyBackend()).exp2(x) / np.exp2(x.astype(np.float64)) - 1).max() < 1e-6
