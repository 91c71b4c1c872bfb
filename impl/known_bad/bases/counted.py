"""A base with reference counts in one list, free blocks in a queue, and an index that keeps every copy of a block."""

from collections import deque

from kvspec.impl.known_bad.bases.live import Live, check_world, namespace_root, strong_hash, weak_hash
from kvspec.spec import operations as op
from kvspec.spec.declaration import Covers, Declaration
from kvspec.spec.state import Snapshot, World

PROFILES = frozenset({"pool", "prefix", "reuse", "order", "chunked", "one", "collision", "robust"})

DECLARATION = Declaration("counted", PROFILES, covers=Covers.KNOWN, release_in_flight=True)
NAMESPACED = Declaration(
    "counted", PROFILES | {"namespace"}, covers=Covers.KNOWN, release_in_flight=True, namespaces=True
)


class Counted:
    """Direct implementation of the five operations.

    Free blocks keep their content until they are taken from the front of the queue.  A block remembers its key and its
    whole prefix, and a hit is believed only if both agree; so colliding keys and namespaces do no harm.
    """

    base, shape = "counted", "five operations"
    declaration = DECLARATION
    chain_hash = staticmethod(strong_hash)

    def __init__(self, world: World) -> None:
        check_world(world)
        self.world, self.size = world, world.block_size
        self.chain = weak_hash if world.weak_hash else self.chain_hash
        self.free = deque(range(world.blocks))
        self.references = [0] * world.blocks
        self.keys: list[int | None] = [None] * world.blocks
        self.held: list[tuple[str, tuple[int, ...]] | None] = [None] * world.blocks
        self.index: dict[int, list[int]] = {}
        self.live: dict[str, Live] = {}
        self.gone: set[str] = set()

    # The five operations

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        self.check_admission(sequence, tokens)
        if self.blocks_for(len(tokens)) > self.world.blocks:
            return op.Refused(op.Reason.TOO_LARGE)
        hit = self.find(tokens, namespace)
        if self.needed(tokens, hit) > len(self.free):
            return self.refuse(hit)
        live = Live(list(tokens), namespace)
        try:
            self.fill(live, hit)
        except Exception as error:
            return op.Failed(f"{type(error).__name__}: {error}", promised=True)
        live.computed = len(hit) * self.size
        live.reserved = min(limit, len(tokens) - live.computed)
        self.live[sequence] = live
        return op.Admitted(live.computed, live.reserved, tuple(live.table))

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        live = self.known(sequence)
        if self.missing(live, count) > len(self.free):
            return op.Refused()
        try:
            self.grow(live, len(live.table) + self.missing(live, count))
        except Exception as error:
            return op.Failed(f"{type(error).__name__}: {error}", promised=True)
        live.reserved = count
        return op.Reserved(tuple(live.table))

    def commit(self, sequences: tuple[str, ...]) -> op.Outcome:
        for sequence in sequences:
            self.advance(self.known(sequence))
        return op.Committed(tuple(tuple(self.known(sequence).table) for sequence in sequences))

    def append(self, sequence: str, token: int) -> op.Outcome:
        self.known(sequence).tokens.append(token)
        return op.Appended()

    def release(self, sequence: str, cause: str) -> op.Outcome:
        if sequence in self.live or sequence not in self.gone:
            self.give_back(self.known(sequence))
            del self.live[sequence]
            self.gone.add(sequence)
        return op.Released()

    def snapshot(self) -> Snapshot:
        return Snapshot(
            free=tuple(self.free),
            used=tuple(block for block in range(self.world.blocks) if block not in self.free),
            references=tuple(self.references),
            hashes=tuple(self.keys),
            contents=tuple(held[1][-self.size :] if held else () for held in self.held),
            index=tuple(sorted((key, block) for key, blocks in self.index.items() for block in blocks)),
        )

    # Input

    def check_admission(self, sequence: str, tokens: tuple[int, ...]) -> None:
        if not tokens:
            raise ValueError("a prompt needs at least one token")
        if sequence in self.live:
            raise ValueError(f"sequence {sequence} is live already")

    def known(self, sequence: str) -> Live:
        if sequence not in self.live:
            raise ValueError(f"sequence {sequence} was never admitted")
        return self.live[sequence]

    # Room

    def blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.size)

    def needed(self, tokens: tuple[int, ...], hit: list[int]) -> int:
        """Blocks taken from the queue: the new ones, and the hits that are free now."""
        return self.blocks_for(len(tokens)) - sum(self.references[block] > 0 for block in hit)

    def missing(self, live: Live, count: int) -> int:
        return self.blocks_for(len(live.tokens)) - len(live.table)

    def refuse(self, hit: list[int]) -> op.Outcome:
        return op.Refused()

    # Finding

    def find(self, tokens: tuple[int, ...], namespace: str) -> list[int]:
        """The blocks of the longest cached prefix; the block of the last token is never one of them."""
        hit, key = [], self.root(namespace)
        for start in range(0, len(tokens) - self.size, self.size):
            key = self.chain(tokens[start : start + self.size], key)
            block = self.lookup(key, tokens[: start + self.size], namespace)
            if block is None:
                break
            hit.append(block)
        return hit

    def root(self, namespace: str) -> int | None:
        return namespace_root(namespace)

    def lookup(self, key: int, prefix: tuple[int, ...], namespace: str) -> int | None:
        return next((block for block in self.index.get(key, ()) if self.matches(block, prefix, namespace)), None)

    def matches(self, block: int, prefix: tuple[int, ...], namespace: str) -> bool:
        return self.held[block] == (namespace, prefix)

    # Blocks

    def fill(self, live: Live, hit: list[int]) -> None:
        for block in hit:
            self.claim(live, block)
        self.grow(live, self.blocks_for(len(live.tokens)))

    def claim(self, live: Live, block: int) -> None:
        if not self.references[block]:
            self.free.remove(block)
        self.references[block] += 1
        live.table.append(block)

    def grow(self, live: Live, length: int) -> None:
        while len(live.table) < length:
            live.table.append(self.take())

    def take(self) -> int:
        """Recycle the block at the front of the queue."""
        block = self.free.popleft()
        self.forget(block)
        self.references[block] = 1
        return block

    def forget(self, block: int) -> None:
        """What the block held is lost: its index entry goes too."""
        if self.keys[block] is not None:
            self.unlist(self.keys[block], block)
        self.keys[block] = self.held[block] = None

    def unlist(self, key: int | None, block: int) -> None:
        self.index[key].remove(block)  # type: ignore[index]
        if not self.index[key]:  # type: ignore[index]
            del self.index[key]  # type: ignore[arg-type]

    def advance(self, live: Live) -> None:
        """The reserved tokens are computed; the blocks that they fill become findable."""
        first, live.computed, live.reserved = live.computed // self.size, live.computed + live.reserved, 0
        for entry in range(first, live.computed // self.size):
            self.publish(live, entry)

    def publish(self, live: Live, entry: int) -> None:
        block, end = live.table[entry], (entry + 1) * self.size
        key = self.chain(tuple(live.tokens[entry * self.size : end]), self.parent(live, entry))
        self.keys[block], self.held[block] = key, (live.namespace, tuple(live.tokens[:end]))
        self.index.setdefault(key, []).append(block)

    def parent(self, live: Live, entry: int) -> int | None:
        return self.keys[live.table[entry - 1]] if entry else self.root(live.namespace)

    def give_back(self, live: Live) -> None:
        """Drop the references, from the tail, so that the head of the prefix is recycled last."""
        for block in reversed(live.table):
            self.drop(block)

    def drop(self, block: int) -> None:
        self.references[block] -= 1
        if not self.references[block]:
            self.free.append(block)
