"""How fast small worlds are explored, side by side with a plain explorer that deep-copies manager and judge.

``python -m tests.benchmarks.bench_explorer [--impl bundled] [--seconds 10]`` prints transitions a CPU second of both, their
ratio, and the bytes that a visited state costs.
"""

import argparse
import time
import tracemalloc

from kvspec.conformance.explorer.search import Search, undeclared
from kvspec.conformance.explorer.world import SmallWorld
from kvspec.impl.adapter import Implementation
from kvspec.impl.loader import load
from tests.plain_explorer import explore_plainly

WORLDS = (SmallWorld(2, 2, 2, 2, 4), SmallWorld(3, 2, 2, 1, 4), SmallWorld(3, 2, 2, 2, 4))


def rate(implementation: Implementation, world: SmallWorld, seconds: float) -> tuple[float, int]:
    """Transitions a CPU second of the explorer, and how many there were."""
    search, started = Search(implementation, world, undeclared(implementation.declaration)), time.process_time()
    search.run(limit_seconds=seconds)
    return search.transitions / (time.process_time() - started), search.transitions


def plain_rate(implementation: Implementation, world: SmallWorld, transitions: int) -> float:
    """The same of the plain explorer, over about as many transitions."""
    started = time.process_time()
    done = explore_plainly(implementation, world, undeclared(implementation.declaration), transitions)[1]
    return done / (time.process_time() - started)


def bytes_a_state(implementation: Implementation, world: SmallWorld) -> float:
    """What stays allocated for each visited state once a world is exhausted."""
    tracemalloc.start()
    search = Search(implementation, world, undeclared(implementation.declaration))
    search.run()
    visited, parents, causes = search.visited, search.parents, search.causes
    states = len(visited)
    del search
    import gc

    gc.collect()
    with_all = tracemalloc.get_traced_memory()[0]
    visited.clear()
    del parents, causes
    gc.collect()
    without = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (with_all - without) / states


def main() -> None:
    """Print a line a world."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--impl", default="bundled")
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    implementation = load(options.impl)
    for world in WORLDS:
        fast, transitions = rate(implementation, world, options.seconds)
        plain = plain_rate(implementation, world, min(transitions, 20_000))
        print(f"{world.label}: {fast:,.0f} transitions/s, plain {plain:,.0f}/s, {fast / plain:.1f} times as fast")
    print(f"{bytes_a_state(implementation, WORLDS[1]):.0f} bytes a visited state")


if __name__ == "__main__":
    main()
