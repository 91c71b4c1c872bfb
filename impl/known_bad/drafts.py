"""Faults of speculative decoding: what happens to draft tokens, and to tokens that join several at a time."""

from typing import Any

from kvspec.impl.known_bad.bases.hard import Hard
from kvspec.impl.known_bad.registry import known_bad


@known_bad(
    "several-count-as-one",
    "COVERS",
    "room",
    "vLLM PR 18668",
    "TensorRT-LLM PR 16173",
    context="several",
    shows="3x1: admit A 0 / commit A / extend A 00 / reserve A 2",
)
class SeveralCountAsOne(Hard):
    """Growth takes one block at most, however many tokens have joined."""

    def may_append(self, seq: Any) -> None:
        if self._missing(seq) > 0:
            self._changes += 1
            seq.block_table.append(self._take())


@known_bad(
    "several-asked-as-one",
    "YES-MEANS-YES",
    "room",
    "TensorRT-LLM PR 16173",
    "vLLM PR 18668",
    context="several",
    shows="2x1: admit A 0 / commit A / extend A 00 / reserve A 2",
)
class SeveralAskedAsOne(Hard):
    """The question whether several tokens fit is that for one of them."""

    def can_append(self, seq: Any) -> bool:
        return bool(self.free_block_ids) or super().can_append(seq)


@known_bad(
    "drafts-published",
    "DRAFT-HIDDEN",
    "unbacked",
    "vLLM issue 41838",
    "vLLM PR 42359",
    "SGLang #34539",
    context="truncate",
    shows="2x2: admit A 0 / commit A / draft A 0 / reserve A 1 / commit A",
)
class DraftsPublished(Hard):
    """Draft tokens count like others when blocks are published after the forward pass."""

    def _publishable(self, seq: Any, computed: int) -> int:
        return computed // self.block_size


@known_bad(
    "abandoned-drafts-published",
    "DRAFT-HIDDEN",
    "unbacked",
    "TensorRT-LLM PR 15018",
    "SGLang PR 38355",
    context="truncate",
    shows="2x2: admit A 0 / commit A / draft A 0 / reserve A 1 / commit A / release A",
)
class AbandonedDraftsPublished(Hard):
    """A sequence that goes while it has draft tokens leaves its computed blocks behind as findable, guesses included."""

    def deallocate(self, seq: Any) -> None:
        if drafts := self._drafts(seq):
            self._publish(seq, (len(seq) - drafts) // self.block_size, seq.num_cached_tokens // self.block_size)
        super().deallocate(seq)


@known_bad(
    "rejected-still-computed",
    "TRUNCATED",
    "unbacked",
    "SGLang #34539",
    "vLLM PR 47728",
    context="truncate",
    shows="2x2: admit A 0 / commit A / draft A 0 / reserve A 1 / commit A / truncate A 1",
)
class RejectedStillComputed(Hard):
    """Rejected tokens go, but the number of computed tokens stays what it was with them."""

    def truncate(self, seq: Any, length: int) -> None:
        computed = seq.num_cached_tokens
        super().truncate(seq, length)
        seq.num_cached_tokens = computed


@known_bad(
    "block-of-confirmed-dropped",
    "TRUNCATED",
    "room",
    "vLLM PR 47728",
    "mlx-lm #1494",
    context="truncate",
    shows="2x2: admit A 0 / commit A / draft A 0 / truncate A 1",
)
class BlockOfConfirmedDropped(Hard):
    """A truncate rounds down: the block in which the last confirmed token lies is given back, too."""

    def truncate(self, seq: Any, length: int) -> None:
        super().truncate(seq, length)
        if length % self.block_size:
            self._drop(seq.block_table[length // self.block_size :])
            del seq.block_table[length // self.block_size :]


@known_bad(
    "rejected-published",
    "TRUNCATED",
    "unbacked",
    "SGLang #34539",
    "mlx-lm PR 1502",
    context="truncate",
    shows="2x2: admit A 0 / commit A / draft A 0 / reserve A 1 / commit A / truncate A 1",
)
class RejectedPublished(Hard):
    """Verification publishes the blocks of all computed draft tokens before it drops the rejected ones."""

    def truncate(self, seq: Any, length: int) -> None:
        first = (len(seq) - self._drafts(seq)) // self.block_size
        self._publish(seq, first, seq.num_cached_tokens // self.block_size)
        super().truncate(seq, length)

    def _publish(self, seq: Any, start: int, end: int) -> None:
        while start < end and self.blocks[seq.block_table[start]].node is not None:
            start += 1
        super()._publish(seq, start, end)
