"""The fingerprint lane: each slot holds one integer, the number of the exact token prefix whose K/V was written there.

It is an attention kernel reduced to its addressing: scatter through the table, gather through the table, compare.
Integers are exact on every machine, so this lane needs no tolerance and no special kernel.  Prefixes are numbered by
``spec.state.Prefixes`` (equal numbers, equal prefixes: no hash that could collide), and a number can be spelled out.
"""

from typing import TYPE_CHECKING

import numpy as np

from kvspec.spec.state import EMPTY, Prefixes

from .engine import Chunk, Run
from .findings import Difference, Findings
from .places import slots_of

if TYPE_CHECKING:
    import torch


class FingerprintPool:
    """A K/V pool of one 64-bit integer a slot; EMPTY marks slots that nobody has written."""

    def __init__(self, slots: int) -> None:
        self.values = np.full(slots, EMPTY, dtype=np.int64)

    def scatter(self, slots: np.ndarray, values: np.ndarray) -> None:
        """Write one value a slot."""
        self.values[slots] = values

    def gather(self, slots: np.ndarray) -> np.ndarray:
        """Read one value a slot."""
        return self.values[slots]


class TorchFingerprintPool(FingerprintPool):
    """The same pool in the memory of a torch device."""

    def __init__(self, slots: int, device: str) -> None:
        import torch

        self._torch, self._device = torch, device
        self.values = torch.full((slots,), EMPTY, dtype=torch.int64, device=device)

    def scatter(self, slots: np.ndarray, values: np.ndarray) -> None:
        self.values[self._index(slots)] = self._index(values)

    def gather(self, slots: np.ndarray) -> np.ndarray:
        return self.values[self._index(slots)].cpu().numpy()

    def _index(self, values: np.ndarray) -> "torch.Tensor":
        return self._torch.as_tensor(values, device=self._device)


def replay(run: Run, device: str | None = None) -> Findings:
    """Write and read the fingerprints of every step: all writes of a step, then all its reads."""
    size = run.world.block_size
    pool = FingerprintPool(run.slots) if device is None else TorchFingerprintPool(run.slots, device)
    prefixes, findings = Prefixes(), Findings()
    for number, chunks in enumerate(run.steps):
        expected = [_prefixes_of(prefixes, chunk) for chunk in chunks]
        for chunk, wanted in zip(chunks, expected, strict=True):
            pool.scatter(slots_of(chunk, size)[chunk.start :], wanted[chunk.start :])
        for chunk, wanted in zip(chunks, expected, strict=True):
            found = pool.gather(slots_of(chunk, size))
            findings.rows += chunk.end
            findings.unequal += int((found != wanted).sum())
            if difference := first_foreign(prefixes, number, chunk, size, wanted, found):
                findings.differences.append(difference)
    return findings


def first_foreign(
    prefixes: Prefixes, step: int, chunk: Chunk, size: int, wanted: np.ndarray, found: np.ndarray
) -> Difference | None:
    """The first position whose slot holds another prefix than its own; `wanted` and `found` have shape [end]."""
    foreign = np.nonzero(wanted != found)[0]
    if not foreign.size:
        return None
    position = int(foreign[0])
    block = chunk.table[position // size]
    prefix = int(found[position])
    held = f"the K/V of {list(prefixes.spell(prefix))}" if prefix != EMPTY else "nothing"
    because = f"the slot holds {held}, not the K/V of {list(chunk.tokens[: position + 1])}"
    slot = block * size + position % size
    return Difference(step, chunk.sequence, chunk.end - 1, position, block, slot, because)


def _prefixes_of(prefixes: Prefixes, chunk: Chunk) -> np.ndarray:
    root = prefixes.child(EMPTY, chunk.namespace)
    return np.asarray(prefixes.extend(root, chunk.tokens), dtype=np.int64)
