"""Requests that make a small pool share, recycle and run full: everything about them comes from one seed."""

import random
from dataclasses import dataclass

from kvspec.spec.declaration import Declaration
from kvspec.spec.namespaces import spell
from kvspec.spec.state import World

VOCABULARY = 97  # token ids are 0 .. 96


@dataclass(frozen=True, slots=True)
class Request:
    """One request: its prompt, and the tokens that will be "sampled" for it.

    The outputs are fixed beforehand, so every lane and every manager, right or wrong, sees the same token stream.
    """

    name: str
    prompt: tuple[int, ...]
    outputs: tuple[int, ...]
    namespace: str = ""

    @property
    def tokens(self) -> tuple[int, ...]:
        """All tokens that the request will ever have."""
        return self.prompt + self.outputs


@dataclass(frozen=True, slots=True)
class Workload:
    """Requests in order of arrival, the world they run in, and how many tokens one step may compute."""

    seed: int
    world: World
    requests: tuple[Request, ...]
    budget: int


def build(seed: int, blocks: int, declaration: Declaration, weak_hash: bool = False, count: int = 14) -> Workload:
    """`count` requests for a pool of `blocks` blocks of 4 tokens, or of the smallest size that is declared.

    Prompts are built from two base prefixes and three block contents, so that equal blocks turn up behind different
    prefixes and in different orders: what an unchained hash, a collision or a permuted table needs to be seen.
    `weak_hash` asks for a manager whose chain hash collides.
    """
    rng = random.Random(f"workload {seed}")
    size = min(max(4, declaration.smallest_block_size), declaration.largest_block_size)
    namespaces = _namespaces(rng, declaration)
    contents = [_tokens(rng, size) for _ in range(3)]
    bases = [contents[0] + contents[1], contents[2] + contents[1]]
    requests: list[Request] = []
    for number in range(count):
        prompt = _prompt(rng, size, bases, contents, requests)
        outputs = _tokens(rng, rng.randint(2, 2 * size))
        requests.append(Request(f"R{number}", prompt, outputs, rng.choice(namespaces)))
    return Workload(seed, World(blocks, size, weak_hash), tuple(requests), budget=3 * size + 1)


def _namespaces(rng: random.Random, declaration: Declaration) -> tuple[str, ...]:
    """Two that some faulty manager takes for each other: none, one axis more, another axis, values that run together."""
    if not declaration.namespaces:
        return ("",)
    if not declaration.namespace_axes:
        return ("", "x")
    first, last = min(declaration.namespace_axes), max(declaration.namespace_axes)
    confused = (
        ({}, {last: "a"}),
        ({first: "a"}, {first: "a", last: "a"}),
        ({first: "a"}, {last: "a"}),
        ({first: "a", last: "aa"}, {first: "aa", last: "a"}),
    )
    return tuple(map(spell, rng.choice(confused)))


def _prompt(
    rng: random.Random, size: int, bases: list[tuple[int, ...]], contents: list[tuple[int, ...]], earlier: list[Request]
) -> tuple[int, ...]:
    if earlier and rng.random() < 0.2:
        return rng.choice(earlier).prompt  # the same prompt again, byte for byte
    middle = [token for _ in range(rng.randint(0, 4)) for token in rng.choice(contents)]
    return rng.choice(bases) + tuple(middle) + _tokens(rng, rng.randint(1, size))


def _tokens(rng: random.Random, count: int) -> tuple[int, ...]:
    return tuple(rng.randrange(VOCABULARY) for _ in range(count))
