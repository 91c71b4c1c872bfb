"""The hardened manager with its extensions as a base."""

from kvspec.impl.adapter import Implementation
from kvspec.impl.hardened import BlockManager
from kvspec.impl.hardened_adapter import hardened_implementation


class Hard(BlockManager):
    """The hardened manager as it is."""

    base, shape = "hardened", "late registration with extensions"

    @classmethod
    def implementation(cls) -> Implementation:
        """The class behind the adapter of the hardened manager."""
        return hardened_implementation(cls)
