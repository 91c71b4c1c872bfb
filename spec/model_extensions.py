"""What the model does for the extensions; importing this module enters it in the model's table.

Confirmed draft tokens are published with the tokens that are computed next, and a sequence keeps the blocks that rejected
ones had, for the tokens to come.
"""

from dataclasses import replace

from . import model as base
from . import operations as op
from .model import Model

PROFILES = frozenset({"several", "truncate"})


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


def _with(model: Model, name: str, sequence: base.ModelSequence) -> Model:
    return replace(model, sequences={**model.sequences, name: sequence})


base.OPERATIONS |= {op.Extend: _extend, op.Truncate: _truncate}
