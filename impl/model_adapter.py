"""The functional model of the specification behind the adapter protocol, so that every engine can run it: ``--impl model``."""

import struct
from dataclasses import replace

import xxhash

from kvspec.impl.adapter import Implementation
from kvspec.impl.performing import Performing, PerformingExtensions
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


class ModelAdapter(Performing):
    """One model in one world; the state is immutable, so a copy shares it."""

    def __init__(self, world: World) -> None:
        self.model = model.start(world, weak_hash if world.weak_hash else chain_hash)

    def _perform(self, operation: op.Operation) -> op.Outcome:
        self.model, outcome = model.perform(self.model, operation)
        return outcome

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


class ExtendedModelAdapter(ModelAdapter, PerformingExtensions):
    """The model with its extensions: ``--impl extended``."""


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
