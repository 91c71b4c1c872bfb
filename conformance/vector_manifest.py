"""All vectors from their sources, and the manifest: what each of them is, what it exercises, and whom it kills.

``python -m kvspec.conformance.vector_manifest`` writes them again; a test compares every byte.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from kvspec import spec
from kvspec.conformance.hash_check import check_hash
from kvspec.conformance.lockstep import CannotCreate
from kvspec.conformance.program import Program, others_muted, run
from kvspec.conformance.robustness import check_robust
from kvspec.conformance.vector_filling import fill
from kvspec.conformance.vector_plain import write_plain
from kvspec.conformance.vector_programs import FOLDER, VectorProgram, all_programs
from kvspec.impl.adapter import Implementation
from kvspec.impl.known_bad import KNOWN_BAD
from kvspec.spec.clauses import EXTENSIONS

VECTORS_VERSION = 1
MANIFEST = "manifest.json"


def write_vectors(folder: Path) -> None:
    """Fill every program, write the plain ones and the manifest; traces that have no program any more are deleted."""
    programs = all_programs()
    wanted = {folder / place(vector) for vector in programs}
    for old in set(folder.rglob("*.ndjson")) - wanted:
        old.unlink()
    for vector in programs:
        fill(vector, folder / place(vector))
    write_plain(folder)
    manifest = {
        "vectors": VECTORS_VERSION,
        "spec": spec.__version__,
        "traces": traces(folder, programs),
        "plain": plain(folder),
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def place(vector: VectorProgram) -> str:
    """Where the trace of a program lies."""
    return f"{vector.context}/{vector.slug}.ndjson"


def traces(folder: Path, programs: list[VectorProgram]) -> list[dict[str, Any]]:
    """The entries of the traces."""
    managers = {slug: planted.implementation() for slug, planted in KNOWN_BAD.items()}
    return [_trace(folder, vector, managers) for vector in programs]


def _trace(folder: Path, vector: VectorProgram, managers: dict[str, Implementation]) -> dict[str, Any]:
    killed = {slug: KNOWN_BAD[slug].clause for slug in managers if _kills(vector, slug, managers[slug])}
    return {
        "slug": vector.slug,
        "file": place(vector),
        "sha256": digest(folder / place(vector)),
        "context": vector.context,
        "filled_by": vector.filled_by,
        "operations": len(vector.program.operations),
        "clauses": sorted(set(killed.values())),
        "kills": sorted(killed),
    }


def _kills(vector: VectorProgram, slug: str, manager: Implementation) -> bool:
    """Is the manager caught for its clause?"""
    clause, program = KNOWN_BAD[slug].clause, vector.program
    declaration = manager.declaration
    if (vector.context == "namespace" and not declaration.namespaces) or not _accepts(manager, program):
        return False
    if vector.context in EXTENSIONS and vector.context not in declaration.profiles:
        return False
    try:
        _, violation = run(manager, program, others_muted(clause), clause == "NANO-ORDER")
    except CannotCreate:
        return False
    return violation is not None and violation.clause == clause


def _accepts(manager: Implementation, program: Program) -> bool:
    declaration, size = manager.declaration, program.world.block_size
    return size == 1 or declaration.smallest_block_size <= size <= declaration.largest_block_size


def plain(folder: Path) -> list[dict[str, Any]]:
    """The entries of the vectors that are no programs."""
    hashes = sorted(
        slug for slug, each in KNOWN_BAD.items() if each.context == "hash" and check_hash(each.implementation())
    )
    requests = sorted(
        slug
        for slug, each in KNOWN_BAD.items()
        if each.context == "robust" and check_robust(each.implementation())[each.clause]
    )
    killed = {"chain_hash.json": hashes, "bad_requests.json": requests, "collision.json": []}
    return [
        {
            "file": name,
            "sha256": digest(folder / name),
            "clauses": sorted({KNOWN_BAD[slug].clause for slug in slugs}),
            "kills": slugs,
        }
        for name, slugs in killed.items()
    ]


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    write_vectors(FOLDER)
