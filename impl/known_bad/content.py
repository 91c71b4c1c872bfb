"""Faults in what is behind a hit: not computed, wrong position, shared while somebody writes it."""

from dataclasses import replace

from kvspec.impl.known_bad.bases.counted import DECLARATION, Counted
from kvspec.impl.known_bad.bases.live import Live
from kvspec.impl.known_bad.bases.pooled import Node, Plan, Pooled
from kvspec.impl.known_bad.registry import known_bad
from kvspec.spec import operations as op
from kvspec.spec.state import Snapshot, World


class Unlisted(Counted):
    """The counting base for an engine that shows its pools but not its index."""

    def snapshot(self) -> Snapshot:
        return replace(super().snapshot(), hashes=None, contents=None, index=None)


def publish_up_to(manager: Counted, live: Live, entries: int) -> None:
    """Publish the full blocks of `live` below `entries` that are not published yet."""
    for entry in range(min(entries, len(live.tokens) // manager.size)):
        if manager.keys[live.table[entry]] is None:
            manager.publish(live, entry)


@known_bad(
    "published-at-admission",
    "COMPUTED",
    "unbacked",
    "nano-vllm issue 208",
    "vLLM PR 29387",
    "vLLM PR 42359",
    "ATOM PR 902",
    shows="2x2: admit A 01 / admit B 010",
)
class PublishedAtAdmission(Unlisted):
    """Full blocks are published when they are planned, so that the next sequence of the step hits what nobody has
    computed.
    """

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        outcome = super().admit(sequence, tokens, limit, namespace)
        if isinstance(outcome, op.Admitted):
            live = self.live[sequence]
            publish_up_to(self, live, (live.computed + live.reserved) // self.size)
        return outcome

    def advance(self, live: Live) -> None:
        live.computed, live.reserved = live.computed + live.reserved, 0
        publish_up_to(self, live, live.computed // self.size)

    def give_back(self, live: Live) -> None:
        for block in live.table[live.computed // self.size :]:
            self.forget(block)
        super().give_back(live)


@known_bad(
    "published-when-appended",
    "COMPUTED",
    "unbacked",
    "w4096 mini-vllm",
    "vLLM issue 41838",
    shows="2x2: admit A 0 / commit A / append A 1 / admit B 010",
)
class PublishedWhenAppended(Unlisted):
    """A block is published as soon as its last token is sampled, one step before the K/V of that token exists."""

    def append(self, sequence: str, token: int) -> op.Outcome:
        outcome = super().append(sequence, token)
        live = self.known(sequence)
        publish_up_to(self, live, min(len(live.table), len(live.tokens) // self.size))
        return outcome

    def advance(self, live: Live) -> None:
        live.computed, live.reserved = live.computed + live.reserved, 0
        publish_up_to(self, live, live.computed // self.size)


@known_bad(
    "half-block-under-full-key",
    "COMPUTED",
    "unbacked",
    "slwang-ustc nano-vllm-v1",
    "ATOM PR 902",
    "SGLang #38319",
    context="chunked",
    shows="2x2: admit A 10 limit=1 / commit A / admit B 100",
)
class HalfBlockUnderFullKey(Unlisted):
    """A block that a chunk only half filled is published under the key of the full block."""

    def advance(self, live: Live) -> None:
        live.computed, live.reserved = live.computed + live.reserved, 0
        publish_up_to(self, live, self.blocks_for(live.computed))


@known_bad(
    "aborted-prompt-published",
    "CONTENT",
    "unbacked",
    "TGI PR 2489",
    "TensorRT-LLM PR 15018",
    "SGLang PR 38355",
    context="chunked",
    shows="2x2: admit A 10 / release A / admit B 100",
)
class AbortedPromptPublished(Unlisted):
    """A release publishes all full blocks of the sequence, those in flight included, whose K/V was never computed."""

    def give_back(self, live: Live) -> None:
        publish_up_to(self, live, len(live.table))
        super().give_back(live)


@known_bad(
    "hole-in-the-hit",
    "CONTENT",
    "unbacked",
    "li-chxinchyi nano-vllm fork",
    "jianzhnie nano-vllm fork",
    "llama.cpp #12160",
    shows="4x2: admit A 1000000 / commit A / release A / admit A 0 / admit B 10000",
)
class HoleInTheHit(Unlisted):
    """The search goes on behind a block that is missing, and packs what it found to the front of the table.

    Blocks go back from the head (no order is declared), so that a head can be lost while its tail is there.
    """

    declaration = replace(DECLARATION, profiles=DECLARATION.profiles - {"order"})

    def give_back(self, live: Live) -> None:
        for block in live.table:
            self.drop(block)

    def find(self, tokens: tuple[int, ...], namespace: str) -> list[int]:
        hit, key = [], self.root(namespace)
        for start in range(0, len(tokens) - self.size, self.size):
            key = self.chain(tokens[start : start + self.size], key)
            block = self.lookup(key, tokens[: start + self.size], namespace)
            if block is not None:
                hit.append(block)
        return hit


@known_bad(
    "key-without-parent",
    "CONTENT",
    "identity",
    "llama.cpp #12160",
    "li-chxinchyi nano-vllm fork",
    "mlx-lm #1494",
    shows="3x2: admit A 0011 / commit A / admit B 110",
)
class KeyWithoutParent(Unlisted):
    """A block is keyed by its own tokens only, wherever in a prompt they stand."""

    def parent(self, live: Live, entry: int) -> int | None:
        return None

    def find(self, tokens: tuple[int, ...], namespace: str) -> list[int]:
        hit: list[int] = []
        for start in range(0, len(tokens) - self.size, self.size):
            block = self.lookup(self.chain(tokens[start : start + self.size], None), tokens, namespace)
            if block is None or block in hit:
                break
            hit.append(block)
        return hit

    def matches(self, block: int, prefix: tuple[int, ...], namespace: str) -> bool:
        return True


@known_bad(
    "stale-plan",
    "CONTENT",
    "unpinned",
    "vLLM #37076",
    "vLLM PR 37164",
    "vLLM PR 49252",
    shows="2x2: admit A 010 / commit A / admit B 011 / release A / admit C 000 / release C / admit B 011",
)
class StalePlan(Pooled):
    """The hit of a prompt is remembered from its last search, and used although blocks were recycled since."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.memo: dict[tuple[object, ...], list[int]] = {}

    def find(self, tokens: tuple[int, ...], namespace: str) -> list[int]:
        found = super().find(tokens, namespace)
        if found or not self.memo.get((namespace, tokens)):
            self.memo[namespace, tokens] = found
        remembered = self.memo[namespace, tokens]
        return remembered if not any(map(self.references.__getitem__, remembered)) else found


@known_bad(
    "hit-not-pinned",
    "FRESH",
    "unpinned",
    "vLLM #37076",
    "vLLM PR 37164",
    "mini-sglang PR 52",
    shows="2x2: admit A 01 / commit A / release A / admit B 0 / admit A 010",
)
class HitNotPinned(Pooled):
    """New blocks are taken before the hits are claimed, so that a free block is both a hit and new."""

    def carry_out(self, plan: Plan, live: Live) -> None:
        self.grow(live, plan.new)
        new, live.table[:] = live.table[:], []
        for block in plan.hit:
            self.claim(live, block)
        live.table += new
        live.computed, live.reserved = plan.cached, plan.reserved

    def fits(self, plan: Plan) -> bool:
        return plan.new <= self.available() and (len(self.empty) < plan.new or super().fits(plan))


@known_bad(
    "twins-merged-under-way",
    "STABLE",
    "shared-write",
    "nano-vllm PR 243",
    "mini-sglang PR 142",
    shows="2x2: admit A 01 / admit B 01 / commit A B",
)
class TwinsMerged(Counted):
    """A commit repoints the table of a running sequence to an older copy of the same block."""

    def publish(self, live: Live, entry: int) -> None:
        super().publish(live, entry)
        block = live.table[entry]
        first = self.index[self.keys[block]][0]  # type: ignore[index]
        if first != block:
            self.references[first] += 1
            live.table[entry] = first
            if not self.references[first] - 1:
                self.free.remove(first)
            self.drop(block)


@known_bad(
    "table-reversed-on-growth",
    "STABLE",
    "unbacked",
    "llama.cpp PR 12161",
    shows="2x2: admit A 00 / commit A / append A 0 / reserve A 1",
)
class GrowthInFront(Pooled):
    """A block that is added while a sequence grows is put before the partly filled one."""

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        before = len(self.known(sequence).table)
        outcome = super().reserve(sequence, count)
        table = self.known(sequence).table
        if isinstance(outcome, op.Reserved) and 0 < before < len(table):
            table[before - 1 : before + 1] = reversed(table[before - 1 : before + 1])
            return op.Reserved(tuple(table))
        return outcome


@known_bad(
    "partial-tail-shared",
    "NO-CLOBBER",
    "shared-write",
    "Atlas #1193",
    "Atlas PR 692",
    "Atlas PR 1200",
    shows="1x2: admit A 0 / commit A / admit B 00 / commit B",
)
class PartialTailShared(Pooled):
    """A prompt that goes on inside the partly filled last block of another sequence shares that block without a
    copy, and both write behind it.
    """

    def find(self, tokens: tuple[int, ...], namespace: str) -> list[int]:
        hit = super().find(tokens, namespace)
        start = len(hit) * self.size
        missing = len(tokens) - 1 - start
        if 0 < missing < self.size:
            hit += [block for block in self.tails(tokens[:-1], namespace) if block not in hit][:1]
        return hit

    def tails(self, tokens: tuple[int, ...], namespace: str) -> list[int]:
        """The last blocks of live sequences that have computed exactly these tokens."""
        return [
            live.table[-1]
            for live in self.live.values()
            if live.namespace == namespace
            and live.computed == len(tokens) == len(live.tokens)
            and tuple(live.tokens) == tokens
        ]

    def plan(self, tokens: tuple[int, ...], limit: int, namespace: str) -> Plan:
        plan = super().plan(tokens, limit, namespace)
        return replace(plan, new=max(0, plan.new))


@known_bad(
    "whole-prompt-cached",
    "PROGRESS",
    "progress",
    "nano-vllm issue 114",
    "nano-vllm issue 144",
    "nano-vllm PR 199",
    "vLLM #8268",
    "mistral.rs #1377",
    shows="1x2: admit A 01 / commit A / admit B 01",
)
class WholePromptCached(Counted):
    """A prompt of whole blocks is taken from the cache completely, so that there is nothing to compute."""

    def find(self, tokens: tuple[int, ...], namespace: str) -> list[int]:
        return super().find((*tokens, 0), namespace)


@known_bad(
    "last-token-recomputed",
    "ALIGNED",
    "progress",
    "vLLM PR 11186",
    "nano-vllm PR 199",
    "vllm-mlx PR 311",
    shows="1x2: admit A 01 / commit A / admit B 01",
)
class LastTokenRecomputed(WholePromptCached):
    """Of a prompt that is cached as a whole only the last token is computed again, though whole blocks are
    promised.
    """

    def find(self, tokens: tuple[int, ...], namespace: str) -> list[int]:
        hit = super().find(tokens, namespace)
        return hit if self.size > 1 else hit[: len(tokens) - 1]

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        outcome = super().admit(sequence, tokens, limit, namespace)
        if not isinstance(outcome, op.Admitted) or outcome.cached < len(tokens):
            return outcome
        live = self.live[sequence]
        live.computed, live.reserved = len(tokens) - 1, 1
        return op.Admitted(live.computed, live.reserved, outcome.table)

    def publish(self, live: Live, entry: int) -> None:
        if self.keys[live.table[entry]] is None:
            super().publish(live, entry)


@known_bad(
    "node-lookup-ignores-depth",
    "CONTENT",
    "unbacked",
    "SGLang #5221",
    "mlx-vlm #1715",
    shows="3x2: admit A 0011 / commit A / admit B 110",
)
class NodeAnywhere(Pooled):
    """A missing path is continued at any node of the tree with the same label."""

    def find(self, tokens: tuple[int, ...], namespace: str) -> list[int]:
        hit = super().find(tokens, namespace)
        start = len(hit) * self.size
        label = tokens[start : start + self.size]
        if start + self.size < len(tokens):
            hit += [
                b
                for b, node in enumerate(self.nodes)
                if isinstance(node, Node) and node.label == label and b not in hit
            ][:1]
        return hit
