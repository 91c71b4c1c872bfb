"""The calls of managers with early registration: blocks are published at once, and no call ends a step.

The step has ended as soon as a sequence in it has grown, because tokens are sampled after the forward pass only.
"""

from typing import Any

from kvspec.impl.nano_vllm.answers import yes_or_no
from kvspec.impl.recorder_calls import Calls, HandOver, Known
from kvspec.impl.recorder_lines import Entry


class EarlyCalls(Calls):
    """Early registration: ``can_allocate`` and ``can_append`` say yes or no, and no call ends a step."""

    def __init__(self, entries: list[Entry], hand_over: HandOver, grow: str, publish: str = "") -> None:
        super().__init__(entries, hand_over, grow, publish)
        self._flying: dict[int, Known] = {}
        for calls in (self.after, self.failed):
            calls.pop(publish)

    def before(self, seq: Any) -> None:
        """A sequence of the step in flight that has grown shows that the step has ended."""
        super().before(seq)
        if self._flying and (self._has_grown(self._live.get(id(seq))) or self._has_grown(self._first_flying())):
            self._commits = [(known.name, tuple(known.sequence.block_table)) for known in self._flying.values()]
            for known in self._flying.values():
                known.reserved = 0
            self._flying.clear()
            self.calm = self._admitted is None
            self._end_commit()

    def _has_grown(self, known: Known | None) -> bool:
        return known is not None and known.reserved > 0 and len(known.sequence) > known.length

    def _first_flying(self) -> Known:
        return next(iter(self._flying.values()))

    def _can_allocate(self, answer: Any, seq: Any) -> None:
        if answer is not True:
            super()._can_allocate(answer, seq)

    def _is_refusal(self, answer: Any, length: int) -> bool:
        return not yes_or_no("can_allocate", answer)

    def _settle(self) -> None:
        assert self._admitted is not None
        known = self._admitted[0]
        super()._settle()
        self._flying[id(known.sequence)] = known
        self.calm = False

    def _grow(self, answer: Any, seq: Any) -> None:
        super()._grow(answer, seq)
        self._flying[id(seq)] = self._live[id(seq)]
        self.calm = False

    def _leave(self, seq: Any) -> str:
        self._flying.pop(id(seq), None)
        return super()._leave(seq)
