"""From the calls that an engine makes back to the five operations, in the timing of the contract.

Late registration (``hash_blocks``): an admission is complete when the scheduler has set ``num_scheduled_tokens``, so it
is noted at the next call; ``may_append`` is a reservation of one token; the ``hash_blocks`` of one step are one commit; a
chunk of a prompt after the first is planned without any call, so it is reserved at its ``hash_blocks``.  Tokens that were
sampled show in the length of the sequence; they are noted before the next call about it.
"""

from collections.abc import Callable
from typing import Any

from kvspec.impl.nano_vllm.answers import Answered, is_clear, spoken, whole_number, yes_or_no
from kvspec.impl.recorder_lines import (
    ADMIT,
    ADMIT_NOT,
    APPEND,
    COMMIT,
    COMMIT_NOT,
    RELEASE,
    RELEASE_NOT,
    RESERVE,
    RESERVE_NOT,
    Entry,
)
from kvspec.spec.operations import Cause, Failed, Refused

HandOver = Callable[[], None]
BATCH = 512  # entries that are handed over at once
CAUSES = {"WAITING": Cause.PREEMPTED, "PREEMPTED": Cause.PREEMPTED, "ABORTED": Cause.ABORTED}


class Known:
    """A live sequence: its object, its name, how many of its tokens are noted, how many are in flight."""

    __slots__ = ("length", "name", "reserved", "sequence")

    def __init__(self, sequence: Any, name: str, length: int) -> None:
        self.sequence, self.name, self.length, self.reserved = sequence, name, length, 0


class Calls:
    """Late registration; `after` and `failed` hold one method a call, `before` runs ahead of each one unless it is `calm`."""

    def __init__(self, entries: list[Entry], hand_over: HandOver, grow: str, publish: str) -> None:
        self.calm = True
        self._entries, self._emit, self._hand_over = entries, entries.append, hand_over
        self._live: dict[int, Known] = {}
        self._names: set[str] = set()
        self._admitted: tuple[Known, tuple[Any, ...], int, tuple[Any, ...]] | None = None
        self._commits: list[tuple[str, tuple[Any, ...]]] = []
        self._refused: dict[str, int] = {}
        self.after: dict[str, Callable[..., None]] = {
            "can_allocate": self._can_allocate,
            "allocate": self._allocate,
            "can_append": self._can_append,
            grow: self._grow,
            "deallocate": self._deallocate,
            publish: self._publish,
        }
        self.failed: dict[str, Callable[..., None]] = {
            "can_allocate": self._cannot_say_admit,
            "allocate": self._cannot_admit,
            "can_append": self._cannot_say_grow,
            grow: self._cannot_grow,
            "deallocate": self._cannot_release,
            publish: self._cannot_publish,
        }

    def before(self, seq: Any) -> None:
        """What the scheduler has decided since the last call, as far as it matters before the next one."""
        if self._admitted is not None:
            self._settle()

    def finish(self) -> None:
        """Note what is still held back."""
        self.before(None)
        self._end_commit()

    # Admission ---------------------------------------------------------------------------------------------------

    def _can_allocate(self, answer: Any, seq: Any) -> None:
        if type(answer) is int and 0 <= answer <= len(seq):
            return
        try:
            refused = self._is_refusal(answer, len(seq))
        except Answered as answered:
            self._not_admitted(seq, answered.outcome)
            return
        if refused:
            self._not_admitted(seq, Refused())

    def _is_refusal(self, answer: Any, length: int) -> bool:
        return whole_number("can_allocate", answer, -1, length, "what is cached, or -1") == -1

    def _not_admitted(self, seq: Any, outcome: Any) -> None:
        """A refusal is noted once until something was released: an engine asks again in every step."""
        name, length = self._name(seq), len(seq)
        if isinstance(outcome, Refused):
            if self._refused.get(name) == length:
                return
            self._refused[name] = length
        self._end_commit()
        self._emit((ADMIT_NOT, name, tuple(seq.token_ids), max(1, length), outcome))

    def _allocate(self, answer: Any, seq: Any, *others: Any) -> None:
        self._end_commit()
        known = Known(seq, self._free_name(seq), len(seq))
        self._live[id(seq)] = known
        self._names.add(known.name)
        self.calm = False
        self._admitted = known, tuple(seq.token_ids), seq.num_cached_tokens, tuple(seq.block_table)

    def _settle(self) -> None:
        assert self._admitted is not None
        known, tokens, cached, table = self._admitted
        self._admitted, self.calm = None, True
        rest = len(tokens) - cached
        planned = getattr(known.sequence, "num_scheduled_tokens", 0)
        limit = planned if 0 < planned <= rest else max(1, rest)
        known.reserved = min(limit, rest)
        self._emit((ADMIT, known.name, tokens, limit, cached, known.reserved, table))

    def _cannot_say_admit(self, error: BaseException, seq: Any) -> None:
        self._not_admitted(seq, Failed(spoken(error), False, is_clear(error)))

    def _cannot_admit(self, error: BaseException, seq: Any, *others: Any) -> None:
        self._not_admitted(seq, Failed(spoken(error), True, is_clear(error)))

    # Decode ------------------------------------------------------------------------------------------------------

    def _can_append(self, answer: Any, seq: Any = None) -> None:
        if answer is True or seq is None:
            return
        try:
            refused = not yes_or_no("can_append", answer)
        except Answered as answered:
            self._not_grown(seq, answered.outcome)
            return
        if refused:
            self._not_grown(seq, Refused())

    def _grow(self, answer: Any, seq: Any) -> None:
        known = self._live.get(id(seq)) or self._stranger(seq)
        if self._commits:
            self._end_commit()
        length, before = len(seq), known.length
        if length != before:
            known.length = length
            self._emit((APPEND, known.name, tuple(seq.token_ids[before:])))
        known.reserved = 1
        self._emit((RESERVE, known.name, 1, tuple(seq.block_table)))

    def _not_grown(self, seq: Any, outcome: Any) -> None:
        known = self._live.get(id(seq)) or self._stranger(seq)
        self._end_commit()
        self._appended(known)
        self._emit((RESERVE_NOT, known.name, 1, outcome))

    def _cannot_say_grow(self, error: BaseException, seq: Any = None) -> None:
        if seq is not None:
            self._not_grown(seq, Failed(spoken(error), False, is_clear(error)))

    def _cannot_grow(self, error: BaseException, seq: Any) -> None:
        self._not_grown(seq, Failed(spoken(error), True, is_clear(error)))

    def _appended(self, known: Known) -> None:
        """Tokens that joined since the last look."""
        length, before = len(known.sequence), known.length
        if length > before:
            known.length = length
            self._emit((APPEND, known.name, tuple(known.sequence.token_ids[before:length])))

    # The end of a step -------------------------------------------------------------------------------------------

    def _publish(self, answer: Any, seq: Any) -> None:
        known = self._live.get(id(seq))
        if known is not None and known.reserved:
            known.reserved = 0
            self._commits.append((known.name, tuple(seq.block_table)))
        elif known := self._published(seq):
            self._commits.append((known.name, tuple(seq.block_table)))

    def _published(self, seq: Any) -> Known | None:
        """The sequence whose reserved tokens are computed now, or None if it has none."""
        known = self._live.get(id(seq)) or self._stranger(seq)
        if not known.reserved:
            planned = getattr(seq, "num_scheduled_tokens", 0)
            if planned <= 0:
                return None
            self._end_commit()
            self._appended(known)
            self._emit((RESERVE, known.name, planned, tuple(seq.block_table)))
        known.reserved = 0
        return known

    def _end_commit(self) -> None:
        if self._commits:
            self._emit((COMMIT, self._commits))
            self._commits = []
            if len(self._entries) >= BATCH:
                self._hand_over()

    def _cannot_publish(self, error: BaseException, seq: Any) -> None:
        known = self._published(seq)
        self._end_commit()
        if known:
            self._emit((COMMIT_NOT, known.name, Failed(spoken(error), False, is_clear(error))))

    # Release -----------------------------------------------------------------------------------------------------

    def _deallocate(self, answer: Any, seq: Any) -> None:
        name = self._leave(seq)
        cause = CAUSES.get(getattr(getattr(seq, "status", None), "name", ""), Cause.FINISHED)
        self._emit((RELEASE, name, cause.value))

    def _cannot_release(self, error: BaseException, seq: Any) -> None:
        self._emit((RELEASE_NOT, self._leave(seq), Failed(spoken(error), False, is_clear(error))))

    def _leave(self, seq: Any) -> str:
        self._end_commit()
        self._refused.clear()
        if len(self._entries) >= BATCH:
            self._hand_over()
        known = self._live.pop(id(seq), None)
        if known is None:
            return self._name(seq)
        self._names.discard(known.name)
        if not known.reserved:
            self._appended(known)
        return known.name

    # Names -------------------------------------------------------------------------------------------------------

    def _name(self, seq: Any) -> str:
        """A name that needs no escape: the engine's own number, else where the object lies."""
        number = getattr(seq, "seq_id", None)
        return f"s{number}" if type(number) is int else f"o{id(seq)}"

    def _free_name(self, seq: Any) -> str:
        name = self._name(seq)
        return name if name not in self._names else f"{name}o{id(seq)}"

    def _stranger(self, seq: Any) -> Known:
        """A sequence that was admitted before the recording began."""
        known = self._live[id(seq)] = Known(seq, self._free_name(seq), len(seq))
        self._names.add(known.name)
        return known
