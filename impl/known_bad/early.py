"""Faults of managers that register blocks before the forward pass, and of those that ask with token layouts."""

from typing import Any

from kvspec.impl.known_bad.bases.named import Early, Layout, StaleEntries
from kvspec.impl.known_bad.registry import known_bad


@known_bad(
    "early-stale-entry",
    "CONTENT",
    "stale",
    "nano-vllm issue 163",
    "nano-vllm PR 153",
    "ACE-Step-1.5 c2825d9",
    shows="2x2: admit A 12 / commit A / release A / admit B 0012 / commit B / release B / admit A 120",
)
class EarlyStaleEntry(StaleEntries, Early):
    """A recycled block keeps its index entry: the most common serious fault among the copies of nano-vllm."""


@known_bad(
    "early-reset-before-look",
    "INDEX-MATCH",
    "stale",
    "w4096 mini-vllm",
    "vLLM PR 44237",
    shows="1x2: admit A 00 / commit A / release A / admit A 0",
)
class EarlyResetBeforeLook(Early):
    """A recycled block is reset before its old hash is read, so that the clean-up of the index never runs."""

    def _take(self) -> int:
        self.blocks[self.free_block_ids[0]].hash = -1
        return super()._take()


@known_bad(
    "early-whole-prompt-cached",
    "PROGRESS",
    "progress",
    "nano-vllm issue 114",
    "nano-vllm issue 144",
    shows="2x2: admit A 01 / admit B 01",
)
class EarlyWholePromptCached(Early):
    """Every full block may be hit, the last one included."""

    def findable_blocks(self, seq: Any) -> int:
        return len(seq) // self.block_size


@known_bad(
    "early-fresh-uncounted",
    "REFCOUNT",
    "ownership",
    "MinivLLM PR 84",
    "MinivLLM issue 70",
    shows="1x2: admit A 0",
)
class EarlyFreshUncounted(Early):
    """A fresh block starts with a count of zero."""

    def _take(self) -> int:
        block_id = super()._take()
        self.blocks[block_id].ref_count = 0
        return block_id

    def _drop(self, block_id: int) -> None:
        self.blocks[block_id].ref_count = max(1, self.blocks[block_id].ref_count)
        super()._drop(block_id)


@known_bad(
    "early-question-and-action-differ",
    "YES-MEANS-YES",
    "room",
    "MinivLLM PR 85",
    "jianzhnie nano-vllm fork",
    shows="2x2: admit A 0000 / commit A / append A 0 / reserve A 1",
)
class EarlyQuestionAndActionDiffer(Early):
    """Growth is asked about when a block is full, and done when the next one begins."""

    def can_append(self, seq: Any) -> bool:
        return len(self.free_block_ids) >= (len(seq) % self.block_size == 0)


@known_bad(
    "early-resumed-raises",
    "TOTAL",
    "progress",
    "nano-vllm PR 217",
    "nano-vllm issue 144",
    shows="1x2: admit A 11 / commit A / append A 1 / release A preempted / admit A 111",
)
class EarlyResumedRaises(Early):
    """A sequence that comes back after it was preempted is taken for one that decodes, and must have a table."""

    def can_allocate(self, seq: Any) -> Any:
        assert seq.block_table or not seq.num_completion_tokens
        return super().can_allocate(seq)


@known_bad(
    "early-tail-listed-too-soon",
    "CONTENT",
    "unbacked",
    "w4096 mini-vllm",
    "jianzhnie nano-vllm fork",
    shows="3x2: admit A 0 / admit B 000",
)
class EarlyTailListedTooSoon(Early):
    """A partly filled first block is registered as if it were full, with its last token repeated."""

    def allocate(self, seq: Any) -> None:  # type: ignore[override]
        super().allocate(seq)
        if len(seq) < self.block_size:
            padded = [*seq.token_ids, *[seq.last_token] * self.block_size][: self.block_size]
            block = self.blocks[seq.block_table[0]]
            block.update(self.compute_hash(padded), padded)
            self.hash_to_block_id[block.hash] = block.block_id


@known_bad(
    "early-block-size-one",
    "TOTAL",
    "room",
    "nano-vllm at block size 1",
    context="one",
    shows="1x1: admit A 0 / commit A / append A 0 / reserve A 1",
)
class EarlyBlockSizeOne(Early):
    """Growth by remainder: with blocks of one token nothing grows, and the assertion about registered blocks fails."""

    claims = ("one",)

    def may_append(self, seq: Any) -> None:
        if self.block_size > 1:
            super().may_append(seq)
        else:
            assert self.blocks[seq.block_table[-1]].hash == -1

    def can_append(self, seq: Any) -> bool:
        if self.block_size == 1:
            assert self.blocks[seq.block_table[-1]].hash == -1
        return super().can_append(seq)


@known_bad(
    "layout-continued-chunk-short",
    "COVERS",
    "room",
    "slwang-ustc nano-vllm-v1",
    "ATOM PR 250",
    shows="1x2: admit A 0",
)
class LayoutShort(Layout):
    """Growth counts from the tokens of the table instead of the computed ones, and so comes one block late."""

    def lacking(self, seq: Any, count: int) -> int:
        return max(0, self.blocks_for(seq.num_cached_tokens + count - 1) - len(seq.block_table))


@known_bad(
    "layout-free-hits-forgotten",
    "YES-MEANS-YES",
    "room",
    "vLLM PR 6849",
    "slwang-ustc nano-vllm-v1",
    shows="2x2: admit A 11 / commit A / release A / admit B 11000",
)
class LayoutFreeHitsForgotten(Layout):
    """Hits on free blocks are reported as hits on used ones, so that nobody makes room for them."""

    def get_token_layout(self, seq: Any) -> tuple[int, int, int]:
        used, in_free, new = super().get_token_layout(seq)
        return used + in_free, 0, new


@known_bad(
    "layout-counts-do-not-add-up",
    "ANSWER",
    "answer",
    "UCM #1059",
    "vllm-ascend 14283",
    shows="1x2: admit A 000",
)
class LayoutDoesNotAddUp(Layout):
    """The new tokens are counted from the prompt's whole blocks only, so that a tail is never planned."""

    def get_token_layout(self, seq: Any) -> tuple[int, int, int]:
        used, in_free, new = super().get_token_layout(seq)
        return used, in_free, max(1, new // self.block_size * self.block_size)


@known_bad(
    "layout-hit-grows-after-question",
    "NO-MEANS-NO",
    "room",
    "nano-vllm PR 233",
    "vLLM PR 46892",
    shows="3x2: admit A 010 / commit A / admit B 010",
)
class LayoutChargesHits(Layout):
    """All hits are charged as if they were free."""

    def get_token_layout(self, seq: Any) -> tuple[int, int, int]:
        used, in_free, new = super().get_token_layout(seq)
        return 0, used + in_free, new


@known_bad(
    "layout-half-block-listed",
    "CONTENT",
    "unbacked",
    "slwang-ustc nano-vllm-v1",
    "CodingPlatelets nano-vllm fork",
    context="chunked",
    shows="2x2: admit A 00 limit=1 / commit A / release A / admit B 000",
)
class LayoutHalfBlockListed(Layout):
    """A block of the prompt that a chunk only half fills is registered as if the chunk filled it."""

    def may_append(self, seq: Any) -> None:
        super().may_append(seq)
        for i in range(seq.num_cached_tokens // self.block_size, len(seq.block_table)):
            if len(seq.block(i)) == self.block_size:
                self.register(seq, i)


@known_bad(
    "layout-stale-entry",
    "CONTENT",
    "stale",
    "tang-jiapeng nano-vllm fork",
    "nano-vllm issue 163",
    shows="3x2: admit A 011001 / commit A / release A / admit B 01 / admit A 0110010",
)
class LayoutStaleEntry(StaleEntries, Layout):
    """The entry of a recycled block survives, and the comparison sees the block's own tokens only."""
