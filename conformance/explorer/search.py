"""Breadth-first search over the reachable states of an implementation: the first violation has the shortest program."""

import gc
import time
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kvspec.conformance.explorer.blocks import BlockNames
from kvspec.conformance.explorer.certificate import Certificate
from kvspec.conformance.explorer.copies import Copier, NotFaithful
from kvspec.conformance.explorer.digest import Digests
from kvspec.conformance.explorer.identity import hidden_part, way_to_tell_apart
from kvspec.conformance.explorer.judging import JudgeClass, Judging
from kvspec.conformance.explorer.watchdog import watching
from kvspec.conformance.explorer.world import Alphabet, SmallWorld
from kvspec.conformance.lockstep import ask
from kvspec.conformance.program import Counterexample, Program, run
from kvspec.impl.adapter import Adapter, Implementation
from kvspec.spec import operations as op
from kvspec.spec.clauses import CLAUSES, clauses_of
from kvspec.spec.declaration import Declaration
from kvspec.spec.judge import Violation
from kvspec.spec.state import Snapshot

CONTEXT = "explorer"
CHECK_ONE_OF = 128  # how rarely a state is compared with a replay from scratch, and with an equal state


@dataclass(frozen=True, slots=True)
class Exploration:
    """What is known now: how much was explored, and the shortest program to a violation, if there is one."""

    certificate: Certificate
    counterexample: Counterexample | None


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a search stands."""

    states: int
    transitions: int
    frontier: int
    depth: int


class Node:
    """A state that is to be expanded: a manager in it (None if it must be replayed), and its judge's state.

    `renaming` and `blocks` lead from the names that the manager knows to those of `judged`.  `number`: in the order of
    discovery.
    """

    __slots__ = ("adapter", "blocks", "judged", "key", "number", "renaming", "shown")

    def __init__(
        self,
        adapter: Adapter | None,
        judged: JudgeClass,
        renaming: int,
        blocks: int,
        shown: Snapshot | None,
        number: int,
        key: bytes,
    ) -> None:
        self.adapter, self.judged, self.renaming, self.blocks = adapter, judged, renaming, blocks
        self.shown, self.number, self.key = shown, number, key


class _Found(Exception):
    """Carries a violation out of the search."""

    def __init__(self, number: int, operation: int, violation: Violation) -> None:
        super().__init__(violation)
        self.number, self.operation, self.violation = number, operation, violation


class _Stopped(Exception):
    """The search was stopped; the message says why."""


def undeclared(declaration: Declaration) -> frozenset[str]:
    """The survivable clauses that no declared profile claims: they are noted, and do not end an exploration."""
    claimed = {clause.slug for profile in declaration.profiles for clause in clauses_of(profile)}
    return frozenset(slug for slug, clause in CLAUSES.items() if clause.survivable) - claimed


class Search:
    """One exploration.  `performed` counts operations on managers, `calling` is true inside a manager."""

    def __init__(
        self,
        implementation: Implementation,
        world: SmallWorld,
        muted: frozenset[str],
        way: str = "auto",
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.implementation, self.world, self.muted, self.progress = implementation, world, muted, progress
        self.copier = Copier(implementation, world.world, way)
        self.alphabet = Alphabet(world)
        root = self.copier.create()
        self._observe = hasattr(root, "snapshot")
        shown = root.snapshot() if self._observe else None  # type: ignore[attr-defined]
        self.identity = way_to_tell_apart(root, shown)
        self._hidden = hidden_part(self.identity)
        declared = implementation.declaration.unusable
        self.names = BlockNames(frozenset(range(world.blocks + len(declared))) - declared)
        self.judging = Judging(implementation, self.alphabet, self.names, muted)
        self.digests = Digests(self.alphabet, self.names)
        self._trusts_release = not muted & {"REFCOUNT", "PARTITION"}
        self.performed, self.calling = 0, False
        self.visited: set[bytes] = set()
        self.counted: set[bytes] = self.visited if self._hidden is None else set()
        self.parents, self.causes = array("I"), array("H")
        self.levels: list[int] = []
        self.kinds: Counter[str] = Counter()
        self.transitions = self.checked = 0
        self._kind = [type(operation).__name__.lower() for operation in self.alphabet.operations]
        self.frontier = self._start(root, shown)

    def _start(self, root: Adapter, shown: Snapshot | None) -> list[Node]:
        judged = self.judging.start()
        key = self._remember(root, judged, 0, 0, shown, 0, 0)
        assert key is not None
        self.levels.append(1)
        return [Node(root, judged, 0, 0, shown, 0, key)]

    # Running -----------------------------------------------------------------------------------------------------

    def run(self, limit_states: int | None = None, limit_seconds: float | None = None) -> Exploration:
        """Explore until everything is explored, something is found, or a limit is reached."""
        started = time.monotonic()
        deadline = started + limit_seconds if limit_seconds is not None else None
        certificate = Certificate(self.implementation.name, self.world.as_data())
        found = None
        collected = gc.isenabled()
        gc.disable()
        try:
            with watching(self):
                self._search(limit_states, deadline)
            certificate.exhausted = self.identity != "unseen"
            certificate.stopped = "" if certificate.exhausted else "the manager's state cannot be seen"
        except _Stopped as stopped:
            certificate.stopped = str(stopped)
        except KeyboardInterrupt:
            certificate.stopped = "interrupted"
        except _Found as violation:
            found = self._counterexample(violation)
            certificate.stopped, certificate.violation = "a clause is violated", found.violation.clause
        finally:
            if collected:
                gc.enable()
        self._fill(certificate, time.monotonic() - started)
        return Exploration(certificate, found)

    def _fill(self, certificate: Certificate, seconds: float) -> None:
        certificate.states, certificate.transitions = len(self.counted), self.transitions
        certificate.levels = [size for size in self.levels if size]
        certificate.depth = len(certificate.levels) - 1
        certificate.operations = dict(sorted(self.kinds.items()))
        certificate.muted, certificate.told_apart = sorted(self.muted), self.identity
        certificate.copied, certificate.expanded = self.copier.way, len(self.visited)
        certificate.checked, certificate.seconds = self.checked, round(seconds, 3)
        certificate.seal()

    def _search(self, limit_states: int | None, deadline: float | None) -> None:
        while self.frontier:
            following: list[Node] = []
            self.levels.append(0)
            for place, node in enumerate(self.frontier):
                self._expand(node, following)
                self.frontier[place] = None  # type: ignore[call-overload]
                if limit_states is not None and len(self.counted) >= limit_states:
                    raise _Stopped(f"limit of {limit_states:,} states")
                if deadline is not None and time.monotonic() > deadline:
                    raise _Stopped("time limit")
                if self.progress and not place % 64:
                    waiting = len(self.frontier) - place + len(following)
                    self.progress(Progress(len(self.counted), self.transitions, waiting, len(self.levels) - 1))
            self.frontier = following
            gc.collect(0)

    # One state ---------------------------------------------------------------------------------------------------

    def _expand(self, node: Node, following: list[Node]) -> None:
        """Perform every possible operation in this state, each on a manager of its own."""
        copier, judged = self.copier, node.judged
        back = self.alphabet.renamed[self.alphabet.inverse[node.renaming]]
        program = self._program(node.number) if copier.way == "replay" else ()
        copied = copier.copy
        first = node.key not in self.counted if self._hidden else True
        for operation in judged.possible:
            adapter = copied(node.adapter) if node.adapter is not None else copier.replay(program)
            self._perform(node, adapter, operation, back[operation], following)
        self.transitions += len(judged.possible)
        for operation in judged.possible:
            self.kinds[self._kind[operation]] += 1
        if node.adapter is not None and self._observe and self._look(node.adapter) != node.shown:
            raise NotFaithful(f"an operation on a copy changed the manager that was copied, after {self._spell(node.number)}")
        if not node.number % CHECK_ONE_OF:
            self._check_replay(node)

    def _perform(self, node: Node, adapter: Adapter, operation: int, actual: int, following: list[Node]) -> None:
        judged, names = node.judged, self.names
        outcome, shown = self._ask(adapter, self.alphabet.operations[actual])
        answer = names.rename_outcome(outcome, node.blocks)
        kind = type(outcome)
        quiet = kind is op.Refused or kind is op.Failed or kind is op.Nonsense
        if quiet and shown != node.shown:
            self._inspect(node, operation, actual, answer, shown)
        ruling = self.judging.rule(judged, operation, answer)
        if type(ruling) is Violation:
            raise _Found(node.number, actual, ruling)
        after = ruling.after  # type: ignore[union-attr]
        if quiet and after is judged and shown == node.shown and self._hidden is None:
            return
        renaming = self.alphabet.after[ruling.renaming][node.renaming]  # type: ignore[union-attr]
        blocks = names.after(ruling.blocks, node.blocks)  # type: ignore[union-attr]
        key = self._remember(adapter, after, renaming, blocks, shown, node.number, actual)
        if key is None and self._trusts_release:
            return
        self._inspect(node, operation, actual, answer, shown)
        if key is not None:
            self.levels[-1] += 1
            kept = None if self.copier.way == "replay" else adapter
            following.append(Node(kept, after, renaming, blocks, shown, len(self.parents) - 1, key))

    def _ask(self, adapter: Adapter, operation: op.Operation) -> tuple[op.Outcome, Snapshot | None]:
        self.calling = True
        outcome = ask(adapter, operation)
        try:
            shown = adapter.snapshot() if self._observe else None  # type: ignore[attr-defined]
        except Exception as error:
            outcome, shown = op.Nonsense(f"its state cannot be read: {type(error).__name__}: {error}"), None
        self.calling = False
        self.performed += 1
        return outcome, shown

    def _look(self, adapter: Adapter) -> Snapshot | None:
        return adapter.snapshot() if self._observe else None  # type: ignore[attr-defined]

    def _inspect(self, node: Node, operation: int, actual: int, answer: op.Outcome, shown: Snapshot | None) -> None:
        """Judge with all that is shown, in full; raises _Found."""
        tokens = self.alphabet.renamings[node.renaming].tokens
        earlier = self.names.rename_snapshot(node.shown, node.blocks, tokens)
        now = self.names.rename_snapshot(shown, node.blocks, tokens)
        violation = self.judging.inspect(node.judged, operation, answer, earlier, now, node.renaming)
        if violation:
            raise _Found(node.number, actual, violation)

    def _remember(
        self, adapter: Adapter, judged: JudgeClass, renaming: int, blocks: int, shown: Snapshot | None, parent: int, cause: int
    ) -> bytes | None:
        """The key of a state, None if it was visited before."""
        key = self.digests.key(judged, renaming, blocks, shown)
        if self._hidden:
            self.counted.add(key)
            key += self._hidden(adapter)
        if key in self.visited:
            return None
        self.visited.add(key)
        self.parents.append(parent)
        self.causes.append(cause)
        return key

    # Programs ----------------------------------------------------------------------------------------------------

    def _program(self, number: int) -> tuple[op.Operation, ...]:
        """The shortest program to a state."""
        steps = []
        while number:
            steps.append(self.alphabet.operations[self.causes[number]])
            number = self.parents[number]
        return tuple(reversed(steps))

    def _spell(self, number: int) -> str:
        return "; ".join(map(str, self._program(number))) or "nothing"

    def _counterexample(self, found: _Found) -> Counterexample:
        """The program, run once more from scratch: it must break the same clause."""
        operations = (*self._program(found.number), self.alphabet.operations[found.operation])
        program = Program(self.world.world, operations)
        lockstep, violation = run(self.implementation, program, self.muted)
        if violation is None or len(lockstep.operations) != len(operations):
            shown = "; ".join(map(str, operations))
            raise NotFaithful(f"a copy broke {found.violation.clause} ({found.violation.because}), a fresh manager does not: {shown}")
        return Counterexample(program, violation, CONTEXT, self.muted, shortest=True)

    def _check_replay(self, node: Node) -> None:
        """A manager that was copied along the way shows what a fresh one shows after the same program."""
        if node.adapter is None or not self._observe:
            return
        self.checked += 1
        fresh = self._look(self.copier.replay(self._program(node.number)))
        if fresh != node.shown:
            raise NotFaithful(f"a copied manager shows {node.shown}, a fresh one {fresh}, after {self._spell(node.number)}")


def explore(
    implementation: Implementation,
    world: SmallWorld,
    muted: frozenset[str] | None = None,
    limit_states: int | None = None,
    limit_seconds: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    way: str = "auto",
) -> Exploration:
    """Explore everything that `implementation` can reach in `world`.

    `muted`: clauses that are noted only; by default the survivable ones of profiles that are not declared.
    Raises lockstep.CannotCreate, or NotFaithful if copies or replays cannot be trusted.
    """
    muted = undeclared(implementation.declaration) if muted is None else muted
    return Search(implementation, world, muted, way, progress).run(limit_states, limit_seconds)
