"""Bad requests: scenarios that no correct scheduler asks for, which must get a clear error and change nothing."""

from collections.abc import Callable
from dataclasses import replace

from kvspec.conformance.lockstep import CannotCreate, Lockstep, ask
from kvspec.conformance.render.words import answered
from kvspec.conformance.snapshots import Unreadable
from kvspec.conformance.time_limit import alarm_installed
from kvspec.impl.adapter import Implementation
from kvspec.spec import operations as op
from kvspec.spec.judge import Violation, illegal
from kvspec.spec.state import World

LIMIT = 1 << 20


def check_robust(implementation: Implementation) -> dict[str, Violation | None]:
    """Each clause of the profile `robust`, with its violation or None."""
    with alarm_installed():
        return {clause: _tried(clause, implementation) for clause in SCENARIOS}


class _NotLive(Exception):
    """There is no live sequence to be rude to."""


def _tried(clause: str, implementation: Implementation) -> Violation | None:
    try:
        return SCENARIOS[clause](implementation)
    except _NotLive as reason:
        return Violation(clause, f"it cannot be tried: {reason}")


def _world(implementation: Implementation, blocks: int = 3) -> World:
    declaration = implementation.declaration
    return World(blocks, min(max(2, declaration.smallest_block_size), declaration.largest_block_size))


def _rejected(clause: str, lockstep: Lockstep, operation: op.Operation) -> Violation | None:
    """Perform an illegal operation and demand a clear error and an unchanged manager."""
    before = lockstep.look()
    outcome = ask(lockstep.adapter, operation)
    if not isinstance(outcome, op.Refused) and not (isinstance(outcome, op.Failed) and outcome.clear):
        return Violation(clause, f"{_spoken(operation)} was answered with {answered(outcome)}, not with a clear error")
    if lockstep.look() != before:
        return Violation(clause, f"{_spoken(operation)} was rejected, but changed the manager")
    return None


def _spoken(operation: op.Operation) -> str:
    return f"{type(operation).__name__.lower()} of {getattr(operation, 'sequence', '')}"


def _empty(implementation: Implementation) -> Violation | None:
    # EMPTY-PROMPT: a prompt without tokens is rejected with a clear error, and nothing changes
    for operation in (op.Admit("A", (), LIMIT), *_if_declared(implementation, "probe", op.Probe((), LIMIT))):
        fresh = Lockstep(implementation, _world(implementation))
        if violation := _rejected("EMPTY-PROMPT", fresh, operation):
            return violation
    return None


def _if_declared(implementation: Implementation, profile: str, *operations: op.Operation) -> tuple[op.Operation, ...]:
    """The operations of an extension, where it is offered."""
    return operations if profile in implementation.declaration.profiles else ()


def _oversized(implementation: Implementation) -> Violation | None:
    world = _world(implementation)
    lockstep = Lockstep(implementation, world)
    length = world.blocks * world.block_size + 1
    if violation := lockstep.step(op.Admit("A", tuple(range(length)), LIMIT)):
        scene = f"a prompt of {length} tokens in {world.blocks} blocks of {world.block_size}"
        return replace(violation, because=f"{scene}: {violation.because}")
    return None


def _live(implementation: Implementation) -> Lockstep:
    """A manager with one live sequence A, whose prompt is computed."""
    lockstep = Lockstep(implementation, _world(implementation))
    for operation in (op.Admit("A", (0,) * (lockstep.world.block_size + 1), LIMIT), op.Commit(("A",))):
        violation = None if illegal(lockstep.state, operation) else lockstep.step(operation)
        if violation or isinstance(lockstep.outcomes[-1], op.Refused | op.Failed):
            raise _NotLive(f"of a fresh manager {_spoken(operation)} was answered with {lockstep.outcomes[-1]}")
    return lockstep


def _repeated(implementation: Implementation) -> Violation | None:
    # REPEATED: admitting a live sequence again is rejected with a clear error, and nothing changes
    lockstep = _live(implementation)
    if violation := _rejected("REPEATED", lockstep, op.Admit("A", (0,) * (lockstep.world.block_size + 1), LIMIT)):
        return violation
    for operation in _if_declared(implementation, "owners", op.Retain("A", "K")):
        if not isinstance(outcome := ask(lockstep.adapter, operation), op.Retained):
            raise _NotLive(f"{_spoken(operation)} was answered with {outcome}")
        return _rejected("REPEATED", lockstep, operation)
    return None


def _unknown(implementation: Implementation) -> Violation | None:
    # UNKNOWN: naming a sequence that was never admitted is a clear error (or, for release, harmless), and nothing changes
    unknown = (
        op.Reserve("never", 1),
        *_if_declared(implementation, "truncate", op.Truncate("never", 1)),
        *_if_declared(implementation, "owners", op.Retain("never", "K"), op.Drop("never")),
    )
    for operation in unknown:
        if violation := _rejected("UNKNOWN", _live(implementation), operation):
            return violation
    lockstep = _live(implementation)
    before = lockstep.look()
    outcome = ask(lockstep.adapter, op.Release("never"))
    if isinstance(outcome, op.Released) and lockstep.look() == before:
        return None  # as harmless as a second release, from which some managers cannot tell it
    return _rejected("UNKNOWN", lockstep, op.Release("never"))


def _bad_pool(implementation: Implementation) -> Violation | None:
    good = _world(implementation)
    for world in (World(0, good.block_size), World(-1, good.block_size), World(3, 0), World(3, -1)):
        # BAD-POOL: an impossible number of blocks or block size is rejected with a clear error
        if (outcome := _made(implementation, world)) is not None:
            return Violation("BAD-POOL", f"{world.blocks} blocks of {world.block_size} tokens: {outcome}")
    return None


def _made(implementation: Implementation, world: World) -> str | None:
    try:
        Lockstep(implementation, world)
    except CannotCreate as error:
        cause = error.__cause__
        if isinstance(cause, Unreadable):
            return f"a manager was made, and {cause}"
        clear = isinstance(cause, ValueError | TypeError) or bool(str(cause))
        accident = isinstance(cause, AssertionError | IndexError | AttributeError | ZeroDivisionError)
        return None if clear and not accident else f"the error is not clear: {type(cause).__name__}: {cause}"
    return "a manager was made"


SCENARIOS: dict[str, Callable[[Implementation], Violation | None]] = {
    "EMPTY-PROMPT": _empty,
    "OVERSIZED": _oversized,
    "REPEATED": _repeated,
    "UNKNOWN": _unknown,
    "BAD-POOL": _bad_pool,
}
