"""The profile `hash`: the chain hash has nano-vllm's bytes."""

import struct

import xxhash

from kvspec.impl.adapter import Implementation
from kvspec.spec.judge import Violation

BLOCKS: tuple[tuple[int, ...], ...] = (
    (0,),
    (1,),
    (0, 1),
    (1, 0),
    (2**31 - 1, 2**31),
    (2**32 - 1, 2**32, 2**62),
    tuple(range(16)),
    tuple(range(151_643, 151_643 + 256)),
)


def reference_hash(tokens: tuple[int, ...], prefix: int | None) -> int:
    """xxh64 over the parent hash (8 little-endian bytes, nothing for a first block) and the tokens (8 such bytes each)."""
    head = b"" if prefix is None else struct.pack("<Q", prefix)
    return xxhash.xxh64(head + struct.pack(f"<{len(tokens)}q", *tokens)).intdigest()


def check_hash(implementation: Implementation) -> Violation | None:
    """The first block whose hash differs, alone or at the end of a chain of blocks; None if all agree."""
    if implementation.chain_hash is None:
        return Violation("HASH-BYTES", "the adapter shows no chain hash")
    for prefix in (None, 0, 1, 2**63, 2**64 - 1):
        for tokens in BLOCKS:
            if violation := _compare(implementation, tokens, prefix):
                return violation
    return _compare_chain(implementation)


def _compare_chain(implementation: Implementation) -> Violation | None:
    key: int | None = None
    for tokens in BLOCKS:
        if violation := _compare(implementation, tokens, key):
            return violation
        key = reference_hash(tokens, key)
    return None


def _compare(implementation: Implementation, tokens: tuple[int, ...], prefix: int | None) -> Violation | None:
    assert implementation.chain_hash is not None
    wanted = reference_hash(tokens, prefix)
    try:
        found: object = implementation.chain_hash(tokens, prefix)
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    # HASH-BYTES: the chain hash is xxh64 over the parent hash and the tokens, each as 8 little-endian bytes
    if found != wanted:
        shown = f"{list(tokens[:4])}{' …' if len(tokens) > 4 else ''} after {prefix}"
        return Violation("HASH-BYTES", f"the hash of {shown} is {found}; nano-vllm's is {wanted}")
    return None
