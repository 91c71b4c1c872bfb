"""The five operations as calls of mini-sglang's ``CacheManager``, in the order in which its scheduler makes them.

Its scheduler knows the length of the output beforehand and keeps room for all of it back at admission.  A program of kvspec
decides as it goes along, so here a request asks for one output token, and for one more whenever one has joined.
"""

import copy
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from kvspec.impl.engines.minisgl.loading import Minisgl
from kvspec.impl.engines.tree_keys import chained, order_of_use
from kvspec.impl.engines.with_torch import without_pinning
from kvspec.spec import operations as op
from kvspec.spec.state import Snapshot, World

MOST_REQUESTS = 16
"""Rows of the page table."""


@dataclass(slots=True)
class _Running:
    """A request: as it waits, as it runs, and how many of its tokens have a slot."""

    pending: Any
    request: Any
    covered: int = 0


class MinisglAdapter:
    """One ``CacheManager`` with a radix cache, and its table of rows; a block is a page."""

    def __init__(self, minisgl: Minisgl, world: World) -> None:
        import torch

        if world.blocks < 1 or world.block_size < 1:
            raise ValueError(f"a pool of {world.blocks} pages of {world.block_size} tokens is impossible")
        self._minisgl, self._page = minisgl, world.block_size
        table = torch.zeros(MOST_REQUESTS, (world.blocks + 1) * world.block_size, dtype=torch.int32)
        minisgl.core._GLOBAL_CTX = minisgl.core.Context(world.block_size)  # the radix cache reads it when it is made
        self._manager = minisgl.manager(world.blocks, world.block_size, table, "radix")
        self._rows = minisgl.rows(MOST_REQUESTS, table)
        self._running: dict[str, _Running] = {}
        self._prefilled: set[str] = set()

    # Operations ------------------------------------------------------------------------------------------------

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        """``PrefillAdder.try_add_one`` with a budget of `limit` tokens, then ``allocate_paged``."""
        import torch

        sampling = SimpleNamespace(max_tokens=1)
        pending = self._minisgl.pending(len(self._running), torch.tensor(tokens, dtype=torch.int32), sampling)
        request = self._added(pending, limit)
        if request is None:
            return op.Refused()
        running = self._running[sequence] = _Running(pending, request)
        cached = request.cached_len
        self._allocate(running)
        return op.Admitted(cached, request.extend_len, self._table(running))

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        """The next chunk of a prompt, or one decoded token: ``allocate_paged``, if there is room."""
        running = self._running[sequence]
        chunk = isinstance(running.request, self._minisgl.chunked)
        end = running.request.cached_len + count
        if (self._pages(end) - self._pages(running.covered)) * self._page > self._manager.available_size:
            return op.Refused()
        if chunk:
            running.pending.chunked_req = running.request
            running.request = self._added(running.pending, count)
        self._allocate(running)
        return op.Reserved(self._table(running))

    def commit(self, sequences: tuple[str, ...]) -> op.Outcome:
        """``complete_one``, and the prompt goes into the tree when its last chunk is computed."""
        with self._manager.lazy_free_region():
            for name in sequences:
                request = self._running[name].request
                request.complete_one()
                if name not in self._prefilled and not isinstance(request, self._minisgl.chunked):
                    self._prefilled.add(name)
                    self._manager.cache_req(request, finished=False)
        return op.Committed(tuple([self._table(self._running[name]) for name in sequences]))

    def append(self, sequence: str, token: int) -> op.Outcome:
        """A sampled token joins the request, which asks for one more."""
        import torch

        request = self._running[sequence].request
        request.append_host(torch.tensor([token], dtype=torch.int32))
        request.max_device_len += 1
        return op.Appended()

    def release(self, sequence: str, cause: str) -> op.Outcome:
        """The row is freed, what was computed goes into the tree.  There is no preemption: it is an abort."""
        running = self._running.pop(sequence, None)
        self._prefilled.discard(sequence)
        if running is not None:
            self._rows.free(running.request.table_idx)
            with self._manager.lazy_free_region() if cause == op.Cause.FINISHED else nullcontext():
                self._manager.cache_req(running.request, finished=True)
        return op.Released()

    # Room ------------------------------------------------------------------------------------------------------

    def _added(self, pending: Any, budget: int) -> Any:
        """The request if it is admitted, or if it has been and goes on; else None."""
        with without_pinning():
            return self._minisgl.adder(budget, 0, self._manager, self._rows).try_add_one(pending)

    def _allocate(self, running: _Running) -> None:
        with without_pinning():
            self._manager.allocate_paged([running.request])
        running.covered = running.request.device_len

    def _pages(self, tokens: int) -> int:
        return -(-tokens // self._page)

    # What can be seen ------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Free pages, the pages in the tree, and the tree as an index; no page has a count, a hash or tokens."""
        listed = self._listed()
        return Snapshot(
            free=tuple((self._manager.free_slots // self._page).tolist()),
            owned=tuple(sorted([page for _, page in listed])),
            index=tuple(listed),
        )

    def fingerprint(self) -> Any:
        """The nodes of the tree and the order of their last use, which decides what is evicted."""
        return order_of_use([(self._pages_of(node.value), node.timestamp) for node, _ in self._nodes()])

    def _listed(self) -> list[tuple[int, int]]:
        """Each page in the tree with the key of its prefix."""
        found: list[tuple[int, int]] = []
        for node, keys in self._nodes():
            found += zip(keys, self._pages_of(node.value), strict=True)
        return sorted(found)

    def _nodes(self) -> Iterator[tuple[Any, list[int]]]:
        """The nodes of the tree, each with the keys of its pages."""
        roots = self._manager.prefix_cache.root_node.children.values()
        waiting: list[tuple[Any, int | None]] = [(child, None) for child in roots]
        while waiting:
            node, parent = waiting.pop()
            keys = chained(node._key.tolist(), self._page, parent)
            yield node, keys
            waiting.extend([(child, keys[-1]) for child in node.children.values()])

    def _table(self, running: _Running) -> tuple[int, ...]:
        return tuple(self._pages_of(self._rows.page_table[running.request.table_idx, : running.covered]))

    def _pages_of(self, slots: Any) -> list[int]:
        return (slots[:: self._page] // self._page).tolist()  # type: ignore[no-any-return]

    def copy(self) -> "MinisglAdapter":
        """An independent adapter in the same state."""
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> "MinisglAdapter":
        new = object.__new__(MinisglAdapter)
        vars(new).update(vars(self))
        for name in ("_manager", "_rows", "_running", "_prefilled"):
            setattr(new, name, copy.deepcopy(getattr(self, name), memo))
        return new
