"""The encoding of a trace's values, which lives in ``kvspec.impl.encoding``: the pipe protocol has the same lines."""

from kvspec.impl.encoding import (
    DECLARATION,
    INTEGER,
    OPERATION,
    OUTCOME,
    SNAPSHOT,
    TEXT,
    TRUTH,
    WORLD,
    Codec,
    EncodingError,
    Shape,
    members,
    optional,
)

__all__ = [
    "DECLARATION",
    "INTEGER",
    "OPERATION",
    "OUTCOME",
    "SNAPSHOT",
    "TEXT",
    "TRUTH",
    "WORLD",
    "Codec",
    "EncodingError",
    "Shape",
    "members",
    "optional",
]
