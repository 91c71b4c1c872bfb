"""What a trace tells besides its verdict: how much was found in the cache, what was refused, how soon blocks are reused.

Constant memory: the course over time is kept in at most POINTS intervals, which are merged in pairs as a trace grows.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kvspec.spec import operations as op
from kvspec.spec.state import EMPTY, State

POINTS = 256


@dataclass(slots=True)
class Interval:
    """A stretch of operations: prompt tokens asked and found, refusals, and the most blocks in use at its ends."""

    operations: int = 0
    asked: int = 0
    cached: int = 0
    refused: int = 0
    used: int = 0

    def add(self, other: "Interval") -> None:
        """This interval goes on with `other`."""
        self.operations += other.operations
        self.asked += other.asked
        self.cached += other.cached
        self.refused += other.refused
        self.used = max(self.used, other.used)


@dataclass(slots=True)
class Statistics:
    """Counts over a trace.  `ages[n]`: blocks that were recycled after 2**(n-1) to 2**n operations in the free list."""

    operations: int = 0
    admitted: int = 0
    refused: int = 0
    preempted: int = 0
    asked: int = 0
    cached: int = 0
    recycled: int = 0
    ages: dict[int, int] = field(default_factory=dict)
    course: list[Interval] = field(default_factory=list)
    _length: int = 64
    _now: Interval = field(default_factory=Interval)
    _free_since: dict[int, int] = field(default_factory=dict)

    @property
    def hit_rate(self) -> float:
        """The share of prompt tokens that were found."""
        return self.cached / self.asked if self.asked else 0.0

    @property
    def recycle_age(self) -> int:
        """The median number of operations between release and recycling of a block with content, to a power of two."""
        seen = 0
        for power, count in sorted(self.ages.items()):
            seen += count
            if 2 * seen >= self.recycled > 0:
                return 1 << power
        return 0

    def note(self, state: State, request: op.Operation, answer: op.Outcome) -> None:
        """Count an operation that was judged; call it when the state has moved on."""
        self.operations += 1
        kind = type(answer)
        if kind is op.Reserved:
            most = request.count // state.world.block_size + 1  # type: ignore[union-attr]
            self._take(answer.table[-most:])  # type: ignore[union-attr]
        elif kind is op.Admitted:
            self._admit(request, answer, state)  # type: ignore[arg-type]
        elif kind is op.Released:
            self._release(request)  # type: ignore[arg-type]
        elif kind is op.Refused:
            self.refused += 1
            self._now.refused += 1
        if self.operations % self._length == 0:
            self.close(state)

    def freed(self, state: State, table: Iterable[int]) -> None:
        """These blocks were given back by an operation that is noted next."""
        used = state.ledger.used
        for block in table:
            if not used[block] and state.ledger.hash[block] != EMPTY:
                self._free_since[block] = self.operations

    def close(self, state: State) -> None:
        """End the interval."""
        self._now.operations = self.operations % self._length or self._length
        self._now.used = len(state.blocks) - len(state.freed)
        self.course.append(self._now)
        self._now = Interval()
        if len(self.course) >= POINTS:
            self._merge()

    def _merge(self) -> None:
        for first, second in zip(self.course[::2], self.course[1::2], strict=False):
            first.add(second)
        self.course = self.course[::2]
        self._length *= 2

    def _admit(self, request: op.Admit, answer: op.Admitted, state: State) -> None:
        self.admitted += 1
        self.asked += len(request.tokens)
        self.cached += answer.cached
        self._now.asked += len(request.tokens)
        self._now.cached += answer.cached
        hits = -(-answer.cached // state.world.block_size)
        for block in answer.table[:hits]:
            self._free_since.pop(block, None)
        self._take(answer.table[hits:])

    def _take(self, blocks: Iterable[int]) -> None:
        for block in blocks:
            since = self._free_since.pop(block, None)
            if since is not None:
                age = (self.operations - since).bit_length()
                self.ages[age] = self.ages.get(age, 0) + 1
                self.recycled += 1

    def _release(self, request: op.Release) -> None:
        if request.cause is op.Cause.PREEMPTED:
            self.preempted += 1
