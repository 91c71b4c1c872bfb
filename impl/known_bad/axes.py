"""Faults in how the axes of a namespace (adapter, media, salt) become part of a prefix."""

from typing import Any

from kvspec.impl.known_bad.bases.hard import Hard
from kvspec.impl.known_bad.registry import known_bad
from kvspec.spec.namespaces import parse


def axes_of(seq: Any) -> dict[str, str]:
    """The axes of the namespace of a sequence; one that is not made of axes is one of its own."""
    return parse(seq.namespace) if "=" in seq.namespace else {"": seq.namespace} if seq.namespace else {}


@known_bad(
    "axes-without-names",
    "CONTENT",
    "identity",
    "vLLM RFC #53194",
    "vLLM #53495",
    context="axes",
    shows="2x2: admit A 00 in=adapter=a / commit A / admit B 000 in=salt=a",
)
class AxesWithoutNames(Hard):
    """The values of the axes are part of the key, their names are not: the salt a is taken for the adapter a."""

    @staticmethod
    def _identity(seq: Any) -> str:
        return ",".join(axes_of(seq).values())


@known_bad(
    "axes-run-together",
    "CONTENT",
    "identity",
    "vLLM RFC #53194",
    "LMCache #4086",
    context="axes",
    shows="2x2: admit A 00 in=adapter=a,salt=aa / commit A / admit B 000 in=adapter=aa,salt=a",
)
class AxesRunTogether(Hard):
    """The values of the axes are put one after the other without anything between them."""

    @staticmethod
    def _identity(seq: Any) -> str:
        axes = axes_of(seq)
        return "".join((*axes, *axes.values()))


@known_bad(
    "first-axis-only",
    "CONTENT",
    "identity",
    "vLLM #53495",
    "xLLM PR 2047",
    "vLLM PR 3263",
    context="axes",
    shows="2x2: admit A 00 in=adapter=a / commit A / admit B 000 in=adapter=a,salt=a",
)
class FirstAxisOnly(Hard):
    """Of several axes only the first one is part of the key."""

    @staticmethod
    def _identity(seq: Any) -> str:
        return str(seq.namespace).partition(",")[0]


@known_bad(
    "axes-not-in-later-blocks",
    "CONTENT",
    "identity",
    "ATOM PR 1358",
    "LMCache PR 690",
    context="axes",
    shows="5x2: admit A 0000 / commit A / admit B 000 in=salt=a / commit B / release B / admit B 00000 in=salt=a",
)
class AxesNotInLaterBlocks(Hard):
    """The namespace is part of the key of the first block only: behind it the search goes on in any namespace."""

    def _search(self, seq: Any) -> tuple[list[int], int]:
        hits, shared = super()._search(seq)
        node = self._root.children.get(tuple(seq.block(0))) if hits else None
        for i in range(1, seq.num_blocks - 1):
            node = node and node.children.get(tuple(seq.block(i)))
            if node is None or not node.blocks:
                break
            if i == len(hits):
                hits.append(node.blocks[0])
                shared += self.blocks[node.blocks[0]].ref_count > 0
        return hits, shared


@known_bad(
    "axes-fall-back",
    "CONTENT",
    "identity",
    "vLLM #3264",
    "nanovllm-voxcpm: adapter id not in the key",
    context="axes",
    shows="2x2: admit A 00 / commit A / admit B 000 in=salt=a",
)
class AxesFallBack(Hard):
    """What is not found in the namespace of a sequence is looked for outside of all namespaces."""

    def _space(self, seq: Any) -> Any:
        found = super()._space(seq)
        return found if found.children else self._root


@known_bad(
    "salted-is-private",
    "AXES-AGREE",
    "lost",
    "vLLM RFC #53194",
    "SGLang #24568",
    context="axes",
    shows="3x2: admit A 00 in=salt=a / commit A / admit B 000 in=salt=a",
)
class SaltedIsPrivate(Hard):
    """A sequence with a salt shares with nobody, not with those of the same salt either."""

    def __init__(self, num_blocks: int, block_size: int) -> None:
        super().__init__(num_blocks, block_size)
        self._numbers: dict[int, int] = {}

    def _identity(self, seq: Any) -> str:  # type: ignore[override]
        alone = "salt" in axes_of(seq)
        return f"{seq.namespace} {self._numbers.setdefault(seq.seq_id, len(self._numbers))}" if alone else seq.namespace


@known_bad(
    "several-axes-not-published",
    "AXES-AGREE",
    "lost",
    "vLLM RFC #53194",
    "vLLM #53749",
    context="axes",
    shows="3x2: admit A 00 in=adapter=a,salt=a / commit A / admit B 000 in=adapter=a,salt=a",
)
class SeveralAxesNotFound(Hard):
    """Where more than one axis has a value nothing is looked up."""

    def _search(self, seq: Any) -> tuple[list[int], int]:
        return ([], 0) if "," in seq.namespace else super()._search(seq)
