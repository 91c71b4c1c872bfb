"""Where a position lives: from a block table to slots."""

import numpy as np

from .engine import Chunk


def slots_of(chunk: Chunk, block_size: int) -> np.ndarray:
    """The slot of each position 0 .. `chunk.end - 1`, shape [end]: ``table[p // size] * size + p % size``."""
    positions = np.arange(chunk.end)
    return np.asarray(chunk.table)[positions // block_size] * block_size + positions % block_size
