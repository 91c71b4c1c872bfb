"""Faults in the room arithmetic, in what a refusal leaves behind, and in requests that are never served."""

from dataclasses import replace

from kvspec.impl.known_bad.bases.counted import Counted
from kvspec.impl.known_bad.bases.live import Live
from kvspec.impl.known_bad.bases.pooled import Plan, Pooled
from kvspec.impl.known_bad.registry import known_bad
from kvspec.spec import operations as op


@known_bad(
    "shared-blocks-not-credited",
    "NO-MEANS-NO",
    "room",
    "ATOM PR 234",
    "ACE-Step-1.5 003d75c",
    "tt-inference-server block manager",
    shows="3x2: admit A 010 / commit A / admit B 010",
)
class SharedNotCredited(Counted):
    """Admission asks for room for the whole prompt, although the hits on blocks in use need none."""

    def needed(self, tokens: tuple[int, ...], hit: list[int]) -> int:
        return self.blocks_for(len(tokens))


@known_bad(
    "one-block-held-back",
    "NO-MEANS-NO",
    "room",
    "TensorRT-LLM PR 16173",
    "vLLM #55800",
    shows="1x1: admit A 0",
)
class OneBlockHeldBack(Counted):
    """One block is kept in reserve without saying so."""

    def needed(self, tokens: tuple[int, ...], hit: list[int]) -> int:
        return super().needed(tokens, hit) + 1


@known_bad(
    "exact-multiple-asks-for-more",
    "NO-MEANS-NO",
    "room",
    "TensorRT-LLM PR 16173",
    "nano-vllm issue 274",
    "MinivLLM PR 85",
    shows="2x2: admit A 0000",
)
class ExactMultipleAsksForMore(Pooled):
    """A prompt of exactly k blocks is charged k + 1, so that it never fits into a pool of k."""

    def fits(self, plan: Plan) -> bool:
        exact = (plan.cached + plan.reserved) % self.size == 0
        return super().fits(replace(plan, new=plan.new + exact))


@known_bad(
    "cached-blocks-not-reclaimed",
    "NO-MEANS-NO",
    "room",
    "Atlas PR 1114",
    "vmlx PR 68",
    "xLLM PR 55",
    shows="2x2: admit A 00 / admit B 00 / commit A B / release A / append B 0 / reserve B 1",
)
class CachedNotReclaimed(Pooled):
    """Growth looks at the empty pool only: exhausted, though the cached pool is full of blocks nobody holds."""

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        live = self.known(sequence)
        if self.blocks_for(live.computed + count) - len(live.table) > len(self.empty):
            return op.Refused()
        return super().reserve(sequence, count)


@known_bad(
    "chunk-charged-whole-prompt",
    "NO-MEANS-NO",
    "room",
    "vLLM #55800",
    "vLLM PR 39866",
    context="chunked",
    shows="2x2: admit A 0 / admit B 000 limit=1",
)
class ChunkChargedWholePrompt(Pooled):
    """A chunk is admitted only if the whole prompt would fit."""

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        if not self.fits(self.plan(tokens, len(tokens), namespace)):
            return op.Refused()
        return super().admit(sequence, tokens, limit, namespace)


@known_bad(
    "free-hits-counted-twice",
    "YES-MEANS-YES",
    "room",
    "vLLM #11562",
    "vLLM PR 6849",
    "Aphrodite sonar 661",
    "ATOM PR 902",
    shows="2x2: admit A 20 / commit A / release A / admit B 0 / admit C 200",
)
class FreeHitsCountedTwice(Counted):
    """Hits that are free count as needing no room, and as room for the rest."""

    def needed(self, tokens: tuple[int, ...], hit: list[int]) -> int:
        return self.blocks_for(len(tokens)) - len(hit)


@known_bad(
    "eviction-frees-too-few",
    "YES-MEANS-YES",
    "room",
    "xLLM PR 55",
    "vLLM PR 6849",
    "vLLM PR 46892",
    shows="2x2: admit A 01 / commit A / release A / admit B 0 / admit A 010",
)
class EvictionFreesTooFew(Pooled):
    """The cached blocks that the plan itself uses are counted as room for its new blocks."""

    def fits(self, plan: Plan) -> bool:
        return plan.new <= self.available()


@known_bad(
    "growth-asks-for-one-block",
    "YES-MEANS-YES",
    "room",
    "ATOM PR 250",
    "jianzhnie nano-vllm fork",
    context="chunked",
    shows="3x2: admit A 00000 limit=1 / commit A / admit B 0 / reserve A 4",
)
class GrowthAsksForOne(Pooled):
    """Growth by several blocks asks for one only."""

    def available(self) -> int:
        room = super().available()
        return self.world.blocks if room and self.asking else room

    asking = False

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        self.asking = True
        try:
            return super().reserve(sequence, count)
        finally:
            self.asking = False


@known_bad(
    "growth-never-asks",
    "TOTAL",
    "room",
    "nano-vllm issue 274",
    "nano-vllm PR 277",
    "ACE-Step-1.5 PR 858",
    shows="2x2: admit A 0000 / commit A / append A 0 / reserve A 1",
)
class GrowthNeverAsks(Counted):
    """Growth takes a block without asking whether there is one."""

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        live = self.known(sequence)
        self.grow(live, len(live.table) + super().missing(live, count))
        live.reserved = count
        return op.Reserved(tuple(live.table))


@known_bad(
    "short-prompt-raises",
    "TOTAL",
    "progress",
    "SGLang PR 23387",
    "SGLang PR 10637",
    shows="1x2: admit A 0",
)
class ShortPromptRaises(Counted):
    """A prompt shorter than a block has an empty key after rounding, which the search does not expect."""

    def find(self, tokens: tuple[int, ...], namespace: str) -> list[int]:
        key = tokens[: len(tokens) // self.size * self.size]
        assert key[0] >= 0
        return super().find(tokens, namespace)


@known_bad(
    "resumed-sequence-raises",
    "TOTAL",
    "progress",
    "nano-vllm PR 217",
    "nano-vllm issue 144",
    "vLLM #25538",
    shows="1x1: admit A 0 / release A preempted / admit A 0",
)
class ResumedRaises(Counted):
    """A preempted sequence that comes back is taken for one that decodes."""

    def __init__(self, world: object) -> None:
        super().__init__(world)  # type: ignore[arg-type]
        self.preempted: set[str] = set()

    def release(self, sequence: str, cause: str) -> op.Outcome:
        if cause == "preempted":
            self.preempted.add(sequence)
        return super().release(sequence, cause)

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        assert sequence not in self.preempted or self.find(tokens, namespace)
        return super().admit(sequence, tokens, limit, namespace)


@known_bad(
    "growth-without-room",
    "COVERS",
    "room",
    "nano-vllm issue 274",
    "tt-inference-server PR 2042",
    shows="2x2: admit A 0000 / commit A / append A 0 / reserve A 1",
)
class GrowthWithoutRoom(Counted):
    """Growth in a full pool says yes and leaves the table as it is."""

    def missing(self, live: Live, count: int) -> int:
        return min(super().missing(live, count), len(self.free))


@known_bad(
    "growth-by-modulo",
    "COVERS",
    "room",
    "nano-vllm HEAD at block size 1",
    context="one",
    shows="1x1: admit A 0 / commit A / append A 0 / reserve A 1",
)
class GrowthByModulo(Counted):
    """A block is added if the length leaves remainder 1, which never happens with blocks of one token."""

    def missing(self, live: Live, count: int) -> int:
        return super().missing(live, count) if self.size > 1 else int(len(live.tokens) % self.size == 1)


@known_bad(
    "growth-repeats-table",
    "COVERS",
    "room",
    "sparkinfer 135",
    "kekzl/imp 1301",
    shows="1x2: admit A 00 / commit A / append A 0 / reserve A 1",
)
class GrowthRepeatsTable(Counted):
    """Growth appends all the blocks the sequence needs instead of those it lacks."""

    def missing(self, live: Live, count: int) -> int:
        lacking = super().missing(live, count)
        return min(len(self.free), lacking + 1) if lacking else 0


@known_bad(
    "table-of-suffix-only",
    "COVERS",
    "unbacked",
    "Tenstorrent vLLM 415",
    "tt-metal 46828",
    "vLLM PR 7018",
    shows="2x2: admit A 01 / commit A / admit B 010",
)
class TableOfSuffixOnly(Counted):
    """The table of a sequence that was hit lists the new blocks only."""

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        outcome = super().admit(sequence, tokens, limit, namespace)
        if isinstance(outcome, op.Admitted):
            return replace(outcome, table=outcome.table[outcome.cached // self.size :])
        return outcome


@known_bad(
    "pinned-before-asking",
    "ATOMIC",
    "traces",
    "vLLM #11562",
    "vLLM PR 11565",
    "Atlas PR 373",
    shows="2x2: admit A 010 / commit A / admit B 010",
)
class PinnedBeforeAsking(Counted):
    """Hits are claimed before the room is checked, and a refusal leaves them claimed."""

    def refuse(self, hit: list[int]) -> op.Outcome:
        for block in hit:
            self.claim(Live([]), block)
        return op.Refused()


@known_bad(
    "evicts-then-refuses",
    "ATOMIC",
    "traces",
    "xLLM PR 55",
    "Atlas PR 1114",
    shows="2x2: admit A 00 / commit A / release A / admit B 0 / admit C 000",
)
class EvictsThenRefuses(Pooled):
    """Cached blocks are evicted to make room before it is known whether that is enough."""

    def fits(self, plan: Plan) -> bool:
        fits = super().fits(plan)
        while not fits and self.cached:
            self.empty.append(self.evict())
        return fits


@known_bad(
    "half-grown-table",
    "ATOMIC",
    "traces",
    "nano-vllm: partial table after a failed allocate",
    "ACE-Step-1.5 003d75c",
    "Atlas PR 373",
    shows="2x2: admit A 0 / admit B 000",
)
class HalfGrownTable(Counted):
    """An admission takes block after block until none is left, and keeps them when it is refused."""

    def refuse(self, hit: list[int]) -> op.Outcome:
        if self.free:
            self.take()
        return op.Refused()


@known_bad(
    "refusal-refreshes-order",
    "ATOMIC",
    "traces",
    "vLLM PR 5411",
    "vLLM PR 7193",
    shows="3x2: admit A 1222 / commit A / release A / admit B 0 / admit A 12220",
)
class RefusalRefreshesOrder(Pooled):
    """A request that is refused still marks its hits as just used."""

    def fits(self, plan: Plan) -> bool:
        for block in plan.hit:
            if block in self.cached:
                self.cached.move_to_end(block)
        return super().fits(plan)


@known_bad(
    "refused-prompt-listed",
    "ATOMIC",
    "traces",
    "LMCache #2912",
    "xLLM #828",
    shows="2x2: admit A 0000 / commit A / append A 0 / reserve A 1",
)
class RefusedGrowthCounted(Counted):
    """A refused growth already counts the block it did not get."""

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        outcome = super().reserve(sequence, count)
        if isinstance(outcome, op.Refused):
            self.references[self.known(sequence).table[-1]] += 1
        return outcome
