"""Run what a trace asked for again, on a real implementation."""

from dataclasses import dataclass

from kvspec.conformance.hash_check import check_hash
from kvspec.conformance.lockstep import Lockstep
from kvspec.conformance.program import Counterexample, Program, run
from kvspec.conformance.robustness import check_robust
from kvspec.conformance.trace.format import Trace
from kvspec.impl.adapter import Implementation
from kvspec.spec.judge import Violation


@dataclass(frozen=True, slots=True)
class Replay:
    """What happened: the violation if any, and the lockstep (None where no program was run).

    `skipped`: operations that could no longer be asked, because the answers before them were different.
    """

    violation: Violation | None
    lockstep: Lockstep | None = None
    skipped: int = 0


def program_of(trace: Trace) -> Program:
    """The program that a trace recorded."""
    return Program(trace.header.world, tuple(record.request for record in trace.records))


def counterexample_of(trace: Trace, violation: Violation) -> Counterexample:
    """A trace as the counterexample that it stores."""
    header = trace.header
    return Counterexample(program_of(trace), violation, header.context, header.muted, header.shortest)


def replay(trace: Trace, implementation: Implementation) -> Replay:
    """Ask the implementation the same again and rule on its answers.  Raises lockstep.CannotCreate."""
    clause, context = trace.footer.verdict, trace.header.context
    if context == "hash":
        return Replay(check_hash(implementation))
    if context == "robust":
        return Replay(check_robust(implementation).get(clause or ""))
    program = program_of(trace)
    lockstep, violation = run(implementation, program, trace.header.muted, context == "model")
    left = 0 if violation else len(program.operations) - len(lockstep.operations)
    return Replay(violation, lockstep, left)
