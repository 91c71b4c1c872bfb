"""Arithmetic that is the same to the bit for every chunking, block table, library and device: by construction.

Every number is made by the same element-wise IEEE operations in the same order, however many rows are computed
together.  Sums run over a fixed tree.  The price is speed; the decoder is small.
"""

import math
from typing import Any

import numpy as np

from .backends import Array, NumPyBackend, TorchBackend
from .decoder import Reads

TILE = 16  # positions that are summed as one tree; tiles are then added in ascending order
# 2 ** f for f in [-1/2, 1/2], highest power first: the Taylor coefficients ln(2)**k / k!
EXP2 = (1.5403530e-4, 1.3333558e-3, 9.6181291e-3, 5.5504109e-2, 2.4022651e-1, 6.9314718e-1, 1.0)


class Portable:
    """Fixed-order fp32 arithmetic on a backend."""

    def __init__(self, backend: NumPyBackend | TorchBackend) -> None:
        self.backend, self.name = backend, f"portable {backend.name}"

    def array(self, values: np.ndarray) -> Array:
        return self.backend.array(values)

    def index(self, values: np.ndarray) -> Array:
        return self.backend.array(values)

    def numpy(self, values: Array) -> np.ndarray:
        return self.backend.numpy(values)

    def raw(self, values: Array) -> np.ndarray:
        rows = np.ascontiguousarray(self.backend.numpy(values))
        return rows.reshape(len(rows), -1).view(np.uint8)

    def pool(self, shape: tuple[int, ...]) -> Array:
        return self.backend.full(shape, math.nan)

    def concatenate(self, parts: list[Array]) -> Array:
        return self.backend.concatenate(parts)

    def rows(self, parts: list[Array]) -> Array:
        return self.backend.stack(parts)

    def linear(self, rows: Array, weight: Array) -> Array:
        return tree_sum(rows[:, None, :] * weight[None])

    def norm(self, rows: Array) -> Array:
        # by the mean magnitude: a root mean square needs a square root, which torch does not round correctly
        mean = tree_sum(self.backend.magnitude(rows)) * (1.0 / rows.shape[-1])
        return rows / (mean + 1e-6)[:, None]

    def activation(self, rows: Array) -> Array:
        positive = self.backend.at_least(rows, 0.0)
        return positive * positive

    def prepare(self, reads: Reads) -> tuple[Array, Array, Array | None]:
        """Slots, visibility and bias, filled up to whole tiles with positions that nobody sees."""
        rows, length = reads.distance.shape
        full = length + -length % TILE
        slots, distance = np.zeros(full, dtype=np.int64), np.full((rows, full), -1)
        slots[:length], distance[:, :length] = reads.slots, reads.distance
        visible = self.backend.array(distance >= 0)[:, None, None, :]
        if not reads.slopes.any():
            return self.index(slots), visible, None
        # ALiBi: distance times a power of two, so the product is exact
        return self.index(slots), visible, self.backend.array(_bias(distance, reads.slopes))

    def attention(self, queries: Array, keys: Array, values: Array, prepared: Any) -> Array:
        """Scores of all positions, exact maximum, weights by ``exp2``, then two fixed-order sums over the positions."""
        backend, (rows, heads, size), (slots, visible, bias) = self.backend, queries.shape, prepared
        k = backend.transpose(keys[slots], (1, 0, 2))[None, :, None]  # [1, kv, 1, n, size]
        v = backend.transpose(values[slots], (1, 2, 0))[None, :, None]  # [1, kv, 1, size, n]
        grouped = queries.reshape(rows, keys.shape[1], -1, 1, size)  # [m, kv, group, 1, size]
        scores = tree_sum(grouped * k) * (math.log2(math.e) / math.sqrt(size))  # [m, kv, group, n]
        if bias is not None:
            scores = scores - bias.reshape(scores.shape)
        top = backend.largest(backend.where(visible, scores, -math.inf))[..., None]
        weights = backend.where(visible, self.exp2(backend.where(visible, scores - top, 0.0)), 0.0)
        weighed = backend.where(visible[..., None, :], weights[..., None, :] * v, 0.0)  # [m, kv, group, size, n]
        total = ordered_sum(weights)[..., None]
        return (ordered_sum(weighed) / total).reshape(rows, heads, size)

    def exp2(self, x: Array) -> Array:
        """2 ** x for x <= 0, by multiplication, addition and floor alone."""
        x = self.backend.at_least(x, -120.0)
        whole = self.backend.floor(x + 0.5)
        fraction = x - whole
        result = fraction * 0.0 + EXP2[0]
        for coefficient in EXP2[1:]:
            result = result * fraction
            result = result + coefficient
        return result * self.backend.power_of_two(whole)


def tree_sum(values: Array) -> Array:
    """Sum over the last axis, whose length is a power of two: add the halves until one number is left."""
    length = values.shape[-1]
    assert length & (length - 1) == 0, f"{length} is not a power of two"
    while length > 1:
        length //= 2
        values = values[..., :length] + values[..., length:]
    return values[..., 0]


def ordered_sum(values: Array) -> Array:
    """Sum over the last axis in tiles, in ascending order.

    Positions that a row does not see are +0.0, and the sum starts at +0.0, so it is never -0.0 and further tiles of
    zeros change no bit: the sum does not depend on how long the context of the other rows is.
    """
    total = values[..., 0] * 0.0 + 0.0
    for start in range(0, values.shape[-1], TILE):
        total = total + tree_sum(values[..., start : start + TILE])
    return total


def _bias(distance: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Distance [m, n] times slope [heads]: shape [m, heads, n]."""
    return (distance[:, None, :] * slopes[None, :, None]).astype(np.float32)
