"""Faults of managers that cache as radix trees do: one of two equal blocks is kept, whole nodes are evicted."""

from dataclasses import replace

from kvspec.impl.known_bad.bases.counted import Counted
from kvspec.impl.known_bad.bases.deduplicating import Deduplicating
from kvspec.impl.known_bad.bases.eager import Eager
from kvspec.impl.known_bad.bases.live import Live
from kvspec.impl.known_bad.registry import known_bad
from kvspec.spec.declaration import Declaration

TWINS = "2x2: admit A 01 / admit B 01 / commit A B"


@known_bad("spare-block-freed-table-kept", "PARTITION", "ownership", "mini-sglang PR 142", shows=TWINS)
class SpareBlockFreedTableKept(Deduplicating):
    """The spare of two equal blocks goes back to the pool, but the table of its sequence still names it."""

    def repoint(self, live: Live, entry: int, kept: int) -> None:
        self.drop(live.table[entry])


@known_bad("repointed-uncounted", "REFCOUNT", "ownership", "mini-sglang PR 52", shows=TWINS)
class RepointedUncounted(Deduplicating):
    """The table is repointed to the block that is kept, whose reference is not counted."""

    def repoint(self, live: Live, entry: int, kept: int) -> None:
        spare, live.table[entry] = live.table[entry], kept
        self.drop(spare)


@known_bad(
    "repointed-by-own-tokens",
    "CONTENT",
    "identity",
    "nano-vllm issue 163",
    shows="3x2: admit A 01 / commit A / admit B 0001 / commit B",
)
class RepointedByOwnTokens(Deduplicating):
    """A block counts as spare if another holds the same tokens, whatever comes before them."""

    def published(self, live: Live, entry: int) -> int | None:
        tokens = tuple(live.tokens[entry * self.size : (entry + 1) * self.size])
        alike = (block for block, held in enumerate(self.held) if held and held[1][-self.size :] == tokens)
        return next(alike, None)


@known_bad(
    "half-block-repointed",
    "STABLE",
    "shared-write",
    "SGLang #5221",
    shows="3x2: admit A 01 / admit B 0 / commit A B",
)
class HalfBlockRepointed(Deduplicating):
    """A block that is not full is repointed to a full one that begins with the same tokens."""

    def advance(self, live: Live) -> None:
        super().advance(live)
        head = (live.namespace, tuple(live.tokens[: live.computed]))
        for block, held in enumerate(self.held):
            if held and live.computed % self.size and (held[0], held[1][: live.computed]) == head:
                self.repoint(live, live.computed // self.size, block)
                return


@known_bad("repointed-undeclared", "STABLE", "unpinned", "vLLM #42273", shows=TWINS)
class RepointedUndeclared(Deduplicating):
    """Tables are repointed, but the engine holds copies of them, and was not told."""

    declaration: Declaration = Counted.declaration


@known_bad("spare-block-never-freed", "PARTITION", "ownership", "vmlx PR 68", shows=TWINS)
class SpareBlockNeverFreed(Deduplicating):
    """The table is repointed, and the spare block is given back by nobody."""

    def repoint(self, live: Live, entry: int, kept: int) -> None:
        self.references[live.table[entry]] = 0
        live.table[entry] = kept
        if not self.references[kept]:
            self.free.remove(kept)
        self.references[kept] += 1


@known_bad(
    "prompt-kept-at-the-end-only",
    "NO-LOST-HIT",
    "lost",
    "MinivLLM PR 98",
    shows="4x1: admit A 00 / commit A / admit B 00",
)
class PromptKeptAtTheEndOnly(Eager):
    """A prompt is put into the cache when its sequence has finished, and not when it is computed."""

    def advance(self, live: Live) -> None:
        live.computed, live.reserved = live.computed + live.reserved, 0


@known_bad(
    "given-up-undeclared",
    "SURVIVES-RELEASE",
    "lost",
    "llm-d-inference-sim #704",
    shows="3x1: admit A 000 / commit A / release A / admit B 11 / commit B / release B / admit C 000",
)
class GivenUpUndeclared(Eager):
    """The cache is emptied whenever one block is needed, and nobody was told."""

    declaration: Declaration = replace(Eager.declaration, evicts_early=False)
