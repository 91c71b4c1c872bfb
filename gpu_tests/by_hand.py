"""Change one block of one table in a recorded run, by hand: the simplest fault that every lane must see."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from .engine import Run


@dataclass(frozen=True, slots=True)
class Changed:
    """A run in which entry `entry` of one chunk's table now names `block`, which holds other K/V."""

    run: Run
    step: int
    sequence: str
    entry: int
    block: int


def change_one_block(run: Run) -> Changed:
    """The first change that is possible after the middle of the run."""
    return next(changed for changed in every_change(run) if changed.step >= len(run.steps) // 2)


def every_change(run: Run) -> Iterator[Changed]:
    """All runs that differ in one entry which one chunk only reads; the new block holds another prefix, or nothing."""
    size = run.world.block_size
    first_slot: dict[int, tuple[str, tuple[int, ...]]] = {}  # block -> namespace and prefix in its first slot
    for step, chunks in enumerate(run.steps):
        for chunk in chunks:
            for entry in range(chunk.start // size, len(chunk.table)):
                first_slot[chunk.table[entry]] = (chunk.namespace, chunk.tokens[: entry * size + 1])
        for place, chunk in enumerate(chunks):
            for entry in range(chunk.start // size):
                wanted = (chunk.namespace, chunk.tokens[: entry * size + 1])
                other = next(block for block in range(run.blocks) if first_slot.get(block) != wanted)
                yield Changed(_with(run, step, place, entry, other), step, chunk.sequence, entry, other)


def _with(run: Run, step: int, place: int, entry: int, block: int) -> Run:
    chunk = run.steps[step][place]
    table = (*chunk.table[:entry], block, *chunk.table[entry + 1 :])
    chunks = (*run.steps[step][:place], replace(chunk, table=table), *run.steps[step][place + 1 :])
    return replace(run, steps=[*run.steps[:step], chunks, *run.steps[step + 1 :]])
