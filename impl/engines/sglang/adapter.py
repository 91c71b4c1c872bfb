"""The five operations as calls of SGLang's radix cache and allocators, in the order in which its scheduler makes them.

Of the scheduler's own policy nothing is taken over: it keeps a page a request and room for the output back at admission.
Here a request is admitted exactly if its pages fit, so that the pool is driven harder than by the scheduler.
"""

import copy
from array import array
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from kvspec.impl.engines.sglang.loading import Sglang
from kvspec.impl.engines.tree_keys import chained, order_of_use, root_of
from kvspec.spec import operations as op
from kvspec.spec.state import Snapshot, World

MOST_REQUESTS = 16
"""Rows of the table of requests."""

_SAMPLING = SimpleNamespace(max_new_tokens=1 << 20, ignore_eos=False, custom_params=None)


class SglangAdapter:
    """One ``RadixCache``, its allocator and its table of requests; a block is a page, and page 0 is never handed out."""

    def __init__(self, sglang: Sglang, world: World) -> None:
        self._sglang, self._page = sglang, world.block_size
        if world.blocks < 1 or world.block_size < 1:
            raise ValueError(f"a pool of {world.blocks} pages of {world.block_size} tokens is impossible")
        size = world.blocks * world.block_size
        rows = sglang.rows(MOST_REQUESTS, size + 1, "cpu", False)
        parameters = sglang.parameters(
            disable=False,
            req_to_token_pool=rows,
            token_to_kv_pool_allocator=_allocator(sglang, size, world.block_size),
            page_size=world.block_size,
        )
        self._tree = sglang.tree(parameters)
        self._requests: dict[str, Any] = {}
        self._prefilling: set[str] = set()

    # Operations ------------------------------------------------------------------------------------------------

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        """Match, lock what was matched, and make room for the first chunk; a namespace is the extra key."""
        request = self._sglang.request(sequence, "", array("q", tokens), _SAMPLING, extra_key=namespace or None)
        request.init_next_round_input(self._tree)
        request.lock = self._tree.lock(request.last_node)
        cached = request.prefix_len
        planned = min(limit, len(tokens) - cached)
        if not self._extend(request, planned):
            self._tree.unlock(request.lock)
            return op.Refused()
        self._requests[sequence] = request
        self._prefilling.add(sequence)
        return op.Admitted(cached, planned, self._table(request))

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        """The next chunk of a prompt, or one decoded token."""
        request = self._requests[sequence]
        prefills = request.prefix_len < len(request.origin_input_ids)
        if not (self._extend(request, count) if prefills else self._decode(request)):
            return op.Refused()
        if prefills:
            self._prefilling.add(sequence)
        return op.Reserved(self._table(request))

    def commit(self, sequences: tuple[str, ...]) -> op.Outcome:
        """``checkpoint_kv_cache`` after a chunk of a prompt; nothing after a decoded token."""
        for name in sequences:
            if name in self._prefilling:
                self._prefilling.remove(name)
                self._sglang.checkpoint(self._requests[name], self._tree)
        return op.Committed(tuple([self._table(self._requests[name]) for name in sequences]))

    def append(self, sequence: str, token: int) -> op.Outcome:
        """A sampled token joins the request."""
        self._requests[sequence].output_ids.append(token)
        return op.Appended()

    def release(self, sequence: str, cause: str) -> op.Outcome:
        """``release_kv_cache``: what was computed goes into the tree, unless the request is retracted or half prefilled."""
        request = self._requests.pop(sequence, None)
        if request is not None:
            prefilled = request.prefix_len >= len(request.origin_input_ids)
            keep = prefilled and cause != op.Cause.PREEMPTED
            self._sglang.release(request, self._tree, checkpoint=keep)
        return op.Released()

    # Room ------------------------------------------------------------------------------------------------------

    def _extend(self, request: Any, count: int) -> bool:
        """``alloc_for_extend`` for the next `count` tokens of a prompt, if their pages fit."""
        start = request.prefix_len
        if not self._fits(self._pages(start + count) - self._pages(start)):
            return False
        request.extend_end = start + count
        self._sglang.extend(_batch(self._tree, request, start, start + count))
        return True

    def _decode(self, request: Any) -> bool:
        """``check_decode_capacity``, which evicts what it can, then ``alloc_for_decode`` for one token."""
        length, allocator = request.kv.kv_committed_len, self._tree.token_to_kv_pool_allocator
        needed = self._page if length % self._page == 0 else 0
        if not allocator.check_decode_capacity(num_tokens=needed, tree_cache=self._tree, requests=[request]):
            return False
        self._sglang.decode(_batch(self._tree, request, length, length), 1)
        return True

    def _fits(self, pages: int) -> bool:
        room = self._tree.token_to_kv_pool_allocator.available_size() + self._tree.evictable_size()
        return bool(pages * self._page <= room)

    def _pages(self, tokens: int) -> int:
        return -(-tokens // self._page)

    # What can be seen ------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Free pages, the pages in the tree, and the tree as an index; no page has a count, a hash or tokens."""
        listed = self._listed()
        return Snapshot(
            free=tuple(self._tree.token_to_kv_pool_allocator.get_all_free_pages().tolist()),
            owned=tuple(sorted([page for _, page in listed])),
            index=tuple(listed),
        )

    def fingerprint(self) -> Any:
        """The nodes of the tree and the order of their last use, which decides what is evicted."""
        return order_of_use([(_pages_of(node.value, self._page), node.last_access_time) for node, _ in self._nodes()])

    def _listed(self) -> list[tuple[int, int]]:
        """Each page in the tree with the key of its prefix."""
        found: list[tuple[int, int]] = []
        for node, keys in self._nodes():
            found += zip(keys, _pages_of(node.value, self._page), strict=True)
        return sorted(found)

    def _nodes(self) -> Iterator[tuple[Any, list[int]]]:
        """The nodes of the tree, each with the keys of its pages."""
        waiting = [(child, root_of(child.key.extra_key)) for child in self._tree.root_node.children.values()]
        while waiting:
            node, parent = waiting.pop()
            keys = chained(node.key.raw_token_ids(), self._page, parent)
            yield node, keys
            waiting.extend([(child, keys[-1]) for child in node.children.values()])

    def _table(self, request: Any) -> tuple[int, ...]:
        row = self._tree.req_to_token_pool.req_to_token[request.kv.req_pool_idx]
        return tuple(_pages_of(row[: request.kv.kv_allocated_len], self._page))

    def copy(self) -> "SglangAdapter":
        """An independent adapter in the same state."""
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> "SglangAdapter":
        new = object.__new__(SglangAdapter)
        vars(new).update(vars(self))
        memo[id(_SAMPLING)] = _SAMPLING
        for name in ("_tree", "_requests", "_prefilling"):
            setattr(new, name, copy.deepcopy(getattr(self, name), memo))
        return new


def _pages_of(slots: Any, page: int) -> list[int]:
    return (slots[::page] // page).tolist()  # type: ignore[no-any-return]


def _allocator(sglang: Sglang, size: int, page: int) -> Any:
    """The allocator that SGLang takes for pages of that size."""
    import torch

    if page == 1:
        return sglang.token_allocator(size, torch.float16, "cpu", None, False)
    return sglang.paged_allocator(size, page, torch.float16, "cpu", None, False)


def _batch(tree: Any, request: Any, start: int, end: int) -> Any:
    """A batch of one request, with what the allocation reads of it: its tokens from `start` to `end`."""
    import torch

    lengths, row = torch.tensor([end]), request.kv.req_pool_idx
    return SimpleNamespace(
        reqs=[request],
        tree_cache=tree,
        req_to_token_pool=tree.req_to_token_pool,
        token_to_kv_pool_allocator=tree.token_to_kv_pool_allocator,
        device="cpu",
        prefix_lens=[start],
        extend_lens=[end - start],
        extend_num_tokens=end - start,
        seq_lens=lengths,
        seq_lens_cpu=lengths,
        req_pool_indices=torch.tensor([row or 0]),
        req_pool_indices_cpu=torch.tensor([row or 0]),
        hisparse_coordinator=None,
        model_config=SimpleNamespace(is_encoder_decoder=False),
        is_dllm=lambda: False,
        maybe_evict_swa=lambda: None,
    )
