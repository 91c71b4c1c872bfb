"""Managers with one planted fault each: what the harness must catch, and for which clause."""

from kvspec.impl.known_bad import (  # noqa: F401  (they fill the registry)
    answers,
    axes,
    content,
    drafts,
    early,
    identity,
    input,
    late,
    order,
    outside,
    ownership,
    repointed,
    room,
    stale,
)
from kvspec.impl.known_bad.registry import KINDS, KNOWN_BAD, KnownBad, load_known_bad

__all__ = ["KINDS", "KNOWN_BAD", "KnownBad", "load_known_bad"]
