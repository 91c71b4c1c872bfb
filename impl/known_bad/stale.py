"""Faults of the index: entries that outlive the content of their block, or that name something else."""

from dataclasses import replace

from kvspec.impl.known_bad.bases.counted import DECLARATION, Counted
from kvspec.impl.known_bad.bases.live import Live
from kvspec.impl.known_bad.bases.pooled import Node, Pooled
from kvspec.impl.known_bad.registry import known_bad
from kvspec.spec.state import Snapshot


@known_bad(
    "stale-index-entry",
    "CONTENT",
    "stale",
    "nano-vllm issue 163",
    "ACE-Step-1.5 c2825d9",
    "vLLM fork local-inference-lab #480",
    shows="2x2: admit A 12 / commit A / release A / admit B 0012 / commit B / release B / admit A 120",
)
class OwnTokensTrusted(Counted):
    """A recycled block keeps its index entry, and a hit compares the block's own tokens only: equal tokens under
    another prefix are served.
    """

    def forget(self, block: int) -> None:
        self.keys[block] = self.held[block] = None

    def matches(self, block: int, prefix: tuple[int, ...], namespace: str) -> bool:
        held = self.held[block]
        return held is not None and held[1][-self.size :] == prefix[-self.size :]


@known_bad(
    "evicted-entry-believed",
    "CONTENT",
    "stale",
    "vLLM PR 4761",
    "vLLM PR 4762",
    "kvcached #362",
    shows="2x2: admit A 01 / commit A / release A / admit A 000 / release A / admit B 010",
)
class EvictedEntryBelieved(Counted):
    """An evicted block stays findable, and a hit on it is not verified at all."""

    def forget(self, block: int) -> None:
        pass

    def matches(self, block: int, prefix: tuple[int, ...], namespace: str) -> bool:
        return True


@known_bad(
    "evicted-node-keeps-block",
    "CONTENT",
    "stale",
    "SGLang #5221",
    "TensorRT-LLM #12933",
    "TensorRT-LLM PR 15018",
    shows="2x2: admit A 0111 / commit A / release A / admit B 0 / commit B / admit A 0111",
)
class EvictedNodeKeepsBlock(Pooled):
    """An evicted block stays in its tree node, so that the path still leads to it."""

    def forget(self, block: int) -> None:
        self.nodes[block] = None


@known_bad(
    "entry-outlives-block",
    "INDEX-MATCH",
    "stale",
    "nano-vllm issue 163",
    "nano-vllm PR 153",
    "kvcached PR 363",
    shows="1x2: admit A 00 / commit A / release A / admit B 0",
)
class EntryOutlivesBlock(Counted):
    """The index entry of a recycled block stays; every hit is verified, so nothing wrong is served."""

    def unlist(self, key: int | None, block: int) -> None:
        pass

    def publish(self, live: Live, entry: int) -> None:
        super().publish(live, entry)
        block = live.table[entry]
        for blocks in self.index.values():
            while blocks.count(block) > 1:
                blocks.remove(block)


@known_bad(
    "index-grows-for-ever",
    "INDEX-BOUNDED",
    "stale",
    "nanovllm-voxcpm #58",
    "nanovllm-voxcpm PR 62",
    shows="1x2: admit A 00 / commit A / release A / admit B 01 / commit B",
)
class IndexGrows(EntryOutlivesBlock):
    """The index keeps a key for every prefix ever seen, and relies on checking each hit."""

    declaration = replace(DECLARATION, stale_index=True)


@known_bad(
    "old-tokens-kept",
    "INDEX-TOKENS",
    "stale",
    "kvcached PR 363",
    "vLLM PR 44237",
    shows="2x2: admit A 0000 / commit A / release A / admit B 10 / commit B",
)
class OldTokensKept(Counted):
    """A block that is published again keeps the tokens that were stored for its former content."""

    def __init__(self, world: object) -> None:
        super().__init__(world)  # type: ignore[arg-type]
        self.first: dict[int, tuple[int, ...]] = {}

    def publish(self, live: Live, entry: int) -> None:
        super().publish(live, entry)
        self.first.setdefault(live.table[entry], tuple(live.tokens[entry * self.size : (entry + 1) * self.size]))

    def snapshot(self) -> Snapshot:
        contents = tuple(self.first.get(block, ()) for block in range(self.world.blocks))
        return replace(super().snapshot(), contents=contents)


@known_bad(
    "chain-restarts-at-chunk",
    "INDEX-CHAIN",
    "stale",
    "ATOM PR 902",
    "vLLM PR 11186",
    context="chunked",
    shows="2x2: admit A 00 / commit A / admit B 0000 / commit B",
)
class ChainRestartsAtChunk(Counted):
    """The chain hash starts afresh where a chunk begins, so later blocks get the key of a first block."""

    starts = 0

    def advance(self, live: Live) -> None:
        self.starts = live.computed // self.size
        super().advance(live)

    def parent(self, live: Live, entry: int) -> int | None:
        return self.root(live.namespace) if entry == self.starts else super().parent(live, entry)


@known_bad(
    "key-of-whole-table",
    "INDEX-CHAIN",
    "stale",
    "SGLang #26173",
    "SGLang PR 26177",
    "SGLang PR 26939",
    shows="3x2: admit A 000000 / commit A",
)
class KeyReused(Counted):
    """A memo of keys is extended by its own caller, so that the keys of one sequence are used again for the next
    block.
    """

    def parent(self, live: Live, entry: int) -> int | None:
        return super().parent(live, max(0, entry - 1)) if entry > 1 else super().parent(live, entry)


@known_bad(
    "free-hit-wiped",
    "SURVIVES-RELEASE",
    "lost",
    "nano-vllm commit f64d821",
    "ATOM PR 902",
    shows="3x2: admit A 1011 / commit A / release A / admit B 10110 / release B / admit A 10110",
)
class FreeHitWiped(Counted):
    """A hit on a free block resets it, so that it can never be hit again."""

    def claim(self, live: Live, block: int) -> None:
        wiped = not self.references[block] and len(live.table) > 0
        super().claim(live, block)
        if wiped:
            self.forget(block)

    def parent(self, live: Live, entry: int) -> int | None:
        key = self.root(live.namespace)
        for start in range(0, entry * self.size, self.size):
            key = self.chain(tuple(live.tokens[start : start + self.size]), key)
        return key


@known_bad(
    "unlisted-when-free",
    "SURVIVES-RELEASE",
    "lost",
    "nano-vllm PR 153",
    "nanovllm-voxcpm PR 62",
    "ACE-Step-1.5 c2825d9",
    "nano-vllm PR 110",
    shows="2x2: admit A 11 / commit A / release A / admit B 110",
)
class UnlistedWhenFree(Counted):
    """The index entry goes when the block becomes free, which ends all reuse between requests."""

    def drop(self, block: int) -> None:
        super().drop(block)
        if not self.references[block]:
            self.forget(block)


@known_bad(
    "cached-pool-not-searched",
    "SURVIVES-RELEASE",
    "lost",
    "nano-vllm PR 110",
    "MinivLLM PR 98",
    shows="1x2: admit A 11 / commit A / release A / admit B 11",
)
class CachedPoolNotSearched(Pooled):
    """The search stops at a block that is not in use, because it takes cached blocks for stale ones."""

    def find(self, tokens: tuple[int, ...], namespace: str) -> list[int]:
        hit = super().find(tokens, namespace)
        return hit[: next((n for n, block in enumerate(hit) if not self.references[block]), len(hit))]


@known_bad(
    "preempted-loses-its-blocks",
    "SURVIVES-RELEASE",
    "lost",
    "vLLM PR 18668",
    "LMCache #2912",
    shows="2x2: admit A 11 / commit A / release A preempted / admit B 110",
)
class PreemptedLosesBlocks(Counted):
    """A preempted sequence forgets the key of its last full block."""

    def release(self, sequence: str, cause: str) -> object:  # type: ignore[override]
        if cause == "preempted" and sequence in self.live:
            live = self.live[sequence]
            full = live.computed // self.size
            if full and self.references[live.table[full - 1]] == 1:
                self.forget(live.table[full - 1])
        return super().release(sequence, cause)


@known_bad(
    "live-blocks-not-shared",
    "NO-LOST-HIT",
    "lost",
    "MinivLLM PR 98",
    "MinivLLM issue 88",
    shows="3x2: admit A 10 / commit A / admit B 100",
)
class LiveBlocksNotShared(Counted):
    """Only blocks that nobody holds can be hit: running sequences never share."""

    def lookup(self, key: int, prefix: tuple[int, ...], namespace: str) -> int | None:
        block = super().lookup(key, prefix, namespace)
        return block if block is not None and not self.references[block] else None


@known_bad(
    "decoded-blocks-never-listed",
    "NO-LOST-HIT",
    "lost",
    "vLLM PR 18668",
    "vLLM PR 19006",
    shows="3x2: admit A 0 / commit A / append A 1 / reserve A 1 / commit A / admit B 010",
)
class DecodedBlocksNeverListed(Counted):
    """Blocks that fill up while tokens are sampled are never published."""

    def advance(self, live: Live) -> None:
        if live.reserved == 1 and live.computed:
            live.computed, live.reserved = live.computed + 1, 0
        else:
            super().advance(live)

    def parent(self, live: Live, entry: int) -> int | None:
        return FreeHitWiped.parent(self, live, entry)  # type: ignore[arg-type]


@known_bad(
    "second-hit-stops",
    "NO-LOST-HIT",
    "lost",
    "vLLM issue 53749",
    shows="3x2: admit A 0101 / commit A / admit B 0101",
)
class SecondHitStops(Pooled):
    """The search stops after the first block that other sequences hold as well."""

    def find(self, tokens: tuple[int, ...], namespace: str) -> list[int]:
        hit = super().find(tokens, namespace)
        return hit[: next((n + 1 for n, block in enumerate(hit) if self.references[block]), len(hit))]


@known_bad(
    "last-writer-owns-entry",
    "TWIN",
    "lost",
    "nano-vllm issue 219",
    "nano-vllm PR 243",
    shows="4x2: admit A 100 / admit B 10 / commit A B / release B / release A / admit C 000 / admit B 100",
)
class LastWriterOwnsEntry(Counted):
    """The last of two equal blocks owns the index entry, and takes it along when it is recycled."""

    def publish(self, live: Live, entry: int) -> None:
        super().publish(live, entry)
        block = live.table[entry]
        self.index[self.keys[block]] = [block]  # type: ignore[index]

    def unlist(self, key: int | None, block: int) -> None:
        if block in self.index.get(key, ()):  # type: ignore[arg-type]
            super().unlist(key, block)


@known_bad(
    "first-writer-keeps-entry",
    "TWIN",
    "lost",
    "vLLM PR 44237",
    "kvcached #401",
    "kvcached PR 402",
    shows="4x2: admit A 11 / admit B 110 / commit A B / release A / admit C 000 / release B / admit B 11",
)
class FirstWriterKeepsEntry(Pooled):
    """The first of two equal blocks keeps the entry; when it is recycled the second is not listed instead."""

    def publish(self, live: Live, entry: int) -> None:
        super().publish(live, entry)
        node = self.nodes[live.table[entry]]
        if isinstance(node, Node) and len(node.blocks) > 1:
            node.blocks.remove(live.table[entry])
            self.nodes[live.table[entry]] = None
