"""Random operations of the extensions, between the ordinary ones, so that each really meets what it can go wrong on."""

from random import Random
from typing import Protocol

from kvspec.conformance.contexts import CONTEXTS, Context
from kvspec.spec import operations as op
from kvspec.spec.judge import illegal
from kvspec.spec.namespaces import spell
from kvspec.spec.state import Owner, State


class Ordinary(Protocol):
    """What is needed of the generator of the ordinary operations."""

    alphabet: int
    names: tuple[str, ...]
    prompts: list[tuple[int, ...]]

    def asking_in(self) -> op.Admit | None:
        """Some admission, or None if all sequences are live."""


class Extensions:
    """Draws what the context asks for beside the ordinary operations.

    A part of the programs asks for one more of the extensions that the manager offers: what one does the other must bear.
    """

    def __init__(self, random: Random, context: Context, state: State, ordinary: Ordinary) -> None:
        self.random, self.state, self.ordinary = random, state, ordinary
        self.draws = context.draws
        others = [each.draws for each in _offered(state) if each is not context]
        if others and random.random() < TOGETHER:
            self.draws += random.choice(others)

    def draw(self) -> op.Operation | None:
        """An operation of an extension that is legal now, or None: then it is the turn of an ordinary one."""
        kind = self.random.choice(self.draws)
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

    # Reset, probe, owners

    def _reset(self) -> op.Operation | None:
        """Mostly when nobody holds a block, else it would always be refused."""
        if not self.state.sequences and not self.state.owners:
            return op.Reset()
        return op.Reset() if self.random.random() < (0.15 if self.state.sequences else 0.5) else None

    def _probe(self) -> op.Operation | None:
        """A question, and then mostly the admission that was asked about."""
        if self.state.asked and self.random.random() < 0.7:
            asked = self.state.asked[0]
            absent = [name for name in self.ordinary.names if name not in self.state.sequences]
            return op.Admit(absent[0], asked.tokens, asked.limit, asked.namespace) if absent else asked
        admit = self.ordinary.asking_in()
        return op.Probe(admit.tokens, admit.limit, admit.namespace) if admit else None

    def _retain(self) -> op.Operation | None:
        owner = next((name for name in OWNERS if Owner(name) not in self.state.owners), None)
        live = list(self.state.sequences)
        return op.Retain(self.random.choice(live), owner) if owner and live else None

    def _drop(self) -> op.Operation | None:
        """Owners let go some time after the sequence is gone."""
        kept = [owner.name for owner in self.state.owners]
        return op.Drop(self.random.choice(kept)) if kept else None


def axes_to_confuse(random: Random, axes: frozenset[str]) -> tuple[str, ...]:
    """Three namespaces that a key which is not careful takes for one another: the same value on different axes, several
    axes whose values read the same one after the other, axes that differ in one of them only."""
    one, *others = random.sample(sorted(axes), len(axes))
    other = others[0] if others else one
    likely = {
        spell({one: "a"}),
        spell({other: "a"}),
        spell({one: "a", other: "aa"}),
        spell({one: "aa", other: "a"}),
        spell({one: "a", other: "a"}),
        spell(dict.fromkeys(axes, "a")),
        spell({one: "aaa"}),
        spell({one: f"a,{other}=a"}),
        "",
    }
    return tuple(random.sample(sorted(likely), 3))


def _offered(state: State) -> list[Context]:
    """The contexts of the extensions that are declared and have operations of their own."""
    declared = state.declaration.profiles
    return [each for each in CONTEXTS.values() if each.draws and declared.issuperset(each.profiles)]


OWNERS = ("K", "L")
TOGETHER = 0.4  # the part of the programs in which two extensions meet, and that in which one meets namespaces
_SHARES = {"extend": 0.3, "draft": 0.3, "truncate": 0.5, "reset": 0.3, "probe": 0.4, "retain": 0.25, "drop": 0.12}
