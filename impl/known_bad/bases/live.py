"""What every base knows of a live sequence, and the checks on input that they share."""

from dataclasses import dataclass, field

from kvspec.spec.state import World


@dataclass(slots=True)
class Live:
    """Tokens, namespace, block table, how many tokens are computed and reserved, and with how many it was admitted."""

    tokens: list[int]
    namespace: str = ""
    table: list[int] = field(default_factory=list)
    computed: int = 0
    reserved: int = 0
    admitted: int = 0


def check_world(world: World) -> None:
    """Raises ValueError for a pool that cannot exist."""
    if world.blocks < 1 or world.block_size < 1:
        raise ValueError(f"a pool of {world.blocks} blocks of {world.block_size} tokens cannot exist")


NO_PARENT = -1  # hash(None) differs from process to process before Python 3.12


def weak_hash(tokens: tuple[int, ...], parent: int | None) -> int:
    """A chain hash with three values, so that different prefixes meet under one key."""
    return sum(tokens) % 3


def strong_hash(tokens: tuple[int, ...], parent: int | None) -> int:
    """A chain hash without collisions in practice, equal in every process."""
    return hash((NO_PARENT if parent is None else parent, tokens))


def namespace_root(namespace: str) -> int | None:
    """The parent key of a first block: none in the default namespace."""
    return int.from_bytes(namespace.encode()) if namespace else None
