"""The sequence that a nano-vllm-shaped block manager works on: tokens, a block table, and how far it is."""

from itertools import count
from typing import ClassVar


class Sequence:
    """One request.  `block_size` belongs to the class: an engine sets it once, or makes a subclass for each size.

    `num_cached_tokens`: tokens whose K/V exists (found by admission, then growing with each step).
    `num_scheduled_tokens`: tokens that the step in flight computes.  `num_draft_tokens`: so many of the last tokens are a
    guess (speculative decoding), which `truncate` confirms or rejects.  `namespace`: what besides its tokens its K/V depends
    on (adapter, media, salt), spelled as by ``spec.namespaces``.  `block_table`: the physical block of each block.
    """

    block_size: ClassVar[int] = 256
    counter: ClassVar["count[int]"] = count()

    def __init__(self, token_ids: list[int]) -> None:
        self.seq_id = next(Sequence.counter)
        self.token_ids = list(token_ids)
        self.last_token = self.token_ids[-1] if self.token_ids else None  # an empty prompt is for the manager to refuse
        self.num_tokens = len(self.token_ids)
        self.num_prompt_tokens = len(self.token_ids)
        self.num_cached_tokens = 0
        self.num_scheduled_tokens = 0
        self.num_draft_tokens = 0
        self.namespace = ""
        self.block_table: list[int] = []

    def __len__(self) -> int:
        return self.num_tokens

    def __getitem__(self, key: int | slice) -> int | list[int]:
        return self.token_ids[key]

    @property
    def num_completion_tokens(self) -> int:
        """How many tokens were sampled since the prompt."""
        return self.num_tokens - self.num_prompt_tokens

    @property
    def prompt_token_ids(self) -> list[int]:
        """The tokens the request came with."""
        return self.token_ids[: self.num_prompt_tokens]

    @property
    def completion_token_ids(self) -> list[int]:
        """The tokens sampled so far."""
        return self.token_ids[self.num_prompt_tokens :]

    @property
    def num_blocks(self) -> int:
        """How many blocks all known tokens need; the last one may be partly filled."""
        return -(-self.num_tokens // self.block_size)

    @property
    def last_block_num_tokens(self) -> int:
        """How many tokens lie in the last block."""
        return self.num_tokens - (self.num_blocks - 1) * self.block_size

    def block(self, i: int) -> list[int]:
        """The tokens of block `i` of this sequence."""
        assert 0 <= i < self.num_blocks
        start = i * self.block_size
        return self.token_ids[start : start + self.block_size]

    def append_token(self, token_id: int) -> None:
        """A sampled token joins; its K/V does not exist yet."""
        self.token_ids.append(token_id)
        self.last_token = token_id
        self.num_tokens += 1

    def append_drafts(self, token_ids: list[int]) -> None:
        """Draft tokens join: a guess, of which nothing may be findable until ``truncate`` confirms it."""
        for token_id in token_ids:
            self.append_token(token_id)
        self.num_draft_tokens += len(token_ids)

    def truncate(self, length: int) -> None:
        """The draft tokens from `length` on never were; those before it are ordinary ones now."""
        del self.token_ids[length:]
        self.num_tokens = length
        self.last_token = self.token_ids[-1] if self.token_ids else None
        self.num_cached_tokens = min(self.num_cached_tokens, length)
        self.num_draft_tokens = 0
