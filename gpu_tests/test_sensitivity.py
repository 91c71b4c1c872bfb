"""Each lane must fail on the faults that it can see, and its blind spots are asserted as well."""

import json

import numpy as np
import pytest

from kvspec.gpu_tests.catalogue import exact_lanes, one_layer_lane, ordinary, portable, tolerance_lanes
from kvspec.gpu_tests.decoder import Decoder
from kvspec.gpu_tests.engine import Chunk
from kvspec.gpu_tests.faults import EQUIVALENT, FAULTS
from kvspec.gpu_tests.lanes import bits, tolerance
from kvspec.gpu_tests.report import write
from kvspec.gpu_tests.sensitivity import CORRECT, Matrix, measure

HIDDEN_BY_FIFO = {"published at admission", "published one block ahead"}
SEEN = sorted(FAULTS.keys() - EQUIVALENT)


@pytest.fixture(scope="module")
def matrix(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    """One seed a cell; kept for the terminal summary, and written where ``--kvspec-report`` says."""
    measured = measure(seeds=(3,))
    folder = request.config.getoption("--kvspec-report", default=None) or tmp_path_factory.mktemp("attention")
    request.config.attention_report = write(measured, folder)
    return measured


def test_no_lane_objects_to_the_correct_manager_or_an_equivalent_one(matrix):
    for fault in (CORRECT, *EQUIVALENT):
        for lane in matrix.tolerances:
            assert matrix.detected(lane, fault) == 0, (lane, fault)


@pytest.mark.parametrize("fault", SEEN)
def test_every_exact_lane_sees_every_fault(matrix, fault):
    for lane in exact_lanes():
        assert matrix.detected(lane.name, fault), f"{lane.name} is blind to: {fault}"


@pytest.mark.parametrize("fault", SEEN)
def test_tolerance_lanes_with_a_bias_see_every_fault(matrix, fault):
    for lane in tolerance_lanes():
        assert matrix.detected(lane.name, fault) or not lane.decoder.shape.bias, f"{lane.name} is blind to: {fault}"


def test_all_exact_lanes_see_a_fault_in_the_same_runs(matrix):
    names = [lane.name for lane in exact_lanes()]
    for fault in FAULTS:
        for scheduler in ("fifo", "adversarial"):
            assert len({matrix.cell(name, fault, scheduler).detected for name in names}) == 1, (fault, scheduler)


def test_a_first_come_first_served_scheduler_hides_publication_before_computation(matrix):
    for fault in HIDDEN_BY_FIFO:
        for lane in matrix.tolerances:
            assert matrix.cell(lane, fault, "fifo").detected == 0
        assert matrix.cell("fingerprint", fault, "adversarial").detected


def test_without_a_bias_a_tolerance_is_blind_to_a_permuted_hit(matrix):
    blind = next(lane for lane in tolerance_lanes() if not lane.decoder.shape.bias)
    assert matrix.detected(blind.name, "permuted hit") == 0
    assert matrix.detected("portable numpy", "permuted hit")


def test_greedy_tokens_are_a_weak_criterion(matrix):
    cells = [cell for cell in matrix.cells.values() if cell.lane == "portable numpy" and cell.fault in SEEN]
    assert sum(cell.flips for cell in cells) < sum(cell.unequal for cell in cells) / 2


def test_the_report_is_complete(matrix, request):
    written = request.config.attention_report
    data = json.loads((written / "attention.json").read_text())
    assert len(data["cells"]) == len(matrix.tolerances) * (len(FAULTS) + 1) * 2
    drawing = (written / "attention.svg").read_text()
    assert all(name in drawing for name in (*matrix.tolerances, "noise floor"))
    table = (written / "attention.md").read_text()
    assert all(f"| {fault} |" in table for fault in (CORRECT, *FAULTS))


# The blind spots once more, each in the smallest case


def permuted(decoder: Decoder) -> float:
    """How far the logits move if the two blocks of a prefix are read in the wrong order."""
    tokens = tuple(np.random.default_rng(11).integers(0, 97, size=12).tolist())
    outputs = []
    for table in ((0, 1, 2), (1, 0, 2)):
        pool = decoder.new_pool(12)
        decoder.forward(pool, (Chunk("A", tokens[:8], 0, (0, 1), 0),), 4)
        outputs.append(decoder.forward(pool, (Chunk("A", tokens, 8, table, 8),), 4)[0])
    return float(np.abs(outputs[0] - outputs[1]).max())


def test_permuted_prefix_needs_a_bias():
    with_bias, without = ordinary("numpy fp32"), ordinary("numpy fp32", bias=False)
    assert permuted(without) <= tolerance(without)
    assert permuted(with_bias) > 1000 * tolerance(with_bias)
    assert permuted(portable("numpy")) > 1


def unchained(decoder: Decoder) -> tuple[np.ndarray, np.ndarray]:
    """Cold logits of [Z, Y, tail], and those with block Y taken from [X, Y, tail], at the same index."""
    x, y, z, tail = (tuple(part.tolist()) for part in np.random.default_rng(13).integers(0, 97, size=(4, 4)))
    pool = decoder.new_pool(24)
    decoder.forward(pool, (Chunk("A", x + y + tail, 0, (0, 1, 2), 0),), 4)
    decoder.forward(pool, (Chunk("B", z, 0, (3,), 0),), 4)
    warm = decoder.forward(pool, (Chunk("B", z + y + tail, 8, (3, 1, 4), 8),), 4)[0]
    return decoder.cold(z + y + tail)[8:], warm


def test_unchained_hash_needs_a_second_layer():
    cold, warm = unchained(portable("numpy", layers=1))
    assert (bits(cold) == bits(warm)).all()
    cold, warm = unchained(portable("numpy"))
    assert np.abs(cold - warm).max() > 1
    assert one_layer_lane().name.endswith("1 layer")
