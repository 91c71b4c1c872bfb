"""The functional model of the specification behind the adapter protocol, so that every engine can run it: ``--impl model``."""

import struct
from dataclasses import replace

import xxhash

from kvspec.impl.adapter import Implementation
from kvspec.spec import model, model_extensions
from kvspec.spec import operations as op
from kvspec.spec.namespaces import AXES
from kvspec.spec.state import Snapshot, World


def chain_hash(tokens: tuple[int, ...], prefix: int | None) -> int:
    """nano-vllm's chain hash: xxh64 over the parent hash and the tokens, each as 8 little-endian bytes."""
    head = b"" if prefix is None else struct.pack("<Q", prefix)
    return xxhash.xxh64_intdigest(head + struct.pack(f"<{len(tokens)}q", *tokens))


def weak_hash(tokens: tuple[int, ...], prefix: int | None) -> int:
    """A chain hash with three values."""
    return (sum(tokens) + len(tokens) * (prefix or 0)) % 3


class ModelAdapter:
    """One model in one world; the state is immutable, so a copy shares it."""

    def __init__(self, world: World) -> None:
        self.model = model.start(world, weak_hash if world.weak_hash else chain_hash)

    def _perform(self, operation: op.Operation) -> op.Outcome:
        self.model, outcome = model.perform(self.model, operation)
        return outcome

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        """See ``impl.adapter.Adapter``."""
        return self._perform(op.Admit(sequence, tokens, limit, namespace))

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        """See ``impl.adapter.Adapter``."""
        return self._perform(op.Reserve(sequence, count))

    def commit(self, sequences: tuple[str, ...]) -> op.Outcome:
        """See ``impl.adapter.Adapter``."""
        return self._perform(op.Commit(sequences))

    def append(self, sequence: str, token: int) -> op.Outcome:
        """See ``impl.adapter.Adapter``."""
        return self._perform(op.Append(sequence, token))

    def release(self, sequence: str, cause: str) -> op.Outcome:
        """See ``impl.adapter.Adapter``."""
        return self._perform(op.Release(sequence, op.Cause(cause)))

    def snapshot(self) -> Snapshot:
        """Everything."""
        return model.snapshot(self.model)

    def copy(self) -> "ModelAdapter":
        """An independent adapter in the same state."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other


MODEL = Implementation(
    "model",
    model.DECLARATION,
    ModelAdapter,
    target="model",
    source="spec/model.py",
    shape="functional",
    chain_hash=chain_hash,
)


class ExtendedModelAdapter(ModelAdapter):
    """The model with its extensions: ``--impl extended``."""

    def extend(self, sequence: str, tokens: tuple[int, ...], drafts: bool) -> op.Outcome:
        """Several tokens join."""
        return self._perform(op.Extend(sequence, tokens, drafts))

    def truncate(self, sequence: str, length: int) -> op.Outcome:
        """Draft tokens are rejected or confirmed."""
        return self._perform(op.Truncate(sequence, length))

    def reset(self) -> op.Outcome:
        """The cache is emptied."""
        return self._perform(op.Reset())

    def probe(self, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        """What would an admission get?"""
        return self._perform(op.Probe(tokens, limit, namespace))

    def retain(self, sequence: str, owner: str) -> op.Outcome:
        """An owner outside keeps the computed blocks."""
        return self._perform(op.Retain(sequence, owner))

    def drop(self, owner: str) -> op.Outcome:
        """The owner lets go."""
        return self._perform(op.Drop(owner))


EXTENDED = replace(
    MODEL,
    name="extended",
    declaration=replace(
        model.DECLARATION,
        name="extended",
        profiles=model.DECLARATION.profiles | model_extensions.PROFILES,
        namespaces=True,
        namespace_axes=frozenset(AXES),
    ),
    create=ExtendedModelAdapter,
    target="extended",
    source="spec/model_extensions.py",
)
