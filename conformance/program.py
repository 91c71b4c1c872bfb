"""A program is data: a world and a list of operations.  It can be run, shrunk, stored and printed."""

from dataclasses import dataclass

from kvspec.conformance.lockstep import NONE_MUTED, Lockstep
from kvspec.conformance.time_limit import alarm_installed
from kvspec.impl.adapter import Implementation
from kvspec.spec import operations as op
from kvspec.spec.clauses import CLAUSES
from kvspec.spec.judge import Violation, illegal
from kvspec.spec.state import State, World


@dataclass(frozen=True, slots=True)
class Program:
    """What a scheduler asks of one manager, in order."""

    world: World
    operations: tuple[op.Operation, ...]


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A program which breaks a clause with its last operation.

    `context`: the name of the conditions under which it was found.  `muted`: the clauses that were noted only.
    `shortest`: proved to be the shortest in its world.
    """

    program: Program
    violation: Violation
    context: str
    muted: frozenset[str] = NONE_MUTED
    shortest: bool = False


def others_muted(clause: str) -> frozenset[str]:
    """All survivable clauses but `clause`: the view in which a breach of `clause` is looked for by itself."""
    return frozenset(slug for slug, entry in CLAUSES.items() if entry.survivable) - {clause}


def run(
    implementation: Implementation,
    program: Program,
    muted: frozenset[str] = NONE_MUTED,
    with_model: bool = False,
) -> tuple[Lockstep, Violation | None]:
    """Run a program on a fresh manager up to its end or the first violation; operations that are illegal are left out.

    Raises lockstep.CannotCreate.
    """
    lockstep = Lockstep(implementation, program.world, muted, with_model=with_model)
    with alarm_installed():
        for operation in program.operations:
            if not illegal(lockstep.state, operation) and (violation := lockstep.step(operation)):
                return lockstep, violation
    return lockstep, None


def in_parts(implementation: Implementation, found: Counterexample) -> bool:
    """Does a program plan only a part of what a sequence lacks, or end only a part of a step?"""
    lockstep = Lockstep(implementation, found.program.world, found.muted)
    with alarm_installed():
        for operation in found.program.operations:
            if _is_part(lockstep.state, operation):
                return True
            if lockstep.step(operation):
                break
    return False


def _is_part(state: State, operation: op.Operation) -> bool:
    if isinstance(operation, op.Admit):
        return operation.limit < len(operation.tokens)
    if isinstance(operation, op.Reserve):
        sequence = state.sequences[operation.sequence]
        return operation.count < len(sequence.tokens) - sequence.computed
    flying = {name for name, sequence in state.sequences.items() if sequence.reserved or sequence.unread}
    return set(operation.sequences) < flying if isinstance(operation, op.Commit) else bool(flying)
