"""The dozen array operations of the portable decoder, for NumPy and for torch.

Only operations that IEEE 754 rounds correctly one element at a time (or that are exact): the two libraries, and any
device, must return the same bits.  No matrix product, no reduction, no transcendental function, no square root (torch
does not round it correctly in fp32), no sigmoid-like activation (its bits depend on the length of the tensor).
"""

from typing import Any

import numpy as np

Array = Any  # a NumPy array or a torch tensor of the backend at hand


class NumPyBackend:
    """Arrays on the CPU, without torch."""

    name = "numpy"

    def array(self, values: np.ndarray) -> Array:
        """Take over float32 or integer values."""
        return values

    def numpy(self, values: Array) -> np.ndarray:
        """Hand out as NumPy."""
        return values

    def full(self, shape: tuple[int, ...], value: float) -> Array:
        return np.full(shape, value, dtype=np.float32)

    def where(self, condition: Array, yes: Array, no: float) -> Array:
        return np.where(condition, yes, np.float32(no))

    def at_least(self, values: Array, bound: float) -> Array:
        return np.maximum(values, np.float32(bound))

    def floor(self, values: Array) -> Array:
        return np.floor(values)

    def magnitude(self, values: Array) -> Array:
        return np.abs(values)

    def largest(self, values: Array) -> Array:
        """Maximum over the last axis: exact in any order."""
        return values.max(-1)

    def concatenate(self, parts: list[Array]) -> Array:
        return np.concatenate(parts, -1)

    def stack(self, parts: list[Array]) -> Array:
        return np.concatenate(parts, 0)

    def transpose(self, values: Array, axes: tuple[int, ...]) -> Array:
        return values.transpose(axes)

    def power_of_two(self, exponent: Array) -> Array:
        """2 ** exponent for whole exponents in -126 .. 127, made from the bits of the number: exact."""
        return ((exponent.astype(np.int32) + 127) << 23).view(np.float32)


class TorchBackend:
    """Tensors on one device."""

    def __init__(self, device: str = "cpu") -> None:
        import torch

        self.torch, self.device, self.name = torch, device, f"torch-{device}"

    def array(self, values: np.ndarray) -> Array:
        return self.torch.as_tensor(values, device=self.device)

    def numpy(self, values: Array) -> np.ndarray:
        return values.cpu().numpy()

    def full(self, shape: tuple[int, ...], value: float) -> Array:
        return self.torch.full(shape, value, dtype=self.torch.float32, device=self.device)

    def where(self, condition: Array, yes: Array, no: float) -> Array:
        return self.torch.where(condition, yes, no)

    def at_least(self, values: Array, bound: float) -> Array:
        return values.clamp(min=bound)

    def floor(self, values: Array) -> Array:
        return values.floor()

    def magnitude(self, values: Array) -> Array:
        return values.abs()

    def largest(self, values: Array) -> Array:
        return values.amax(-1)

    def concatenate(self, parts: list[Array]) -> Array:
        return self.torch.cat(parts, -1)

    def stack(self, parts: list[Array]) -> Array:
        return self.torch.cat(parts, 0)

    def transpose(self, values: Array, axes: tuple[int, ...]) -> Array:
        return values.permute(axes)

    def power_of_two(self, exponent: Array) -> Array:
        return ((exponent.to(self.torch.int32) + 127) << 23).view(self.torch.float32)
