"""How many operations a second cross the pipe, one at a time and in batches: ``python -m tests.benchmarks.bench_pipe TARGET…``.

TARGET is a program as ``kvspec check`` takes it, for example ``"cmd:node impl/ports/javascript/main.js"`` (the default).  The
yardstick is the model in this process, on the same operations: what remains above it is the pipe and the program.
"""

import argparse
import time
from collections.abc import Callable
from random import Random

from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.explorer.search import undeclared
from kvspec.conformance.generator import Generator
from kvspec.conformance.lockstep import Lockstep, ask
from kvspec.impl.adapter import Adapter
from kvspec.impl.loader import load
from kvspec.impl.model_adapter import MODEL
from kvspec.spec import operations as op
from kvspec.spec.state import World

WORLD = World(8, 4)


def workload(count: int) -> list[op.Operation]:
    """`count` operations of the random driver, all legal for a manager that does what the model does."""
    lockstep = Lockstep(MODEL, WORLD, muted=undeclared(MODEL.declaration))
    generator = Generator(Random(0), CONTEXTS["chunked"], lockstep.state)
    for _ in range(count):
        assert lockstep.step(generator.next()) is None
    return lockstep.operations


def one_at_a_time(adapter: Adapter, operations: list[op.Operation]) -> int:
    """Each operation waits for its answer; the number of operations."""
    for operation in operations:
        ask(adapter, operation)
    return len(operations)


def batched(adapter: Adapter, operations: list[op.Operation]) -> int:
    """All operations are sent before the first answer is read; the number of operations."""
    return len(list(adapter.perform_all(operations)))  # type: ignore[attr-defined]


def rate(work: Callable[[Adapter, list[op.Operation]], int], target: str, operations: list[op.Operation]) -> float:
    """Operations a second by the clock: most of the time is spent in another process."""
    adapter = load(target).create(WORLD)
    begin = time.perf_counter()
    done = work(adapter, operations)
    assert done == len(operations)
    return done / (time.perf_counter() - begin)


def main() -> None:
    """Print a line a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", default=["cmd:node impl/ports/javascript/main.js"])
    parser.add_argument("--operations", type=int, default=20_000)
    asked = parser.parse_args()
    operations = workload(asked.operations)
    here = rate(one_at_a_time, "model", operations)
    print(f"model in this process: {here:,.0f} operations/s")
    for target in asked.targets:
        single, many = rate(one_at_a_time, target, operations), rate(batched, target, operations)
        print(f"{target}: {single:,.0f} operations/s one at a time, {many:,.0f} batched ({many / single:.1f} times)")


if __name__ == "__main__":
    main()
