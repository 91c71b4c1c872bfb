"""vLLM's chain hashes, which are bytes, as whole numbers."""

from collections.abc import Callable
from typing import Any

from kvspec.impl.nano_vllm.weak_hash import weak_hash as weak_number

_BYTES = 8


class Keys:
    """Numbers for hashes: their first 64 bits.

    `of_hash(bytes)` remembers, so that a chain can be continued from a number.  `group`: bytes at the end of a key of the
    index that name the group of layers.
    """

    def __init__(self, hash_tokens: Callable[..., bytes], hash_function: Callable[[Any], bytes]) -> None:
        self._hash_tokens, self._hash_function = hash_tokens, hash_function
        self._known: dict[int, bytes] = {}

    @staticmethod
    def of(key: bytes) -> int:
        """The number of a hash, with or without its group."""
        return int.from_bytes(key[:_BYTES], "big")

    def chain_hash(self, tokens: tuple[int, ...], prefix: int | None) -> int:
        """The number of the hash of a block of tokens after the block whose number is `prefix`, without a salt."""
        before = None if prefix is None else self._known.get(prefix, prefix.to_bytes(_BYTES, "big", signed=prefix < 0))
        found = self._hash_tokens(self._hash_function, before, tokens, None)
        number = self.of(found)
        self._known[number] = found
        return number


def weak_hash(hashed: tuple[bytes, tuple[int, ...], Any]) -> bytes:
    """In the place of SHA-256 for worlds with a weak hash: five values, for parent, tokens and extra keys."""
    parent, tokens, extra = hashed
    number = weak_number((*tokens, len(repr(extra))), Keys.of(parent))
    return number.to_bytes(_BYTES, "big") * 4
