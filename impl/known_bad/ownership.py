"""Faults in who holds a block: reference counts, double release, leaks."""

from kvspec.impl.known_bad.bases.counted import Counted
from kvspec.impl.known_bad.bases.live import Live
from kvspec.impl.known_bad.bases.pooled import Pooled
from kvspec.impl.known_bad.registry import known_bad
from kvspec.spec import operations as op
from kvspec.spec.state import Snapshot


@known_bad(
    "fresh-block-uncounted",
    "REFCOUNT",
    "ownership",
    "MinivLLM PR 84",
    "MinivLLM issue 70",
    shows="1x1: admit A 0",
)
class FreshBlockUncounted(Counted):
    """A fresh block is in use with a count of 0, so that its release takes the count to -1."""

    def take(self) -> int:
        block = super().take()
        self.references[block] = 0
        return block


@known_bad(
    "hit-uncounted",
    "REFCOUNT",
    "ownership",
    "mini-sglang PR 52",
    "MinivLLM PR 84",
    shows="2x2: admit A 01 / commit A / admit B 010",
)
class HitUncounted(Counted):
    """A hit on a block in use is not counted, so that the first of its two holders frees it."""

    def claim(self, live: Live, block: int) -> None:
        counted = self.references[block]
        super().claim(live, block)
        self.references[block] = max(1, counted)


@known_bad(
    "free-hit-counted-twice",
    "REFCOUNT",
    "ownership",
    "xLLM #828",
    "SGLang PR 27147",
    shows="2x2: admit A 11 / commit A / release A / admit B 110",
)
class FreeHitCountedTwice(Counted):
    """A hit on a free block is counted once when it leaves the queue and once more as a hit."""

    def claim(self, live: Live, block: int) -> None:
        free = not self.references[block]
        super().claim(live, block)
        self.references[block] += free


@known_bad(
    "grown-block-counted-twice",
    "REFCOUNT",
    "ownership",
    "xsmccc nano-vllm fork: copy on write not counted",
    shows="2x2: admit A 00 / commit A / append A 0 / reserve A 1",
)
class GrownBlockCountedTwice(Counted):
    """A block taken while a sequence grows starts with two references."""

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        before = len(self.known(sequence).table)
        outcome = super().reserve(sequence, count)
        for block in self.known(sequence).table[before:]:
            self.references[block] += 1
        return outcome


@known_bad(
    "released-twice",
    "RELEASE",
    "ownership",
    "SGLang #17797",
    "SGLang PR 18694",
    "FastDeploy PR 3710",
    "TensorRT-LLM PR 14937",
    shows="1x1: admit A 0 / release A / release A",
)
class ReleasedTwice(Counted):
    """A sequence that is released a second time drops its old references again."""

    def __init__(self, world: object) -> None:
        super().__init__(world)  # type: ignore[arg-type]
        self.old: dict[str, list[int]] = {}

    def release(self, sequence: str, cause: str) -> op.Outcome:
        if sequence in self.live:
            self.old[sequence] = self.live[sequence].table
        else:
            for block in self.old.get(sequence, ()):
                self.references[block] -= 1
        return super().release(sequence, cause)


@known_bad(
    "release-zeroes-count",
    "RELEASE",
    "ownership",
    "Atlas PR 373",
    shows="2x2: admit A 22 / commit A / admit B 220 / release B",
)
class ReleaseZeroesCount(Counted):
    """A release sets the count of a shared block to zero instead of dropping one reference."""

    def drop(self, block: int) -> None:
        self.references[block] = min(1, self.references[block])
        if self.references[block]:
            super().drop(block)


@known_bad(
    "finished-keeps-references",
    "RELEASE",
    "ownership",
    "vmlx PR 68",
    shows="2x2: admit A 22 / commit A / admit B 220 / release B",
)
class FinishedKeepsReferences(Counted):
    """A release frees the blocks of one holder, but leaves shared ones with the reference of the sequence that is
    gone.
    """

    def drop(self, block: int) -> None:
        if self.references[block] == 1:
            super().drop(block)


@known_bad(
    "aborted-chunk-lost",
    "RELEASE",
    "ownership",
    "SGLang PR 36926",
    "OpenVINO model server #4428",
    context="chunked",
    shows="1x1: admit A 0 / release A",
)
class AbortedChunkLost(Counted):
    """An abort between reserve and commit forgets the blocks of the chunk in flight."""

    def give_back(self, live: Live) -> None:
        if live.reserved:
            del live.table[self.blocks_for(live.computed) :]
        super().give_back(live)


@known_bad(
    "page-freed-by-both-ranges",
    "RELEASE",
    "ownership",
    "SGLang #38981",
    "SGLang PR 38941",
    "SGLang #5221",
    shows="1x2: admit A 0 / commit A / release A",
)
class PageFreedByBothRanges(Pooled):
    """A release in two ranges frees the block in which the ranges meet twice."""

    def give_back(self, live: Live) -> None:
        super().give_back(live)
        if live.computed % self.size and live.table:
            self.references[live.table[-1]] -= 1


@known_bad(
    "queued-while-shared",
    "PARTITION",
    "ownership",
    "TensorRT-LLM PR 14937",
    "mini-sglang PR 142",
    "FastDeploy PR 3710",
    shows="2x2: admit A 22 / commit A / admit B 220 / release B",
)
class QueuedWhileShared(Counted):
    """Each release queues the block as free, although another sequence still holds it."""

    def drop(self, block: int) -> None:
        super().drop(block)
        if self.references[block] and block not in self.free:
            self.free.append(block)


@known_bad(
    "free-hit-stays-queued",
    "PARTITION",
    "ownership",
    "mini-sglang PR 52",
    "vLLM fork local-inference-lab #480",
    shows="2x2: admit A 11 / commit A / release A / admit B 110",
)
class FreeHitStaysQueued(Counted):
    """A hit on a free block leaves it in the free queue."""

    def claim(self, live: Live, block: int) -> None:
        queue = self.free.copy()
        super().claim(live, block)
        if len(queue) > len(self.free):
            self.free = queue


@known_bad(
    "used-set-forgets-growth",
    "PARTITION",
    "ownership",
    "TensorRT-LLM #11879",
    "EternityTang nano-vllm fork: bookkeeping of grown blocks",
    shows="2x2: admit A 00 / commit A / append A 0 / reserve A 1",
)
class UsedSetForgetsGrowth(Counted):
    """Blocks taken while a sequence grows are never entered among the used ones."""

    def __init__(self, world: object) -> None:
        super().__init__(world)  # type: ignore[arg-type]
        self.grown: set[int] = set()

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        before = len(self.known(sequence).table)
        outcome = super().reserve(sequence, count)
        self.grown.update(self.known(sequence).table[before:])
        return outcome

    def snapshot(self) -> Snapshot:
        shown = super().snapshot()
        return _replaced(shown, used=tuple(block for block in shown.used or () if block not in self.grown))


@known_bad(
    "queue-grows-with-each-release",
    "PARTITION",
    "ownership",
    "jianzhnie nano-vllm fork: 104 entries for 4 blocks",
    "TensorRT-LLM PR 14937",
    shows="1x1: admit A 0 / release A",
)
class QueueGrows(Counted):
    """A released block joins the free queue once more than it should, so that the queue outgrows the pool."""

    def give_back(self, live: Live) -> None:
        super().give_back(live)
        self.free.extend(block for block in live.table[:1] if not self.references[block])


@known_bad(
    "partial-block-lost",
    "NO-LEAK",
    "ownership",
    "sglang-jax PR 1000",
    "SGLang #12224",
    "Atlas PR 373",
    shows="1x2: admit A 0 / commit A / release A",
)
class PartialBlockLost(Counted):
    """The partly filled last block of a released sequence is not given back to the free queue."""

    def give_back(self, live: Live) -> None:
        super().give_back(live)
        last = live.table[-1]
        if live.computed % self.size and not self.references[last]:
            self.free.remove(last)


@known_bad(
    "cached-pool-never-shrinks",
    "NO-LEAK",
    "ownership",
    "vllm.rs commit f989f74",
    "tang-jiapeng nano-vllm fork: starvation of the cached pool",
    shows="2x2: admit A 0000 / commit A / release A",
)
class CachedPoolLeaks(Pooled):
    """Cached blocks are unlisted when they are evicted, but the evicted block is dropped when nobody asked for one."""

    def retire(self, block: int) -> None:
        super().retire(block)
        if len(self.cached) > max(1, self.world.blocks // 2):
            self.evict()


@known_bad(
    "unseen-double-release",
    "FRESH",
    "ownership",
    "Atlas PR 373",
    "TensorRT-LLM PR 14937",
    "mini-sglang PR 142",
    shows="2x2: admit A 22 / commit A / admit B 220 / release A / admit C 0",
)
class UnseenDoubleRelease(QueuedWhileShared):
    """A manager that shows nothing of itself queues a shared block as free when the first holder goes."""

    def snapshot(self) -> Snapshot:
        return Snapshot()

    def take(self) -> int:
        block = super().take()
        self.free = type(self.free)(other for other in self.free if other != block)
        return block


@known_bad(
    "steals-from-the-living",
    "FRESH",
    "ownership",
    "Atlas PR 373",
    "tt-inference-server PR 2042",
    shows="2x2: admit A 00 / commit A / admit B 0 / append A 0 / reserve A 1",
)
class StealsFromTheLiving(Counted):
    """Growth in a full pool takes a block that another live sequence holds."""

    def missing(self, live: Live, count: int) -> int:
        return min(super().missing(live, count), len(self.free))

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        live, victims = self.known(sequence), [other for name, other in self.live.items() if name != sequence]
        if self.blocks_for(len(live.tokens)) > len(live.table) and not self.free and victims:
            stolen = victims[0].table[-1]
            if stolen not in live.table:
                live.table.append(stolen)
        return super().reserve(sequence, count)


@known_bad(
    "duplicates-freed-under-table",
    "PARTITION",
    "shared-write",
    "mini-sglang PR 142",
    shows="2x2: admit A 01 / admit B 01 / commit A B",
)
class DuplicatesFreedUnderTable(Counted):
    """When a second copy of a block is published, it is freed at once, although its sequence still has it in the
    table.
    """

    def publish(self, live: Live, entry: int) -> None:
        super().publish(live, entry)
        block = live.table[entry]
        if len(self.index[self.keys[block]]) > 1 and self.references[block] == 1:  # type: ignore[index]
            self.drop(block)


def _replaced(shown: Snapshot, **changes: object) -> Snapshot:
    from dataclasses import replace

    return replace(shown, **changes)  # type: ignore[arg-type]
