"""The first generation: ``allocate`` and ``may_append`` register blocks before the forward pass that fills them.

The manager is told nothing when the forward pass ends, and its ``num_cached_tokens`` never grows: the adapter counts.
"""

from typing import Any

from kvspec.impl.nano_vllm.adapter import Held, NanoAdapter, numbers
from kvspec.impl.nano_vllm.answers import Answered, ask, yes_or_no
from kvspec.spec.operations import Refused


class EarlyAdapter(NanoAdapter):
    """``can_allocate -> bool``, then ``allocate(seq)``."""

    def _admit(self, sequence: Any, length: int, limit: int) -> int | None:
        self._allowed("can_allocate", sequence)
        ask("allocate", self.manager.allocate, sequence, promised=True)
        return None


class LayoutAdapter(NanoAdapter):
    """``get_token_layout(seq)`` counts tokens hit in used blocks, hit in free blocks, and new; the rest is numbers.

    The table covers what is planned (`num_new_tokens`) only, so the rest of a prompt needs ``may_append`` as well.
    """

    def _admit(self, sequence: Any, length: int, limit: int) -> int | None:
        answer = ask("get_token_layout", self.manager.get_token_layout, sequence)
        _, in_free, new = numbers("get_token_layout", answer, 3, length)
        planned = min(new, limit)
        self._allowed("can_allocate", in_free + planned)
        sequence.num_new_tokens = planned
        ask("allocate", self.manager.allocate, sequence, promised=True)
        return planned

    def _make_room(self, held: Held, count: int) -> None:
        answer = ask("can_append", self.manager.can_append, held.sequence, count)
        if not yes_or_no("can_append", answer):
            raise Answered(Refused())
        self._schedule(held, count)
        ask(self._plan.grow, getattr(self.manager, self._plan.grow), held.sequence, promised=True)

    def _schedule(self, held: Held, count: int) -> None:
        held.planned = held.sequence.num_new_tokens = count

    def _publish(self, held: Held) -> None:
        held.sequence.num_cached_tokens += held.planned


class RenamedAdapter(NanoAdapter):
    """Early registration under other names; a block is also registered when the sampled token that fills it joins."""

    table_attribute = "blocks"
    tokens_attribute = "tokens"

    def _admit(self, sequence: Any, length: int, limit: int) -> int | None:
        self._allowed("can_allocate_new_block", sequence)
        ask("allocate_blocks_for_prefill", self.manager.allocate_blocks_for_prefill, sequence, promised=True)
        self._set_state(sequence, "RUNNING")
        return None

    def _make_room(self, held: Held, count: int) -> None:
        if held.live and not held.sampled:
            return
        self._allowed("can_allocate_new_block", held.sequence)
        call = self.manager.allocate_block_for_decode
        ask("allocate_block_for_decode", call, held.sequence, promised=True)

    def _append(self, sequence: Any, token: int) -> None:
        ask("append_output_token", sequence.append_output_token, token)
        ask("cache_block_if_needed", self.manager.cache_block_if_needed, sequence)

    def _released(self, sequence: Any) -> None:
        self._set_state(sequence, "WAITING")

    def _set_state(self, sequence: Any, name: str) -> None:
        if hasattr(type(sequence), name):
            sequence.state = getattr(type(sequence), name)
