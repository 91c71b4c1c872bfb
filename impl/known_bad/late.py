"""Faults of the second generation of nano-vllm's manager, planted in the bundled one."""

import struct
from collections import deque
from typing import Any

import xxhash

from kvspec.impl.block_manager import NO_HASH
from kvspec.impl.known_bad.bases.named import Late, StaleEntries
from kvspec.impl.known_bad.registry import known_bad


@known_bad(
    "late-stale-entry",
    "CONTENT",
    "stale",
    "nano-vllm issue 163",
    "vLLM fork local-inference-lab #480",
    shows="2x2: admit A 12 / commit A / release A / admit B 0012 / commit B / release B / admit A 120",
)
class LateStaleEntry(StaleEntries, Late):
    """A recycled block keeps its index entry, which serves equal tokens under another prefix later."""


@known_bad(
    "late-free-hit-reset",
    "INDEX-MATCH",
    "stale",
    "nano-vllm commit f64d821",
    "ATOM PR 902",
    shows="2x2: admit A 11 / commit A / release A / admit B 110",
)
class LateFreeHitReset(Late):
    """A hit on a free block resets it like a new one, and leaves its index entry behind."""

    def _claim(self, block_id: int) -> None:
        free = block_id not in self.used_block_ids
        super()._claim(block_id)
        if free:
            self.blocks[block_id].reset()


@known_bad(
    "late-live-hit-uncounted",
    "REFCOUNT",
    "ownership",
    "MinivLLM PR 84",
    "mini-sglang PR 52",
    shows="2x2: admit A 01 / commit A / admit B 010",
)
class LateLiveHitUncounted(Late):
    """A hit on a block in use sets its count to one instead of adding one."""

    def _claim(self, block_id: int) -> None:
        super()._claim(block_id)
        self.blocks[block_id].ref_count = 1


@known_bad(
    "late-whole-prompt-cached",
    "PROGRESS",
    "progress",
    "nano-vllm issue 114",
    "nano-vllm PR 199",
    shows="2x2: admit A 00 / commit A / admit B 00",
)
class LateWholePromptCached(Late):
    """The last block may be hit as well, so that a prompt of whole blocks leaves nothing to compute."""

    def can_allocate(self, seq: Any) -> int:
        cached = super().can_allocate(seq)
        if cached != seq.num_blocks - 1 or len(seq) % self.block_size:
            return cached
        key = NO_HASH
        for i in range(seq.num_blocks):
            key = self.compute_hash(seq.block(i), key)
        block_id = self.hash_to_block_id.get(key, -1)
        known = block_id != -1 and self.blocks[block_id].token_ids == seq.block(cached)
        return cached + known


@known_bad(
    "late-question-and-action-differ",
    "YES-MEANS-YES",
    "room",
    "MinivLLM PR 85",
    "jianzhnie nano-vllm fork",
    shows="2x2: admit A 0000 / commit A / append A 0 / reserve A 1",
)
class LateQuestionAndActionDiffer(Late):
    """The question whether a token fits looks at another block boundary than the action."""

    def can_append(self, seq: Any) -> bool:
        return len(self.free_block_ids) >= (len(seq) % self.block_size == 0)


@known_bad(
    "late-free-hits-are-room",
    "YES-MEANS-YES",
    "room",
    "vLLM #11562",
    "ATOM PR 902",
    shows="2x2: admit A 11 / commit A / release A / admit B 11000",
)
class LateFreeHitsAreRoom(Late):
    """Admission credits hits on free blocks, too, and runs out of blocks half way."""

    def can_allocate(self, seq: Any) -> int:
        free, self.free_block_ids = self.free_block_ids, deque(range(seq.num_blocks))
        cached = super().can_allocate(seq)
        self.free_block_ids = free
        return cached if len(free) >= seq.num_blocks - cached else -1


@known_bad(
    "late-admission-ignores-hits",
    "NO-MEANS-NO",
    "room",
    "ATOM PR 234",
    "ACE-Step-1.5 003d75c",
    shows="3x2: admit A 010 / commit A / admit B 010",
)
class LateAdmissionIgnoresHits(Late):
    """Admission wants room for every block of the prompt, those that are shared included."""

    def can_allocate(self, seq: Any) -> int:
        cached = super().can_allocate(seq)
        return cached if len(self.free_block_ids) >= seq.num_blocks else -1


@known_bad(
    "late-growth-raises",
    "TOTAL",
    "progress",
    "nano-vllm PR 66",
    "nano-vllm issue 240",
    shows="1x2: admit A 00 / commit A / append A 0 / reserve A 1",
)
class LateGrowthRaises(Late):
    """The question about growth expects the sequence without its sampled token, and asserts what is then wrong."""

    def can_append(self, seq: Any) -> bool:
        assert len(seq.block_table) == seq.num_blocks
        return super().can_append(seq)


@known_bad(
    "late-half-block-listed",
    "COMPUTED",
    "unbacked",
    "slwang-ustc nano-vllm-v1",
    "ATOM PR 902",
    context="chunked",
    shows="2x2: admit A 10 limit=1 / commit A / admit B 100",
)
class LateHalfBlockListed(Late):
    """After a chunk the block in which it ends is registered, too, with tokens that are not computed."""

    def hash_blocks(self, seq: Any) -> None:
        planned, end = seq.num_scheduled_tokens, seq.num_cached_tokens + seq.num_scheduled_tokens
        whole = min(-(-end // self.block_size), len(seq) // self.block_size) * self.block_size
        seq.num_scheduled_tokens = max(planned, whole - seq.num_cached_tokens)
        super().hash_blocks(seq)
        seq.num_scheduled_tokens = planned


@known_bad(
    "late-chain-from-block-before",
    "INDEX-CHAIN",
    "stale",
    "ATOM PR 902",
    "vLLM PR 11186",
    context="chunked",
    shows="2x2: admit A 00 / commit A / admit B 0000 / commit B",
)
class LateChainRestarts(Late):
    """The chain of hashes starts afresh with each step."""

    def hash_blocks(self, seq: Any) -> None:
        start = seq.num_cached_tokens // self.block_size
        if start:
            parent = self.blocks[seq.block_table[start - 1]]
            kept, parent.hash = parent.hash, NO_HASH
            super().hash_blocks(seq)
            parent.hash = kept
        else:
            super().hash_blocks(seq)


@known_bad(
    "late-block-size-one",
    "COVERS",
    "room",
    "nano-vllm at block size 1",
    context="one",
    shows="1x1: admit A 0 / commit A / append A 0 / reserve A 1",
)
class LateBlockSizeOne(Late):
    """Growth by remainder, which with blocks of one token never happens; the bundled manager as it is."""

    claims = ("one",)


@known_bad(
    "late-collision",
    "CONTENT",
    "identity",
    "nano-vllm at a weak hash",
    "OpenVINO GenAI #3722",
    context="collision",
    shows="3x2 weak: admit A 1111 / commit A / admit B 110",
)
class LateCollision(Late):
    """A hit compares the block's own tokens only; the bundled manager as it is, under a hash that collides."""

    claims = ("collision",)


@known_bad(
    "late-pool-starts-backwards",
    "NANO-ORDER",
    "order",
    "candle-vllm PR 193",
    context="model",
    shows="2x2: admit A 0",
)
class LatePoolStartsBackwards(Late):
    """New blocks are taken from the end of the pool, which is sound, but not the order that is claimed."""

    def __init__(self, num_blocks: int, block_size: int) -> None:
        super().__init__(num_blocks, block_size)
        self.free_block_ids.reverse()


@known_bad(
    "late-forward-release",
    "TAIL-FIRST",
    "order",
    "MinivLLM: forward order of release",
    shows="2x2: admit A 000 / release A / admit B 0",
)
class LateForwardRelease(Late):
    """The blocks of a sequence are given back from its head."""

    def deallocate(self, seq: Any) -> None:
        seq.block_table.reverse()
        super().deallocate(seq)


@known_bad(
    "late-double-free",
    "PARTITION",
    "ownership",
    "FastDeploy PR 3710",
    "TensorRT-LLM PR 14937",
    shows="2x2: admit A 22 / commit A / admit B 220 / release B",
)
class LateDoubleFree(Late):
    """A block is queued as free each time one of its holders goes."""

    def _drop(self, block_id: int) -> None:
        super()._drop(block_id)
        if block_id in self.used_block_ids:
            self.free_block_ids.append(block_id)


@known_bad(
    "late-table-kept",
    "RELEASE",
    "ownership",
    "SGLang #17797",
    "FastDeploy PR 3710",
    shows="1x2: admit A 0 / release A / release A",
)
class LateTableKept(Late):
    """A release leaves the block table as it is, so that a second one drops other sequences' references."""

    def deallocate(self, seq: Any) -> None:
        table = list(seq.block_table)
        super().deallocate(seq)
        seq.block_table.extend(table)

    def allocate(self, seq: Any, num_cached_blocks: int) -> None:
        seq.block_table.clear()
        super().allocate(seq, num_cached_blocks)


@known_bad("hash-of-four-byte-tokens", "HASH-BYTES", "identity", "MinivLLM hash of 32-bit tokens", context="hash")
class FourByteTokens(Late):
    """Tokens enter the chain hash as 4 bytes each, as on a platform with short default integers."""

    @classmethod
    def compute_hash(cls, token_ids: list[int], prefix: int = NO_HASH) -> int:
        head = prefix.to_bytes(8, "little") if prefix != NO_HASH else b""
        return xxhash.xxh64(head + b"".join((t % 2**32).to_bytes(4, "little") for t in token_ids)).intdigest()


@known_bad("hash-without-parent", "HASH-BYTES", "identity", "sparkinfer 135", context="hash")
class HashWithoutParent(Late):
    """The parent hash enters only as a seed of 32 bits."""

    @classmethod
    def compute_hash(cls, token_ids: list[int], prefix: int = NO_HASH) -> int:
        seed = prefix % 2**32 if prefix != NO_HASH else 0
        return xxhash.xxh64(struct.pack(f"<{len(token_ids)}q", *token_ids), seed).intdigest()
