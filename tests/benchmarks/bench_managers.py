"""The hardened manager against the seed's, the same workload in turn in one process: ``python -m tests.benchmarks.bench_managers``.

Processor time, medians and ratios; ``--plot FILE`` draws the cost of an admission over the size of the pool.  A time of this
machine says little; the ratio of two managers that ran in turn says much.
"""

import argparse
import gc
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from kvspec.impl import block_manager, hardened
from kvspec.impl.sequence import Sequence

MANAGERS: dict[str, Callable[[int, int], Any]] = {"seed": block_manager.BlockManager, "hardened": hardened.BlockManager}
Workload = Callable[[Any, int], float]


def admitted(manager: Any, tokens: list[int]) -> Sequence:
    """Admit a prompt, compute all of it and publish its blocks."""
    sequence = Sequence(tokens)
    cached = manager.can_allocate(sequence)
    manager.allocate(sequence, cached)
    finish_step(manager, sequence, len(tokens) - sequence.num_cached_tokens)
    return sequence


def finish_step(manager: Any, sequence: Sequence, count: int) -> None:
    """The forward pass over the next `count` tokens has ended."""
    sequence.num_scheduled_tokens = count
    manager.hash_blocks(sequence)
    sequence.num_cached_tokens += count
    sequence.num_scheduled_tokens = 0


def prompt(number: int, blocks: int, size: int) -> list[int]:
    """A prompt that shares no block with that of another number."""
    return [number * 1_000_003 % 150_000 + i for i in range(blocks * size + 1)]


def _repeated_hits(manager: Any, size: int, position: float) -> float:
    """Seconds an admission of 32 cached blocks that are free and stand at `position` in the queue (0 front, 1 end)."""
    pool, hit = len(manager.blocks), 32
    wanted = prompt(0, hit, size)
    before = int((pool - hit - 1) * position)
    queue = list(manager.free_block_ids)
    holder = admitted(manager, wanted)
    fillers = queue[len(holder.block_table) :]
    manager.deallocate(holder)
    _rotate(manager, fillers[before:])
    spent, rounds = 0.0, 12
    for _ in range(rounds):
        sequence = Sequence(wanted)
        chill()
        begin = time.thread_time()
        cached = manager.can_allocate(sequence)
        manager.allocate(sequence, cached)
        spent += time.thread_time() - begin
        assert cached == hit, "the workload is meant to hit"
        manager.deallocate(sequence)
        _rotate(manager, fillers[before:])
    return spent / rounds


def chill() -> None:
    """Push everything out of the processor's caches, as an engine's own work between two admissions does.

    Else a small pool would be measured in warm caches and a large one, which does not fit, in cold ones.
    """
    bytes(64 << 20).count(1)


def _rotate(manager: Any, blocks: list[int]) -> None:
    """Move free blocks to the end of the queue, not counted: so many blocks became free after the cached ones."""
    free, moved = manager.free_block_ids, set(blocks)
    order = [block for block in free if block not in moved] + blocks
    free.clear()
    if hasattr(free, "extend"):
        free.extend(order)
    else:
        free.update(dict.fromkeys(order))


def hits_in_the_middle(manager: Any, size: int) -> float:
    """Admissions of 32 cached blocks that stand in the middle of the queue of free blocks."""
    return _repeated_hits(manager, size, 0.5)


def hits_at_the_tail(manager: Any, size: int) -> float:
    """The same at the end of the queue: the blocks became free last."""
    return _repeated_hits(manager, size, 1.0)


def shared_prefixes(manager: Any, size: int) -> float:
    """Prompts with a common system prompt, admitted, computed, decoded for some tokens, and released."""
    draw, system = random.Random(1), prompt(7, 8, size)[: 8 * size]
    begin = time.thread_time()
    for number in range(60):
        sequence = admitted(manager, system + prompt(number, draw.randint(1, 4), size))
        for token in range(8):
            sequence.append_token(token)
            assert manager.can_append(sequence)
            manager.may_append(sequence)
            finish_step(manager, sequence, 1)
        manager.deallocate(sequence)
    return (time.thread_time() - begin) / 60


def decode(manager: Any, size: int) -> float:
    """32 sequences decode in turn, seconds a token."""
    sequences = [admitted(manager, prompt(number, 2, size)) for number in range(32)]
    steps = 4 * size
    begin = time.thread_time()
    for token in range(steps):
        for sequence in sequences:
            sequence.append_token(token)
            assert manager.can_append(sequence)
            manager.may_append(sequence)
            finish_step(manager, sequence, 1)
    return (time.thread_time() - begin) / (steps * 32)


def preemption(manager: Any, size: int) -> float:
    """Sequences are preempted and come back with all their tokens."""
    waiting = [prompt(number, 6, size) for number in range(20)]
    begin = time.thread_time()
    for _ in range(3):
        running = [admitted(manager, tokens) for tokens in waiting]
        for sequence in running:
            manager.deallocate(sequence)
    return (time.thread_time() - begin) / 60


WORKLOADS: dict[str, Workload] = {
    "hits in the middle": hits_in_the_middle,
    "hits at the tail": hits_at_the_tail,
    "shared prefixes": shared_prefixes,
    "decode": decode,
    "preemption": preemption,
}


def measure(workload: Workload, pool: int, size: int, rounds: int) -> dict[str, float]:
    """Median seconds a unit of work of each manager; they run in turn, each time on a fresh pool."""
    Sequence.block_size = size
    spent: dict[str, list[float]] = {name: [] for name in MANAGERS}
    for _ in range(rounds):
        for name, make in MANAGERS.items():
            manager = make(pool, size)
            gc.collect()
            gc.disable()  # a pool of a million Python objects makes collections dear; engines freeze or disable them
            spent[name].append(workload(manager, size))
            gc.enable()
    return {name: statistics.median(times) for name, times in spent.items()}


def main() -> None:
    """Measure, print, and draw if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pools", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--block-size", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--plot")
    asked = parser.parse_args()
    curves: dict[str, list[float]] = {name: [] for name in MANAGERS}
    print(f"{'workload':20} {'pool':>9} " + " ".join(f"{name + ', µs':>14}" for name in MANAGERS) + "  seed / hardened")
    for title, workload in WORKLOADS.items():
        for pool in asked.pools:
            found = measure(workload, pool, asked.block_size, asked.rounds)
            times = " ".join(f"{found[name] * 1e6:14.1f}" for name in MANAGERS)
            print(f"{title:20} {pool:9,} {times}  {found['seed'] / found['hardened']:8.1f} x")
            if workload is hits_in_the_middle:
                for name in MANAGERS:
                    curves[name].append(found[name])
    if asked.plot:
        draw_curves(asked.pools, curves, asked.plot)


def draw_curves(pools: list[int], curves: dict[str, list[float]], path: str) -> None:
    """Admission of 32 cached blocks in the middle of the queue, over the size of the pool."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for name, times in curves.items():
        axes.loglog(pools, [each * 1e6 for each in times], marker="o", label=name)
    axes.set(xlabel="blocks in the pool", ylabel="microseconds an admission of 32 cached blocks")
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    main()
