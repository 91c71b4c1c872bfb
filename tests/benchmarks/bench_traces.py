"""Recorder and validator: ``python -m tests.benchmarks.bench_traces [--operations 1000000]``.

The validator is measured against a loop of ``json.loads`` over the same file in the same process, and the recorder as a
share of what the manager itself needs for a decode step, so that the figures mean the same on every machine.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kvspec.conformance.trace.validating import Validation, validate
from kvspec.impl.block_manager import BlockManager
from kvspec.impl.recorder import record
from kvspec.impl.sequence import Sequence
from tests.sample_engine import run

SEQUENCES, BLOCK = 32, 16
FAULT = (
    '{"number":%d,"request":{"op":"admit","sequence":"fault","tokens":[1],"limit":1,"namespace":""},'
    '"answer":{"outcome":"admitted","cached":0,"reserved":1,"table":[999999]}}\n'
)


# Validator -----------------------------------------------------------------------------------------------------------


def recording(folder: Path, operations: int) -> Path:
    """At least so many operations of 32 sequences that decode, are preempted, and share prefixes; no second file."""
    manager, seed = BlockManager(400, BLOCK), 0
    recorder = record(manager, folder / "kv.ndjson", rotate=1 << 40)
    output: Any = recorder._output
    while output._lines.number < operations and recorder.active:
        run(manager, 500, seed=(seed := seed + 1), longest=400, alphabet=1000, budget=2048, most=SEQUENCES)
        for held in list(recorder._calls._live.values()):
            manager.deallocate(held.sequence)
    recorder.close()
    if recorder.error:
        raise recorder.error
    return folder / "kv.ndjson"


def with_fault(path: Path) -> Path:
    """The same recording with one wrong operation at its end."""
    lines = path.read_bytes().splitlines(keepends=True)
    faulty = path.with_name("faulty.ndjson")
    faulty.write_bytes(b"".join(lines[:-1]) + (FAULT % (len(lines) - 1)).encode())
    return faulty


def parse_all(path: Path) -> int:
    """The yardstick: ``json.loads`` of each line."""
    with path.open("rb") as file:
        return sum(1 for line in file if json.loads(line))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of this process, and the result."""
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result


def bench_validator(operations: int) -> None:
    """Operations a second, and the ratio to the yardstick."""
    with tempfile.TemporaryDirectory() as folder:
        path = recording(Path(folder), operations)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        yardstick, lines = timed(lambda: parse_all(path))
        seconds, found = timed(lambda: validate([path]))
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found_fault: Validation = timed(lambda: validate([with_fault(path)]))[1]
        size = path.stat().st_size
    assert found.violation is None, found.violation
    assert found_fault.violation is not None
    print(f"validator: {found.judged:,} operations, {size / lines:.0f} bytes a line")
    print(f"  json.loads alone     {yardstick:8.2f} s  {lines / yardstick:10,.0f} lines/s")
    print(f"  validate             {seconds:8.2f} s  {found.judged / seconds:10,.0f} operations/s")
    print(f"  ratio                {seconds / yardstick:8.2f} times json.loads")
    print(f"  1,000,000 operations {1e6 * seconds / found.judged:8.2f} s")
    print(f"  most prefixes {found.most_prefixes:,}; memory grew by {(after - before) / 1024:.0f} MiB")
    print(f"  fault in the last line: {found_fault.violation.clause} at operation {found_fault.last[-1][0]:,}")


# Recorder ------------------------------------------------------------------------------------------------------------


def prepared(prompt: int) -> tuple[BlockManager, list[Any]]:
    """32 sequences that have been computed."""
    Sequence.block_size = BLOCK
    manager = BlockManager(SEQUENCES * (prompt // BLOCK + 80), BLOCK)
    sequences = []
    for number in range(SEQUENCES):
        sequence = Sequence([number, *range(prompt - 1)])
        manager.allocate(sequence, manager.can_allocate(sequence))
        sequence.num_scheduled_tokens = len(sequence)
        manager.hash_blocks(sequence)
        sequence.num_cached_tokens = len(sequence)
        sequences.append(sequence)
    return manager, sequences


def decode(manager: Any, sequences: list[Any], steps: int) -> tuple[float, float]:
    """Seconds that the manager's calls of a decode step take: on the engine's thread, and by the clock."""
    own = clock = 0.0
    for token in range(steps):
        for sequence in sequences:
            sequence.append_token(token)
            sequence.num_scheduled_tokens = 1
        begin, since = time.thread_time(), time.perf_counter()
        for sequence in sequences:
            manager.can_append(sequence)
            manager.may_append(sequence)
        for sequence in sequences:
            manager.hash_blocks(sequence)
        own, clock = own + time.thread_time() - begin, clock + time.perf_counter() - since
        for sequence in sequences:
            sequence.num_cached_tokens += 1
        time.sleep(FORWARD)
    return own / steps, clock / steps


FORWARD = 0.005  # seconds that the engine waits for the accelerator in each step; the recorder writes meanwhile


def bench_recorder(prompt: int, steps: int) -> None:
    """The recorder's share of a decode step."""
    plain = decode(*prepared(prompt), steps)
    with tempfile.TemporaryDirectory() as folder:
        manager, sequences = prepared(prompt)
        recorder = record(manager, Path(folder) / "kv.ndjson")
        recorded = decode(manager, sequences, steps)
        recorder.close()
        if recorder.error:
            raise recorder.error
    more = recorded[0] - plain[0]
    print(
        f"recorder: decode step of {SEQUENCES} sequences with tables of {prompt // BLOCK} to {prompt // BLOCK + steps // BLOCK}"
    )
    print(f"  manager alone        {1e6 * plain[0]:8.1f} us a step")
    print(f"  recorded             {1e6 * recorded[0]:8.1f} us a step, {1e6 * more / SEQUENCES:.2f} us more a sequence")
    print(
        f"  overhead             {more / plain[0]:8.1%} of the manager's time, {more / FORWARD:.1%} of a forward pass of 5 ms"
    )


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=200_000)
    parser.add_argument("--steps", type=int, default=400)
    given = parser.parse_args()
    bench_validator(given.operations)
    for prompt in (64, 1024):
        bench_recorder(prompt, given.steps)


if __name__ == "__main__":
    main()
