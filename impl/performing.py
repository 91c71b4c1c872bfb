"""Adapters of what takes operations as data: their methods make the operation and hand it to one function."""

from kvspec.spec import operations as op


class Performing:
    """The five operations, each handed to ``_perform``."""

    def _perform(self, operation: op.Operation) -> op.Outcome:
        """Perform one operation."""
        raise NotImplementedError

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        """Perform ``op.Admit``."""
        return self._perform(op.Admit(sequence, tokens, limit, namespace))

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        """Perform ``op.Reserve``."""
        return self._perform(op.Reserve(sequence, count))

    def commit(self, sequences: tuple[str, ...]) -> op.Outcome:
        """Perform ``op.Commit``."""
        return self._perform(op.Commit(sequences))

    def append(self, sequence: str, token: int) -> op.Outcome:
        """Perform ``op.Append``."""
        return self._perform(op.Append(sequence, token))

    def release(self, sequence: str, cause: str) -> op.Outcome:
        """Perform ``op.Release``."""
        return self._perform(op.Release(sequence, op.Cause(cause)))


class PerformingExtensions(Performing):
    """The extensions as well; they are asked only of who declares them."""

    def extend(self, sequence: str, tokens: tuple[int, ...], drafts: bool) -> op.Outcome:
        """Perform ``op.Extend``."""
        return self._perform(op.Extend(sequence, tokens, drafts))

    def truncate(self, sequence: str, length: int) -> op.Outcome:
        """Perform ``op.Truncate``."""
        return self._perform(op.Truncate(sequence, length))

    def reset(self) -> op.Outcome:
        """Perform ``op.Reset``."""
        return self._perform(op.Reset())

    def probe(self, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        """Perform ``op.Probe``."""
        return self._perform(op.Probe(tokens, limit, namespace))

    def retain(self, sequence: str, owner: str) -> op.Outcome:
        """Perform ``op.Retain``."""
        return self._perform(op.Retain(sequence, owner))

    def drop(self, owner: str) -> op.Outcome:
        """Perform ``op.Drop``."""
        return self._perform(op.Drop(owner))
