"""A state in the frontier of a search."""

from typing import Any

from kvspec.conformance.explorer.judging import JudgeClass
from kvspec.spec.state import Snapshot


class Node:
    """A state that is to be expanded: a manager in it (None if it must be replayed), and its judge's state.

    `renaming` and `blocks` lead from the names that the manager knows to those of `judged`.  `number`: in the order of
    discovery.  `counts`: false for a state that shows the same as one that was met before.
    `copies`: makes copies of the manager, once they are needed.
    """

    __slots__ = ("adapter", "blocks", "copies", "counts", "judged", "key", "number", "renaming", "shown")

    def __init__(
        self, adapter: Any, judged: JudgeClass, renaming: int, blocks: int, shown: Snapshot | None, key: bytes
    ) -> None:
        self.adapter, self.judged, self.renaming, self.blocks = adapter, judged, renaming, blocks
        self.shown, self.key, self.number, self.counts = shown, key, 0, True
        self.copies: Any = None

    def without_adapter(self) -> "Node":
        """The same state, to be replayed."""
        other = Node(None, self.judged, self.renaming, self.blocks, self.shown, self.key)
        other.number, other.counts = self.number, self.counts
        return other
