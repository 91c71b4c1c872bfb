"""Find a short program that kills a known-bad manager, and that a sound manager runs from beginning to end.

Vectors come from here once: ``python -m kvspec.conformance.vector_search SLUG …`` prints lines for
``vectors/programs.txt``, which is their source from then on.
"""

import sys
from collections.abc import Iterator

from kvspec.conformance.campaign import run_campaign
from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.lockstep import Lockstep
from kvspec.conformance.program import Program, others_muted, run
from kvspec.conformance.shrink import shrink
from kvspec.conformance.vector_files import filler
from kvspec.impl.known_bad import KNOWN_BAD, KnownBad
from kvspec.impl.known_bad.notation import write
from kvspec.spec.judge import illegal

ROUNDS, PROGRAMS = 40, 250


def find(planted: KnownBad) -> Program | None:
    """A shrunk program after whose last operation the manager is caught, or None."""
    for program in _candidates(planted):
        program = sound_part(program, planted.context)
        if kills(program, planted):
            return program
    return None


def _candidates(planted: KnownBad) -> Iterator[Program]:
    implementation = planted.implementation()
    if planted.example:
        yield Program(planted.example.world, planted.example.operations)
    for seed in range(ROUNDS):
        result = run_campaign(implementation, CONTEXTS[planted.context], seed, PROGRAMS)
        if found := result.found.get(planted.clause):
            yield shrink(implementation, found).program


def kills(program: Program, planted: KnownBad) -> bool:
    """Is the manager caught, for its clause?"""
    implementation, clause = planted.implementation(), planted.clause
    _, violation = run(implementation, program, others_muted(clause), clause == "NANO-ORDER")
    return violation is not None and violation.clause == clause


def sound_part(program: Program, context: str) -> Program:
    """What is left without the operations that a scheduler may not ask of a sound manager."""
    lockstep = Lockstep(filler(context), program.world)
    for operation in program.operations:
        if not illegal(lockstep.state, operation):
            lockstep.step(operation)
    return Program(program.world, tuple(lockstep.operations))


def main(slugs: list[str]) -> None:
    """Print a line for each slug; without slugs, for each known-bad manager that a program can show."""
    for slug, planted in KNOWN_BAD.items():
        if planted.context in CONTEXTS and (not slugs or slug in slugs):
            program = find(planted)
            line = f"{planted.context} {write(program.world, program.operations)}" if program else "(not found)"
            print(f"{slug} {line}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
