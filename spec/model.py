"""A deterministic manager as pure functions: it chooses what nano-vllm would choose.

It fills the vectors, and managers that declare nano-vllm's order are compared with it block for block.  Free blocks form
a queue: taken at the front, given back at the end, tail of a sequence first.  The last writer of a key owns its index
entry.  Unlike nano-vllm it counts the blocks that a sequence needs, so that block size 1 works, and it tells a prompt
that never fits from a pool that is full.  What it does for the extensions is in ``model_extensions``.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from . import operations as op
from .declaration import Covers, Declaration
from .state import Snapshot, World

Chain = Callable[[tuple[int, ...], int | None], int]

DECLARATION = Declaration(
    name="model",
    profiles=frozenset({"pool", "prefix", "order", "chunked", "one"}),
    covers=Covers.KNOWN,
    release_in_flight=True,
    nano_vllm_order=True,
)


@dataclass(frozen=True, slots=True)
class ModelBlock:
    """Reference count, stored key (None if there is none) and the tokens under it."""

    references: int = 0
    key: int | None = None
    tokens: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelSequence:
    """Tokens, block table, computed and reserved tokens, how many of the last are drafts, the key before the first block."""

    tokens: tuple[int, ...]
    table: tuple[int, ...]
    computed: int
    reserved: int
    drafts: int = 0
    root: int | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """The whole manager; every operation returns a new one."""

    world: World
    chain: Chain
    blocks: tuple[ModelBlock, ...]
    free: tuple[int, ...]
    index: dict[int, int] = field(default_factory=dict)
    sequences: dict[str, ModelSequence] = field(default_factory=dict)
    owners: dict[str, tuple[int, ...]] = field(default_factory=dict)


def start(world: World, chain: Chain) -> Model:
    """A manager whose blocks are all free; `chain(tokens, parent key or None)` is its chain hash."""
    return Model(world, chain, (ModelBlock(),) * world.blocks, tuple(range(world.blocks)))


def perform(model: Model, operation: op.Operation) -> tuple[Model, op.Outcome]:
    """The next manager and its answer.  Raises KeyError if the operation names a sequence that is not live."""
    return OPERATIONS[type(operation)](model, operation)


def snapshot(model: Model) -> Snapshot:
    """Everything the manager can show."""
    held = [block.references > 0 for block in model.blocks]
    return Snapshot(
        free=model.free,
        used=tuple(number for number, used in enumerate(held) if used),
        references=tuple(block.references for block in model.blocks),
        hashes=tuple(block.key for block in model.blocks),
        contents=tuple(block.tokens for block in model.blocks),
        index=tuple(sorted(model.index.items())),
    )


def difference(model: Model, expected: op.Outcome, outcome: op.Outcome, shown: Snapshot | None) -> str | None:
    """How a manager's answer or state differs from the model's after the same operation, or None.

    A refusal is compared as such: the reason is the model's own.
    """
    refused = isinstance(expected, op.Refused) and isinstance(outcome, op.Refused)
    # NANO-ORDER: a manager that declares nano-vllm's order does what the model does, block for block
    if outcome != expected and not refused:
        return f"the answer was {outcome}, the model's is {expected}"
    mine = snapshot(model)
    for name in Snapshot.__slots__ if shown else ():
        theirs, wanted = getattr(shown, name), getattr(mine, name)
        if theirs is not None and wanted is not None and sorted_if_set(name, theirs) != wanted:
            return f"{name} is {list(theirs)}, the model's is {list(wanted)}"
    return None


def sorted_if_set(name: str, entries: tuple[Any, ...]) -> tuple[Any, ...]:
    """Used blocks and index entries have no order."""
    return tuple(sorted(entries)) if name in ("used", "index") else entries


def root_key(namespace: str) -> int | None:
    """What is chained to a first block as its parent's key: nothing without a namespace."""
    digest = hashlib.blake2b(namespace.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") if namespace else None


def cached_prefix(model: Model, tokens: tuple[int, ...], root: int | None = None) -> tuple[int, ...]:
    """The blocks of the longest cached prefix; the block that holds the last token is never one of them."""
    size, key, hit = model.world.block_size, root, []
    for start_of_block in range(0, len(tokens) - size, size):
        part = tokens[start_of_block : start_of_block + size]
        key = model.chain(part, key)
        block = model.index.get(key)
        if block is None or model.blocks[block].tokens != part:
            break
        hit.append(block)
    return tuple(hit)


def _admit(model: Model, operation: op.Admit) -> tuple[Model, op.Outcome]:
    root = root_key(operation.namespace)
    hit = cached_prefix(model, operation.tokens, root)
    needed = _blocks_for(model, len(operation.tokens))
    if needed > model.world.blocks:
        return model, op.Refused(op.Reason.TOO_LARGE)
    if needed - sum(model.blocks[block].references > 0 for block in hit) > len(model.free):
        return model, op.Refused(op.Reason.NO_SPACE)
    for block in hit:
        model = claim(model, block)
    model, fresh = _take(model, needed - len(hit))
    cached = len(hit) * model.world.block_size
    reserved = min(operation.limit, len(operation.tokens) - cached)
    sequence = ModelSequence(operation.tokens, hit + fresh, cached, reserved, root=root)
    return _with(model, operation.sequence, sequence), op.Admitted(cached, reserved, sequence.table)


def _reserve(model: Model, operation: op.Reserve) -> tuple[Model, op.Outcome]:
    sequence = model.sequences[operation.sequence]
    needed = max(0, _blocks_for(model, len(sequence.tokens)) - len(sequence.table))
    if needed > len(model.free):
        return model, op.Refused(op.Reason.NO_SPACE)
    model, fresh = _take(model, needed)
    sequence = replace(sequence, table=sequence.table + fresh, reserved=operation.count)
    return _with(model, operation.sequence, sequence), op.Reserved(sequence.table)


def _commit(model: Model, operation: op.Commit) -> tuple[Model, op.Outcome]:
    for name in operation.sequences:
        sequence = model.sequences[name]
        end = sequence.computed + sequence.reserved
        full = min(end, len(sequence.tokens) - sequence.drafts) // model.world.block_size
        for entry in range(_first_unpublished(model, sequence), full):
            model = _publish(model, sequence, entry)
        model = _with(model, name, replace(sequence, computed=end, reserved=0))
    return model, op.Committed(tuple(model.sequences[name].table for name in operation.sequences))


def _append(model: Model, operation: op.Append) -> tuple[Model, op.Outcome]:
    sequence = model.sequences[operation.sequence]
    longer = replace(sequence, tokens=(*sequence.tokens, operation.token))
    return _with(model, operation.sequence, longer), op.Appended()


def _release(model: Model, operation: op.Release) -> tuple[Model, op.Outcome]:
    sequences = dict(model.sequences)
    sequence = sequences.pop(operation.sequence, None)
    model = give_back(model, sequence.table if sequence else ())
    return replace(model, sequences=sequences), op.Released()


def give_back(model: Model, table: tuple[int, ...]) -> Model:
    """One reference less to each block of a table, from its tail; a block without any is free."""
    for block in reversed(table):
        left = model.blocks[block].references - 1
        model = _set(model, block, replace(model.blocks[block], references=left))
        model = model if left else replace(model, free=(*model.free, block))
    return model


OPERATIONS: dict[type, Callable[..., tuple[Model, op.Outcome]]] = {
    op.Admit: _admit,
    op.Reserve: _reserve,
    op.Commit: _commit,
    op.Append: _append,
    op.Release: _release,
}


def _take(model: Model, count: int) -> tuple[Model, tuple[int, ...]]:
    """Recycle the blocks at the front of the queue; each loses its index entry if that still names it."""
    taken = model.free[:count]
    index = dict(model.index)
    for block in taken:
        key = model.blocks[block].key
        if key is not None and index.get(key) == block:
            del index[key]
        model = _set(model, block, ModelBlock(references=1))
    return replace(model, free=model.free[count:], index=index), taken


def claim(model: Model, block: int) -> Model:
    """Share a block, free or not; it keeps its key and tokens."""
    references = model.blocks[block].references + 1
    free = tuple(other for other in model.free if other != block)
    return replace(_set(model, block, replace(model.blocks[block], references=references)), free=free)


def _first_unpublished(model: Model, sequence: ModelSequence) -> int:
    """The entry that is published next: confirmed draft tokens may have been computed before."""
    entry = sequence.computed // model.world.block_size
    while entry and model.blocks[sequence.table[entry - 1]].key is None:
        entry -= 1
    return entry


def _publish(model: Model, sequence: ModelSequence, entry: int) -> Model:
    """Store key and tokens of a block that is now computed; the last writer owns the index entry."""
    size = model.world.block_size
    parent = model.blocks[sequence.table[entry - 1]].key if entry else sequence.root
    tokens = sequence.tokens[entry * size : (entry + 1) * size]
    key, block = model.chain(tokens, parent), sequence.table[entry]
    published = _set(model, block, replace(model.blocks[block], key=key, tokens=tokens))
    return replace(published, index={**model.index, key: block})


def _set(model: Model, number: int, block: ModelBlock) -> Model:
    return replace(model, blocks=(*model.blocks[:number], block, *model.blocks[number + 1 :]))


def _with(model: Model, name: str, sequence: ModelSequence) -> Model:
    return replace(model, sequences={**model.sequences, name: sequence})


def _blocks_for(model: Model, tokens: int) -> int:
    return -(-tokens // model.world.block_size)
