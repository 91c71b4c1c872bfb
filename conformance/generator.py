"""Random programs, one operation at a time, steered so that hits, recycles, refusals and preemptions really happen.

What matters more than volume: two or three distinct tokens, so that prefixes meet; lengths at block boundaries; prompts
repeated byte for byte, cut, extended or changed in one place; pools that are one block too small.
"""

from random import Random

from kvspec.conformance.contexts import Context
from kvspec.conformance.extension_generator import TOGETHER, Extensions, axes_to_confuse
from kvspec.spec import operations as op
from kvspec.spec.judge import illegal
from kvspec.spec.state import SequenceState, State

NAMES = ("A", "B", "C", "D")


class Generator:
    """Draws legal operations for one program."""

    def __init__(self, random: Random, context: Context, state: State) -> None:
        self.random, self.context, self.state = random, context, state
        self.alphabet = random.choice((2, 2, 2, 3))
        self.names = NAMES[: random.choice((2, 3, 3, 4))]
        self.prompts: list[tuple[int, ...]] = []
        self.waiting: dict[str, tuple[int, ...]] = {}  # preempted sequences, to be admitted again with all their tokens
        self.decoding = False
        self.namespaces: tuple[str, ...] = ("", "x") if context.namespaces else ()
        if context.axes:
            self.namespaces = axes_to_confuse(random, state.declaration.namespace_axes)
        self.free = context.free
        self.extensions = Extensions(random, context, state, self) if context.draws else None
        if context.draws and "chunked" in state.declaration.profiles:
            self.free = random.random() < 0.5
        if context.draws and state.declaration.namespaces and random.random() < TOGETHER:
            self.namespaces = ("", "x")
        self.by_steps = not self.free or state.declaration.same_step_hit

    def next(self) -> op.Operation:
        """The next operation; there is always one."""
        if self.extensions and (drawn := self.extensions.draw()):
            return drawn
        flying = [name for name, sequence in self.state.sequences.items() if sequence.reserved or sequence.unread]
        return self._by_steps(flying) if self.by_steps else self._interleaved(flying)

    # A step is planned, then committed as a whole: the order of calls of nano-vllm's scheduler.

    def _by_steps(self, flying: list[str]) -> op.Operation:
        if flying and self._may_withdraw() and self.random.random() < 0.1:
            return op.Release(self.random.choice(flying), op.Cause.ABORTED)
        if not flying:
            self.decoding = bool(self._ready()) and self.random.random() < 0.6
        elif self.random.random() < 0.55:
            return op.Commit(tuple(flying))
        operation = self._plan_decode() if self.decoding else self._plan_prefill(flying)
        return operation or (op.Commit(tuple(flying)) if flying else self._fallback())

    def _may_withdraw(self) -> bool:
        """May a block go that was hit in the step that was to compute it?"""
        declaration = self.state.declaration
        return declaration.same_step_hit and declaration.release_in_flight

    def _plan_decode(self) -> op.Operation | None:
        ready = self._ready()
        if self.random.random() < 0.25 or not ready:
            return self._release(preempt=True)
        if self.free:
            return self._reserve_chunk()
        name = self.random.choice(ready)
        sequence = self.state.sequences[name]
        return op.Reserve(name, len(sequence.tokens) - sequence.computed if self.extensions else 1)

    def _plan_prefill(self, flying: list[str]) -> op.Operation | None:
        roll = self.random.random()
        if not flying and roll < 0.30:
            return self._release(preempt=self.random.random() < 0.4)
        if not flying and roll < 0.55 and self._done():
            return self._append()
        if self.free and roll < 0.75 and (operation := self._reserve_chunk()):
            return operation
        return self._admit(limit=self._chunk() if self.free else 1 << 20)

    # Anything that is legal, in any order: chunked prefill and asynchronous scheduling.

    def _interleaved(self, flying: list[str]) -> op.Operation:
        roll = self.random.random()
        operation: op.Operation | None = None
        if roll < 0.30:
            operation = self._admit(limit=self._chunk())
        elif roll < 0.50:
            operation = self._reserve_chunk()
        elif roll < 0.62:
            operation = self._append()
        elif roll < 0.78:
            operation = self._release(preempt=self.random.random() < 0.4)
        if operation is None and flying:
            count = self.random.randint(1, len(flying))
            operation = op.Commit(tuple(self.random.sample(flying, count)))
        return operation or self._fallback()

    def _chunk(self) -> int:
        size = self.state.world.block_size
        return max(1, self.random.choice((1, size - 1, size, size + 1, 2 * size, 1 << 20)))

    def _reserve_chunk(self) -> op.Operation | None:
        ready = self._ready()
        if not ready:
            return None
        name = self.random.choice(ready)
        sequence = self.state.sequences[name]
        return op.Reserve(name, min(self._chunk(), len(sequence.tokens) - sequence.computed))

    # Single operations

    def _fallback(self) -> op.Operation:
        """Something is always legal: there is a sequence to admit, to go on with, or to release."""
        drawn = self._admit() or self._append() or self._release() or self._reserve_chunk() or self._again()
        return drawn or op.Admit("Z", (0,), 1)

    def asking_in(self) -> op.Admit | None:
        """An admission as this program makes them; nothing is taken from what waits."""
        waiting = dict(self.waiting)
        drawn = self._admit(self._chunk() if self.free else 1 << 20)
        self.waiting = waiting
        return drawn

    def _admit(self, limit: int = 1 << 20) -> op.Admit | None:
        absent = [name for name in self.names if name not in self.state.sequences]
        if not absent:
            return None
        name = self.random.choice(absent)
        tokens = self.waiting.pop(name, None) or self._prompt()
        namespace = self.random.choice(self.namespaces) if self.namespaces else ""
        return op.Admit(name, tokens, limit, namespace)

    def _prompt(self) -> tuple[int, ...]:
        roll = self.random.random()
        if not self.prompts or roll < 0.3:
            tokens = self._tokens(self._length())
        else:
            tokens = self._varied(self.random.choice(self.prompts), roll)
        self.prompts.append(tokens)
        return tokens

    def _varied(self, tokens: tuple[int, ...], roll: float) -> tuple[int, ...]:
        if roll < 0.55:
            return tokens
        if roll < 0.70:
            return tokens + self._tokens(self.random.randint(1, self.state.world.block_size + 1))
        if roll < 0.82:
            return tokens[: max(1, self._length())]
        place = self.random.randrange(len(tokens))
        return (*tokens[:place], self.random.randrange(self.alphabet), *tokens[place + 1 :])

    def _length(self) -> int:
        size, blocks = self.state.world.block_size, self.state.world.blocks
        full = self.random.randint(1, self.random.choice((2, 3, blocks, blocks)))
        length = full * size + self.random.choice((-1, 0, 0, 1, 1))
        return min(max(1, length), blocks * size + (1 if self.random.random() < 0.02 else 0))

    def _tokens(self, count: int) -> tuple[int, ...]:
        return tuple(self.random.randrange(self.alphabet) for _ in range(count))

    def _append(self) -> op.Operation | None:
        done = self._done()
        return op.Append(self.random.choice(done), self.random.randrange(self.alphabet)) if done else None

    def _release(self, preempt: bool = False) -> op.Operation | None:
        among = [name for name, _ in self._idle()] if self.by_steps else list(self.state.sequences)
        names = [name for name in among if not illegal(self.state, op.Release(name))]
        if not names or self.random.random() < 0.06:
            return self._again()
        name = self.random.choice(names)
        if preempt:
            sequence = self.state.sequences[name]
            self.waiting[name] = tuple(sequence.tokens[: len(sequence.tokens) - sequence.drafts])
            return op.Release(name, op.Cause.PREEMPTED)
        return op.Release(name, self.random.choice((op.Cause.FINISHED, op.Cause.ABORTED)))

    def _again(self) -> op.Operation | None:
        gone = sorted(self.state.released - self.state.sequences.keys())
        return op.Release(self.random.choice(gone)) if gone else None

    # What can be done with whom

    def _idle(self) -> list[tuple[str, SequenceState]]:
        return [(name, s) for name, s in self.state.sequences.items() if not s.reserved and not s.unread]

    def _ready(self) -> list[str]:
        return [name for name, s in self._idle() if s.computed < len(s.tokens)]

    def _done(self) -> list[str]:
        return [name for name, s in self._idle() if s.computed == len(s.tokens) and not s.drafts]
