"""Three bases with the calls of nano-vllm's managers: late and early registration, and token layouts."""

from dataclasses import replace
from typing import Any, ClassVar

from kvspec.impl.adapter import Implementation
from kvspec.impl.block_manager import NO_HASH, BlockManager
from kvspec.impl.nano_vllm import implementation_of


class Late(BlockManager):
    """The bundled manager as it is: a full block is registered after the forward pass (``hash_blocks``)."""

    base: ClassVar[str] = "bundled"
    shape: ClassVar[str] = "late registration"
    claims: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def implementation(cls) -> Implementation:
        """The class behind the adapter for its calls; it claims the profiles in `claims`, too."""
        made = implementation_of(cls)
        profiles = made.declaration.profiles.union(cls.claims)
        smallest = 1 if "one" in cls.claims else made.declaration.smallest_block_size
        declaration = replace(made.declaration, profiles=profiles, smallest_block_size=smallest)
        return replace(made, declaration=declaration)


class StaleEntries(BlockManager):
    """A fault that fits each of these bases: a recycled block keeps its index entry."""

    def _take(self) -> int:
        index = dict(self.hash_to_block_id)
        block_id = super()._take()
        self.hash_to_block_id = index
        return block_id


class Early(Late):
    """The first generation without its known faults: ``allocate`` and ``may_append`` register, before the forward pass."""

    base, shape = "early", "early registration"
    hash_blocks: Any = None  # this generation has no such call

    def can_allocate(self, seq: Any) -> Any:
        return len(self.free_block_ids) >= seq.num_blocks

    def allocate(self, seq: Any) -> None:  # type: ignore[override]
        hit = self.find(seq)
        for block_id in hit:
            self._claim(block_id)
            seq.block_table.append(block_id)
        for i in range(len(hit), seq.num_blocks):
            seq.block_table.append(self._take())
            if len(seq.block(i)) == self.block_size:
                self.register(seq, i)
        seq.num_cached_tokens = len(hit) * self.block_size

    def can_append(self, seq: Any) -> bool:
        return len(self.free_block_ids) + len(seq.block_table) >= int(seq.num_blocks)

    def may_append(self, seq: Any) -> None:
        if len(seq.block_table) < seq.num_blocks:
            seq.block_table.append(self._take())
        if len(seq) % self.block_size == 0:
            self.register(seq, seq.num_blocks - 1)

    # Parts that faults override

    def findable_blocks(self, seq: Any) -> int:
        """How many leading blocks may be hit: never the last one."""
        return int(seq.num_blocks) - 1

    def find(self, seq: Any) -> list[int]:
        """The blocks of the longest cached prefix."""
        hit, key = [], NO_HASH
        for i in range(self.findable_blocks(seq)):
            key = self.compute_hash(seq.block(i), key)
            block_id = self.hash_to_block_id.get(key, -1)
            if block_id == -1 or self.blocks[block_id].token_ids != seq.block(i):
                break
            hit.append(block_id)
        return hit

    def register(self, seq: Any, i: int) -> None:
        """Block `i` of the sequence becomes findable."""
        parent = self.blocks[seq.block_table[i - 1]].hash if i else NO_HASH
        block = self.blocks[seq.block_table[i]]
        block.update(self.compute_hash(seq.block(i), parent), seq.block(i))
        self.hash_to_block_id[block.hash] = block.block_id


class Layout(Early):
    """Asks with numbers of tokens (hit in used blocks, hit in free ones, new); the table covers what is planned only."""

    base, shape = "layout", "token layout"

    def get_token_layout(self, seq: Any) -> tuple[int, int, int]:
        hit = self.find(seq)
        used = sum(block_id in self.used_block_ids for block_id in hit)
        size = self.block_size
        return used * size, (len(hit) - used) * size, len(seq) - len(hit) * size

    def can_allocate(self, num_tokens: int) -> bool:  # type: ignore[override]
        return len(self.free_block_ids) >= self.blocks_for(num_tokens)

    def blocks_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.block_size)

    def allocate(self, seq: Any) -> None:  # type: ignore[override]
        for block_id in self.find(seq):
            self._claim(block_id)
            seq.block_table.append(block_id)
        seq.num_cached_tokens = len(seq.block_table) * self.block_size
        self.may_append(seq)

    def lacking(self, seq: Any, count: int) -> int:
        """How many blocks the table lacks for the next `count` tokens."""
        return self.blocks_for(seq.num_cached_tokens + count) - len(seq.block_table)

    def can_append(self, seq: Any, count: int) -> bool:  # type: ignore[override]
        return len(self.free_block_ids) >= self.lacking(seq, count)

    def may_append(self, seq: Any) -> None:
        for _ in range(self.lacking(seq, seq.num_new_tokens)):
            seq.block_table.append(self._take())
        done, planned = seq.num_cached_tokens, seq.num_new_tokens
        for i in range(done // self.block_size, (done + planned) // self.block_size):
            self.register(seq, i)
