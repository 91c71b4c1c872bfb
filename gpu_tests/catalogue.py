"""Which lanes there are, with what is installed here."""

import functools
from typing import Protocol

from . import fingerprint
from .backends import NumPyBackend, TorchBackend
from .decoder import Decoder, Shape
from .engine import Run
from .findings import Findings
from .installed import TORCH, device
from .lanes import AttentionLane, tolerance
from .ordinary import OrdinaryFlex, OrdinaryNumPy, OrdinaryTorch
from .portable import Portable
from .provenance import ProvenanceLane


class Lane(Protocol):
    """Anything that can say whether a recorded run hits right."""

    name: str

    def replay(self, run: Run) -> Findings:
        """All differences that this lane sees."""


class FingerprintLane:
    """The fingerprint lane under a name."""

    name = "fingerprint"

    def replay(self, run: Run) -> Findings:
        return fingerprint.replay(run)


@functools.cache
def exact_lanes() -> tuple[Lane, ...]:
    """Lanes without a tolerance; they gate."""
    kernels = ["numpy fp32", *(["torch bfloat16"] if TORCH else [])]
    provenance = [ProvenanceLane(ordinary(kind)) for kind in kernels]
    return (FingerprintLane(), AttentionLane(portable("numpy")), *provenance)


@functools.cache
def one_layer_lane() -> Lane:
    """Exact, but blind to an unchained hash where the block sits at the same index; it is here to show that."""
    return AttentionLane(portable("numpy", layers=1))


@functools.cache
def tolerance_lanes() -> tuple[AttentionLane, ...]:
    """Ordinary kernels, each within four of its own noise floors; the one without a bias is blind to a permuted hit."""
    kind = "torch float32" if TORCH else "numpy fp32"
    decoders = [ordinary(kind), ordinary(kind, bias=False)] + ([ordinary("torch bfloat16")] if TORCH else [])
    return tuple(AttentionLane(decoder, tolerance(decoder)) for decoder in decoders)


@functools.cache
def ordinary(kind: str, bias: bool = True) -> Decoder:
    """The decoder with ordinary kernels: "numpy fp32", "torch float32", "torch bfloat16" or "flex float32"."""
    library, dtype = kind.split()
    if library == "numpy":
        return Decoder(OrdinaryNumPy(), Shape(bias=bias))
    arithmetic = (OrdinaryFlex if library == "flex" else OrdinaryTorch)(dtype, device())
    return Decoder(arithmetic, Shape(bias=bias))


@functools.cache
def portable(backend: str, layers: int = 2, bias: bool = True) -> Decoder:
    """The portable decoder on "numpy" or "torch"."""
    arithmetic = Portable(NumPyBackend() if backend == "numpy" else TorchBackend(device()))
    return Decoder(arithmetic, Shape(layers=layers, bias=bias))
