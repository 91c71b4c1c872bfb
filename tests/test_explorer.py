"""The small-world explorer: numbers known, planted faults found by provably shortest programs, honest certificates."""

from dataclasses import replace
from typing import Any

from kvspec.conformance.explorer import SmallWorld, explore
from kvspec.impl.adapter import Implementation
from kvspec.impl.model_adapter import ModelAdapter
from kvspec.spec import model

SMALL = SmallWorld(2, 2, 2, 1, 3)


def planted(kind: type, **declared: Any) -> Implementation:
    """An implementation around an adapter class."""
    return Implementation(kind.__name__, replace(model.DECLARATION, **declared), kind)


def test_exhausts_a_small_world() -> None:
    certificate = explore(planted(ModelAdapter), SMALL).certificate
    assert certificate.exhausted and not certificate.stopped
    assert certificate.states == sum(certificate.levels)
    assert certificate.transitions == sum(certificate.operations.values())


def test_interrupted_run_says_so() -> None:
    certificate = explore(planted(ModelAdapter), SMALL, limit_states=20).certificate
    assert not certificate.exhausted and "limit of 20 states" in certificate.stopped
