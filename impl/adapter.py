"""What kvspec needs from an implementation: five operations, and whatever it likes to show of itself.

An adapter translates the operations of ``spec.operations`` into calls of one engine.  It holds no opinion: it never
repairs or retries, and rules on nothing.  It may raise, hang or answer nonsense: whoever drives it makes outcomes of that
(``conformance.lockstep.ask``).  One that can tell more of a failure, as whether the manager had said yes just before,
returns ``Failed`` or ``Nonsense`` itself.

What only some engines can do (``spec.extensions``) are more methods, each with the fields of its operation as arguments:
``extend(sequence, tokens, drafts)``, ``truncate(sequence, length)``, ``reset()``, ``probe(tokens, limit, namespace)``,
``retain(sequence, owner)``, ``drop(owner)``.  They are asked only of an adapter that declares the profile.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from kvspec.spec.declaration import Declaration
from kvspec.spec.operations import Outcome
from kvspec.spec.state import Snapshot, World


@runtime_checkable
class Adapter(Protocol):
    """One fresh manager in one world, behind the five operations."""

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> Outcome:
        """Look up the longest cached prefix, make room, reserve at most `limit` tokens: `Admitted` or `Refused`."""

    def reserve(self, sequence: str, count: int) -> Outcome:
        """Plan the next `count` known tokens of `sequence`: `Reserved` or `Refused`."""

    def commit(self, sequences: tuple[str, ...]) -> Outcome:
        """The forward pass of these sequences has ended: `Committed`."""

    def append(self, sequence: str, token: int) -> Outcome:
        """A sampled token joins: `Appended`."""

    def release(self, sequence: str, cause: str) -> Outcome:
        """Give the blocks back: `Released`.  Must also accept a sequence that was released already."""


@runtime_checkable
class Observable(Protocol):
    """An adapter that shows the inside of its manager."""

    def snapshot(self) -> Snapshot:
        """Free list, reference counts, index …; ``None`` for what cannot be seen."""


@runtime_checkable
class Copyable(Protocol):
    """An adapter that can be copied faster than ``copy.deepcopy`` does it."""

    def copy(self) -> Any:
        """An independent adapter in the same state."""


@dataclass(frozen=True)
class Implementation:
    """A loaded implementation: how to make a fresh manager, and what it declares.

    `create(world)` raises if the manager does not accept the world.  `chain_hash(tokens, prefix)` is the manager's own
    chain hash (``prefix`` is ``None`` for the first block), or ``None`` where it has none to show.  `target` is the text
    given to ``--impl``; `source` is the file it came from; `shape` says which calls the adapter found; `version` is that of
    the engine, where it tells.
    """

    name: str
    declaration: Declaration
    create: Callable[[World], Adapter]
    target: str = ""
    source: str = ""
    shape: str = ""
    chain_hash: Callable[[tuple[int, ...], int | None], int] | None = None
    version: str = ""

    def declaring(self, profiles: Iterable[str]) -> "Implementation":
        """The same implementation, held to these profiles as well."""
        held = self.declaration.profiles | frozenset(profiles)
        return replace(self, declaration=replace(self.declaration, profiles=held))
