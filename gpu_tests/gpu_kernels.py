"""Ordinary attention kernels of a GPU, for the lanes that record how far a hit is from a cold run."""

from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right

from .backends import Array
from .decoder import Reads
from .ordinary import OrdinaryTorch


class OneBackend(OrdinaryTorch):
    """``scaled_dot_product_attention`` held to one backend, without a bias (most fused kernels take no mask)."""

    def __init__(self, backend: str, dtype: str, device: str) -> None:
        super().__init__(dtype, device)
        self.backend, self.name = getattr(SDPBackend, backend), f"sdpa {backend.lower()} {dtype}"

    def prepare(self, reads: Reads) -> tuple[Array, Any]:
        return self.index(reads.slots), causal_lower_right(*reads.distance.shape)

    def attention(self, queries: Array, keys: Array, values: Array, prepared: Any) -> Array:
        with sdpa_kernel([self.backend]):
            return super().attention(queries, keys, values, prepared)


def varlen(query: Array, pool: tuple[Array, Array], table: Array, length: int, block_size: int) -> Array:
    """torch's variable-length attention on a block table, with one split: documented as batch invariant."""
    from torch.nn.attention.varlen import varlen_attn

    keys, values = (part.view(-1, block_size, *part.shape[1:]) for part in pool)
    ends = torch.tensor([0, len(query)], dtype=torch.int32, device=query.device)
    return varlen_attn(
        query,
        keys,
        values,
        ends,
        None,
        len(query),
        length,
        window_size=(-1, 0),
        enable_gqa=True,
        seqused_k=torch.tensor([length], dtype=torch.int32, device=query.device),
        block_table=table,
        num_splits=1,
    )


def flash_attention(query: Array, pool: tuple[Array, Array], table: Array, length: int, block_size: int) -> Array:
    """The flash-attn package on a block table, with one split."""
    from flash_attn import flash_attn_with_kvcache

    keys, values = (part.view(-1, block_size, *part.shape[1:]) for part in pool)
    used = torch.tensor([length], dtype=torch.int32, device=query.device)
    return flash_attn_with_kvcache(
        query[None], keys, values, cache_seqlens=used, block_table=table, causal=True, num_splits=1
    )[0]


def flex(query: Array, pool: tuple[Array, Array], table: Array, length: int, block_size: int) -> Array:
    """FlexAttention, compiled, on K/V gathered through the block table."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    start, device = length - len(query), str(query.device)
    slots = (table[0].long()[:, None] * block_size + torch.arange(block_size, device=device)).flatten()[:length]
    k, v = (part[slots].transpose(0, 1)[None] for part in pool)
    mask = create_block_mask(lambda b, h, row, key: start + row >= key, None, None, len(query), length, device=device)
    compiled = torch.compile(flex_attention, dynamic=False)
    return compiled(query.transpose(0, 1)[None], k, v, block_mask=mask, enable_gqa=True)[0].transpose(0, 1)


PAGED = {"varlen_attn, one split": varlen, "flash-attn, one split": flash_attention, "FlexAttention": flex}
