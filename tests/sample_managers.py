"""A correct manager and small bad ones, made from the model: what the tests of traces, pictures and reports run on."""

from dataclasses import replace
from typing import Any

from kvspec.conformance.hash_check import reference_hash
from kvspec.impl.adapter import Implementation
from kvspec.spec import model
from kvspec.spec import operations as op
from kvspec.spec.state import Snapshot, World


class ModelManager:
    """The model behind the five operations, in the form that ``--impl`` takes."""

    declaration = model.DECLARATION
    chain_hash = staticmethod(reference_hash)

    def __init__(self, world: World) -> None:
        chain = (lambda tokens, parent: sum(tokens) % 3) if world.weak_hash else reference_hash
        self.model = model.start(world, chain)

    def _do(self, operation: op.Operation) -> Any:
        self.model, outcome = model.perform(self.model, operation)
        return outcome

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        return self._do(op.Admit(sequence, tokens, limit, namespace))

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        return self._do(op.Reserve(sequence, count))

    def commit(self, sequences: tuple[str, ...]) -> op.Outcome:
        return self._do(op.Commit(sequences))

    def append(self, sequence: str, token: int) -> op.Outcome:
        return self._do(op.Append(sequence, token))

    def release(self, sequence: str, cause: op.Cause) -> op.Outcome:
        return self._do(op.Release(sequence, cause))

    def snapshot(self) -> Snapshot:
        return model.snapshot(self.model)


class FreesShared(ModelManager):
    """Gives a released block back although another sequence still holds it."""

    def release(self, sequence: str, cause: op.Cause) -> op.Outcome:
        held = self.model.sequences.get(sequence)
        outcome = super().release(sequence, cause)
        for number in held.table if held else ():
            if self.model.blocks[number].references:
                blocks = list(self.model.blocks)
                blocks[number] = replace(blocks[number], references=0)
                self.model = replace(self.model, blocks=tuple(blocks), free=(*self.model.free, number))
        return outcome


class BlindFreesShared(FreesShared):
    """The same, and it shows nothing of itself."""

    snapshot = None  # type: ignore[assignment]


class StaleIndex(ModelManager):
    """Keeps the index entry of a recycled block and the old key with it, so that other content is hit."""

    snapshot = None  # type: ignore[assignment]

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        before = self.model
        outcome = super().admit(sequence, tokens, limit, namespace)
        if isinstance(outcome, op.Admitted):
            self._keep(before, outcome.table[outcome.cached // before.world.block_size :])
        return outcome

    def _keep(self, before: model.Model, fresh: tuple[int, ...]) -> None:
        blocks, index = list(self.model.blocks), dict(self.model.index)
        for number in fresh:
            old = before.blocks[number]
            if old.key is not None:
                index[old.key] = number
                blocks[number] = replace(blocks[number], key=old.key, tokens=old.tokens)
        self.model = replace(self.model, blocks=tuple(blocks), index=index)


def implementation(manager: type = ModelManager, name: str = "") -> Implementation:
    """`manager` as a loaded implementation that declares what the model declares."""
    named = name or manager.__name__
    return Implementation(
        named, model.DECLARATION, manager, f"tests/sample_managers.py:{named}", chain_hash=reference_hash
    )
