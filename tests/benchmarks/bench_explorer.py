"""How fast small worlds are explored, side by side with plain explorers, and what a visited state costs.

``python -m tests.benchmarks.bench_explorer [--impl bundled] [--seconds 10]`` prints, for each world, transitions a CPU
second of the explorer, of a plain one that uses the manager's own copies, and of a plain one that deep-copies.
"""

import argparse
import copy
import sys
import time
from collections.abc import Callable
from typing import Any

from kvspec.conformance.explorer.search import Search, undeclared
from kvspec.conformance.explorer.world import SmallWorld
from kvspec.impl.adapter import Implementation
from kvspec.impl.loader import load
from tests.plain_explorer import explore_plainly

WORLDS = (SmallWorld(2, 2, 2, 2, 4), SmallWorld(3, 2, 2, 1, 4, partial_commits=True), SmallWorld(3, 2, 2, 2, 4))


def explored(implementation: Implementation, world: SmallWorld, seconds: float) -> tuple[Search, float]:
    """A finished search, and its transitions a CPU second."""
    search, started = Search(implementation, world, undeclared(implementation.declaration)), time.process_time()
    search.run(limit_seconds=seconds)
    return search, search.transitions / (time.process_time() - started)


def plain_rate(
    implementation: Implementation, world: SmallWorld, transitions: int, copied: Callable[[Any], Any]
) -> float:
    """The same of a plain explorer, over so many transitions."""
    muted, started = undeclared(implementation.declaration), time.process_time()
    done = explore_plainly(implementation, world, muted, transitions, copied)[1]
    return done / (time.process_time() - started)


def deep(adapter: Any) -> Any:
    """A deep copy that does not ask the adapter how it wants to be copied."""
    other = object.__new__(type(adapter))
    other.__dict__.update(copy.deepcopy(adapter.__dict__))
    return other


def bytes_a_state(search: Search) -> float:
    """What stays for each visited state: its key in the set, its parent and the operation that led to it."""
    keys = sum(map(sys.getsizeof, search.visited))
    return (keys + sum(map(sys.getsizeof, (search.visited, search.parents, search.causes)))) / len(search.visited)


def main() -> None:
    """Print a line a world."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--impl", default="bundled")
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    implementation = load(options.impl)
    for world in WORLDS:
        search, rate = explored(implementation, world, options.seconds)
        some = min(search.transitions, 10_000)
        own = plain_rate(implementation, world, some, copy.deepcopy)
        slow = plain_rate(implementation, world, some // 4, deep)
        print(
            f"{world.label}: {rate:,.0f} transitions/s; plain with own copies {own:,.0f} ({rate / own:.1f} times), "
            f"plain with deep copies {slow:,.0f} ({rate / slow:.1f} times); {bytes_a_state(search):.0f} bytes a state"
        )


if __name__ == "__main__":
    main()
