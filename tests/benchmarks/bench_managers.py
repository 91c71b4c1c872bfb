"""The hardened manager against the seed's, and vLLM's, the same workload in turn in one process.

``python -m tests.benchmarks.bench_managers [--vllm vllm:FILE.whl]`` prints processor time, and how many times
as long as the hardened manager the others take; ``--plot FILE`` draws the cost of an admission over the size of the pool.
A time of this machine says little; the ratio of two managers that ran in turn says much.
"""

import argparse
import gc
import random
import time
from collections.abc import Callable

from tests.benchmarks.engines import ENGINES, Engine, Vllm

Workload = Callable[[Engine, int], float]


def admitted(engine: Engine, tokens: list[int]) -> object:
    """Admit a prompt and compute all of it."""
    request = engine.admit(tokens)
    engine.compute(request)
    return request


def prompt(number: int, blocks: int, size: int) -> list[int]:
    """A prompt that shares no block with that of another number."""
    return [number * 1_000_003 % 150_000 + i for i in range(blocks * size + 1)]


def _repeated_hits(engine: Engine, size: int, position: float) -> float:
    """Seconds an admission of 32 cached blocks that are free and stand at `position` in the queue (0 front, 1 end)."""
    hit, rounds = 32, 12
    wanted = prompt(0, hit, size)
    engine.release(admitted(engine, wanted))
    free = engine.free_blocks()
    others = free[: len(free) - hit - 1]
    behind = others[int(len(others) * position) :]
    engine.make_free_last(behind)
    spent = 0.0
    for _ in range(rounds):
        chill()
        begin = time.thread_time()
        request = engine.admit(wanted)
        spent += time.thread_time() - begin
        assert engine.cached(request) == hit, "the workload is meant to hit"
        engine.release(request)
        engine.make_free_last(behind)
    return spent / rounds


def chill() -> None:
    """Push everything out of the processor's caches, as an engine's own work between two admissions does.

    Else a small pool would be measured in warm caches and a large one, which does not fit, in cold ones.
    """
    bytes(64 << 20).count(1)


def hits_in_the_middle(engine: Engine, size: int) -> float:
    """Admissions of 32 cached blocks that stand in the middle of the queue of free blocks."""
    return _repeated_hits(engine, size, 0.5)


def hits_at_the_tail(engine: Engine, size: int) -> float:
    """The same at the end of the queue: the blocks became free last."""
    return _repeated_hits(engine, size, 1.0)


def shared_prefixes(engine: Engine, size: int) -> float:
    """Prompts with a common system prompt, admitted, computed, decoded for some tokens, and released."""
    draw, system = random.Random(1), prompt(7, 8, size)[: 8 * size]
    begin = time.thread_time()
    for number in range(60):
        request = admitted(engine, system + prompt(number, draw.randint(1, 4), size))
        for token in range(8):
            engine.decode(request, token)
        engine.release(request)
    return (time.thread_time() - begin) / 60


def decode(engine: Engine, size: int) -> float:
    """32 sequences decode in turn, seconds a token."""
    requests = [admitted(engine, prompt(number, 2, size)) for number in range(32)]
    steps = 4 * size
    begin = time.thread_time()
    for token in range(steps):
        for request in requests:
            engine.decode(request, token)
    return (time.thread_time() - begin) / (steps * 32)


def preemption(engine: Engine, size: int) -> float:
    """Sequences are preempted and come back with all their tokens."""
    waiting = [prompt(number, 6, size) for number in range(20)]
    begin = time.thread_time()
    for _ in range(3):
        running = [admitted(engine, tokens) for tokens in waiting]
        for request in running:
            engine.release(request)
    return (time.thread_time() - begin) / 60


WORKLOADS: dict[str, Workload] = {
    "hits in the middle": hits_in_the_middle,
    "hits at the tail": hits_at_the_tail,
    "shared prefixes": shared_prefixes,
    "decode": decode,
    "preemption": preemption,
}


def measure(
    workload: Workload, makers: dict[str, Callable[[int, int], Engine]], pool: int, size: int, rounds: int
) -> dict[str, float]:
    """Least seconds a unit of work of each manager, as `timeit` advises; they run in turn, each time on a fresh pool."""
    spent: dict[str, list[float]] = {name: [] for name in makers}
    for _ in range(rounds):
        for name, make in makers.items():
            engine = make(pool, size)
            gc.collect()
            gc.disable()  # a pool of a million Python objects makes collections dear; engines freeze or disable them
            spent[name].append(workload(engine, size))
            gc.enable()
    return {name: min(times) for name, times in spent.items()}


def main() -> None:
    """Measure, print, and draw if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pools", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--block-size", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--vllm", metavar="TARGET", help="vllm, vllm:FILE.whl or vllm:FOLDER")
    parser.add_argument("--plot")
    asked = parser.parse_args()
    makers = dict(ENGINES)
    if asked.vllm:
        makers["vLLM"] = lambda blocks, size: Vllm(asked.vllm, blocks, size)
    others = [name for name in makers if name != "hardened"]
    curves: dict[str, list[float]] = {name: [] for name in makers}
    heads = [f"{name + ', µs':>14}" for name in makers] + [f"{name + ' / hardened':>17}" for name in others]
    print(f"{'workload':20} {'pool':>9} " + " ".join(heads))
    for title, workload in WORKLOADS.items():
        for pool in asked.pools:
            found = measure(workload, makers, pool, asked.block_size, asked.rounds)
            cells = [f"{found[name] * 1e6:14.1f}" for name in makers]
            cells += [f"{found[name] / found['hardened']:15.1f} x" for name in others]
            print(f"{title:20} {pool:9,} " + " ".join(cells), flush=True)
            if workload is hits_in_the_middle:
                for name in makers:
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
