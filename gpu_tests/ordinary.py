"""Ordinary arithmetic: the matrix products and the fused attention that an engine uses.

Not the same to the bit between a cold prefill and a prefix hit: a matrix product rounds differently for another number
of rows.  Its lanes therefore carry a tolerance (``tolerance``), and see less than the exact ones.
"""

import math
import warnings
from typing import Any

import numpy as np

from .backends import Array
from .decoder import Reads


class OrdinaryNumPy:
    """Matrix products of NumPy's BLAS in fp32, root mean square norm, SiLU, softmax."""

    name = "ordinary numpy fp32"

    def array(self, values: np.ndarray) -> Array:
        return values

    index = numpy = array

    def raw(self, values: Array) -> np.ndarray:
        rows = np.ascontiguousarray(values)
        return rows.reshape(len(rows), -1).view(np.uint8)

    def pool(self, shape: tuple[int, ...]) -> Array:
        return np.full(shape, np.nan, dtype=np.float32)

    def concatenate(self, parts: list[Array]) -> Array:
        return np.concatenate(parts, -1)

    def rows(self, parts: list[Array]) -> Array:
        return np.concatenate(parts, 0)

    def linear(self, rows: Array, weight: Array) -> Array:
        return rows @ weight.T

    def norm(self, rows: Array) -> Array:
        return rows / np.sqrt((rows * rows).mean(-1, keepdims=True) + np.float32(1e-6))

    def activation(self, rows: Array) -> Array:
        return rows / (1 + np.exp(-rows))

    def prepare(self, reads: Reads) -> tuple[Array, Array]:
        return reads.slots, additive_mask(reads)

    def attention(self, queries: Array, keys: Array, values: Array, prepared: Any) -> Array:
        group, (slots, mask) = queries.shape[1] // keys.shape[1], prepared
        k, v = (np.repeat(pool[slots], group, 1).transpose(1, 0, 2) for pool in (keys, values))
        scores = queries.transpose(1, 0, 2) @ k.transpose(0, 2, 1) / np.float32(math.sqrt(queries.shape[2]))
        scores = scores + mask
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return ((weights / weights.sum(-1, keepdims=True)) @ v).transpose(1, 0, 2)


class OrdinaryTorch:
    """``F.linear`` and ``scaled_dot_product_attention`` in one number format on one device."""

    def __init__(self, dtype: str = "float32", device: str = "cpu") -> None:
        import torch

        self.torch, self.device, self.dtype = torch, device, getattr(torch, dtype)
        self.name = f"ordinary torch {dtype}" + ("" if device == "cpu" else f" {device}")

    def array(self, values: np.ndarray) -> Array:
        return self.torch.as_tensor(values, device=self.device).to(self.dtype)

    def index(self, values: np.ndarray) -> Array:
        return self.torch.as_tensor(values, device=self.device)

    def numpy(self, values: Array) -> np.ndarray:
        return values.float().cpu().numpy()

    def raw(self, values: Array) -> np.ndarray:
        return values.reshape(len(values), -1).contiguous().view(self.torch.uint8).cpu().numpy()

    def pool(self, shape: tuple[int, ...]) -> Array:
        return self.torch.full(shape, math.nan, dtype=self.dtype, device=self.device)

    def concatenate(self, parts: list[Array]) -> Array:
        return self.torch.cat(parts, -1)

    def rows(self, parts: list[Array]) -> Array:
        return self.torch.cat(parts, 0)

    def linear(self, rows: Array, weight: Array) -> Array:
        return self.torch.nn.functional.linear(rows, weight)

    def norm(self, rows: Array) -> Array:
        wide = rows.float()
        return (wide * self.torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(self.dtype)

    def activation(self, rows: Array) -> Array:
        return self.torch.nn.functional.silu(rows)

    def prepare(self, reads: Reads) -> tuple[Array, Array]:
        return self.index(reads.slots), self.array(additive_mask(reads))[None]

    def attention(self, queries: Array, keys: Array, values: Array, prepared: Any) -> Array:
        group, (slots, mask) = queries.shape[1] // keys.shape[1], prepared
        k, v = (pool[slots].repeat_interleave(group, 1).transpose(0, 1)[None] for pool in (keys, values))
        attend = self.torch.nn.functional.scaled_dot_product_attention
        return attend(queries.transpose(0, 1)[None], k, v, attn_mask=mask)[0].transpose(0, 1)


class OrdinaryFlex(OrdinaryTorch):
    """The same with FlexAttention, not compiled: on any device, materialised, and another order of summation."""

    def __init__(self, dtype: str = "float32", device: str = "cpu") -> None:
        super().__init__(dtype, device)
        self.name = f"{self.name} FlexAttention"

    def attention(self, queries: Array, keys: Array, values: Array, prepared: Any) -> Array:
        from torch.nn.attention.flex_attention import flex_attention

        slots, mask = prepared
        q, k, v = (part.transpose(0, 1)[None] for part in (queries, keys[slots], values[slots]))
        added = mask[0]

        def score(given: Array, batch: Array, head: Array, row: Array, position: Array) -> Array:
            return given + added[head, row, position]

        with warnings.catch_warnings():  # it says that it is slow unless it is compiled, which takes longer here
            warnings.filterwarnings("ignore", message="flex_attention called without torch.compile")
            return flex_attention(q, k, v, score_mod=score, enable_gqa=True)[0].transpose(0, 1)


def additive_mask(reads: Reads) -> np.ndarray:
    """What is added to the scores (base e), shape [heads, m, n]: -inf for the future, minus distance times slope."""
    bias = -math.log(2) * reads.slopes[:, None, None] * reads.distance[None]
    return np.where(reads.distance[None] >= 0, bias, -math.inf).astype(np.float32)
