"""A paged-attention kernel in Triton whose bits do not depend on chunking, batch, block size or block numbers.

Fixed tiles, no split, no atomics, no tuning: a program takes 16 rows of one head of one sequence and walks the K/V in
tiles of fixed length in logical order, each token addressed through the block table.  Prefill and decode use the same
tile.  What a row becomes then depends on its query, its position and the K/V of its prefix, and on nothing else.

With TRITON_INTERPRET=1 in the environment before the import the same kernel runs on NumPy, without a GPU: that checks
indexing, masks and tables, not the numbers of a GPU.
"""

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from .backends import TorchBackend
from .decoder import Reads
from .portable import Portable

ROWS = 16  # query rows a program; 64 would compile to other instructions than 16
TILE = 32  # positions a step of the walk
LOG2E = 1.4426950408889634


@triton.jit
def paged_attention(
    query, keys, values, tables, starts, firsts, slopes, output, scale, table_width,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, BLOCK: tl.constexpr, SIZE: tl.constexpr,
    ROWS: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """`query`, `output`: [rows, HEADS, SIZE]; `keys`, `values`: [slots, KV_HEADS, SIZE]; `tables`: [sequences, width].

    `starts`: position of the first row of each sequence.  `firsts`: its first row, and one past the last sequence's.
    `slopes`: per head, what a position of distance takes off the score, base 2.
    """
    head, sequence = tl.program_id(1), tl.program_id(2)
    first, start = tl.load(firsts + sequence), tl.load(starts + sequence)
    count = tl.load(firsts + sequence + 1) - first
    begin = tl.program_id(0) * ROWS
    if begin >= count:
        return
    rows, column = begin + tl.arange(0, ROWS), tl.arange(0, SIZE)
    own, length = rows < count, start + count
    place = (first + rows)[:, None] * (HEADS * SIZE) + head * SIZE + column[None, :]
    q = tl.load(query + place, mask=own[:, None], other=0.0)
    kv_head, slope = head // (HEADS // KV_HEADS), tl.load(slopes + head)
    top = tl.full((ROWS,), -1.0e30, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    sums = tl.zeros((ROWS, SIZE), tl.float32)
    for tile in range(0, tl.minimum(start + begin + ROWS, length), TILE):
        position = tile + tl.arange(0, TILE)
        exists = position < length
        block = tl.load(tables + sequence * table_width + position // BLOCK, mask=exists, other=0).to(tl.int64)
        slot = (block * BLOCK + position % BLOCK) * (KV_HEADS * SIZE) + kv_head * SIZE
        k = tl.load(keys + slot[None, :] + column[:, None], mask=exists[None, :], other=0.0)
        distance = (start + rows)[:, None] - position[None, :]
        scores = tl.dot(q, k, input_precision="ieee") * scale - distance.to(tl.float32) * slope
        # masked before exp2, and V is zero past the context: an unwritten slot can't reach a row that does not see it
        scores = tl.where((distance >= 0) & exists[None, :], scores, float("-inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.math.exp2(scores - higher[:, None])
        shrink = tl.math.exp2(top - higher)
        v = tl.load(values + slot[:, None] + column[None, :], mask=exists[:, None], other=0.0)
        total = total * shrink + tl.sum(weights, 1)
        sums = sums * shrink[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
        top = higher
    tl.store(output + place, (sums / total[:, None]).to(output.dtype.element_ty), mask=own[:, None])


def attend(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    tables: torch.Tensor,
    starts: torch.Tensor,
    firsts: torch.Tensor,
    slopes: torch.Tensor,
    block_size: int,
) -> torch.Tensor:
    """Launch for a batch of sequences; shapes as in the kernel, `tables`, `starts` and `firsts` are int32."""
    _, heads, size = query.shape
    longest = int((firsts[1:] - firsts[:-1]).max())
    output = torch.empty_like(query)
    grid = (triton.cdiv(longest, ROWS), heads, len(starts))
    paged_attention[grid](
        query.contiguous(), keys, values, tables, starts, firsts, slopes, output,
        LOG2E / size**0.5, tables.shape[1],
        HEADS=heads, KV_HEADS=keys.shape[1], BLOCK=block_size, SIZE=size, ROWS=ROWS, TILE=TILE,
    )  # fmt: skip
    return output


class PagedTriton(Portable):
    """The portable decoder with its attention replaced by the kernel."""

    def __init__(self, device: str = "cuda") -> None:
        super().__init__(TorchBackend(device))
        self.name = f"triton paged attention, {device}"
        self.device = device

    def prepare(self, reads: Reads) -> dict[str, Any]:
        """One sequence as a batch: its table, its first position, its rows."""
        chunk = reads.chunk
        return {
            "tables": self._whole([chunk.table]),
            "starts": self._whole([chunk.start]),
            "firsts": self._whole([0, chunk.end - chunk.start]),
            "slopes": torch.as_tensor(reads.slopes.astype(np.float32), device=self.device),
            "block_size": reads.block_size,
        }

    def attention(self, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, prepared: Any) -> torch.Tensor:
        return attend(queries, keys, values, **prepared)

    def _whole(self, numbers: Any) -> torch.Tensor:
        return torch.tensor(numbers, dtype=torch.int32, device=self.device)
