"""The source of the vectors: ``vectors/programs.txt``, one program a line.

A line is ``slug context filled-by program``; the program is written as in ``kvspec.impl.known_bad.notation``.  A line may
be added; a slug that was used is never used for anything else.
"""

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.program import Program
from kvspec.conformance.vector_collision import collision_operations
from kvspec.impl.known_bad.notation import read, write
from kvspec.spec.state import World

FOLDER = Path(str(files("kvspec.conformance"))) / "vectors"
SOURCE = FOLDER / "programs.txt"


@dataclass(frozen=True, slots=True)
class VectorProgram:
    """`context`: where its clauses count.  `filled_by`: whose answers are stored (see ``vector_filling``)."""

    slug: str
    context: str
    filled_by: str
    program: Program


def read_programs(text: str) -> list[VectorProgram]:
    """The programs of a source text.  Raises ValueError for a slug that is used twice, or an unknown context."""
    found: dict[str, VectorProgram] = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            vector = _parse(line)
            if vector.slug in found or vector.context not in CONTEXTS:
                raise ValueError(f"vector {vector.slug}: the slug is used twice, or the context is unknown")
            found[vector.slug] = vector
    return list(found.values())


def all_programs() -> list[VectorProgram]:
    """Those of the source file, and the one that takes tokens which were computed."""
    collision = Program(World(blocks=6, block_size=16), collision_operations())
    return [
        *read_programs(SOURCE.read_text(encoding="utf-8")),
        VectorProgram("xxh64-collision", "collision", "counted", collision),
    ]


def line_of(vector: VectorProgram) -> str:
    """The line of a program."""
    program = write(vector.program.world, vector.program.operations)
    return f"{vector.slug} {vector.context} {vector.filled_by} {program}"


def _parse(line: str) -> VectorProgram:
    slug, context, filled_by, text = line.split(maxsplit=3)
    example = read(text)
    return VectorProgram(slug, context, filled_by, Program(example.world, example.operations))
