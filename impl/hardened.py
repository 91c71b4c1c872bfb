"""A drop-in for the seed's manager, with the same public surface and without its weak points.

What differs: a hit is found by walking a trie of token blocks, so it is exact under any hash; one of two equal blocks can
go without the other being lost; a free block is claimed in constant time wherever it stands in the queue; ``allocate``
either does everything or nothing; block size 1 works; requests that can never be served are told apart from those that
have to wait.  ``hash`` and ``hash_to_block_id`` are still there, with nano-vllm's values, but are only computed when read.
"""

import struct
from collections import OrderedDict
from typing import Any

import xxhash

from kvspec.impl.sequence import Sequence

NO_HASH = -1


class Node:
    """A published prefix: the block of tokens `tokens` after the prefix `parent`, and the blocks that hold its K/V.

    A node without blocks stays as long as it has children: when its K/V is computed again, they can be hit again.
    """

    __slots__ = ("blocks", "children", "hash", "parent", "tokens")

    def __init__(self, parent: "Node | None", tokens: tuple[Any, ...]) -> None:
        self.parent, self.tokens = parent, tokens
        self.children: dict[tuple[Any, ...], Node] = {}
        self.blocks: list[int] = []
        self.hash: int | None = None


class Block:
    """One physical block: who uses it (`ref_count`) and which published prefix it holds (`node`)."""

    __slots__ = ("_manager", "block_id", "node", "ref_count")

    def __init__(self, block_id: int, manager: "BlockManager") -> None:
        self.block_id, self._manager = block_id, manager
        self.ref_count = 0
        self.node: Node | None = None

    @property
    def hash(self) -> int:
        """The chain hash of the prefix, -1 if nothing is published."""
        return self._manager.hash_of(self.node) if self.node else NO_HASH

    @property
    def token_ids(self) -> list[int]:
        """The tokens of the block, none if nothing is published."""
        return list(self.node.tokens) if self.node else []


class BlockManager:
    """Hands out `num_blocks` blocks of `block_size` tokens and finds computed blocks again by their tokens.

    Raises ValueError for an impossible pool, an empty prompt, a prompt larger than the pool, a sequence that is admitted
    twice or was never admitted, and for an allocation that was not asked for; nothing has changed then.
    """

    def __init__(self, num_blocks: int, block_size: int) -> None:
        if num_blocks < 1 or block_size < 1:
            raise ValueError(f"a pool needs at least one block and one slot a block, not {num_blocks} and {block_size}")
        self.block_size = block_size
        self.blocks = [Block(block_id, self) for block_id in range(num_blocks)]
        self.free_block_ids: OrderedDict[int, None] = OrderedDict.fromkeys(range(num_blocks))
        self._root = Node(None, ())
        self._owners: dict[str, list[int]] = {}
        self._changes = 0
        self._plan: tuple[Any, int, int, list[int]] | None = None

    # The seed's attributes, computed when read --------------------------------------------------------------------

    @classmethod
    def compute_hash(cls, token_ids: list[int], prefix: int = NO_HASH) -> int:
        """nano-vllm's chain hash: xxh64 over the parent hash and the tokens, each as 8 little-endian bytes."""
        head = b"" if prefix == NO_HASH else prefix.to_bytes(8, "little")
        return xxhash.xxh64_intdigest(head + struct.pack(f"<{len(token_ids)}q", *token_ids))

    def hash_of(self, node: Node) -> int:
        """The chain hash of a published prefix, kept once it is known."""
        unknown = []
        above: Node | None = node
        while above is not None and above.hash is None and above.parent is not None:
            unknown.append(above)
            above = above.parent
        key = above.hash if above is not None and above.hash is not None else NO_HASH
        for below in reversed(unknown):
            key = below.hash = self.compute_hash(list(below.tokens), key)
        return key

    @property
    def used_block_ids(self) -> set[int]:
        """The blocks that some sequence holds."""
        return {block.block_id for block in self.blocks if block.ref_count}

    @property
    def hash_to_block_id(self) -> dict[int, int]:
        """The chain hash of each published block, and the block."""
        return {block.hash: block.block_id for block in self.blocks if block.node}

    def fingerprint(self) -> list[list[int]]:
        """What the seed's attributes do not show: the order of equal blocks, which decides which of them is hit.

        The explorer tells states apart by it.
        """
        return sorted({id(block.node): block.node.blocks for block in self.blocks if block.node}.values())

    # Admission ----------------------------------------------------------------------------------------------------

    def can_allocate(self, seq: Sequence) -> int:
        """How many leading blocks of `seq` are cached, or -1 if the rest does not fit now.

        The last block is never taken from the cache, so that there is always something to compute.
        """
        if seq.block_table:
            raise ValueError("the sequence has been admitted already")
        needed = seq.num_blocks
        if not 1 <= needed <= len(self.blocks):
            raise ValueError(f"a prompt of {len(seq)} tokens needs {needed} blocks; the pool has {len(self.blocks)}")
        hits, shared = self._search(seq)
        if needed - shared > len(self.free_block_ids):
            return -1
        self._plan = (seq, self._changes, len(seq), hits)
        return len(hits)

    def _search(self, seq: Sequence) -> tuple[list[int], int]:
        """The blocks of the longest cached prefix, and how many of them are in use."""
        hits, shared, node, blocks = [], 0, self._space(seq), self.blocks
        for i in range(seq.num_blocks - 1):
            found = node.children.get(tuple(seq.block(i)))
            if found is None or not found.blocks:
                break
            node = found
            hit = node.blocks[0]
            if len(node.blocks) > 1:
                hit = next((twin for twin in node.blocks if blocks[twin].ref_count), hit)
            shared += blocks[hit].ref_count > 0
            hits.append(hit)
        return hits, shared

    @staticmethod
    def _identity(seq: Sequence) -> str:
        """What besides its tokens a prefix of `seq` depends on: adapter, media, salt; empty if nothing."""
        return getattr(seq, "namespace", "")

    def _space(self, seq: Sequence) -> Node:
        """The node before the first block of `seq`: the root, or a node below it that stands for the namespace."""
        namespace = self._identity(seq)
        if not namespace:
            return self._root
        found = self._root.children.get((namespace,))  # equal to no tokens
        if found is None:
            found = Node(self._root, (namespace,))
            found.hash = self.compute_hash([-1 - byte for byte in namespace.encode()])  # no token is negative
        return found

    def allocate(self, seq: Sequence, num_cached_blocks: int) -> None:
        """Fill the block table: the first `num_cached_blocks` cached blocks, then new ones; all or nothing."""
        hits = self._planned(seq)[:num_cached_blocks]
        fresh = seq.num_blocks - len(hits)
        room = len(self.free_block_ids) - sum(not self.blocks[hit].ref_count for hit in hits)
        if len(hits) < num_cached_blocks or fresh > room:
            raise ValueError(
                f"{num_cached_blocks} cached and {fresh} new blocks are not to be had; ask can_allocate first"
            )
        for hit in hits:
            self._claim(hit)
        self._changes += 1
        seq.block_table.extend(hits)
        seq.block_table.extend([self._take() for _ in range(fresh)])
        seq.num_cached_tokens = len(hits) * self.block_size

    def _planned(self, seq: Sequence) -> list[int]:
        """What ``can_allocate`` found, if nothing has changed since; else it is looked for again."""
        plan, self._plan = self._plan, None
        if plan and plan[0] is seq and plan[1:3] == (self._changes, len(seq)) and not seq.block_table:
            return plan[3]
        if seq.block_table:
            raise ValueError("the sequence has been admitted already")
        return self._search(seq)[0]

    def deallocate(self, seq: Sequence) -> None:
        """Give the blocks of `seq` back, the tail first, so that the tail is recycled before the head.

        Draft tokens that were not confirmed by then are no tokens of `seq` any more.
        """
        self._drop(seq.block_table)
        if drafts := self._drafts(seq):
            seq.truncate(len(seq) - drafts)
        seq.num_cached_tokens = 0
        seq.block_table.clear()

    def _drop(self, block_ids: list[int]) -> None:
        """Drop one reference to each of these blocks, from the last to the first."""
        self._changes += 1
        for block_id in reversed(block_ids):
            block = self.blocks[block_id]
            block.ref_count -= 1
            if not block.ref_count:
                self.free_block_ids[block_id] = None

    # Decode -------------------------------------------------------------------------------------------------------

    def _missing(self, seq: Sequence) -> int:
        if not seq.block_table:
            raise ValueError("the sequence has not been admitted")
        return -(-len(seq) // self.block_size) - len(seq.block_table)

    def can_append(self, seq: Sequence) -> bool:
        """Is there room for the K/V of all tokens of `seq`, the last of which has just joined?"""
        covered = len(seq.block_table) * self.block_size >= seq.num_tokens
        return covered or self._missing(seq) <= len(self.free_block_ids)

    def may_append(self, seq: Sequence) -> None:
        """Take the blocks that the tokens of `seq` still need; all or nothing."""
        if len(seq.block_table) * self.block_size >= seq.num_tokens:
            return
        missing = self._missing(seq)
        if missing > len(self.free_block_ids):
            raise ValueError(f"{missing} new blocks are not to be had; ask can_append first")
        self._changes += 1
        seq.block_table.extend([self._take() for _ in range(missing)])

    def hash_blocks(self, seq: Sequence) -> None:
        """The forward pass has ended: publish the blocks that its scheduled tokens filled, those of drafts left out."""
        cached, scheduled, size = seq.num_cached_tokens, seq.num_scheduled_tokens, self.block_size
        if cached % size + scheduled >= size:
            self._publish(seq, cached // size, self._publishable(seq, cached + scheduled))

    def _publishable(self, seq: Sequence, computed: int) -> int:
        """How many leading blocks are full of computed tokens that are no drafts."""
        return min(computed, len(seq) - self._drafts(seq)) // self.block_size

    @staticmethod
    def _drafts(seq: Sequence) -> int:
        """The sequences of an engine without speculative decoding know nothing of drafts."""
        return getattr(seq, "num_draft_tokens", 0)

    def _publish(self, seq: Sequence, start: int, end: int) -> None:
        if start >= end:
            return
        self._changes += 1
        node = self.blocks[seq.block_table[start - 1]].node if start else self._space(seq)
        assert node is not None, "the block before a computed one has been published"
        if not start and node.parent is not None:
            node.parent.children[node.tokens] = node
        for i in range(start, end):
            tokens = tuple(seq.block(i))
            child = node.children.get(tokens)
            if child is None:
                child = node.children[tokens] = Node(node, tokens)
            self.blocks[seq.block_table[i]].node = child
            child.blocks.append(seq.block_table[i])
            node = child

    # Speculative decoding -----------------------------------------------------------------------------------------

    def truncate(self, seq: Sequence, length: int) -> None:
        """Verification has ended: the draft tokens of `seq` from `length` on are rejected, those before are confirmed.

        Blocks beyond the `length` tokens are given back, and blocks that confirmed tokens fill are published.  Raises
        ValueError if `length` lies outside of the draft tokens, or `seq` was not admitted; nothing has changed then.
        """
        known = len(seq)
        if not seq.block_table or not known - self._drafts(seq) <= length <= known:
            raise ValueError(f"{length} of {known} tokens are to stay, of which {self._drafts(seq)} are drafts")
        published = (known - self._drafts(seq)) // self.block_size
        seq.truncate(length)
        needed = -(-length // self.block_size)
        self._drop(seq.block_table[needed:])
        del seq.block_table[needed:]
        self._publish(seq, published, self._publishable(seq, seq.num_cached_tokens))

    # Reset, probe, owners outside ---------------------------------------------------------------------------------

    def reset(self) -> bool:
        """Forget all that is cached, because the weights have changed: True, or False and nothing has changed.

        It is refused while any sequence or owner holds a block.
        """
        if any(block.ref_count for block in self.blocks):
            return False
        self._changes += 1
        self._root = Node(None, ())
        for block in self.blocks:
            block.node = None
        return True

    def probe(self, seq: Sequence) -> tuple[int, bool]:
        """How many leading blocks of `seq` are cached, and would ``can_allocate`` say yes?  Nothing changes.

        Raises ValueError for an empty prompt.
        """
        if not seq.num_blocks:
            raise ValueError("a prompt without tokens cannot be probed")
        hits, shared = self._search(seq)
        return len(hits), seq.num_blocks - shared <= len(self.free_block_ids)

    def retain(self, seq: Sequence, owner: str) -> list[int]:
        """An owner outside (a transfer, an offload) keeps the full computed blocks of `seq`, even when that is gone.

        The blocks are as if one more sequence held them, until ``drop``.  Raises ValueError if the owner keeps some
        already, or there is nothing to keep.
        """
        kept = seq.block_table[: self._publishable(seq, seq.num_cached_tokens)]
        if not kept or owner in self._owners:
            raise ValueError(f"{owner} keeps {len(self._owners.get(owner, ()))} blocks, and {len(kept)} are computed")
        for block_id in kept:
            self._claim(block_id)
        self._changes += 1
        self._owners[owner] = kept
        return list(kept)

    def drop(self, owner: str) -> None:
        """The owner lets go of all that it keeps.  Raises ValueError if that is nothing."""
        if owner not in self._owners:
            raise ValueError(f"{owner} keeps no blocks")
        self._drop(self._owners.pop(owner))

    # Pools --------------------------------------------------------------------------------------------------------

    def _claim(self, block_id: int) -> None:
        block = self.blocks[block_id]
        if not block.ref_count:
            del self.free_block_ids[block_id]
        block.ref_count += 1

    def _take(self) -> int:
        """Recycle the block that has been free for longest; what it held is published no more."""
        block_id, _ = self.free_block_ids.popitem(last=False)
        block = self.blocks[block_id]
        if block.node is not None:
            self._unpublish(block.node, block_id)
            block.node = None
        block.ref_count = 1
        return block_id

    def _unpublish(self, node: Node, block_id: int) -> None:
        """Drop a block from its node, and every node that has neither blocks nor children any more."""
        node.blocks.remove(block_id)
        while node.parent is not None and not node.blocks and not node.children:
            del node.parent.children[node.tokens]
            node = node.parent
