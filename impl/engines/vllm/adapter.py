"""The five operations as calls of vLLM's ``KVCacheManager``, in the order in which its scheduler makes them."""

import copy
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from kvspec.impl.engines.calls import call_known
from kvspec.impl.engines.vllm.keys import Keys, weak_hash
from kvspec.impl.engines.vllm.loading import Vllm
from kvspec.spec import operations as op
from kvspec.spec.state import Snapshot, World

LONGEST = 1 << 20  # tokens in a sequence
"""Max model length of the manager."""


class VllmAdapter:
    """One ``KVCacheManager`` with one group of full attention, prefix caching on; block 0 is its null block."""

    def __init__(self, vllm: Vllm, keys: Keys, world: World) -> None:
        self._vllm, self._keys, self._block_size = vllm, keys, world.block_size
        hash_function = weak_hash if world.weak_hash else vllm.hash_function
        self._hasher = vllm.blocks.get_request_block_hasher(world.block_size, hash_function)
        self._manager = _manager(vllm, world)
        self._requests: dict[str, Any] = {}
        self._planned: dict[str, int] = {}

    # Operations ------------------------------------------------------------------------------------------------

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        """``get_computed_blocks``, ``allocate_slots``; a namespace is the salt of the cache."""
        request = self._asking_in(sequence, tokens, namespace)
        self._step()
        blocks, cached, *_ = self._manager.get_computed_blocks(request)
        planned = min(limit, len(tokens) - cached)
        if self._manager.allocate_slots(request, planned, cached, blocks) is None:
            return op.Refused()
        request.status, request.num_computed_tokens = self._vllm.requests.RequestStatus.RUNNING, cached
        self._requests[sequence], self._planned[sequence] = request, planned
        return op.Admitted(cached, planned, self._table(sequence))

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        """``allocate_slots`` for a running request."""
        self._step()
        if self._manager.allocate_slots(self._known(sequence), count) is None:
            return op.Refused()
        self._planned[sequence] = count
        return op.Reserved(self._table(sequence))

    def commit(self, sequences: tuple[str, ...]) -> op.Outcome:
        """The scheduler counts the tokens as computed; the manager is told nothing."""
        for name in sequences:
            self._known(name).num_computed_tokens += self._planned.pop(name, 0)
        return op.Committed(tuple([self._table(name) for name in sequences]))

    def append(self, sequence: str, token: int) -> op.Outcome:
        """A sampled token joins the request."""
        self._known(sequence).append_output_token_ids(token)
        return op.Appended()

    def release(self, sequence: str, cause: str) -> op.Outcome:
        """``free``; a preempted request waits, to be admitted again as the same object."""
        request = self._known(sequence)
        self._manager.free(request)
        statuses = self._vllm.requests.RequestStatus
        preempted = cause == op.Cause.PREEMPTED
        request.status = statuses.PREEMPTED if preempted else statuses.FINISHED_STOPPED
        request.num_computed_tokens = 0
        self._planned.pop(sequence, None)
        return op.Released()

    # What can be seen ------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Free queue, counts, hashes and index.  The blocks do not show the tokens they hold."""
        pool, key = self._manager.block_pool, self._keys.of
        return Snapshot(
            free=tuple([block.block_id for block in pool.free_block_queue.get_all_free_blocks()]),
            references=tuple([block.ref_cnt for block in pool.blocks]),
            hashes=tuple([None if block.block_hash is None else key(block.block_hash) for block in pool.blocks]),
            index=tuple(sorted([(key(found), block) for found, block in _entries(pool)], key=itemgetter(0))),
        )

    def copy(self) -> "VllmAdapter":
        """An independent adapter in the same state; what never changes is shared."""
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> "VllmAdapter":
        new = object.__new__(VllmAdapter)
        for shared in (self._hasher, self._manager.kv_cache_config, self._vllm.sampling):
            memo[id(shared)] = shared
        vars(new).update(vars(self))
        for name in ("_manager", "_requests", "_planned"):
            setattr(new, name, copy.deepcopy(getattr(self, name), memo))
        return new

    # Shared ----------------------------------------------------------------------------------------------------

    def _asking_in(self, name: str, tokens: tuple[int, ...], namespace: str) -> Any:
        known = self._requests.get(name)
        if known is None or known.is_finished():
            return self._request(name, tokens, namespace)
        same = tuple(known.all_token_ids) == tokens and known.cache_salt == (namespace or None)
        return known if same else self._request(name, tokens, namespace)

    def _known(self, name: str) -> Any:
        """The request of that name; one that was never admitted is new to the manager."""
        return self._requests.get(name) or self._request(name, (0,), "")

    def _request(self, name: str, tokens: tuple[int, ...], namespace: str) -> Any:
        return call_known(
            self._vllm.requests.Request,
            name,
            list(tokens),
            self._vllm.sampling,
            None,
            eos_token_id=None,
            arrival_time=0.0,
            cache_salt=namespace or None,
            block_hasher=self._hasher,
        )

    def _step(self) -> None:
        """Tell the manager that a step begins, where it wants to know."""
        if not self._planned and hasattr(self._manager, "new_step_starts"):
            self._manager.new_step_starts()

    def _table(self, name: str) -> tuple[int, ...]:
        return tuple(self._manager.get_block_ids(name)[0])


def _manager(vllm: Vllm, world: World) -> Any:
    """A manager of `world.blocks` blocks besides the null block."""
    face = vllm.interface
    spec = call_known(
        face.FullAttentionSpec, block_size=world.block_size, num_kv_heads=1, head_size=1, dtype=None, use_mla=False
    )
    config = call_known(
        face.KVCacheConfig,
        num_blocks=world.blocks + 1,
        kv_cache_tensors=[],
        kv_cache_groups=[face.KVCacheGroupSpec(["layer"], spec)],
    )
    size = world.block_size
    return call_known(
        vllm.manager,
        config,
        max_model_len=LONGEST,
        scheduler_block_size=size,
        hash_block_size=size,
        enable_caching=True,
    )


def _entries(pool: Any) -> Iterator[tuple[bytes, int]]:
    """The index as pairs of a key and a block; one key may name several blocks."""
    for key, found in pool.cached_block_hash_to_block._cache.items():
        for block in found.values() if isinstance(found, dict) else (found,):
            yield key, block.block_id
