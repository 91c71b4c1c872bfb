"""The second generation: a block is registered after the forward pass that fills it (``hash_blocks``)."""

from typing import Any

from kvspec.impl.nano_vllm.adapter import Held, NanoAdapter
from kvspec.impl.nano_vllm.answers import Answered, ask, whole_number
from kvspec.spec.operations import Refused


class LateAdapter(NanoAdapter):
    """``can_allocate -> cached blocks or -1``, then ``allocate(seq, cached blocks)``."""

    def _admit(self, sequence: Any, length: int, limit: int) -> int | None:
        most = -(-length // self._plan.block_size)
        answer = ask("can_allocate", self.manager.can_allocate, sequence)
        blocks = whole_number("can_allocate", answer, -1, most, "the number of cached blocks or -1")
        if blocks == -1:
            raise Answered(Refused())
        ask("allocate", self.manager.allocate, sequence, blocks, promised=True)
        return None

    def _publish(self, held: Held) -> None:
        ask(self._plan.publish, getattr(self.manager, self._plan.publish), held.sequence)
        held.sequence.num_cached_tokens += held.planned


class LateTokensAdapter(LateAdapter):
    """``can_allocate -> cached tokens or -1``, then ``allocate(seq)``, which looks the prefix up again."""

    def _admit(self, sequence: Any, length: int, limit: int) -> int | None:
        answer = ask("can_allocate", self.manager.can_allocate, sequence)
        if whole_number("can_allocate", answer, -1, length, "the number of cached tokens or -1") == -1:
            raise Answered(Refused())
        ask("allocate", self.manager.allocate, sequence, promised=True)
        return None
