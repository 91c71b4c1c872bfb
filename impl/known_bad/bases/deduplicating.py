"""A base that keeps one of two equal blocks: whoever computed the other is repointed when the step ends."""

from dataclasses import replace

from kvspec.impl.known_bad.bases.counted import DECLARATION, Counted
from kvspec.impl.known_bad.bases.live import Live
from kvspec.spec.declaration import Declaration

PROFILES = frozenset({"pool", "prefix", "reuse", "chunked", "one", "robust"})


class Deduplicating(Counted):
    """The counting base, but a block whose prefix is published already goes back at once."""

    base = "deduplicating"
    declaration: Declaration = replace(DECLARATION, name="deduplicating", profiles=PROFILES, repoints=True)

    def publish(self, live: Live, entry: int) -> None:
        kept = self.published(live, entry)
        if kept is None:
            super().publish(live, entry)
        elif kept != live.table[entry]:
            self.repoint(live, entry, kept)

    def published(self, live: Live, entry: int) -> int | None:
        """The block that holds the prefix up to and with `entry` already."""
        end = (entry + 1) * self.size
        key = self.chain(tuple(live.tokens[entry * self.size : end]), self.parent(live, entry))
        return self.lookup(key, tuple(live.tokens[:end]), live.namespace)

    def repoint(self, live: Live, entry: int, kept: int) -> None:
        spare, live.table[entry] = live.table[entry], kept
        if not self.references[kept]:
            self.free.remove(kept)
        self.references[kept] += 1
        self.drop(spare)
