"""Faults in the answer itself."""

from dataclasses import replace

from kvspec.impl.known_bad.bases.counted import Counted
from kvspec.impl.known_bad.registry import known_bad
from kvspec.spec import operations as op


@known_bad(
    "scheduled-before-hit",
    "ANSWER",
    "answer",
    "nano-vllm PR 211",
    "nano-vllm PR 233",
    "nano-vllm PR 207",
    shows="2x2: admit A 01 / commit A / admit B 010",
)
class ScheduledBeforeHit(Counted):
    """The number of tokens to compute is fixed before the hit is known: cached and scheduled are more than the
    prompt.
    """

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        outcome = super().admit(sequence, tokens, limit, namespace)
        return replace(outcome, reserved=min(limit, len(tokens))) if isinstance(outcome, op.Admitted) else outcome


@known_bad(
    "one-token-missing",
    "ANSWER",
    "answer",
    "vllm-mlx PR 311",
    shows="2x2: admit A 01 / commit A / admit B 010",
)
class OneTokenMissing(Counted):
    """After a hit one token is in neither the cached nor the remaining part."""

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        outcome = super().admit(sequence, tokens, limit, namespace)
        if isinstance(outcome, op.Admitted) and outcome.cached:
            return replace(outcome, reserved=outcome.reserved - 1)
        return outcome


@known_bad(
    "negative-hit",
    "ANSWER",
    "answer",
    "LMCache #2912",
    "vLLM #53495",
    "UCM #1059",
    shows="1x1: admit A 0 / release A / admit A 0",
)
class NegativeHit(Counted):
    """A resumed sequence reports what it has lost since as a negative hit."""

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        outcome = super().admit(sequence, tokens, limit, namespace)
        if isinstance(outcome, op.Admitted) and sequence in self.gone and not outcome.cached:
            return replace(outcome, cached=-self.size)
        return outcome


@known_bad(
    "blocks-instead-of-ids",
    "ANSWER",
    "answer",
    "w4096 mini-vllm",
    shows="1x2: admit A 0 / commit A / append A 0 / reserve A 1",
)
class BlocksInsteadOfIds(Counted):
    """The block table lists names of blocks where block ids are expected."""

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        outcome = super().reserve(sequence, count)
        if isinstance(outcome, op.Reserved):
            return op.Reserved(tuple(f"block {block}" for block in outcome.table))  # type: ignore[misc]
        return outcome


@known_bad(
    "host-block-in-table",
    "ANSWER",
    "answer",
    "xsmccc nano-vllm fork",
    "TensorRT-LLM #11879",
    "MinivLLM issue 53",
    shows="1x1: admit A 0 / release A / admit A 0",
)
class HostBlockInTable(Counted):
    """A sequence that comes back gets the id of a block of another memory."""

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        outcome = super().admit(sequence, tokens, limit, namespace)
        if isinstance(outcome, op.Admitted) and sequence in self.gone:
            return replace(outcome, table=(*outcome.table[:-1], outcome.table[-1] + self.world.blocks))
        return outcome
