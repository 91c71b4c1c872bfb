"""The hardened manager behind the adapter protocol, with the extensions that it has beside nano-vllm's surface."""

import inspect
from dataclasses import replace

from kvspec.impl import hardened
from kvspec.impl.adapter import Implementation
from kvspec.impl.nano_vllm import implementation_of
from kvspec.impl.nano_vllm.answers import Answered, ask, whole_number
from kvspec.impl.nano_vllm.late import LateAdapter
from kvspec.spec import operations as op

BEYOND_THE_SHAPE = frozenset({"reuse", "one", "collision", "robust", "several", "truncate"})


def hardened_implementation(cls: type = hardened.BlockManager, target: str = "hardened") -> Implementation:
    """The hardened manager, or a class derived from it, with all the profiles that it conforms to."""
    made = implementation_of(cls, target, inspect.getfile(cls), adapter=HardenedAdapter)
    declaration = replace(
        made.declaration,
        name="hardened",
        profiles=made.declaration.profiles | BEYOND_THE_SHAPE,
        publish_at_truncate=True,
    )
    return replace(made, name="hardened", declaration=declaration)


class HardenedAdapter(LateAdapter):
    """Late registration, and the extensions as calls of the manager (see ``hardened.BlockManager``)."""

    def extend(self, sequence: str, tokens: tuple[int, ...], drafts: bool) -> op.Outcome:
        """Tokens join the sequence object, as drafts or one after the other."""
        try:
            held = self._known(sequence)
            if drafts:
                ask("append_drafts", held.sequence.append_drafts, list(tokens))
            else:
                for token in tokens:
                    self._append(held.sequence, token)
            held.sampled = True
            return op.Extended()
        except Answered as early:
            return early.outcome

    def truncate(self, sequence: str, length: int) -> op.Outcome:
        """Verification has ended."""
        try:
            held = self._known(sequence)
            ask("truncate", self.manager.truncate, held.sequence, length)
            told = held.sequence.num_cached_tokens
            held.computed = whole_number(
                "num_cached_tokens after truncate", told, 0, held.computed, "no more than before"
            )
            return op.Truncated(held.computed, self._table("truncate", held))
        except Answered as early:
            return early.outcome
