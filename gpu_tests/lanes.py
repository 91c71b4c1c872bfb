"""Lanes that compute attention: warm (through the tables, with hits) against cold (one pass, contiguous, no cache)."""

import functools
import itertools
from collections.abc import Sequence

import numpy as np

from . import fingerprint
from .decoder import Decoder
from .engine import Chunk, Run
from .findings import Difference, Findings


class AttentionLane:
    """Compares the logits of every computed row; `tolerance` is in logits, None asks for equal bits."""

    def __init__(self, decoder: Decoder, tolerance: float | None = None) -> None:
        self.decoder, self.tolerance, self.name = decoder, tolerance, decoder.name

    def replay(self, run: Run) -> Findings:
        """Compute all steps of a run on a fresh poisoned pool."""
        findings, size = Findings(), run.world.block_size
        whole = {request.name: request for request in run.workload.requests}
        foreign = {(place.step, place.sequence): place for place in fingerprint.replay(run).differences}
        pool = self.decoder.new_pool(run.slots)
        for step, chunks in enumerate(run.steps):
            warm = self.decoder.forward(pool, chunks, size)
            for chunk, logits in zip(chunks, warm, strict=True):
                request = whole[chunk.sequence]
                cold = self.decoder.cold(request.tokens, request.namespace)[chunk.start : chunk.end]
                place = foreign.get((step, chunk.sequence))
                self._compare(findings, step, chunk, logits, cold, place)
        return findings

    def _compare(
        self, findings: Findings, step: int, chunk: Chunk, warm: np.ndarray, cold: np.ndarray, place: Difference | None
    ) -> None:
        """`warm`, `cold`: logits [rows, vocabulary] of one chunk; `place`: where its table leads to foreign K/V."""
        sizes = np.abs(warm - cold).max(-1)
        unequal = (bits(warm) != bits(cold)).any(-1)
        wrong = unequal if self.tolerance is None else ~(sizes <= self.tolerance)  # NaN is wrong as well
        findings.rows += len(sizes)
        findings.unequal += int(unequal.sum())
        findings.poisoned += int(np.isnan(sizes).sum())
        findings.flips += int((warm.argmax(-1) != cold.argmax(-1)).sum())
        finite = np.nan_to_num(sizes, nan=0.0)
        findings.largest = max(findings.largest, float(finite.max()))
        findings.wrong = max(findings.wrong, float((finite * wrong).max()))
        if wrong.any():
            row = int(np.argmax(wrong))
            findings.differences.append(_difference(step, chunk, row, float(sizes[row]), place))


def _difference(step: int, chunk: Chunk, row: int, size: float, place: Difference | None) -> Difference:
    because = f"the logits differ by {size:.3g}"
    if place is None:
        return Difference(step, chunk.sequence, chunk.start + row, -1, -1, -1, because, size)
    because = f"{because}; {place.because}"
    return Difference(step, chunk.sequence, chunk.start + row, place.position, place.block, place.slot, because, size)


def bits(values: np.ndarray) -> np.ndarray:
    """The bit patterns of float32 numbers: -0.0 and +0.0 differ."""
    return np.ascontiguousarray(values, dtype=np.float32).view(np.int32)


@functools.cache
def noise_floor(decoder: Decoder, samples: int = 12) -> float:
    """How far the kernel is from itself without any block manager, in logits.

    Random sequences, contiguous K/V: one pass against random chunks and against one token at a time; the largest
    difference.  What a prefix hit changes for a correct manager is the chunking, and nothing else.
    """
    rng = np.random.default_rng(7)
    largest = 0.0
    for sample in range(samples):
        tokens = tuple(int(token) for token in rng.integers(0, 97, size=int(rng.integers(12, 49))))
        cuts = range(1, len(tokens)) if sample % 3 == 0 else sorted(set(rng.integers(1, len(tokens), size=4).tolist()))
        parts = _in_chunks(decoder, tokens, [0, *cuts, len(tokens)])
        largest = max(largest, float(np.abs(parts - decoder.cold(tokens)).max()))
    return largest


def tolerance(decoder: Decoder) -> float:
    """Four noise floors: the floor is a maximum over some 300 rows, a run compares about as many."""
    return 4 * noise_floor(decoder)


def _in_chunks(decoder: Decoder, tokens: tuple[int, ...], ends: Sequence[int]) -> np.ndarray:
    pool, table = decoder.new_pool(len(tokens)), tuple(range(len(tokens)))
    logits = [
        decoder.forward(pool, (Chunk("floor", tokens[:end], start, table, 0),), 1)[0]
        for start, end in itertools.pairwise(ends)
    ]
    return np.concatenate(logits)
