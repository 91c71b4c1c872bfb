"""The five operations as calls of lmdeploy's block manager and trie, in the order in which its scheduler makes them."""

import copy
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import xxhash

from kvspec.impl.engines.lmdeploy.loading import Lmdeploy
from kvspec.impl.nano_vllm.weak_hash import weak_hash
from kvspec.spec import operations as op
from kvspec.spec.state import Snapshot, World


def chain_key(tokens: tuple[int, ...], prefix: int | None) -> int:
    """A number for a path of the trie; lmdeploy itself has keys for single blocks only."""
    return xxhash.xxh64_intdigest(repr((prefix, tuple(tokens))).encode())


class LmdeployAdapter:
    """A ``DefaultBlockManager`` and a ``BlockTrie``; no blocks on the CPU."""

    def __init__(self, lmdeploy: Lmdeploy, world: World) -> None:
        self._lmdeploy, self._blocks = lmdeploy, world.blocks
        self._manager = lmdeploy.manager(world.blocks, 0)
        self._trie = lmdeploy.trie(allocator=self._manager.allocator, block_size=world.block_size, enabled=True)
        if world.weak_hash:
            self._trie._hash_block = lambda tokens, extra_identity: weak_hash(tokens)
        self._session = SimpleNamespace(session_id=0, seq_meta=lmdeploy.messages.SequenceMeta(world.block_size))
        self._sequences: dict[str, Any] = {}
        self._planned: dict[str, int] = {}
        self._sampled: dict[str, int] = {}

    # Operations ------------------------------------------------------------------------------------------------

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        """Match, evict what is missing, allocate, extend the trie; a namespace is the name of a LoRA adapter."""
        known = self._sequence(tokens, namespace)
        self._trie.match(known)
        cached = int(known.num_history_ids)
        planned = min(limit, len(tokens) - cached)
        known.kv_token_limit = cached + planned if cached + planned < len(tokens) else None
        if not self._made_room(known, 0):
            self._give_back(known)
            return op.Refused()
        self._manager.allocate(known, 0)
        self._trie.allocate(known)
        if hasattr(self._trie, "finalize_match"):  # since 0.18: counts hits, for statistics only
            self._trie.finalize_match(known)
        self._sequences[sequence], self._planned[sequence] = known, planned
        return op.Admitted(cached, planned, self._table(known))

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        """A sampled token: room is made before it is known to the manager.  Else the next part of a prompt."""
        known = self._known(sequence)
        reserved = self._decode(sequence, known) if sequence in self._sampled else self._next_part(known, count)
        if not reserved:
            return op.Refused()
        self._planned[sequence] = count
        return op.Reserved(self._table(known))

    def commit(self, sequences: tuple[str, ...]) -> op.Outcome:
        """The sequences step on; the manager is told nothing."""
        known = [self._known(name) for name in sequences]
        for name, each in zip(sequences, known, strict=True):
            each.set_step(int(each.num_history_ids) + self._planned.pop(name, 0))
        return op.Committed(tuple([self._table(each) for each in known]))

    def append(self, sequence: str, token: int) -> op.Outcome:
        """A sampled token; lmdeploy makes room for it before it reads it."""
        self._known(sequence)
        self._sampled[sequence] = token
        return op.Appended()

    def release(self, sequence: str, cause: str) -> op.Outcome:
        """Free, as for a sequence that has ended or was evicted."""
        known = self._known(sequence)
        self._give_back(known)
        self._planned.pop(sequence, None)
        self._sampled.pop(sequence, None)
        return op.Released()

    def _decode(self, name: str, known: Any) -> bool:
        if self._manager.num_required_blocks(known, 1):
            if not self._made_room(known, 1):
                return False
            self._manager.allocate(known, 1)
            self._trie.allocate(known)
        mode = self._lmdeploy.messages.UpdateTokenMode.DECODE
        known.update_token_ids(np.array([self._sampled.pop(name)]), mode=mode)
        return True

    def _next_part(self, known: Any, count: int) -> bool:
        end = int(known.num_history_ids) + count
        before, known.kv_token_limit = known.kv_token_limit, end if end < known.num_all_ids else None
        if not self._made_room(known, 0):
            known.kv_token_limit = before
            return False
        self._manager.allocate(known, 0)
        self._trie.allocate(known)
        return True

    def _made_room(self, known: Any, more: int) -> bool:
        """Evict from the trie what is missing."""
        required = self._manager.num_required_blocks(known, more)
        missing = required - self._manager.get_num_free_gpu_blocks()
        if missing > 0:
            self._trie.evict(missing)
        return bool(required <= self._manager.get_num_free_gpu_blocks())

    def _give_back(self, known: Any) -> None:
        """What the scheduler does to a sequence that leaves, or whose tentative match is undone."""
        known.prefix_cache.trie_cursor, known.prefix_cache.match_start_step = None, -1
        known.prefix_cache.recompute_overlap.clear_tracking()
        known.kv_token_limit = None
        if known.num_blocks > 0:
            self._manager.free(known)
        known.set_step(0)

    # What can be seen ------------------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Free list, counts, and the trie: its paths as the index, and the blocks that only it holds as a third pool."""
        allocator = self._manager.allocator
        physical = allocator._gpu_allocator
        free = physical._free_blocks[self._blocks - physical.get_num_free_blocks() :]
        counts = self._counts()
        nodes = list(self._nodes())
        hashes = {block: key for key, block, _ in nodes}
        contents = {block: tokens for _, block, tokens in nodes}
        return Snapshot(
            free=tuple(map(int, free)),
            owned=tuple(sorted(block for block in hashes if counts[block] == 1)),
            references=tuple(counts),
            hashes=tuple([hashes.get(block) for block in range(self._blocks)]),
            contents=tuple([contents.get(block, ()) for block in range(self._blocks)]),
            index=tuple(sorted((key, block) for key, block, _ in nodes)),
        )

    def fingerprint(self) -> tuple[Any, ...]:
        """What the snapshot does not show: which blocks of the trie are older, and which ids the free blocks have."""
        allocator = self._manager.allocator
        times = [int(allocator._log_mem.access_time[self._logical(block)]) for _, block, _ in self._nodes()]
        ranks = [sorted(set(times)).index(time) for time in times]
        free = allocator._free_blocks[self._blocks - allocator.get_num_free_blocks() :]
        return ranks, list(map(int, allocator._log_mem.phy_map)), list(map(int, free)), sorted(self._sampled.items())

    def copy(self) -> "LmdeployAdapter":
        """An independent adapter in the same state."""
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> "LmdeployAdapter":
        new = object.__new__(LmdeployAdapter)
        vars(new).update(vars(self))
        memo[id(self._session)] = self._session
        for name in ("_manager", "_trie", "_sequences", "_planned", "_sampled"):
            setattr(new, name, copy.deepcopy(getattr(self, name), memo))
        return new

    def _counts(self) -> list[int]:
        memory = self._manager.allocator._log_mem
        counts = [0] * self._blocks
        for logical in np.flatnonzero(memory.ref_count):
            counts[int(memory.phy_map[logical])] += int(memory.ref_count[logical])
        return counts

    def _logical(self, block: int) -> int:
        memory = self._manager.allocator._log_mem
        return int(np.flatnonzero((memory.phy_map == block) & (memory.ref_count > 0))[0])

    def _nodes(self) -> Iterator[tuple[int, int, tuple[int, ...]]]:
        """Key, block and tokens of each node of the trie."""
        waiting: list[tuple[Any, int | None]] = []
        for name, root in self._trie._roots.items():
            before = chain_key(tuple(name.encode()), None) if name else None
            waiting += [(node, before) for node in root.children.values()]
        while waiting:
            node, before = waiting.pop()
            tokens = tuple(map(int, node.token_ids))
            key = chain_key(tokens, before)
            yield key, int(self._manager.allocator.get_physical_blocks(node.block_id)), tokens
            waiting += [(child, key) for child in node.children.values()]

    # Shared ----------------------------------------------------------------------------------------------------

    def _known(self, name: str) -> Any:
        """The sequence of that name; one that was never admitted is new to the manager."""
        return self._sequences[name] if name in self._sequences else self._sequence((0,), "")

    def _sequence(self, tokens: tuple[int, ...], namespace: str) -> Any:
        made = self._lmdeploy.sequence(seq_id=0, session=self._session, adapter_name=namespace or None)
        made.update_token_ids(np.array(tokens))
        return made

    def _table(self, known: Any) -> tuple[int, ...]:
        return tuple(map(int, self._manager.get_block_table(known)))
