"""Pure functions of the specification, as contracts that CrossHair exhausts: all paths, within the stated bounds.

The functions under contract are the executed ones (``judge``, ``model``).  The chain hash is a pure one, because
CrossHair must not look into C code: with numpy or a C hash it has confirmed false statements.  Numbers are plain
integers and sizes are small, for then it can finish.  ``rounding_down_is_enough`` is false; a run that does not refute
it proves nothing.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from .. import judge, model
from .. import operations as op
from ..state import World

_SECONDS = 120.0  # for each contract; each needs a few, on a busy machine more
_HANGS_AFTER = 600


def chain(tokens: Iterable[int], parent: int | None) -> int:
    """A pure chain hash, injective for the tokens 0 and 1: a prefix read as a number in base 3."""
    key = 0 if parent is None else parent
    for token in tokens:
        key = 3 * key + token + 1
    return key


def little_endian(*values: int) -> tuple[int, ...]:
    """The bytes that are hashed: each value as 8 bytes, the lowest first."""
    found = []
    for value in values:
        for _ in range(8):
            found.append(value % 256)
            value //= 256
    return tuple(found)


def rounding_is_exact(tokens: int, size: int) -> bool:
    """
    pre: 1 <= size <= 8 and 1 <= tokens <= 64
    post: _
    """
    world = SimpleNamespace(world=World(9, size))
    blocks = judge.blocks_for(world, tokens)  # type: ignore[arg-type]
    return blocks == model._blocks_for(world, tokens) and (blocks - 1) * size < tokens <= blocks * size  # type: ignore[arg-type]


def a_block_joins_at_the_boundary(tokens: int, size: int) -> bool:
    """
    pre: 1 <= size <= 3 and 1 <= tokens <= 6
    post: _
    """
    held = -(-tokens // size)
    sequence = model.ModelSequence((0,) * tokens, tuple(range(held)), tokens, 0)
    manager = replace(model.start(World(9, size), chain), free=tuple(range(held, 9)), sequences={"a": sequence})
    longer, _ = model.perform(manager, op.Append("a", 1))
    _, answer = model.perform(longer, op.Reserve("a", 1))
    assert isinstance(answer, op.Reserved)
    return len(answer.table) - held == (1 if tokens % size == 0 else 0)


def room_is_counted_right(hits: int, first_in_use: int, second_in_use: int, tokens: int) -> bool:
    """
    pre: 0 <= hits <= 2 and 1 <= tokens <= 4
    pre: 0 <= first_in_use <= 1 and 0 <= second_in_use <= 1
    post: _
    """
    in_use = (first_in_use, second_in_use, 0)
    manager = _pool_of_three(hits, in_use)
    usable = min(hits, tokens - 1)
    after, answer = model.perform(manager, op.Admit("a", (0,) * tokens, tokens))
    fits = tokens - sum(in_use[:usable]) <= in_use.count(0)
    if not fits:
        return after is manager and isinstance(answer, op.Refused)
    return isinstance(answer, op.Admitted) and len(after.free) == in_use.count(0) - (tokens - sum(in_use[:usable]))


def _pool_of_three(hits: int, in_use: tuple[int, ...]) -> model.Model:
    """Block size 1; block i holds the prefix of i + 1 zeros; the first `hits` are findable."""
    keys = (1, 4, 13)
    blocks = tuple(model.ModelBlock(in_use[i], keys[i], (0,)) for i in range(3))
    free = tuple(i for i in range(3) if in_use[i] == 0)
    return replace(model.start(World(3, 1), chain), blocks=blocks, free=free, index={keys[i]: i for i in range(hits)})


def the_hit_is_the_longest_chain(first: int, second: int, key: int, other_key: int, other_tokens: int) -> bool:
    """
    pre: 0 <= first <= 1 and 0 <= second <= 1 and 0 <= other_tokens <= 1
    pre: 1 <= key <= 8 and 1 <= other_key <= 8 and key != other_key
    post: _
    """
    blocks = (model.ModelBlock(0, key, ((key - 1) % 3,)), model.ModelBlock(0, other_key, (other_tokens,)))
    manager = replace(model.start(World(2, 1), chain), blocks=blocks, index={key: 0, other_key: 1})
    longest: list[int] = []
    for wanted, token in ((first + 1, first), (3 * (first + 1) + second + 1, second)):
        found = [block for block in (0, 1) if blocks[block].key == wanted and blocks[block].tokens == (token,)]
        if not found:
            break
        longest += found
    return model.cached_prefix(manager, (first, second, 0)) == tuple(longest)


def hashed_bytes_tell_apart(parent: int, token: int, other_parent: int, other_token: int) -> bool:
    """
    pre: 0 <= parent < 2**64 and 0 <= token < 2**64 and 0 <= other_parent < 2**64 and 0 <= other_token < 2**64
    post: _
    """
    same = little_endian(parent, token) == little_endian(other_parent, other_token)
    return same == (parent == other_parent and token == other_token)


def rounding_down_is_enough(tokens: int, size: int) -> bool:
    """
    pre: 1 <= size <= 8 and 1 <= tokens <= 64
    post: _
    """
    return tokens // size * size >= tokens


@dataclass(frozen=True)
class Contract:
    """A function that must return True within its preconditions: what that says, of which clause, in which bounds."""

    check: Callable[..., bool]
    sentence: str
    clause: str
    bound: str


CONTRACTS: tuple[Contract, ...] = (
    Contract(rounding_is_exact, "rounding to blocks is exact", "COVERS", "64 tokens, block size 8"),
    Contract(
        a_block_joins_at_the_boundary, "append takes a block exactly at a boundary", "COVERS", "6 tokens, block size 3"
    ),
    Contract(
        room_is_counted_right,
        "admit agrees exactly if it fits, else changes nothing",
        "NO-MEANS-NO",
        "3 blocks, 4 tokens",
    ),
    Contract(the_hit_is_the_longest_chain, "the hit is the longest cached prefix", "NO-LOST-HIT", "2 blocks, 3 tokens"),
    Contract(
        hashed_bytes_tell_apart,
        "different blocks are hashed as different bytes",
        "HASH-BYTES",
        "64-bit values, one token",
    ),
)
FALSEHOOD = Contract(
    rounding_down_is_enough, "rounding down leaves room (planted falsehood)", "", "64 tokens, block size 8"
)


def exhaust(seconds: float = _SECONDS, only: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Analyse the contracts (or `only` those named) in a process of its own, and the falsehood in any case.

    One dictionary each: `name`, `state`, `message`, `seconds`.

    Raises RuntimeError if the process fails, ModuleNotFoundError without crosshair-tool.
    """
    import crosshair  # noqa: F401

    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", __name__, str(seconds), *only]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_HANGS_AFTER, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"CrossHair failed: {done.stderr.strip()[-500:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def _analyse(contract: Contract, seconds: float) -> dict[str, Any]:
    import time

    from crosshair.core_and_libs import analyze_function, run_checkables
    from crosshair.options import AnalysisKind, AnalysisOptionSet

    options = AnalysisOptionSet(analysis_kind=[AnalysisKind.PEP316], per_condition_timeout=seconds, report_all=True)
    begun = time.process_time()
    messages = run_checkables(analyze_function(contract.check, options))
    worst = max(messages, key=lambda message: message.state.name != "CONFIRMED", default=None)
    state, message = (worst.state.name, worst.message) if worst else ("NOTHING", "CrossHair said nothing")
    return {"name": contract.check.__name__, "state": state, "message": message, "seconds": time.process_time() - begun}


def main() -> None:
    """Print one JSON object a contract.  Arguments: the limit in seconds for each, then names (default: all)."""
    seconds, *only = sys.argv[1:]
    # CrossHair looks for directives in the parent packages, and stumbles over `kvspec`, which has no folder.
    sys.modules[rounding_is_exact.__module__].__package__ = None
    for contract in (*CONTRACTS, FALSEHOOD):
        if not only or contract.check.__name__ in (*only, FALSEHOOD.check.__name__):
            print(json.dumps(_analyse(contract, float(seconds))), flush=True)


if __name__ == "__main__":
    main()
