"""Targets that are words: what comes with kvspec, programs in other languages, and real engines."""

import inspect
from collections.abc import Callable
from difflib import get_close_matches

from kvspec.impl import block_manager
from kvspec.impl.adapter import Implementation
from kvspec.impl.engines import ENGINES
from kvspec.impl.errors import LoadError
from kvspec.impl.hardened_adapter import hardened_implementation
from kvspec.impl.nano_vllm import implementation_of


def _bundled(_: str) -> Implementation:
    return implementation_of(block_manager.BlockManager, target="bundled", source=inspect.getfile(block_manager))


def _hardened(_: str) -> Implementation:
    return hardened_implementation()


def _model(_: str) -> Implementation:
    from kvspec.impl.model_adapter import MODEL

    return MODEL


def _extended(_: str) -> Implementation:
    from kvspec.impl.model_adapter import EXTENDED

    return EXTENDED


def _known_bad(slug: str) -> Implementation:
    from kvspec.impl.known_bad import KNOWN_BAD

    if slug not in KNOWN_BAD:
        near = get_close_matches(slug, KNOWN_BAD, 1)
        advice = f"Did you mean known-bad:{near[0]}?" if near else "`kvspec known-bad --list` lists them."
        raise LoadError(f"There is no known-bad manager {slug!r}. {advice}")
    return KNOWN_BAD[slug].implementation()


def _pipe(command: str) -> Implementation:
    from kvspec.impl.pipe import load_pipe

    return load_pipe(f"cmd:{command}")


NAMED_TARGETS: dict[str, Callable[[str], Implementation]] = {
    "bundled": _bundled,
    "hardened": _hardened,
    "model": _model,
    "extended": _extended,
    "known-bad": _known_bad,
    "cmd": _pipe,
    **ENGINES,
}


def named_target(target: str) -> Implementation | None:
    """The implementation behind a word, or None if `target` is a file or a module.  Raises LoadError."""
    word, _, rest = target.strip().partition(":")
    return NAMED_TARGETS[word](rest) if word in NAMED_TARGETS else None
