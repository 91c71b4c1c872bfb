"""The manager of the seed: what nano-vllm's does since its commit 9fa256a, weak points included.

It is kept for comparison, as the reference for the names of the shape, and as an anchor for the harness.  Its known
limits: block size 1 never grows a table, the last of two equal blocks owns the index entry, a failing ``allocate``
leaves a half-filled table, and a request larger than the pool gets the same "not now" as one that has to wait.
"""

import struct
from collections import deque

import xxhash

from kvspec.impl.sequence import Sequence

NO_HASH = -1


class Block:
    """One physical block: who uses it (`ref_count`) and what its K/V was computed from (`hash`, `token_ids`)."""

    def __init__(self, block_id: int) -> None:
        self.block_id = block_id
        self.ref_count = 0
        self.hash = NO_HASH
        self.token_ids: list[int] = []

    def update(self, hash: int, token_ids: list[int]) -> None:
        """The block is full and computed: remember its chain hash and its own tokens."""
        self.hash = hash
        self.token_ids = token_ids

    def reset(self) -> None:
        """The block starts a new life with one owner and no content."""
        self.ref_count = 1
        self.hash = NO_HASH
        self.token_ids = []


class BlockManager:
    """Hands out `num_blocks` blocks of `block_size` tokens and finds computed blocks again by their chain hash.

    Nothing is cleared when a block is released: it stays findable until it is taken for other content.
    """

    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.block_size = block_size
        self.blocks = [Block(block_id) for block_id in range(num_blocks)]
        self.hash_to_block_id: dict[int, int] = {}
        self.free_block_ids: deque[int] = deque(range(num_blocks))
        self.used_block_ids: set[int] = set()

    @classmethod
    def compute_hash(cls, token_ids: list[int], prefix: int = NO_HASH) -> int:
        """The chain hash of a block after the block with hash `prefix` (-1: it is the first one).

        xxh64 over the parent hash and the tokens, each as 8 little-endian bytes on every platform.
        """
        digest = xxhash.xxh64()
        if prefix != NO_HASH:
            digest.update(prefix.to_bytes(8, "little"))
        digest.update(struct.pack(f"<{len(token_ids)}q", *token_ids))
        return digest.intdigest()

    # Pools -----------------------------------------------------------------------------------------------------

    def _take(self) -> int:
        """Recycle the block that has been free for longest; its index entry goes if it still names this block."""
        block_id = self.free_block_ids.popleft()
        block = self.blocks[block_id]
        assert block.ref_count == 0
        if block.hash != NO_HASH and self.hash_to_block_id.get(block.hash) == block_id:
            del self.hash_to_block_id[block.hash]
        block.reset()
        self.used_block_ids.add(block_id)
        return block_id

    def _claim(self, block_id: int) -> None:
        """Share a block that was hit: one more owner if it is in use, else back from the free list as it is."""
        block = self.blocks[block_id]
        if block_id in self.used_block_ids:
            block.ref_count += 1
            return
        block.ref_count = 1
        self.free_block_ids.remove(block_id)
        self.used_block_ids.add(block_id)

    def _drop(self, block_id: int) -> None:
        """One owner less; without owners the block is free and keeps its content."""
        block = self.blocks[block_id]
        block.ref_count -= 1
        if block.ref_count == 0:
            self.used_block_ids.remove(block_id)
            self.free_block_ids.append(block_id)

    # Admission -------------------------------------------------------------------------------------------------

    def can_allocate(self, seq: Sequence) -> int:
        """How many leading blocks of `seq` are cached, or -1 if the rest does not fit now.

        The last block is never taken from the cache, so that there is always something to compute.
        """
        key, cached, needed = NO_HASH, 0, seq.num_blocks
        for i in range(seq.num_blocks - 1):
            token_ids = seq.block(i)
            key = self.compute_hash(token_ids, key)
            block_id = self.hash_to_block_id.get(key, -1)
            if block_id == -1 or self.blocks[block_id].token_ids != token_ids:
                break
            cached += 1
            needed -= block_id in self.used_block_ids
        return cached if len(self.free_block_ids) >= needed else -1

    def allocate(self, seq: Sequence, num_cached_blocks: int) -> None:
        """Fill the block table: the `num_cached_blocks` that ``can_allocate`` just counted, then new blocks."""
        assert not seq.block_table
        key = NO_HASH
        for i in range(num_cached_blocks):
            key = self.compute_hash(seq.block(i), key)
            block_id = self.hash_to_block_id[key]
            self._claim(block_id)
            seq.block_table.append(block_id)
        for _ in range(num_cached_blocks, seq.num_blocks):
            seq.block_table.append(self._take())
        seq.num_cached_tokens = num_cached_blocks * self.block_size

    def deallocate(self, seq: Sequence) -> None:
        """Give the blocks of `seq` back, the tail first, so that the tail is recycled before the head."""
        for block_id in reversed(seq.block_table):
            self._drop(block_id)
        seq.num_cached_tokens = 0
        seq.block_table.clear()

    # Decode ----------------------------------------------------------------------------------------------------

    def can_append(self, seq: Sequence) -> bool:
        """Is there room for the K/V of the last token, which has joined `seq` already?"""
        return len(self.free_block_ids) >= (len(seq) % self.block_size == 1)

    def may_append(self, seq: Sequence) -> None:
        """Take one more block if the last token of `seq` is the first of a block."""
        if len(seq) % self.block_size == 1:
            seq.block_table.append(self._take())

    def hash_blocks(self, seq: Sequence) -> None:
        """The forward pass has ended: publish the blocks that its scheduled tokens filled."""
        start = seq.num_cached_tokens // self.block_size
        end = (seq.num_cached_tokens + seq.num_scheduled_tokens) // self.block_size
        if start == end:
            return
        key = self.blocks[seq.block_table[start - 1]].hash if start > 0 else NO_HASH
        for i in range(start, end):
            block = self.blocks[seq.block_table[i]]
            token_ids = seq.block(i)
            key = self.compute_hash(token_ids, key)
            block.update(key, token_ids)
            self.hash_to_block_id[key] = block.block_id
