"""Faults in what a key stands for: namespaces, collisions, hash bytes."""

from kvspec.impl.known_bad.bases.counted import NAMESPACED, Counted
from kvspec.impl.known_bad.bases.pooled import Pooled
from kvspec.impl.known_bad.registry import known_bad


@known_bad(
    "namespace-not-in-key",
    "CONTENT",
    "identity",
    "vLLM #3264",
    "vLLM PR 3263",
    "vLLM PR 8240",
    "xLLM PR 2047",
    "nanovllm-voxcpm: adapter id not in the key",
    context="namespace",
    shows="2x2: admit A 11 / commit A / admit B 110 in=x",
)
class NamespaceNotInKey(Counted):
    """Neither key nor comparison knows the namespace: another adapter's K/V is served."""

    declaration = NAMESPACED

    def root(self, namespace: str) -> int | None:
        return None

    def matches(self, block: int, prefix: tuple[int, ...], namespace: str) -> bool:
        held = self.held[block]
        return held is not None and held[1] == prefix


@known_bad(
    "namespace-folded",
    "CONTENT",
    "identity",
    "LMCache #4086",
    "LMCache PR 4783",
    "vLLM #30931",
    "ATOM PR 1358",
    context="namespace",
    shows="1x2: admit A 11 / commit A / admit B 11 in=x",
)
class NamespaceFolded(Pooled):
    """The namespace is folded to so few bits that two of them meet."""

    def child(self, node: object, label: object) -> object:  # type: ignore[override]
        return super().child(node, self.fold(label))  # type: ignore[arg-type]

    def find(self, tokens: tuple[int, ...], namespace: str) -> list[int]:
        return super().find(tokens, str(self.fold(namespace)))

    @staticmethod
    def fold(label: object) -> object:
        return str(len(label) // 2) if isinstance(label, str) else label


@known_bad(
    "hash-alone-believed",
    "CONTENT",
    "identity",
    "OpenVINO GenAI #3722",
    "vLLM CVE-2025-25183",
    "vLLM PR 12621",
    "LMCache #4086",
    context="collision",
    shows="2x2 weak: admit A 01 / commit A / admit B 100",
)
class HashAloneBelieved(Counted):
    """A hit compares keys only: two prompts whose hashes collide share K/V."""

    def matches(self, block: int, prefix: tuple[int, ...], namespace: str) -> bool:
        return True


@known_bad(
    "own-tokens-compared",
    "CONTENT",
    "identity",
    "nano-vllm HEAD under a weak hash",
    context="collision",
    shows="3x2 weak: admit A 0011 / commit A / admit B 110",
)
class OwnTokensCompared(Counted):
    """A hit compares the tokens of the block, not of the prefix: an early collision in the chain goes unseen."""

    def matches(self, block: int, prefix: tuple[int, ...], namespace: str) -> bool:
        held = self.held[block]
        return held is not None and held[1][-self.size :] == prefix[-self.size :]
