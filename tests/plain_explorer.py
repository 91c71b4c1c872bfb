"""A second explorer, as plain as can be: deep copies, the judge called at each transition, states written out in full.

It shares the alphabet of operations with ``conformance.explorer`` and nothing else, so that equal numbers mean something.
"""

import copy
from collections.abc import Callable
from itertools import permutations
from typing import Any

from kvspec.conformance.explorer.world import Alphabet, SmallWorld
from kvspec.conformance.lockstep import ask, key_function
from kvspec.impl.adapter import Implementation
from kvspec.spec.declaration import Publish
from kvspec.spec.judge import Violation, begin, judge
from kvspec.spec.state import EMPTY, Snapshot, State


def explore_plainly(
    implementation: Implementation,
    world: SmallWorld,
    muted: frozenset[str] = frozenset(),
    most: int = 10**9,
    copied: Callable[[Any], Any] = copy.deepcopy,
) -> tuple[list[int], int, list[Any] | Violation]:
    """States by depth, transitions, and a shortest program with its violation (empty if there is none)."""
    alphabet, adapter = Alphabet(world), implementation.create(world.world)
    state = begin(world.world, implementation.declaration)
    state.muted, state.shown, state.key_of = muted, adapter.snapshot(), key_function(implementation, state)
    frontier: list[Any] = [(adapter, state, ())]
    visited, levels, transitions = {written_out(state, world)}, [1], 0
    while frontier:
        following: list[Any] = []
        for adapter, state, program in frontier:
            if transitions >= most:
                return levels, transitions, []
            for number in alphabet.possible(state).operations:
                operation, mine = alphabet.operations[number], copied(adapter)
                outcome = ask(mine, operation)
                after = judge(state, operation, outcome, mine.snapshot())
                transitions += 1
                if isinstance(after, Violation):
                    return levels, transitions, [*program, operation, after.clause]
                if (key := written_out(after, world)) not in visited:
                    visited.add(key)
                    following.append((mine, after, (*program, operation)))
        frontier = following
        levels += [len(following)] if following else []
    return levels, transitions, []


def written_out(state: State, world: SmallWorld) -> Any:
    """The state, the smallest of all ways to number the tokens; sequences lose their names."""
    numberings = permutations(range(world.tokens)) if not world.weak_hash else [range(world.tokens)]
    return min(repr(_numbered(state, tuple(tokens))) for tokens in numberings)


def _numbered(state: State, tokens: tuple[int, ...]) -> Any:
    def spell(prefix: int) -> Any:
        return prefix if prefix < 0 else [tokens[token] for token in state.prefixes.spell(prefix)]

    def sequence(name: str) -> Any:
        s, counted = state.sequences[name], state.ledger.computed[name]
        prompt = s.admitted if state.declaration.publish is Publish.PROMPT else 0
        return [tokens[t] for t in s.tokens], s.table, s.computed, s.reserved, s.unread, counted, prompt

    def block(number: int) -> Any:
        held, size = state.ledger.identity[number], state.world.block_size
        slots = [spell(state.memory.get(number * size + offset, EMPTY)) for offset in range(size)]
        registered = (spell(held), spell(state.ledger.hash[number]), slots if held != EMPTY else None)
        return *registered, number in state.copies.get(held, ()), held in state.twinned, freed.get(number)

    releases = sorted({release for release, _ in state.freed.values()} - {0})
    freed = {}
    for number, (release, entry) in state.freed.items():
        before = sum(other < entry for when, other in state.freed.values() if when == release)
        freed[number] = (releases.index(release) + 1, before) if release else (0, 0)
    everything = sorted(map(sequence, state.sequences)), len(state.released & set("ABCD"))
    blocks = [block(number) for number in sorted(state.blocks)]
    return everything, blocks, _shown(state.shown, tokens)


def _shown(shown: Snapshot | None, tokens: tuple[int, ...]) -> Any:
    if shown is None:
        return None
    hashes: dict[Any, int] = {}
    named = [None if value is None else hashes.setdefault(value, len(hashes)) for value in shown.hashes or ()]
    contents = [[tokens[token] for token in content] for content in shown.contents or ()]
    index = sorted((hashes.get(key, -1), block) for key, block in shown.index or ())
    return shown.free, sorted(shown.used or ()), shown.owned, shown.references, named, contents, index
