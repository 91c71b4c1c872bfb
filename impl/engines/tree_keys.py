"""What a radix tree does not have or does not show: keys for its prefixes, the same in every process, and who goes next."""

from collections.abc import Iterable, Sequence
from hashlib import blake2b

_BYTES = 8


def chain_hash(tokens: tuple[int, ...], prefix: int | None) -> int:
    """The key of a page of tokens after the page whose key is `prefix`."""
    parent = "" if prefix is None else str(prefix)
    return int.from_bytes(blake2b(f"{parent}:{tokens}".encode(), digest_size=_BYTES).digest(), "big")


def root_of(namespace: str | None) -> int | None:
    """What stands for the pages before the first one of a prompt in a namespace."""
    return chain_hash((), None) ^ int.from_bytes(namespace.encode(), "big") if namespace else None


def chained(tokens: Sequence[int], page: int, key: int | None) -> list[int]:
    """The keys of the pages of `tokens`, which follow the page with `key`."""
    keys = []
    for start in range(0, len(tokens), page):
        key = chain_hash(tuple(tokens[start : start + page]), key)
        keys.append(key)
    return keys


def order_of_use(nodes: Iterable[tuple[list[int], float]]) -> tuple[tuple[tuple[int, ...], int], ...]:
    """The nodes of a tree, as pages and time of last use, with the times as ranks: what decides who is evicted next."""
    known = [(tuple(pages), time) for pages, time in nodes]
    ranks = {time: rank for rank, time in enumerate(sorted({time for _, time in known}))}
    return tuple(sorted([(pages, ranks[time]) for pages, time in known]))
