"""The provenance lane: the bytes in each slot that is read are bytes that were once computed for that very prefix.

It compares K/V with K/V and never one kernel result with another, so it is exact for any deterministic kernel, batch
invariant or not.  One prefix may have several versions of bytes: two requests may have computed it in chunks of
different lengths.
"""

from collections import defaultdict

import numpy as np

from kvspec.spec.state import EMPTY, Prefixes

from .decoder import Decoder, Pool
from .engine import Chunk, Run
from .findings import Difference, Findings
from .places import slots_of


class ProvenanceLane:
    """Replays a run with one decoder and keeps every version of every prefix's K/V."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder, self.name = decoder, f"provenance, {decoder.name}"

    def replay(self, run: Run) -> Findings:
        """All writes of a step are recorded, then all its reads are checked."""
        findings, size = Findings(), run.world.block_size
        prefixes, versions = Prefixes(), defaultdict(set)
        pool = self.decoder.new_pool(run.slots)
        for step, chunks in enumerate(run.steps):
            self.decoder.forward(pool, chunks, size)
            seen = [self._bytes(pool, slots_of(chunk, size)) for chunk in chunks]
            ends = [prefixes.extend(prefixes.child(EMPTY, chunk.namespace), chunk.tokens) for chunk in chunks]
            for chunk, found, prefix in zip(chunks, seen, ends, strict=True):
                for position in range(chunk.start, chunk.end):
                    versions[prefix[position]].add(found[position])
            for chunk, found, prefix in zip(chunks, seen, ends, strict=True):
                wrong = [p for p in range(chunk.start) if found[p] not in versions[prefix[p]]]
                findings.rows += chunk.start
                findings.unequal += len(wrong)
                findings.differences += [self._difference(step, chunk, wrong[0], size)] if wrong else []
        return findings

    def _bytes(self, pool: Pool, slots: np.ndarray) -> list[bytes]:
        """Per position, the bytes of K and V of all layers."""
        index = self.decoder.arithmetic.index(slots)
        parts = [self.decoder.arithmetic.raw(kind[index]) for layer in pool for kind in layer]
        return [row.tobytes() for row in np.concatenate(parts, -1)]

    def _difference(self, step: int, chunk: Chunk, position: int, size: int) -> Difference:
        block = chunk.table[position // size]
        because = f"the slot's bytes were never computed for {list(chunk.tokens[: position + 1])}"
        return Difference(step, chunk.sequence, chunk.end - 1, position, block, block * size + position % size, because)
