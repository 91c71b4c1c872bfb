"""Find a short program that kills a known-bad manager, and that a sound manager runs from beginning to end.

Vectors come from here once: ``python -m kvspec.conformance.vector_search SLUG …`` prints lines for
``vectors/programs.txt``, which is their source from then on.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace

from kvspec.conformance.campaign import run_campaign
from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.program import Program, others_muted, run
from kvspec.conformance.shrink import shrink
from kvspec.conformance.vector_filling import BadProgram, sound_part
from kvspec.conformance.vector_programs import VectorProgram, line_of
from kvspec.impl.adapter import Implementation
from kvspec.impl.known_bad import KNOWN_BAD, KnownBad
from kvspec.spec.clauses import CLAUSES, EXTENSIONS

ROUNDS, PROGRAMS = 40, 200


def find(planted: KnownBad) -> VectorProgram | None:
    """A shrunk program in which the manager is caught for its clause, or None."""
    filled_by = filled_by_whom(planted)
    for program in _candidates(planted):
        program = sound_part(program, filled_by)
        if kills(program, planted):
            return VectorProgram(planted.slug, planted.context, filled_by, program)
    return None


def filled_by_whom(planted: KnownBad) -> str:
    """The sound manager that claims what is broken."""
    if planted.context == "namespace":
        return "namespaced"
    if planted.context in EXTENSIONS:
        return "extended"
    return "counted" if planted.context == "collision" or CLAUSES[planted.clause].profile == "reuse" else "model"


def kills(program: Program, planted: KnownBad) -> bool:
    """Is the manager caught, for its clause?"""
    implementation, clause = planted.implementation(), planted.clause
    _, violation = run(implementation, program, others_muted(clause), clause == "NANO-ORDER")
    return violation is not None and violation.clause == clause


def _candidates(planted: KnownBad) -> Iterator[Program]:
    implementation = _with_usual_blocks(planted)
    if planted.example:
        yield Program(planted.example.world, planted.example.operations)
    for seed in range(ROUNDS):
        result = run_campaign(implementation, CONTEXTS[planted.context], seed, PROGRAMS)
        if found := result.found.get(planted.clause):
            yield shrink(implementation, found).program


def _with_usual_blocks(planted: KnownBad) -> Implementation:
    """Block size 1 is a profile of its own: a vector of any other is not shrunk to it."""
    implementation = planted.implementation()
    if planted.context == "one":
        return implementation
    smallest = max(2, implementation.declaration.smallest_block_size)
    return replace(implementation, declaration=replace(implementation.declaration, smallest_block_size=smallest))


def main(slugs: list[str]) -> None:
    """Print a line for each slug; without slugs, for each known-bad manager that a program can show."""
    for slug, planted in KNOWN_BAD.items():
        if planted.context in CONTEXTS and (not slugs or slug in slugs):
            try:
                found = find(planted)
                print(line_of(found) if found else f"# {slug}: nothing found", flush=True)
            except BadProgram as error:
                print(f"# {slug}: {error}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
