"""Managers with one planted fault each, as in the table of ``README.md``; every fault is one overridden method.

They are here, and not only among the known-bad managers of ``impl``, because a matrix needs one base that all faults
share: what a lane sees then differs by the fault alone.
"""

import hashlib
from collections import deque
from dataclasses import dataclass, field

from kvspec.impl.adapter import Implementation
from kvspec.spec import operations as op
from kvspec.spec.declaration import Declaration
from kvspec.spec.state import World


@dataclass(slots=True)
class Block:
    """Reference count, key under which it was published (None: never), and the tokens under that key."""

    references: int = 0
    key: int | None = None
    tokens: tuple[int, ...] = ()


@dataclass(slots=True)
class Sequence:
    """Tokens, block table, computed and reserved tokens, and the key of each published block."""

    tokens: tuple[int, ...]
    table: list[int]
    computed: int
    reserved: int
    keys: list[int] = field(default_factory=list)


class Correct:
    """A manager shaped like nano-vllm's, in which each step that a fault changes is one short method."""

    check_tokens = True

    def __init__(self, world: World) -> None:
        self.size = world.block_size
        self.blocks = [Block() for _ in range(world.blocks)]
        self.free = deque(range(world.blocks))
        self.index: dict[int, int] = {}
        self.sequences: dict[str, Sequence] = {}

    # The five operations

    def admit(self, name: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        hit, needed = self.lookup(tokens), -(-len(tokens) // self.size)
        if needed - sum(self.blocks[block].references > 0 for block in hit) > len(self.free):
            return op.Refused(op.Reason.TOO_LARGE if needed > len(self.blocks) else op.Reason.NO_SPACE)
        for block in hit:
            self.claim(block)
        table = self.arrange(hit) + [self.take() for _ in range(needed - len(hit))]
        cached = self.cached_tokens(len(hit), len(tokens))
        sequence = Sequence(tokens, table, cached, min(limit, len(tokens) - cached))
        sequence.keys = self.chain(tokens, cached // self.size)
        self.sequences[name] = sequence
        self.planned(sequence)
        return op.Admitted(cached, sequence.reserved, tuple(table))

    def reserve(self, name: str, count: int) -> op.Outcome:
        sequence = self.sequences[name]
        needed = -(-len(sequence.tokens) // self.size) - len(sequence.table)
        if needed > len(self.free):
            return op.Refused()
        sequence.table += [self.take() for _ in range(needed)]
        sequence.reserved = count
        self.planned(sequence)
        return op.Reserved(tuple(sequence.table))

    def commit(self, names: tuple[str, ...]) -> op.Outcome:
        for name in names:
            sequence = self.sequences[name]
            start, end = sequence.computed, sequence.computed + sequence.reserved
            sequence.computed, sequence.reserved = end, 0
            self.publish(sequence, self.publishable(start, end, sequence))
        return op.Committed(tuple(tuple(self.sequences[name].table) for name in names))

    def append(self, name: str, token: int) -> op.Outcome:
        self.sequences[name].tokens += (token,)
        return op.Appended()

    def release(self, name: str, cause: str) -> op.Outcome:
        sequence = self.sequences.pop(name, None)
        for block in reversed(sequence.table if sequence else []):
            self.drop(block)
        return op.Released()

    # The steps

    def key(self, tokens: tuple[int, ...], parent: int | None) -> int:
        """Chain hash of one block."""
        text = repr((parent, tokens)).encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")

    def chain(self, tokens: tuple[int, ...], count: int) -> list[int]:
        """Keys of the first `count` blocks."""
        keys: list[int] = []
        for start in range(0, count * self.size, self.size):
            keys.append(self.key(tokens[start : start + self.size], keys[-1] if keys else None))
        return keys

    def lookup(self, tokens: tuple[int, ...]) -> list[int]:
        """Blocks of the longest cached prefix; the block of the last token is never one of them."""
        hit: list[int] = []
        for number, key in enumerate(self.chain(tokens, (len(tokens) - 1) // self.size)):
            block = self.index.get(key)
            part = tokens[number * self.size : (number + 1) * self.size]
            if block is None or (self.check_tokens and self.blocks[block].tokens != part):
                break
            hit.append(block)
        return hit

    def cached_tokens(self, hits: int, length: int) -> int:
        return hits * self.size

    def arrange(self, hit: list[int]) -> list[int]:
        return hit

    def claim(self, block: int) -> None:
        """Share a block; if it was free it leaves the free list."""
        if self.blocks[block].references == 0 and block in self.free:
            self.free.remove(block)
        self.blocks[block].references += 1

    def take(self) -> int:
        """Recycle the block that has been free for longest."""
        block = self.free.popleft()
        self.forget(block)
        self.blocks[block].references = 1
        return block

    def forget(self, block: int) -> None:
        """What the block held can't be found any more."""
        if self.index.get(self.blocks[block].key) == block:
            del self.index[self.blocks[block].key]
        self.blocks[block] = Block()

    def drop(self, block: int) -> None:
        """One reference less."""
        self.blocks[block].references = max(0, self.blocks[block].references - 1)
        if self.blocks[block].references == 0 and block not in self.free:
            self.free.append(block)

    def planned(self, sequence: Sequence) -> None:
        """Tokens were reserved; nothing is published before they are computed."""

    def publishable(self, start: int, end: int, sequence: Sequence) -> range:
        """Which blocks become full when positions start .. end - 1 are computed."""
        return range(start // self.size, end // self.size)

    def publish(self, sequence: Sequence, numbers: range) -> None:
        """Make blocks findable; the last writer owns the index entry."""
        for number in numbers:
            tokens = sequence.tokens[number * self.size : (number + 1) * self.size]
            key = self.key(tokens, self.parent(sequence, number, numbers))
            del sequence.keys[number:]
            sequence.keys.append(key)
            block = sequence.table[number]
            self.blocks[block].key, self.blocks[block].tokens = key, tokens
            self.index[key] = block

    def parent(self, sequence: Sequence, number: int, numbers: range) -> int | None:
        """Key of the block before."""
        return sequence.keys[number - 1] if number else None


class NoTokenCheck(Correct):
    """Equivalent with a hash that does not collide: no lane may object."""

    check_tokens = False


class StaleMapping(Correct):
    """A recycled block keeps its index entry; the tokens of the block are compared, its prefix is not."""

    def forget(self, block: int) -> None:
        self.blocks[block] = Block()


class StaleMappingNoCheck(StaleMapping):
    """… and the tokens are not compared either."""

    check_tokens = False


class Unchained(Correct):
    """The hash of a block does not depend on the blocks before it."""

    def key(self, tokens: tuple[int, ...], parent: int | None) -> int:
        return super().key(tokens, None)


class ConstantHash(Correct):
    """All blocks have the same hash; the tokens of the block are compared."""

    def key(self, tokens: tuple[int, ...], parent: int | None) -> int:
        return 0


class ConstantHashNoCheck(ConstantHash):
    """… and the tokens are not compared either."""

    check_tokens = False


class FourBitHash(Correct):
    """A hash of sixteen values; the tokens of the block are compared."""

    def key(self, tokens: tuple[int, ...], parent: int | None) -> int:
        return super().key(tokens, parent) % 16


class LostReference(Correct):
    """A hit on a block in use does not raise its reference count, so the first release frees it for all."""

    def claim(self, block: int) -> None:
        if self.blocks[block].references == 0:
            super().claim(block)


class PermutedHit(Correct):
    """The cached blocks are entered into the table back to front."""

    def arrange(self, hit: list[int]) -> list[int]:
        return hit[::-1]


class RevivedStaysFree(Correct):
    """A hit on a free block leaves it in the free list, from where it is handed out again."""

    def claim(self, block: int) -> None:
        self.blocks[block].references += 1


class PublishedAtAdmission(Correct):
    """All full blocks of a prompt are published when it is admitted, before anything is computed."""

    def planned(self, sequence: Sequence) -> None:
        self.publish(sequence, range(len(sequence.keys), len(sequence.tokens) // self.size))


class PublishedOneAhead(Correct):
    """The block after the last full one is published as well, although it is only begun."""

    def publishable(self, start: int, end: int, sequence: Sequence) -> range:
        return range(start // self.size, min(end // self.size + 1, len(sequence.tokens) // self.size))


class ChainRestarts(Correct):
    """Each chunk starts a new chain, as if its first block were the first of the sequence."""

    def parent(self, sequence: Sequence, number: int, numbers: range) -> int | None:
        return None if number == numbers.start else super().parent(sequence, number, numbers)


class OneBlockTooMany(Correct):
    """A hit claims one block more than was found, as long as a token is left to compute."""

    def cached_tokens(self, hits: int, length: int) -> int:
        return (hits + 1) * self.size if hits and (hits + 1) * self.size < length else hits * self.size


DECLARATION = Declaration("planted", frozenset({"pool", "prefix", "chunked"}), release_in_flight=True)

# name in the table -> manager
FAULTS: dict[str, type[Correct]] = {
    "token check removed": NoTokenCheck,
    "stale mapping": StaleMapping,
    "stale mapping, no token check": StaleMappingNoCheck,
    "hash not chained": Unchained,
    "constant hash": ConstantHash,
    "constant hash, no token check": ConstantHashNoCheck,
    "hash of 4 bits": FourBitHash,
    "reference not counted": LostReference,
    "permuted hit": PermutedHit,
    "revived block stays free": RevivedStaysFree,
    "published at admission": PublishedAtAdmission,
    "published one block ahead": PublishedOneAhead,
    "chain restarts at each chunk": ChainRestarts,
    "one cached block too many": OneBlockTooMany,
}

EQUIVALENT = frozenset({"token check removed"})  # no content differs, so every lane must accept it


def implementation(name: str) -> Implementation:
    """The planted manager of that name, or the correct base for "correct"."""
    return Implementation(name, DECLARATION, FAULTS.get(name, Correct))
