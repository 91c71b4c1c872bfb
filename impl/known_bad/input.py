"""Faults in what is done about bad input."""

from kvspec.impl.known_bad.bases.counted import Counted
from kvspec.impl.known_bad.bases.live import Live
from kvspec.impl.known_bad.registry import known_bad
from kvspec.spec import operations as op
from kvspec.spec.state import World


@known_bad("empty-prompt-admitted", "EMPTY-PROMPT", "input", "SGLang PR 23387", context="robust")
class EmptyPromptAdmitted(Counted):
    """A prompt without tokens is admitted like any other."""

    def check_admission(self, sequence: str, tokens: tuple[int, ...]) -> None:
        super().check_admission(sequence, tokens or (0,))


@known_bad("empty-prompt-stumbles", "EMPTY-PROMPT", "input", "nano-vllm Sequence of an empty prompt", context="robust")
class EmptyPromptStumbles(Counted):
    """A prompt without tokens ends in an IndexError from the middle of the manager."""

    def check_admission(self, sequence: str, tokens: tuple[int, ...]) -> None:
        super().check_admission(sequence, (tokens[-1], *tokens))


@known_bad("too-large-means-later", "OVERSIZED", "input", "nano-vllm issue 274", "vLLM #55800", context="robust")
class TooLargeMeansLater(Counted):
    """A prompt that never fits gets the answer of one that has to wait."""

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        outcome = super().admit(sequence, tokens, limit, namespace)
        return op.Refused() if isinstance(outcome, op.Refused) else outcome


@known_bad("live-sequence-overwritten", "REPEATED", "input", "SGLang PR 18694", "vLLM V1 request ids", context="robust")
class LiveSequenceOverwritten(Counted):
    """Admitting a live sequence again forgets the blocks that it holds."""

    def check_admission(self, sequence: str, tokens: tuple[int, ...]) -> None:
        if not tokens:
            super().check_admission(sequence, tokens)


@known_bad(
    "repeated-admission-asserts",
    "REPEATED",
    "input",
    "nano-vllm allocate: assert not seq.block_table",
    context="robust",
)
class RepeatedAdmissionAsserts(Counted):
    """Admitting a live sequence again trips a bare assertion."""

    def check_admission(self, sequence: str, tokens: tuple[int, ...]) -> None:
        assert sequence not in self.live
        super().check_admission(sequence, tokens)


@known_bad(
    "unknown-release-drops-block", "UNKNOWN", "input", "SGLang #17797", "nanovllm-voxcpm 50cd51d", context="robust"
)
class UnknownReleaseDropsBlock(Counted):
    """The release of a sequence that never was gives back the first block, as if it had held it."""

    def release(self, sequence: str, cause: str) -> op.Outcome:
        if sequence not in self.live and sequence not in self.gone:
            self.live[sequence] = Live([], table=[0])
        return super().release(sequence, cause)


@known_bad("unknown-sequence-invented", "UNKNOWN", "input", "LMCache #2912", context="robust")
class UnknownSequenceInvented(Counted):
    """Growth of a sequence that was never admitted makes it up."""

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        if sequence not in self.live:
            self.live[sequence] = Live([0] * count)
        return super().reserve(sequence, count)


@known_bad(
    "empty-pool-made",
    "BAD-POOL",
    "input",
    "MinivLLM issue 53",
    "nano-vllm: num_kvcache_blocks below one",
    context="robust",
)
class EmptyPoolMade(Counted):
    """A pool without blocks is made, and refuses everything from then on."""

    def __init__(self, world: World) -> None:
        super().__init__(World(max(1, world.blocks), world.block_size, world.weak_hash))
        self.world = world
