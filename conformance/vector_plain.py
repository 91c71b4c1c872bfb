"""Vectors that are no programs: chain hashes, a collision, and requests that must be rejected, as plain JSON."""

import json
from pathlib import Path
from typing import Any

from kvspec.conformance.hash_check import reference_hash
from kvspec.conformance.vector_collision import colliding_blocks
from kvspec.impl.encoding import KEY, OPERATION, WORLD
from kvspec.spec import operations as op
from kvspec.spec.state import World

LIMIT = 1 << 20

# Each is hashed alone, after a parent, and as a chain of blocks.
TOKENS: dict[str, tuple[int, ...]] = {
    "zero": (0,),
    "one": (1,),
    "2^31": (2**31,),
    "2^32": (2**32,),
    "2^53 - 1": (2**53 - 1,),
    "2^62": (2**62,),
    "order matters": (1, 0),
    "around 2^31": (2**31 - 1, 2**31),
    "three, less than a stripe": (5, 6, 7),
    "four, one stripe": (5, 6, 7, 8),
    "sixteen": tuple(range(16)),
    "a vocabulary's end, 256": tuple(range(151_643, 151_643 + 256)),
}
PARENTS = (None, 0, 1, 2**63, 2**64 - 1)
CHAINED_SIZES = (1, 2, 16, 256)


def chain_hashes() -> dict[str, Any]:
    """Keys of single blocks, and of chains."""
    return {
        "about": "xxh64, seed 0, over the parent's key (nothing for a first block) and the tokens, each as 8 "
        "little-endian bytes. Keys are decimal text, because not every JSON reader keeps 64 bits.",
        "blocks": [_block(name, tokens, parent) for name, tokens in TOKENS.items() for parent in PARENTS],
        "chains": [_chain(size) for size in CHAINED_SIZES],
    }


def _block(name: str, tokens: tuple[int, ...], parent: int | None) -> dict[str, Any]:
    key = KEY.write(reference_hash(tokens, parent))
    return {"name": name, "parent": None if parent is None else KEY.write(parent), "tokens": list(tokens), "key": key}


def _chain(size: int) -> dict[str, Any]:
    tokens = tuple((7 * place + 3) % 1000 for place in range(3 * size))
    keys: list[int] = []
    for start in range(0, len(tokens), size):
        keys.append(reference_hash(tokens[start : start + size], keys[-1] if keys else None))
    return {"block_size": size, "tokens": list(tokens), "keys": [KEY.write(key) for key in keys]}


def collision() -> dict[str, Any]:
    """Two blocks with one key."""
    one, other = colliding_blocks()
    return {
        "about": "Two different first blocks of 16 tokens below 32,000 with the same key: a key alone proves nothing, "
        "and after either of them equal blocks get equal keys. The program that uses them is xxh64-collision.ndjson.",
        "one": list(one),
        "other": list(other),
        "key": KEY.write(reference_hash(one, None)),
    }


def bad_requests() -> dict[str, Any]:
    """What no scheduler asks: a clear error, and nothing changes."""
    live: list[op.Operation] = [op.Admit("A", (0, 0, 0), LIMIT), op.Commit(("A",))]
    cases: tuple[tuple[str, list[op.Operation], op.Operation], ...] = (
        ("EMPTY-PROMPT", [], op.Admit("A", (), LIMIT)),
        ("REPEATED", live, op.Admit("A", (0, 0, 0), LIMIT)),
        ("UNKNOWN", live, op.Reserve("never", 1)),
        ("UNKNOWN", live, op.Release("never")),
    )
    world = WORLD.write(World(3, 2))
    return {
        "about": "After the operations in 'before' the request must be answered with a clear error, and change nothing; "
        "where it may be harmless, 'released' is right as well, if nothing changes; a manager for an impossible world "
        "must be rejected with a clear error.",
        "requests": [
            {
                "clause": clause,
                "world": world,
                "before": [OPERATION.write(operation) for operation in before],
                "request": OPERATION.write(request),
                "may_be_harmless": isinstance(request, op.Release),
            }
            for clause, before, request in cases
        ],
        "worlds": [
            {"clause": "BAD-POOL", "world": WORLD.write(World(*sizes))} for sizes in ((0, 2), (-1, 2), (3, 0), (3, -1))
        ],
    }


PLAIN = {"chain_hash.json": chain_hashes, "collision.json": collision, "bad_requests.json": bad_requests}


def write_plain(folder: Path) -> None:
    """Write all of them, one case a line."""
    for name, make in PLAIN.items():
        (folder / name).write_text(_pretty(make()), encoding="utf-8")


def _pretty(value: dict[str, Any]) -> str:
    fields = [f"  {json.dumps(name)}: {_lines(entry)}" for name, entry in value.items()]
    return "{\n" + ",\n".join(fields) + "\n}\n"


def _lines(entry: Any) -> str:
    if not isinstance(entry, list) or not entry or not isinstance(entry[0], dict):
        return json.dumps(entry)
    return "[\n" + ",\n".join(f"    {json.dumps(each)}" for each in entry) + "\n  ]"
