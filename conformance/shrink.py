"""Make a counterexample short: fewer operations, a smaller world, shorter prompts, smaller token numbers.

Each candidate is run from scratch and must break the same clause with its last operation.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kvspec.conformance.lockstep import CannotCreate
from kvspec.conformance.program import Counterexample, Program, others_muted, run
from kvspec.conformance.time_limit import NO_ANSWER
from kvspec.impl.adapter import Implementation
from kvspec.spec import operations as op

MOST_RUNS = 4000
HANG_COSTS = MOST_RUNS // 10  # runs: each hang costs the whole time limit of a call
MODEL_CLAUSE = "NANO-ORDER"


class _Budget:
    def __init__(self, implementation: Implementation, clause: str, muted: frozenset[str]) -> None:
        self.implementation, self.clause, self.muted, self.left = implementation, clause, muted, MOST_RUNS

    def broken_by(self, program: Program) -> Program | None:
        """The program up to the operation that breaks the clause, or None if it breaks something else or nothing."""
        self.left -= 1
        try:
            lockstep, violation = run(self.implementation, program, self.muted, self.clause == MODEL_CLAUSE)
        except CannotCreate:
            return None
        if violation and NO_ANSWER in violation.because:
            self.left -= HANG_COSTS
        if violation is None or violation.clause != self.clause:
            return None
        return Program(program.world, tuple(lockstep.operations))


def shrink(implementation: Implementation, found: Counterexample) -> Counterexample:
    """The shortest counterexample to the same clause that greedy shrinking reaches; `found` itself if it cannot be repeated."""
    clause = found.violation.clause
    for muted in (others_muted(clause), found.muted):
        budget = _Budget(implementation, clause, muted)
        if program := budget.broken_by(found.program):
            program = _shrink(budget, program)
            program = budget.broken_by(_renamed(program)) or program
            _, violation = run(implementation, program, muted, clause == MODEL_CLAUSE)
            if violation is None:  # the manager does not answer the same when asked the same
                continue
            return Counterexample(program, violation, found.context, muted)
    return found


SHORT_ENOUGH = 3  # operations: not worth a second attempt


def shrink_shortest(implementation: Implementation, found: Iterable[Counterexample]) -> Counterexample:
    """The best of what shrinking makes of several counterexamples to one clause.  Raises ValueError if there is none."""
    best: Counterexample | None = None
    for each in found:
        short = shrink(implementation, each)
        if best is None or _size(short.program) < _size(best.program):
            best = short
        if len(best.program.operations) <= SHORT_ENOUGH:
            break
    if best is None:
        raise ValueError("nothing to shrink")
    return best


def _shrink(budget: _Budget, program: Program) -> Program:
    improved = True
    while improved and budget.left > 0:
        improved = False
        for candidate in _candidates(program, budget.implementation.declaration.smallest_block_size):
            if budget.left <= 0:
                break
            smaller = budget.broken_by(candidate)
            if smaller and _size(smaller) < _size(program):
                program, improved = smaller, True
                break
    return program


def _renamed(program: Program) -> Program:
    """The sequences called A, B, C … in the order in which they are first named."""
    names: dict[str, str] = {}
    for operation in program.operations:
        for name in op.sequences_of(operation):
            names.setdefault(name, chr(ord("A") + len(names)))
    return replace(program, operations=tuple(_with_names(operation, names) for operation in program.operations))


def _with_names(operation: op.Operation, names: dict[str, str]) -> op.Operation:
    if isinstance(operation, op.Commit):
        return op.Commit(tuple(names[name] for name in operation.sequences))
    if isinstance(operation, op.Reset | op.Probe | op.Drop):
        return operation
    return replace(operation, sequence=names[operation.sequence])


def _size(program: Program) -> tuple[int, ...]:
    """What is to become small, the most important first."""
    tokens = [token for operation in program.operations for token in _tokens(operation)]
    world = program.world
    partial = sum(isinstance(operation, op.Admit) and operation.limit < 1 << 20 for operation in program.operations)
    causes = sum(isinstance(each, op.Release) and each.cause is not op.Cause.FINISHED for each in program.operations)
    return (len(program.operations), len(tokens), world.blocks, world.block_size, partial, causes, sum(tokens))


def _tokens(operation: op.Operation) -> tuple[int, ...]:
    if isinstance(operation, op.Admit | op.Extend | op.Probe):
        return operation.tokens
    return (operation.token,) if isinstance(operation, op.Append) else ()


def _candidates(program: Program, smallest_size: int) -> Iterator[Program]:
    yield from _without_operations(program)
    yield from _smaller_worlds(program, smallest_size)
    yield from _simpler_operations(program)


def _without_operations(program: Program) -> Iterator[Program]:
    operations = program.operations
    width = max(1, len(operations) // 2)
    while True:
        for start in range(len(operations) - width, -1, -1):
            yield replace(program, operations=operations[:start] + operations[start + width :])
        if width == 1:
            break
        width //= 2
    for name in sorted({name for each in operations for name in op.sequences_of(each)}):
        yield replace(program, operations=tuple(filter(None, (_without(name, each) for each in operations))))


def _without(name: str, operation: op.Operation) -> op.Operation | None:
    if isinstance(operation, op.Commit):
        kept = tuple(other for other in operation.sequences if other != name)
        return op.Commit(kept) if kept else None
    return None if name in op.sequences_of(operation) else operation


def _smaller_worlds(program: Program, smallest_size: int) -> Iterator[Program]:
    world = program.world
    for blocks in range(1, world.blocks):
        yield replace(program, world=replace(world, blocks=blocks))
    for size in range(smallest_size, world.block_size):
        yield replace(program, world=replace(world, block_size=size))


def _simpler_operations(program: Program) -> Iterator[Program]:
    for place, operation in enumerate(program.operations):
        for simpler in _simpler(operation):
            yield replace(program, operations=(*program.operations[:place], simpler, *program.operations[place + 1 :]))


def _simpler(operation: op.Operation) -> Iterator[op.Operation]:
    if isinstance(operation, op.Admit | op.Extend | op.Probe):
        tokens = operation.tokens
        for place in range(len(tokens)):
            yield replace(operation, tokens=tokens[:place] + tokens[place + 1 :])
        for place, token in enumerate(tokens):
            if token:
                yield replace(operation, tokens=(*tokens[:place], 0, *tokens[place + 1 :]))
        if not isinstance(operation, op.Extend) and operation.limit < 1 << 20:
            yield replace(operation, limit=1 << 20)
    elif isinstance(operation, op.Truncate) and operation.length:
        yield replace(operation, length=operation.length - 1)
    elif isinstance(operation, op.Append) and operation.token:
        yield replace(operation, token=0)
    elif isinstance(operation, op.Commit) and len(operation.sequences) > 1:
        for name in operation.sequences:
            yield replace(operation, sequences=tuple(other for other in operation.sequences if other != name))
    elif isinstance(operation, op.Release) and operation.cause is not op.Cause.FINISHED:
        yield replace(operation, cause=op.Cause.FINISHED)
