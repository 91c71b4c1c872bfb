"""A base that caches as radix trees do: it evicts more than it needs, and keeps what was sampled at the end only."""

from dataclasses import replace

from kvspec.impl.known_bad.bases.live import Live
from kvspec.impl.known_bad.bases.pooled import DECLARATION, Plan, Pooled
from kvspec.spec import operations as op
from kvspec.spec.declaration import Declaration, FullHit, Publish

PROFILES = frozenset({"pool", "prefix", "reuse", "chunked", "one"})


class Eager(Pooled):
    """The pooled base, but all that is cached goes at once, also for a step that is then refused."""

    base = "eager"
    declaration: Declaration = replace(
        DECLARATION,
        name="eager",
        profiles=PROFILES,
        publish=Publish.PROMPT,
        full_hit=FullHit.LAST_BLOCK,
        namespaces=False,
        evicts_early=True,
    )

    def find(self, tokens: tuple[int, ...], namespace: str) -> list[int]:
        return super().find(tokens, namespace)[: (len(tokens) - 1) // self.size]

    def carry_out(self, plan: Plan, live: Live) -> None:
        super().carry_out(plan, live)
        live.admitted = len(live.tokens)

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        live = self.known(sequence)
        if self.blocks_for(live.computed + count) - len(live.table) > len(self.empty):
            self.empty.extend(self.give_up())
        return super().reserve(sequence, count)

    def release(self, sequence: str, cause: str) -> op.Outcome:
        live = self.live.get(sequence)
        for entry in range(live.computed // self.size if live and cause == op.Cause.FINISHED else 0):
            self.publish(self.live[sequence], entry)
        return super().release(sequence, cause)

    def advance(self, live: Live) -> None:
        first, live.computed, live.reserved = live.computed // self.size, live.computed + live.reserved, 0
        for entry in range(first, min(live.computed, live.admitted) // self.size):
            self.publish(live, entry)

    def evict(self) -> int:
        self.empty.extend(self.give_up())
        return self.empty.popleft()

    def give_up(self) -> list[int]:
        """Forget all that is cached."""
        blocks, self.cached = list(self.cached), type(self.cached)()
        for block in blocks:
            self.forget(block)
        return blocks
