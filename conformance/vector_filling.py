"""Vectors are made here: each program is run by a sound manager, judged while it runs, and stored as a trace.

The model of the specification fills them.  Where it claims nothing (it loses hits on twins, it does not survive
collisions, it has no namespaces) a second sound manager does, which keeps every copy and compares whole prefixes.
"""

from dataclasses import replace
from pathlib import Path

from kvspec.conformance.hash_check import reference_hash
from kvspec.conformance.lockstep import Lockstep
from kvspec.conformance.program import Program
from kvspec.conformance.trace import header_of, write_lockstep
from kvspec.conformance.vector_programs import VectorProgram
from kvspec.impl.adapter import Implementation
from kvspec.impl.known_bad.bases.counted import NAMESPACED, Counted
from kvspec.impl.model_adapter import EXTENDED, MODEL
from kvspec.spec.judge import Violation, illegal


class BadProgram(ValueError):
    """A program is no vector: a sound manager may not be asked it, or breaks a clause in it."""


class _Second(Counted):
    """The second manager, with nano-vllm's chain hash."""

    chain_hash = staticmethod(lambda tokens, parent: reference_hash(tokens, parent))


def filler(name: str) -> Implementation:
    """The sound manager of that name: "model", "extended" (the model with the extensions), "counted", or "namespaced".

    The last one is the second manager with namespaces.
    """
    if name in ("model", "extended"):
        return MODEL if name == "model" else EXTENDED
    declaration = NAMESPACED if name == "namespaced" else Counted.declaration
    maker = type("Filler", (_Second,), {"declaration": declaration})
    declaration = replace(declaration, name=name)
    return Implementation(name, declaration, maker, target=name, chain_hash=reference_hash)


def fill(vector: VectorProgram, path: Path) -> None:
    """Run the program and store the trace.  Raises BadProgram."""
    implementation = filler(vector.filled_by)
    lockstep = Lockstep(implementation, vector.program.world)
    first = lockstep.look()
    for number, operation in enumerate(vector.program.operations, 1):
        if reason := illegal(lockstep.state, operation):
            raise BadProgram(f"{vector.slug}: operation {number} may not be asked: {reason}")
        if violation := lockstep.step(operation):
            raise BadProgram(f"{vector.slug}: operation {number} of a sound manager breaks {_spoken(violation)}")
    header = header_of(implementation, vector.program.world, vector.slug, vector.context, snapshot=first)
    write_lockstep(path, header, lockstep, None)


def sound_part(program: Program, filled_by: str) -> Program:
    """What is left of a program without the operations that a scheduler may not ask of the sound manager."""
    lockstep = Lockstep(filler(filled_by), program.world)
    for operation in program.operations:
        if not illegal(lockstep.state, operation):
            lockstep.step(operation)
    return Program(program.world, tuple(lockstep.operations))


def _spoken(violation: Violation) -> str:
    return f"{violation.clause}: {violation.because}"
