"""Two different blocks of 16 ordinary tokens with the same xxh64, built by algebra, and what they do to a manager.

xxh64 reads 32-byte stripes; its first accumulator sees tokens 0, 4, 8, 12 of a first block, and nothing else of them.  A
round is ``rotate(accumulator + token * P2, 31) * P1``: with P2 odd, for any two values of the accumulator there is a
difference of the next tokens that makes the results equal, ``(other - one) / P2`` modulo 2^64.  Choose three tokens of
each block freely, solve for the fourth.

The difference is any 64-bit number, but among 2^24 random triples of tokens below 32,000 some pair has one below 32,000
(sort ``accumulator / P2``, take the nearest neighbours: half a minute).  So both blocks are prompts of an ordinary
vocabulary.
"""

from kvspec.spec import operations as op

MASK = (1 << 64) - 1
P1, P2 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F
BLOCK_SIZE = 16
OTHERS = 1  # every token that the first accumulator does not see

ONE = (5598, 22990, 8766)
OTHER = (26634, 26512, 7787)


def colliding_blocks() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two blocks whose chain hash as a first block is the same."""
    difference = (_accumulator(OTHER) - _accumulator(ONE)) * pow(P2, -1, MASK + 1) & MASK
    return _block(*ONE, difference), _block(*OTHER, 0)


def collision_operations() -> tuple[op.Operation, ...]:
    """A program in which comparing the tokens of each block is not enough.

    P and Q are the blocks.  ``P R`` is computed; then ``Q`` is, and owns the index entry of the key that both have; then
    ``Q R`` asks in.  Its first block is Q, and is found.  Under the key of R after that stands R after P: the same tokens
    after another prefix.
    """
    first, second = colliding_blocks()
    same, last = (2,) * BLOCK_SIZE, (3,)
    limit = 1 << 20
    return (
        op.Admit("A", first + same + last, limit),
        op.Commit(("A",)),
        op.Release("A"),
        op.Admit("B", second + last, limit),
        op.Commit(("B",)),
        op.Admit("C", second + same + last, limit),
        op.Commit(("C",)),
        op.Release("B"),
        op.Release("C"),
    )


def _block(first: int, fifth: int, ninth: int, thirteenth: int) -> tuple[int, ...]:
    tokens = [OTHERS] * BLOCK_SIZE
    tokens[0], tokens[4], tokens[8], tokens[12] = first, fifth, ninth, thirteenth
    return tuple(tokens)


def _accumulator(tokens: tuple[int, ...]) -> int:
    accumulator = (P1 + P2) & MASK
    for token in tokens:
        mixed = (accumulator + token * P2) & MASK
        accumulator = ((mixed << 31 | mixed >> 33) * P1) & MASK
    return accumulator
