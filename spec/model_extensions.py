"""What the model does for the extensions; importing this module enters it in the model's table.

Confirmed draft tokens are published with the tokens that are computed next, and a sequence keeps the blocks that rejected
ones had, for the tokens to come.
"""

from dataclasses import replace

from . import model as base
from . import operations as op
from .model import Model, ModelBlock

PROFILES = frozenset({"several", "truncate", "reset", "probe", "owners", "axes", "namespace"})


def _extend(model: Model, operation: op.Extend) -> tuple[Model, op.Outcome]:
    sequence = model.sequences[operation.sequence]
    drafts = len(operation.tokens) if operation.drafts else 0
    longer = replace(sequence, tokens=sequence.tokens + operation.tokens, drafts=drafts)
    return _with(model, operation.sequence, longer), op.Extended()


def _truncate(model: Model, operation: op.Truncate) -> tuple[Model, op.Outcome]:
    sequence = model.sequences[operation.sequence]
    computed = min(sequence.computed, operation.length)
    shorter = replace(sequence, tokens=sequence.tokens[: operation.length], computed=computed, drafts=0)
    return _with(model, operation.sequence, shorter), op.Truncated(computed, sequence.table)


def _reset(model: Model, operation: op.Reset) -> tuple[Model, op.Outcome]:
    """Only while nobody holds a block: then all are empty, and free in the order in which they were."""
    if model.sequences or model.owners:
        return model, op.Refused(op.Reason.IN_USE)
    return replace(model, blocks=(ModelBlock(),) * model.world.blocks, index={}), op.WasReset()


def _probe(model: Model, operation: op.Probe) -> tuple[Model, op.Outcome]:
    """What an admission would be told; nothing can change, because it is another model that admits."""
    root = base.root_key(operation.namespace)
    cached = len(base.cached_prefix(model, operation.tokens, root)) * model.world.block_size
    admit = op.Admit("", operation.tokens, operation.limit, operation.namespace)
    return model, op.Probed(cached, isinstance(base.perform(model, admit)[1], op.Admitted))


def _retain(model: Model, operation: op.Retain) -> tuple[Model, op.Outcome]:
    """An owner holds references like a sequence does."""
    sequence = model.sequences[operation.sequence]
    kept = sequence.table[: min(sequence.computed, len(sequence.tokens) - sequence.drafts) // model.world.block_size]
    for block in kept:
        model = base.claim(model, block)
    return replace(model, owners={**model.owners, operation.owner: kept}), op.Retained(kept)


def _drop(model: Model, operation: op.Drop) -> tuple[Model, op.Outcome]:
    owners = dict(model.owners)
    return replace(base.give_back(model, owners.pop(operation.owner)), owners=owners), op.Dropped()


def _with(model: Model, name: str, sequence: base.ModelSequence) -> Model:
    return replace(model, sequences={**model.sequences, name: sequence})


base.OPERATIONS |= {
    op.Extend: _extend,
    op.Truncate: _truncate,
    op.Reset: _reset,
    op.Probe: _probe,
    op.Retain: _retain,
    op.Drop: _drop,
}
