"""Random operations of the extensions, between the ordinary ones, so that each really meets what it can go wrong on."""

from random import Random
from typing import Protocol

from kvspec.conformance.contexts import Context
from kvspec.spec import operations as op
from kvspec.spec.judge import illegal
from kvspec.spec.state import State


class Ordinary(Protocol):
    """What is needed of the generator of the ordinary operations."""

    alphabet: int
    prompts: list[tuple[int, ...]]


class Extensions:
    """Draws what the context asks for beside the ordinary operations."""

    def __init__(self, random: Random, context: Context, state: State, ordinary: Ordinary) -> None:
        self.random, self.context, self.state, self.ordinary = random, context, state, ordinary

    def draw(self) -> op.Operation | None:
        """An operation of an extension that is legal now, or None: then it is the turn of an ordinary one."""
        kind = self.random.choice(self.context.draws)
        if self.random.random() > _SHARES[kind]:
            return None
        drawn: op.Operation | None = getattr(self, f"_{kind}")()
        return None if drawn is None or illegal(self.state, drawn) else drawn

    # Several tokens, and drafts

    def _extend(self) -> op.Operation | None:
        return self._joined(drafts=False)

    def _draft(self) -> op.Operation | None:
        return self._joined(drafts=True)

    def _joined(self, drafts: bool) -> op.Operation | None:
        able = [
            name
            for name, sequence in self.state.sequences.items()
            if not illegal(self.state, op.Extend(name, (0,), drafts))
        ]
        if not able:
            return None
        name, size = self.random.choice(able), self.state.world.block_size
        count = max(1, self.random.choice((1, 1, 2, size - 1, size, size + 1)))
        tokens = tuple(self.random.randrange(self.ordinary.alphabet) for _ in range(count))
        known = (*self.state.sequences[name].tokens, *tokens)
        if len(known) <= self.state.world.blocks * size:  # somebody will ask for the very same, confirmed or not
            self.ordinary.prompts += [known, (*known, 0)]
        return op.Extend(name, tokens, drafts)

    def _truncate(self) -> op.Operation | None:
        drafted = [name for name, sequence in self.state.sequences.items() if sequence.drafts]
        if not drafted:
            return None
        name = self.random.choice(drafted)
        sequence = self.state.sequences[name]
        known, left = len(sequence.tokens), len(sequence.tokens) - sequence.computed
        if left and self.random.random() < 0.9:  # mostly they are verified once they are computed
            return op.Commit(self._flying()) if sequence.reserved else op.Reserve(name, left)
        rejected = self.random.choice((0, sequence.drafts, self.random.randint(0, sequence.drafts)))
        return op.Truncate(name, known - rejected)

    def _flying(self) -> tuple[str, ...]:
        return tuple(name for name, sequence in self.state.sequences.items() if sequence.reserved or sequence.unread)


_SHARES = {"extend": 0.3, "draft": 0.3, "truncate": 0.5}
