"""The benchmarks under pytest-benchmark, to compare one state of the code with another on one machine.

    pytest tests/benchmarks/bench_suite.py --benchmark-save=before
    pytest tests/benchmarks/bench_suite.py --benchmark-compare=0001 --benchmark-compare-fail=median:10%

Times of different machines, or of a busy one, say little; the scripts beside this file print ratios of what ran in turn.
"""

import gc
import shutil
from pathlib import Path
from typing import Any

import pytest

from kvspec.conformance.explorer.search import Search, undeclared
from kvspec.conformance.explorer.world import SmallWorld
from kvspec.conformance.trace.validating import validate
from kvspec.impl.loader import load
from kvspec.impl.recorder import record
from kvspec.impl.sequence import Sequence
from tests.benchmarks import bench_managers, bench_pipe, bench_traces
from tests.benchmarks.engines import ENGINES

ROUNDS, BLOCK = 5, 16
PORT = Path(__file__).parents[2] / "impl" / "ports" / "javascript" / "main.js"


@pytest.fixture(autouse=True)
def block_size() -> Any:
    """The size of a block belongs to the class of sequences; it is set back afterwards."""
    before, Sequence.block_size = Sequence.block_size, BLOCK
    yield
    Sequence.block_size = before


@pytest.mark.parametrize("pool", [1_000, 10_000])
@pytest.mark.parametrize("workload", bench_managers.WORKLOADS)
@pytest.mark.parametrize("manager", ENGINES)
def test_manager(benchmark: Any, manager: str, workload: str, pool: int) -> None:
    """One pass over a workload on a fresh pool; the making of the pool is not measured."""

    def fresh() -> tuple[tuple[Any, int], dict[str, Any]]:
        gc.collect()
        return (ENGINES[manager](pool, BLOCK), BLOCK), {}

    benchmark.group = f"{workload}, {pool:,} blocks"
    assert benchmark.pedantic(bench_managers.WORKLOADS[workload], setup=fresh, rounds=ROUNDS) > 0


def test_explorer(benchmark: Any) -> None:
    """A world of three blocks, to its end."""
    implementation, world = load("bundled"), SmallWorld(3, 2, 2, 1, 4, partial_commits=True)

    def exhausted() -> int:
        search = Search(implementation, world, undeclared(implementation.declaration))
        search.run()
        return search.transitions

    assert benchmark.pedantic(exhausted, rounds=ROUNDS) > 20_000


def test_validator(benchmark: Any, tmp_path: Path) -> None:
    """A recording of 20,000 operations."""
    path = bench_traces.recording(tmp_path, 20_000)
    assert benchmark.pedantic(validate, args=([path],), rounds=ROUNDS).violation is None


@pytest.mark.parametrize("recorded", [False, True])
def test_recorder(benchmark: Any, tmp_path: Path, recorded: bool) -> None:
    """The manager's calls of a decode step of 32 sequences, with and without a recorder."""
    manager, sequences = bench_traces.prepared(256)
    recorder = record(manager, tmp_path / "kv.ndjson") if recorded else None

    def scheduled() -> None:
        for sequence in sequences:
            sequence.append_token(1)
            sequence.num_scheduled_tokens = 1

    def step() -> None:
        for sequence in sequences:
            manager.can_append(sequence)
            manager.may_append(sequence)
        for sequence in sequences:
            manager.hash_blocks(sequence)
            sequence.num_cached_tokens += 1

    benchmark.group = "decode step"
    benchmark.pedantic(step, setup=scheduled, rounds=200)
    if recorder:
        recorder.close()
        assert recorder.error is None


@pytest.mark.skipif(shutil.which("node") is None, reason="the JavaScript port needs node")
@pytest.mark.parametrize("work", [bench_pipe.one_at_a_time, bench_pipe.batched], ids=["single", "batched"])
def test_pipe(benchmark: Any, work: Any) -> None:
    """2,000 operations over the pipe."""
    operations = bench_pipe.workload(2_000)

    def started() -> tuple[tuple[Any, Any], dict[str, Any]]:
        return (load(f"cmd:node {PORT}").create(bench_pipe.WORLD), operations), {}

    benchmark.group = "pipe"
    assert benchmark.pedantic(work, setup=started, rounds=ROUNDS) == len(operations)
