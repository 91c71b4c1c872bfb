"""The hardened manager behind the adapter protocol, with the extensions that it has beside nano-vllm's surface."""

import inspect
from dataclasses import replace

from kvspec.impl import hardened
from kvspec.impl.adapter import Implementation
from kvspec.impl.nano_vllm import implementation_of
from kvspec.impl.nano_vllm.adapter import Held
from kvspec.impl.nano_vllm.answers import Answered, ask, block_table, whole_number, yes_or_no
from kvspec.impl.nano_vllm.late import LateAdapter
from kvspec.spec import operations as op
from kvspec.spec.clauses import EXTENSIONS
from kvspec.spec.namespaces import AXES

BEYOND_THE_SHAPE = frozenset({"reuse", "one", "collision", "robust", "namespace", *EXTENSIONS})


def hardened_implementation(cls: type = hardened.BlockManager, target: str = "hardened") -> Implementation:
    """The hardened manager, or a class derived from it, with all the profiles that it conforms to."""
    made = implementation_of(cls, target, inspect.getfile(cls), adapter=HardenedAdapter)
    declaration = replace(
        made.declaration,
        name="hardened",
        profiles=made.declaration.profiles | BEYOND_THE_SHAPE,
        publish_at_truncate=True,
        namespaces=True,
        namespace_axes=frozenset(AXES),
    )
    return replace(made, name="hardened", declaration=declaration)


class HardenedAdapter(LateAdapter):
    """Late registration, and the extensions as calls of the manager (see ``hardened.BlockManager``)."""

    _namespace = ""  # of the sequence that asks in

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        """As in the shape; the namespace is an attribute of the sequence object."""
        self._namespace = namespace
        return super().admit(sequence, tokens, limit, namespace)

    def _asking_in(self, name: str, tokens: tuple[int, ...]) -> Held:
        held = super()._asking_in(name, tokens)
        if not held.live:
            held.sequence.namespace = self._namespace
        return held

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

    def reset(self) -> op.Outcome:
        """The cache is emptied, or in use."""
        try:
            emptied = yes_or_no("reset", ask("reset", self.manager.reset))
            return op.WasReset() if emptied else op.Refused(op.Reason.IN_USE)
        except Answered as early:
            return early.outcome

    def probe(self, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        """Asked with a sequence of its own, which never asks in."""
        try:
            sequence = ask("the constructor of the sequence", self._plan.make, list(tokens))
            sequence.namespace = namespace
            blocks, fits = ask("probe", self.manager.probe, sequence)
            return op.Probed(blocks * self._plan.block_size, fits)
        except Answered as early:
            return early.outcome

    def retain(self, sequence: str, owner: str) -> op.Outcome:
        """The owner keeps what the sequence has computed."""
        try:
            kept = ask("retain", self.manager.retain, self._known(sequence).sequence, owner)
            return op.Retained(block_table("the blocks of the owner", kept))
        except Answered as early:
            return early.outcome

    def drop(self, owner: str) -> op.Outcome:
        """The owner lets go."""
        try:
            ask("drop", self.manager.drop, owner)
            return op.Dropped()
        except Answered as early:
            return early.outcome
