"""Is there a shorter program in the same world?  All of them are tried, so the answer is certain, or not given."""

from dataclasses import replace

from kvspec.conformance.explorer import NotFaithful, SmallWorld, explore
from kvspec.conformance.lockstep import CannotCreate
from kvspec.conformance.program import Counterexample, others_muted
from kvspec.impl.adapter import Implementation
from kvspec.spec import operations as op

CONTEXTS = ("steps", "chunked", "one")
MOST_OPERATIONS = 8
MOST_STATES = 3000  # a limit on states and not on time, so that the result is the same on every machine
MOST_PROMPTS = 130  # that a sequence can have in the world: with more, each state has too many successors


def with_proof_of_length(implementation: Implementation, found: Counterexample) -> Counterexample:
    """A shorter counterexample in the same world, or `found`, marked as the shortest where every shorter program was tried."""
    length = len(found.program.operations)
    if found.context not in CONTEXTS or not 1 < length <= MOST_OPERATIONS:
        return replace(found, shortest=length == 1)
    clause, world = found.violation.clause, _world(found)
    if sum(world.tokens**size for size in range(1, world.max_length + 1)) > MOST_PROMPTS:
        return found
    try:
        explored = explore(
            implementation,
            world,
            others_muted(clause),
            limit_states=MOST_STATES,
            limit_depth=length - 1,
            wanted=clause,
        )
    except (CannotCreate, NotFaithful):
        return found
    if explored.counterexample:
        return replace(explored.counterexample, context=found.context)
    stopped = explored.certificate.stopped
    return replace(found, shortest="states" not in stopped and "time" not in stopped and stopped != "interrupted")


def _world(found: Counterexample) -> SmallWorld:
    """The smallest world that holds the program."""
    world, operations = found.program.world, found.program.operations
    lengths: dict[str, int] = {}
    tokens = {0}
    for operation in operations:
        if isinstance(operation, op.Admit):
            lengths[operation.sequence] = len(operation.tokens)
            tokens |= set(operation.tokens)
        elif isinstance(operation, op.Append):
            lengths[operation.sequence] += 1
            tokens.add(operation.token)
    longest = max(lengths.values(), default=1)
    partial = found.context != "steps"
    return SmallWorld(world.blocks, world.block_size, max(1, len(lengths)), len(tokens), longest, partial)
