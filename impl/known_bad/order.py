"""Faults in the order of recycling."""

from kvspec.impl.known_bad.bases.counted import Counted
from kvspec.impl.known_bad.bases.live import Live
from kvspec.impl.known_bad.registry import known_bad


@known_bad(
    "head-recycled-first",
    "TAIL-FIRST",
    "order",
    "MinivLLM: forward order of release",
    "llm-d-inference-sim #704",
    "llm-d-inference-sim PR 709",
    shows="2x2: admit A 000 / release A / admit B 0",
)
class HeadRecycledFirst(Counted):
    """A release gives the blocks back from the head, so that the head is recycled before tails that then lead
    nowhere.
    """

    def give_back(self, live: Live) -> None:
        for block in live.table:
            self.drop(block)


@known_bad(
    "youngest-recycled-first",
    "FIFO",
    "order",
    "w4096 mini-vllm",
    "jianzhnie nano-vllm fork: every request gets block 0",
    "candle-vllm PR 193",
    shows="2x1: admit A 0 / release A / admit A 0",
)
class YoungestRecycledFirst(Counted):
    """The block that was freed last is recycled first."""

    def take(self) -> int:
        self.free.rotate(1)
        return super().take()

    def give_back(self, live: Live) -> None:
        for block in live.table:
            self.drop(block)


@known_bad(
    "lowest-number-first",
    "FIFO",
    "order",
    "ATOM free order",
    "candle-vllm PR 193",
    shows="2x1: admit A 0 / release A / admit A 0",
)
class LowestNumberFirst(Counted):
    """Free blocks are recycled by number."""

    def drop(self, block: int) -> None:
        super().drop(block)
        self.free = type(self.free)(sorted(self.free))


@known_bad(
    "hit-does-not-refresh",
    "FIFO",
    "order",
    "mlx-lm PR 1496",
    "vLLM PR 5411",
    shows="3x2: admit A 01 / commit A / release A / admit A 010 / release A / admit B 0",
)
class HitDoesNotRefresh(Counted):
    """A block that was hit goes back to its old place in the order when it is released."""

    def claim(self, live: Live, block: int) -> None:
        if not self.references[block]:
            self.old.add(block)
        super().claim(live, block)

    def drop(self, block: int) -> None:
        super().drop(block)
        if not self.references[block] and block in self.old:
            self.old.remove(block)
            self.free.remove(block)
            self.free.appendleft(block)

    def __init__(self, world: object) -> None:
        super().__init__(world)  # type: ignore[arg-type]
        self.old: set[int] = set()
