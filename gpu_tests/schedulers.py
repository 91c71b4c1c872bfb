"""Two ways to drive a manager: as an engine does it, and as badly as an engine might.

``fifo`` admits in order, computes long prompts in chunks, decodes all running sequences together, and preempts the
youngest when the pool is full.  ``adversarial`` lets any admitted sequence compute any chunk next, and preempts and
aborts at random: faults that the order of a real scheduler hides (a block handed out before it is computed) show here.
"""

import random
from collections import deque
from collections.abc import Callable

from kvspec.impl.adapter import Implementation
from kvspec.spec import operations as op

from .engine import Engine, Run, StoppedError
from .workload import Request, Workload, build

PATIENCE = 2000  # scheduling rounds; a correct manager needs about a hundred


def drive(
    implementation: Implementation, scheduler: str, seed: int, weak_hash: bool = False, workload: Workload | None = None
) -> Run:
    """Run the workload of `seed` on a fresh manager and return the recorded steps."""
    schedule, blocks = SCHEDULERS[scheduler]
    workload = workload or build(seed, blocks, implementation.declaration, weak_hash)
    engine = Engine(implementation, workload, scheduler)
    try:
        schedule(engine)
    except StoppedError as reason:
        engine.run.stopped = str(reason)
    return engine.run


def exercised(implementation: Implementation, scheduler: str, seed: int) -> Run:
    """The run of `seed` in the largest pool that is small enough for everything to happen; fails if there is none.

    Managers differ in how many blocks they reserve, so a pool that is full for one may be roomy for another.
    """
    largest = SCHEDULERS[scheduler][1]
    for blocks in range(largest, largest - 5, -1):
        workload = build(seed, blocks, implementation.declaration)
        run = drive(implementation, scheduler, seed, workload=workload)
        if run.stopped or not run.counts.missing():
            break
    assert run.stopped is None, f"{scheduler}, seed {seed}: {run.stopped}"
    run.require_everything()
    return run


def _fifo(engine: Engine) -> None:
    waiting = deque(engine.run.workload.requests)
    for _ in range(PATIENCE):
        if not waiting and not engine.live:
            return
        planned = _prefill(engine, waiting) or _decode(engine, waiting)
        if not planned:
            raise StoppedError("the manager refuses a request that has the whole pool to itself")
        engine.step(planned)
    raise StoppedError(f"the workload was not finished after {PATIENCE} steps")


def _prefill(engine: Engine, waiting: deque[Request]) -> list[str]:
    """Plan prompt tokens, first come first served, up to the budget of a step; the last prompt may be cut."""
    planned: list[str] = []
    budget = engine.run.workload.budget
    for name in [name for name, live in engine.live.items() if live.computed + 1 < len(live.tokens)]:
        count = min(budget, engine.live[name].left)
        if count and engine.reserve(name, count):
            planned.append(name)
            budget -= count
    while waiting and budget and engine.admit(waiting[0], budget):
        request = waiting.popleft()
        if live := engine.live.get(request.name):
            planned += [request.name] if live.planned else []
            budget -= live.planned
    return planned


def _decode(engine: Engine, waiting: deque[Request]) -> list[str]:
    """Plan one token of every running sequence; where there is no room, preempt the youngest."""
    planned: list[str] = []
    for name in list(engine.live):
        while name in engine.live and not engine.reserve(name, 1):
            youngest = next(other for other in reversed(engine.live) if other not in planned)
            waiting.appendleft(engine.release(youngest, op.Cause.PREEMPTED))
        planned += [name] if name in engine.live else []
    return planned


def _adversarial(engine: Engine) -> None:
    rng = random.Random(f"adversary {engine.run.workload.seed}")
    waiting = list(engine.run.workload.requests)
    for _ in range(PATIENCE):
        if not waiting and not engine.live:
            return
        move = rng.random()
        if move < 0.25 and waiting:
            _admit_any(engine, waiting, rng)
        elif move < 0.60:
            _plan_any(engine, rng)
        elif move < 0.94:
            _step_any(engine, rng)
        else:
            _release_any(engine, waiting, rng)
    raise StoppedError(f"the workload was not finished after {PATIENCE} moves")


def _admit_any(engine: Engine, waiting: list[Request], rng: random.Random) -> None:
    request = rng.choice(waiting)
    if engine.admit(request, _chunk_length(engine, rng)):
        waiting.remove(request)


def _plan_any(engine: Engine, rng: random.Random) -> None:
    idle = [name for name, live in engine.live.items() if not live.planned and live.left]
    if idle:
        name = rng.choice(idle)
        engine.reserve(name, min(_chunk_length(engine, rng), engine.live[name].left))


def _step_any(engine: Engine, rng: random.Random) -> None:
    planned = [name for name, live in engine.live.items() if live.planned]
    if planned:
        rng.shuffle(planned)
        whole = engine.declaration.same_step_hit  # then a step may only be committed as a whole
        engine.step(planned if whole else planned[: rng.randint(1, len(planned))])


def _release_any(engine: Engine, waiting: list[Request], rng: random.Random) -> None:
    in_flight = engine.declaration.release_in_flight
    names = [name for name, live in engine.live.items() if in_flight or not live.planned]
    if names:
        aborted = rng.random() < 0.1
        request = engine.release(rng.choice(names), op.Cause.ABORTED if aborted else op.Cause.PREEMPTED)
        waiting += [] if aborted else [request]


def _chunk_length(engine: Engine, rng: random.Random) -> int:
    return rng.randint(1, 3 * engine.run.world.block_size)


# scheduler -> how it schedules, and the size of a pool that it fills
SCHEDULERS: dict[str, tuple[Callable[[Engine], None], int]] = {
    "fifo": (_fifo, 14),
    "adversarial": (_adversarial, 18),
}
