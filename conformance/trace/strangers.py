"""Judging a trace that starts in the middle: what is not known is assumed to be right once, and held against it later.

At the start no block's content is known, and live sequences are unknown (*strangers*).  The first hit on a block of
unknown content shows what it must hold; from then on it is judged like any other.  What depends on the whole pool (the
order of recycling, whether a refusal was right) cannot be judged and is muted; snapshots are not looked at.
"""

from kvspec.spec import operations as op
from kvspec.spec.state import EMPTY, Owner, State

UNKNOWABLE = frozenset({"FIFO", "TAIL-FIRST", "NO-MEANS-NO"})


class Strangers:
    """Prepares the state of the judge before each operation; `skipped` counts those that cannot be judged."""

    def __init__(self, state: State) -> None:
        self.state, self.skipped = state, 0
        state.muted |= UNKNOWABLE
        self._unknown = set(state.blocks)
        self._tables: dict[str, tuple[int, ...]] = {}

    def judgeable(self, request: op.Operation, answer: op.Outcome) -> tuple[op.Operation, op.Outcome] | None:
        """What can be judged of an operation, or None."""
        if isinstance(request, op.Admit):
            self._tables.pop(request.sequence, None)
            if isinstance(answer, op.Admitted):
                self._adopt(request, answer)
            return request, answer
        if isinstance(request, op.Commit):
            return self._commit(request, answer)
        if isinstance(request, op.Reset | op.Probe | op.Drop):
            return self._without_sequence(request, answer)
        if request.sequence in self.state.sequences:
            return request, answer
        if isinstance(answer, op.Reserved | op.Truncated):
            self._show(request.sequence, answer.table)
        elif isinstance(request, op.Release):
            self._tables.pop(request.sequence, None)
        self.skipped += 1
        return None

    def _without_sequence(
        self, request: op.Reset | op.Probe | op.Drop, answer: op.Outcome
    ) -> tuple[op.Operation, op.Outcome] | None:
        """Strangers may be what a reset is refused for, and a stranger may be the owner who drops."""
        refused = isinstance(request, op.Reset) and isinstance(answer, op.Refused)
        unknown = isinstance(request, op.Drop) and Owner(request.owner) not in self.state.owners
        if refused or unknown:
            self.skipped += 1
            return None
        return request, answer

    def _commit(self, request: op.Commit, answer: op.Outcome) -> tuple[op.Operation, op.Outcome] | None:
        live = self.state.sequences
        if all(name in live for name in request.sequences):
            return request, answer
        if not isinstance(answer, op.Committed):
            self.skipped += 1
            return None
        rows = list(zip(request.sequences, answer.tables, strict=True))
        for name, table in rows:
            if name not in live:
                self._show(name, table)
        known = [(name, table) for name, table in rows if name in live]
        if not known:
            self.skipped += 1
            return None
        names, tables = zip(*known, strict=True)
        return op.Commit(names), op.Committed(tables)

    def _adopt(self, request: op.Admit, answer: op.Admitted) -> None:
        """Blocks of unknown content that are hit hold what they must hold."""
        size, state = self.state.world.block_size, self.state
        root = state.prefixes.child(EMPTY, request.namespace)
        prefixes = state.prefixes.extend(root, request.tokens)
        hits = answer.cached // size
        for entry, block in enumerate(answer.table[:hits]):
            if block in self._unknown and entry * size + size <= len(prefixes):
                self._learn(block, prefixes[entry * size : entry * size + size])
        self._unknown.difference_update(answer.table)

    def _learn(self, block: int, prefixes: list[int]) -> None:
        ledger, last = self.state.ledger, prefixes[-1]
        for offset, prefix in enumerate(prefixes):
            self.state.memory[block * len(prefixes) + offset] = prefix
        ledger.hash[block] = ledger.content[block] = ledger.identity[block] = last
        ledger.index[last] = block

    def _show(self, name: str, table: tuple[int, ...]) -> None:
        """A stranger shows its table: what it took since is of unknown content."""
        for block in set(table) - set(self._tables.get(name, ())):
            if block in self.state.blocks and not self.state.ledger.used[block]:
                self._forget(block)
        self._tables[name] = table

    def _forget(self, block: int) -> None:
        state, size = self.state, self.state.world.block_size
        key = state.ledger.hash[block]
        if state.ledger.index[key] == block:
            del state.ledger.index[key]
        for values in (state.ledger.hash, state.ledger.content, state.ledger.identity):
            values.pop(block, None)
        for slot in range(block * size, block * size + size):
            state.memory.pop(slot, None)
        if block in state.copies.get(key, ()):
            state.copies[key].discard(block)
            if not state.copies[key]:
                del state.copies[key]
                state.twinned.discard(key)
        self._unknown.add(block)
