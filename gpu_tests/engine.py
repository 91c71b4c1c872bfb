"""The part of an engine that both schedulers share: it asks a manager, and records what a forward pass would do.

The manager runs once; lanes replay the recorded steps, each on its own K/V pool.  That is possible because nothing
that a lane computes flows back: the "sampled" tokens of a request are fixed beforehand.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from kvspec.impl.adapter import Adapter, Implementation
from kvspec.spec import operations as op
from kvspec.spec.state import World

from .workload import Request, Workload

Answer = TypeVar("Answer", op.Admitted, op.Reserved, op.Committed, op.Appended, op.Released)


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one sequence computes in one step: the K/V and the outputs of positions `start` .. `end - 1`.

    It reads positions 0 .. `end - 1` through `table`, the block table that the manager answered.  `tokens` are all
    tokens up to `end`; `cached` is how many of them the admission of this sequence found in the cache.
    """

    sequence: str
    tokens: tuple[int, ...]
    start: int
    table: tuple[int, ...]
    cached: int
    namespace: str = ""

    @property
    def end(self) -> int:
        """One past the last position that is computed."""
        return len(self.tokens)


@dataclass(slots=True)
class Counts:
    """How often what a run is for has happened; a run in which something never happened proves nothing."""

    hits: int = 0  # blocks taken from the cache
    free_hits: int = 0  # … of them, blocks that no live sequence held
    recycles: int = 0  # blocks with K/V in them that were handed out for new tokens
    preemptions: int = 0
    ragged_chunks: int = 0  # prefill chunks that ended inside a block
    computed: int = 0  # tokens whose K/V was computed

    def missing(self) -> list[str]:
        """What never happened."""
        return [name for name in self.__slots__ if not getattr(self, name)]


@dataclass(slots=True, repr=False)
class Run:
    """One workload on one manager: the steps, each a tuple of chunks that are computed together.

    `blocks` counts the physical blocks, unusable ones between them included.  `stopped` tells why the run ended early (the manager
    raised or answered nonsense), or is None.
    """

    workload: Workload
    scheduler: str
    blocks: int
    steps: list[tuple[Chunk, ...]] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    stopped: str | None = None

    def __repr__(self) -> str:
        return f"<{self.scheduler} run of seed {self.workload.seed}: {len(self.steps)} steps, {self.counts}>"

    @property
    def world(self) -> World:
        return self.workload.world

    @property
    def slots(self) -> int:
        """Size of the K/V pool, in slots."""
        return self.blocks * self.world.block_size

    def require_everything(self) -> None:
        """Fail if this run could have passed without testing anything."""
        missing = self.counts.missing()
        assert not missing, f"{self.scheduler}, seed {self.workload.seed}: the run proves nothing about {missing}"


class StoppedError(Exception):
    """The manager raised or answered something that no engine could go on with."""


@dataclass(slots=True)
class Live:
    """A sequence that holds blocks: known tokens, table, computed and planned tokens, outputs still to come."""

    request: Request
    tokens: tuple[int, ...]
    table: tuple[int, ...]
    cached: int
    computed: int
    planned: int

    @property
    def left(self) -> int:
        """Known tokens that are neither computed nor planned."""
        return len(self.tokens) - self.computed - self.planned


class Engine:
    """Asks the manager in the order in which an engine would, and keeps the books that an engine keeps."""

    def __init__(self, implementation: Implementation, workload: Workload, scheduler: str) -> None:
        self.declaration = implementation.declaration
        self.adapter = implementation.create(workload.world)
        self.run = Run(workload, scheduler, max(self.declaration.block_ids(workload.world.blocks)) + 1)
        self.live: dict[str, Live] = {}
        self._known = {request.name: request.prompt for request in workload.requests}
        self._filled: set[int] = set()  # blocks that hold K/V of some token

    def admit(self, request: Request, limit: int) -> bool:
        """Try to admit with all known tokens, planning at most `limit` of them; False if refused."""
        tokens = self._known[request.name]
        answer = self._request(op.Admit(request.name, tokens, limit, request.namespace), op.Admitted)
        if answer is None:
            return False
        live = Live(request, tokens, answer.table, answer.cached, answer.cached, answer.reserved)
        self._check_table(live)
        hit = -(-answer.cached // self.run.world.block_size)
        self._count_hits(answer.table[:hit])
        self._count_fresh(answer.table[hit:])
        self.live[request.name] = live
        if not live.planned:
            self._sample(live)
        return True

    def reserve(self, name: str, count: int) -> bool:
        """Try to plan the next `count` tokens of a live sequence; False if refused."""
        live = self.live[name]
        answer = self._request(op.Reserve(name, count), op.Reserved)
        if answer is None:
            return False
        known = len(live.table)
        live.table, live.planned = answer.table, count
        self._check_table(live)
        self._count_fresh(answer.table[known:])
        return True

    def step(self, names: Iterable[str]) -> None:
        """Compute the planned tokens of these sequences together, commit, and sample where all tokens are computed."""
        names = tuple(names)
        self.run.steps.append(tuple(self._chunk(self.live[name]) for name in names))
        tables = self._ask(op.Commit(names), op.Committed).tables
        if len(tables) != len(names):
            raise StoppedError(f"{len(names)} sequences were committed, and {len(tables)} tables answered")
        for name, table in zip(names, tables, strict=True):
            live = self.live[name]
            live.table, live.computed, live.planned = table, live.computed + live.planned, 0
            self._check_table(live)
            if live.computed == len(live.tokens):
                self._sample(live)

    def release(self, name: str, cause: op.Cause) -> Request:
        """Take the blocks away; the request that held them is returned, its sampled tokens stay known."""
        live = self.live.pop(name)
        self._ask(op.Release(name, cause), op.Released)
        self.run.counts.preemptions += cause is op.Cause.PREEMPTED
        return live.request

    def _sample(self, live: Live) -> None:
        name, request = live.request.name, live.request
        if len(live.tokens) == len(request.tokens):
            self.release(name, op.Cause.FINISHED)
            return
        token = request.tokens[len(live.tokens)]
        self._ask(op.Append(name, token), op.Appended)
        live.tokens = self._known[name] = (*live.tokens, token)

    def _chunk(self, live: Live) -> Chunk:
        end, size = live.computed + live.planned, self.run.world.block_size
        first, last = live.computed // size, -(-end // size)
        self._filled.update(live.table[first:last])
        self.run.counts.computed += live.planned
        self.run.counts.ragged_chunks += end < len(live.tokens) and end % size > 0
        request = live.request
        return Chunk(request.name, live.tokens[:end], live.computed, live.table[:last], live.cached, request.namespace)

    def _count_hits(self, blocks: tuple[int, ...]) -> None:
        held = {block for other in self.live.values() for block in other.table}
        self.run.counts.hits += len(blocks)
        self.run.counts.free_hits += sum(block not in held for block in blocks)

    def _count_fresh(self, blocks: tuple[int, ...]) -> None:
        self.run.counts.recycles += sum(block in self._filled for block in blocks)

    def _check_table(self, live: Live) -> None:
        size, planned = self.run.world.block_size, live.computed + live.planned
        numbers = [type(number) for number in (live.computed, live.planned, *live.table)]
        if set(numbers) != {int} or not 0 <= live.computed <= planned <= len(live.tokens):
            raise StoppedError(f"no engine could use this answer for {live.request.name}: {live}")
        if len(live.table) * size < planned or not set(live.table) <= set(range(self.run.blocks)):
            raise StoppedError(
                f"the table of {live.request.name} is {live.table}, for {planned} tokens of {size} a block"
            )

    def _request(self, operation: op.Operation, answer: type[Answer]) -> Answer | None:
        """The answer to an operation that may be refused; None if it is."""
        outcome = _perform(self.adapter, operation)
        return None if isinstance(outcome, op.Refused) else _expect(operation, outcome, answer)

    def _ask(self, operation: op.Operation, answer: type[Answer]) -> Answer:
        """The answer to an operation that can't be refused."""
        return _expect(operation, _perform(self.adapter, operation), answer)


def _expect(operation: op.Operation, outcome: op.Outcome, answer: type[Answer]) -> Answer:
    if not isinstance(outcome, answer):
        raise StoppedError(f"{operation} was answered with {outcome}")
    return outcome


def _perform(adapter: Adapter, operation: op.Operation) -> op.Outcome:
    """Call the manager; whatever it raises becomes an outcome here and nowhere else."""
    try:
        match operation:
            case op.Admit(sequence, tokens, limit, namespace):
                return adapter.admit(sequence, tokens, limit, namespace)
            case op.Reserve(sequence, count):
                return adapter.reserve(sequence, count)
            case op.Commit(sequences):
                return adapter.commit(sequences)
            case op.Append(sequence, token):
                return adapter.append(sequence, token)
            case op.Release(sequence, cause):
                return adapter.release(sequence, cause)
    except Exception as error:  # a manager may raise anything
        return op.Failed(f"{type(error).__name__}: {error}")
