"""The vectors: stored programs with a sound manager's answers, which any manager in any language can run again."""

from kvspec.impl.adapter import Implementation
from kvspec.impl.known_bad.bases.counted import NAMESPACED, Counted
from kvspec.impl.model_adapter import MODEL

BY_COUNTED = ("reuse", "collision", "namespace")


def filler(context: str) -> Implementation:
    if context in ("collision", "namespace"):
        return Implementation(
            "counted",
            NAMESPACED if context == "namespace" else Counted.declaration,
            Counted,
            chain_hash=Counted.chain_hash,
        )
    return MODEL
