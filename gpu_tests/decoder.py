"""A small decoder over a paged K/V pool: two layers, grouped heads, rotary positions, optional bias by logical index.

The structure is here; how numbers are multiplied and added is an ``Arithmetic`` (``portable``, ``ordinary``,
``paged_kernel``).  Two layers, because the K/V of the first depend on token and position only: the prefix reaches K/V
from the second layer on.  The bias (ALiBi) is counted from the logical index of a key: rotary positions are baked into
K, so without the bias a permuted prefix gives the same output up to rounding.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .engine import Chunk
from .places import slots_of
from .workload import VOCABULARY

Array = Any


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the decoder; widths are powers of two, which the fixed reduction tree of ``portable`` needs."""

    layers: int = 2
    width: int = 64
    heads: int = 4
    kv_heads: int = 2
    head_size: int = 16
    hidden: int = 128
    positions: int = 512
    bias: bool = True


@dataclass(frozen=True, slots=True)
class Reads:
    """What one sequence reads: the same for every layer.

    `slots`: slot of each position 0 .. n-1, shape [n].  `distance`: position of the row minus position of the key,
    shape [m, n]; a key is visible if it is not negative.  `slopes`: per head, what each position of distance takes off
    the score (base 2), powers of two or all zero, shape [heads].  `chunk`, `block_size`: the same as a block table, for
    kernels that walk one.
    """

    slots: np.ndarray
    distance: np.ndarray
    slopes: np.ndarray
    chunk: Chunk
    block_size: int


class Arithmetic(Protocol):
    """How a decoder computes; activations are [rows, …], a pool of keys or values is [slots, kv_heads, head_size]."""

    name: str

    def array(self, values: np.ndarray) -> Array:
        """Float32 weights in the number format of this arithmetic, on its device."""

    def index(self, values: np.ndarray) -> Array:
        """Whole numbers to index with."""

    def numpy(self, values: Array) -> np.ndarray:
        """As float32."""

    def raw(self, values: Array) -> np.ndarray:
        """The bytes of each row, shape [rows, bytes]."""

    def pool(self, shape: tuple[int, ...]) -> Array:
        """A pool in which every number is NaN, so that reading a slot that nobody wrote poisons the output."""

    def linear(self, rows: Array, weight: Array) -> Array:
        """[m, k] times the transpose of [n, k]."""

    def norm(self, rows: Array) -> Array:
        """Rows brought to a common size."""

    def activation(self, rows: Array) -> Array:
        """The nonlinearity of the feed-forward part."""

    def concatenate(self, parts: list[Array]) -> Array:
        """Along the last axis."""

    def rows(self, parts: list[Array]) -> Array:
        """Along the first axis."""

    def prepare(self, reads: Reads) -> Any:
        """What ``attention`` needs to know of a chunk, made once for all layers."""

    def attention(self, queries: Array, keys: Array, values: Array, prepared: Any) -> Array:
        """Causal attention of [m, heads, head_size] queries over the slots of one chunk."""


Pool = list[tuple[Array, Array]]  # per layer: keys, values


class Decoder:
    """Random weights of one seed; the same numbers for every arithmetic, rounded to its format."""

    def __init__(self, arithmetic: Arithmetic, shape: Shape | None = None, seed: int = 0) -> None:
        self.arithmetic, self.shape = arithmetic, shape or Shape()
        weights = _weights(self.shape, seed)
        self._embedding = arithmetic.array(weights.pop("embedding"))
        self._weights = {name: arithmetic.array(values) for name, values in weights.items()}
        self._cosine, self._sine = (arithmetic.array(table) for table in rotations(self.shape))
        self._cold: dict[tuple[tuple[int, ...], str], np.ndarray] = {}

    @property
    def name(self) -> str:
        """Arithmetic, and what is unusual about the shape."""
        layers = "" if self.shape.layers == 2 else f", {self.shape.layers} layer"
        return self.arithmetic.name + layers + ("" if self.shape.bias else ", no bias")

    def new_pool(self, slots: int) -> Pool:
        """A poisoned pool."""
        shape = (slots, self.shape.kv_heads, self.shape.head_size)
        return [(self.arithmetic.pool(shape), self.arithmetic.pool(shape)) for _ in range(self.shape.layers)]

    def cold(self, tokens: tuple[int, ...], namespace: str = "") -> np.ndarray:
        """Logits [tokens, vocabulary] of one pass over contiguous K/V: no cache, no table.  Kept for the next call."""
        key = (tokens, namespace)
        if key not in self._cold:
            chunk = Chunk("cold", tokens, 0, tuple(range(len(tokens))), 0, namespace)
            self._cold[key] = self.forward(self.new_pool(len(tokens)), (chunk,), 1)[0]
        return self._cold[key]

    def forward(self, pool: Pool, chunks: Sequence[Chunk], block_size: int) -> list[np.ndarray]:
        """Compute the chunks together; in each layer all K/V are written before any are read.

        Returns logits per chunk, shape [end - start, vocabulary], float32.
        """
        with np.errstate(invalid="ignore", over="ignore"):
            return self._forward(pool, chunks, block_size)

    def _forward(self, pool: Pool, chunks: Sequence[Chunk], block_size: int) -> list[np.ndarray]:
        maths, places = self.arithmetic, [slots_of(chunk, block_size) for chunk in chunks]
        new = [place[chunk.start :] for place, chunk in zip(places, chunks, strict=True)]
        written = maths.index(np.concatenate(new))
        positions = maths.index(np.concatenate([np.arange(chunk.start, chunk.end) for chunk in chunks]))
        reads = [self._prepare(chunk, place, block_size) for chunk, place in zip(chunks, places, strict=True)]
        ends = np.cumsum([len(slots) for slots in new]).tolist()
        x = self._embed(chunks)
        for layer, (keys, values) in enumerate(pool):
            queries, keys[written], values[written] = self._project(x, layer, positions)
            parts = [queries[start:end] for start, end in zip([0, *ends], ends, strict=False)]
            seen = [maths.attention(part, keys, values, read) for part, read in zip(parts, reads, strict=True)]
            x = self._mix(x, maths.rows(seen).reshape(len(x), -1), layer)
        return np.split(maths.numpy(self._logits(x)), ends[:-1])

    def _embed(self, chunks: Sequence[Chunk]) -> Array:
        rows = self.arithmetic.index(np.concatenate([np.asarray(chunk.tokens[chunk.start :]) for chunk in chunks]))
        x = self._embedding[rows]
        if any(chunk.namespace for chunk in chunks):
            adapters = [_adapter(chunk.namespace, chunk.end - chunk.start, self.shape.width) for chunk in chunks]
            x = x + self.arithmetic.array(np.concatenate(adapters))
        return x

    def _prepare(self, chunk: Chunk, slots: np.ndarray, block_size: int) -> Any:
        distance = np.arange(chunk.start, chunk.end)[:, None] - np.arange(chunk.end)[None, :]
        slopes = 0.5 ** np.arange(1, self.shape.heads + 1) * self.shape.bias
        return self.arithmetic.prepare(Reads(slots, distance, slopes, chunk, block_size))

    def _project(self, x: Array, layer: int, positions: Array) -> tuple[Array, Array, Array]:
        """Rotated queries and keys, and values; shapes [rows, heads or kv_heads, head_size]."""
        shape = self.shape
        mixed = self.arithmetic.linear(self.arithmetic.norm(x), self._weights[f"qkv{layer}"])
        mixed = mixed.reshape(len(x), -1, shape.head_size)
        queries, keys = mixed[:, : shape.heads], mixed[:, shape.heads : shape.heads + shape.kv_heads]
        return self._rotate(queries, positions), self._rotate(keys, positions), mixed[:, shape.heads + shape.kv_heads :]

    def _mix(self, x: Array, attended: Array, layer: int) -> Array:
        """Add what attention brought, then the feed-forward part; shapes [rows, width]."""
        maths = self.arithmetic
        x = x + maths.linear(attended, self._weights[f"out{layer}"])
        hidden = maths.activation(maths.linear(maths.norm(x), self._weights[f"up{layer}"]))
        return x + maths.linear(hidden, self._weights[f"down{layer}"])

    def _logits(self, x: Array) -> Array:
        return self.arithmetic.linear(self.arithmetic.norm(x), self._embedding)

    def _rotate(self, heads: Array, positions: Array) -> Array:
        cosine, sine, half = self._cosine[positions][:, None], self._sine[positions][:, None], self.shape.head_size // 2
        left, right = heads[..., :half], heads[..., half:]
        return self.arithmetic.concatenate([left * cosine - right * sine, right * cosine + left * sine])


def _weights(shape: Shape, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)

    def normal(rows: int, columns: int, scale: float) -> np.ndarray:
        return (rng.standard_normal((rows, columns)) * scale).astype(np.float32)

    width, attended, hidden = shape.width, shape.heads * shape.head_size, shape.hidden
    mixed = (shape.heads + 2 * shape.kv_heads) * shape.head_size
    weights = {"embedding": normal(VOCABULARY, width, 1.0)}
    for layer in range(shape.layers):
        weights[f"qkv{layer}"] = normal(mixed, width, 1.5 * width**-0.5)
        weights[f"out{layer}"] = normal(width, attended, attended**-0.5)
        weights[f"up{layer}"] = normal(hidden, width, width**-0.5)
        weights[f"down{layer}"] = normal(width, hidden, hidden**-0.5)
    return weights


def rotations(shape: Shape, base: float = 10000.0) -> tuple[np.ndarray, np.ndarray]:
    """Cosine and sine, shape [positions, head_size / 2]: computed once, in float64, so that all backends share them."""
    rates = base ** (-np.arange(0, shape.head_size, 2) / shape.head_size)
    angles = np.arange(shape.positions)[:, None] * rates[None, :]
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _adapter(namespace: str, rows: int, width: int) -> np.ndarray:
    """What a namespace (an adapter) adds to every embedding: zero for the empty one; shape [rows, width]."""
    if not namespace:
        return np.zeros((rows, width), dtype=np.float32)
    rng = np.random.default_rng(zlib.crc32(namespace.encode()))
    return np.tile(rng.standard_normal(width).astype(np.float32), (rows, 1))
