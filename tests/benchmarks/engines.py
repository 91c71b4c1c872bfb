"""Managers behind the same few calls, so that one workload measures all of them: hashing of a prompt included, once."""

from collections.abc import Callable
from typing import Any, Protocol

from kvspec.impl import block_manager, hardened
from kvspec.impl.loader import load
from kvspec.impl.sequence import Sequence
from kvspec.spec.state import World


class Engine(Protocol):
    """A manager with what a scheduler keeps of it."""

    def admit(self, tokens: list[int]) -> Any:
        """A new request that is admitted, with all its tokens planned."""

    def cached(self, request: Any) -> int:
        """How many of its blocks were cached when it was admitted."""

    def compute(self, request: Any) -> None:
        """The forward pass over what is planned has ended."""

    def decode(self, request: Any, token: int) -> None:
        """One token is sampled, planned and computed."""

    def release(self, request: Any) -> None:
        """Its blocks are given back."""

    def free_blocks(self) -> list[int]:
        """The free blocks, the next to be taken first."""

    def make_free_last(self, blocks: list[int]) -> None:
        """Move free blocks to the end of the queue, as if they had become free last."""


class NanoVllm:
    """A manager with nano-vllm's surface, called as its scheduler does it."""

    def __init__(self, manager: Any, block_size: int) -> None:
        self.manager = manager
        Sequence.block_size = block_size

    def admit(self, tokens: list[int]) -> Sequence:
        sequence, manager = Sequence(tokens), self.manager
        manager.allocate(sequence, manager.can_allocate(sequence))
        sequence.num_scheduled_tokens = len(tokens) - sequence.num_cached_tokens
        return sequence

    def cached(self, request: Sequence) -> int:
        return request.num_cached_tokens // request.block_size

    def compute(self, request: Sequence) -> None:
        self.manager.hash_blocks(request)
        request.num_cached_tokens += request.num_scheduled_tokens
        request.num_scheduled_tokens = 0

    def decode(self, request: Sequence, token: int) -> None:
        request.append_token(token)
        assert self.manager.can_append(request)
        self.manager.may_append(request)
        request.num_scheduled_tokens = 1
        self.compute(request)

    def release(self, request: Sequence) -> None:
        self.manager.deallocate(request)

    def free_blocks(self) -> list[int]:
        return list(self.manager.free_block_ids)

    def make_free_last(self, blocks: list[int]) -> None:
        free, moved = self.manager.free_block_ids, set(blocks)
        order = [block for block in free if block not in moved] + blocks
        free.clear()
        if hasattr(free, "extend"):
            free.extend(order)
        else:
            free.update(dict.fromkeys(order))


class Vllm:
    """vLLM's ``KVCacheManager``; `target` is ``vllm`` or ``vllm:WHERE``.  The adapter makes manager and requests, no more."""

    def __init__(self, target: str, blocks: int, block_size: int) -> None:
        self._adapter: Any = load(target).create(World(blocks, block_size))
        self.manager = self._adapter._manager
        self._number = 0

    def admit(self, tokens: list[int]) -> Any:
        self._number += 1
        request = self._adapter._request(str(self._number), tokens, "")
        self._begin_step()
        blocks, cached, *_ = self.manager.get_computed_blocks(request)
        request.num_computed_tokens = cached
        assert self.manager.allocate_slots(request, len(tokens) - cached, cached, blocks) is not None
        return request

    def cached(self, request: Any) -> int:
        return int(request.num_computed_tokens) // int(self.manager.block_pool.hash_block_size)

    def compute(self, request: Any) -> None:
        request.num_computed_tokens = request.num_tokens

    def decode(self, request: Any, token: int) -> None:
        request.append_output_token_ids(token)
        self._begin_step()
        assert self.manager.allocate_slots(request, 1) is not None
        request.num_computed_tokens += 1

    def release(self, request: Any) -> None:
        self.manager.free(request)

    def free_blocks(self) -> list[int]:
        return [block.block_id for block in self.manager.block_pool.free_block_queue.get_all_free_blocks()]

    def make_free_last(self, blocks: list[int]) -> None:
        pool = self.manager.block_pool
        for block in blocks:
            pool.free_block_queue.remove(pool.blocks[block])
        pool.free_block_queue.append_n([pool.blocks[block] for block in blocks])

    def _begin_step(self) -> None:
        if hasattr(self.manager, "new_step_starts"):
            self.manager.new_step_starts()


ENGINES: dict[str, Callable[[int, int], Engine]] = {
    "seed": lambda blocks, size: NanoVllm(block_manager.BlockManager(blocks, size), size),
    "hardened": lambda blocks, size: NanoVllm(hardened.BlockManager(blocks, size), size),
}
