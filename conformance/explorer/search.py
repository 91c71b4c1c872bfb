"""Breadth-first search over the reachable states of an implementation: the first violation has the shortest program."""

import gc
import time
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

from kvspec.conformance.explorer.blocks import BlockNames
from kvspec.conformance.explorer.certificate import Certificate
from kvspec.conformance.explorer.copies import Copier, NotFaithful
from kvspec.conformance.explorer.digest import Digests
from kvspec.conformance.explorer.faithful import check_equal, check_replay
from kvspec.conformance.explorer.identity import hidden_part, way_to_tell_apart
from kvspec.conformance.explorer.judging import QUIET, JudgeClass, Judging, NotLinked, Pools, Ruling
from kvspec.conformance.explorer.node import Node
from kvspec.conformance.explorer.watchdog import watching
from kvspec.conformance.explorer.world import Alphabet, SmallWorld
from kvspec.conformance.lockstep import ask
from kvspec.conformance.program import Counterexample, Program, run
from kvspec.conformance.render.words import spoken
from kvspec.impl.adapter import Adapter, Implementation
from kvspec.spec import operations as op
from kvspec.spec.clauses import CLAUSES, clauses_of
from kvspec.spec.declaration import Declaration
from kvspec.spec.judge import Violation
from kvspec.spec.state import Snapshot

CONTEXT = "explorer"
FEW = 4096  # of the first states more are compared with states that should be equal
CHECK_ONE_OF = 64  # states compared with a replay from scratch: the first ones, and then one of so many


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


class _Found(Exception):
    """Carries a violation out of the search."""

    def __init__(self, number: int, operation: int, violation: Violation, quiet: list[int]) -> None:
        super().__init__(violation)
        self.number, self.operation, self.violation, self.quiet = number, operation, violation, quiet


class _Stopped(Exception):
    """The search was stopped; the message says why."""


def _by_class(frontier: list[Node]) -> dict[JudgeClass, list[Node]]:
    """The states of each class, in the order in which the classes were met; the frontier is emptied."""
    groups: dict[JudgeClass, list[Node]] = {}
    for node in frontier:
        groups.setdefault(node.judged, []).append(node)
    frontier.clear()
    return groups


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
        wanted: str | None = None,
        invariants: bool = False,
    ) -> None:
        self.implementation, self.world, self.muted, self.progress = implementation, world, muted, progress
        self.wanted = wanted
        self.copier = Copier(implementation, world.world, way)
        self.alphabet = Alphabet(world)
        root = self.copier.create()
        self.copier.check_kind(root)
        self._observe = hasattr(root, "snapshot")
        shown = root.snapshot() if self._observe else None  # type: ignore[attr-defined]
        self.identity = way_to_tell_apart(root, shown)
        self._hidden = hidden_part(self.identity)
        self.names = BlockNames(implementation.declaration.block_ids(world.blocks))
        self.judging = Judging(implementation, self.alphabet, self.names, muted, invariants)
        self.digests = Digests(self.alphabet, self.names)
        declared = implementation.declaration
        self._follows = declared.repoints or declared.evicts_early
        self._trusts_release = not muted & {"REFCOUNT", "PARTITION"}
        self.performed, self.calling = 0, False
        self.visited: set[bytes] = set()
        self.counted: set[bytes] = self.visited if self._hidden is None else set()
        self.parents, self.causes = array("I"), array("H")
        self.levels: list[int] = []
        self.expansions: Counter[tuple[tuple[str, int], ...]] = Counter()
        self.transitions = self.checked = 0
        self.quiet: list[int] = []
        self._is_release = [type(operation) is op.Release for operation in self.alphabet.operations]
        self.samples: dict[bytes, Node] = {}
        self.frontier = self._start(root, shown)

    def _start(self, root: Adapter, shown: Snapshot | None) -> list[Node]:
        judged = self.judging.start()
        node = Node(root, judged, 0, 0, shown, self.digests.key(judged, 0, 0, shown))
        self.levels.append(0)
        self.remember(node, 0, 0)
        if self.copier.way == "replay":
            node.adapter = None
        return [node]

    # Running -----------------------------------------------------------------------------------------------------

    def run(
        self, limit_states: int | None = None, limit_seconds: float | None = None, limit_depth: int | None = None
    ) -> Exploration:
        """Explore until everything is explored, something is found, or a limit is reached."""
        started = time.monotonic()
        deadline = started + limit_seconds if limit_seconds is not None else None
        certificate = Certificate(self.implementation.name, self.world.as_data())
        found = None
        collected = gc.isenabled()
        gc.disable()
        try:
            with watching(self):
                self._search(limit_states, deadline, limit_depth)
            certificate.stopped = self._doubt()
            certificate.exhausted = not certificate.stopped
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

    def _doubt(self) -> str:
        """Why nothing is exhausted although nothing is left, or nothing."""
        if self.wanted:
            return f"only {self.wanted} was looked for"
        return "the manager's state cannot be seen" if self.identity == "unseen" else ""

    def _fill(self, certificate: Certificate, seconds: float) -> None:
        certificate.states, certificate.transitions = len(self.counted), self.transitions
        certificate.levels = [size for size in self.levels if size]
        certificate.depth = len(certificate.levels) - 1
        certificate.operations = self._operations()
        certificate.muted, certificate.told_apart = sorted(self.muted), self.identity
        certificate.copied, certificate.expanded = self.copier.way, len(self.visited)
        certificate.checked, certificate.seconds = self.checked, round(seconds, 3)
        certificate.evaluated = self.judging.evaluated
        certificate.seal()

    def _operations(self) -> dict[str, int]:
        kinds: Counter[str] = Counter()
        for found, times in self.expansions.items():
            kinds.update({kind: count * times for kind, count in found})
        return dict(sorted(kinds.items()))

    def _search(self, limit_states: int | None, deadline: float | None, limit_depth: int | None) -> None:
        while self.frontier:
            if limit_depth is not None and len(self.levels) > limit_depth:
                raise _Stopped(f"limit of {limit_depth} operations")
            self._level(limit_states, deadline)
            gc.collect(1)

    def _level(self, limit_states: int | None, deadline: float | None) -> None:
        """Expand all states of one depth, those of one class together: then it is judged once for all of them."""
        following: list[Node] = []
        self.levels.append(0)
        waiting = len(self.frontier)
        for judged, nodes in _by_class(self.frontier).items():
            nodes.reverse()
            while nodes:
                self._expand(nodes.pop(), following)
                waiting -= 1
                if limit_states is not None and len(self.visited) >= limit_states:
                    raise _Stopped(f"limit of {limit_states:,} states")
                if deadline is not None and time.monotonic() > deadline:
                    raise _Stopped("time limit")
                if self.progress and not waiting % 64:
                    here = Progress(len(self.counted), self.transitions, waiting + len(following), len(self.levels) - 1)
                    self.progress(here)
            self.judging.retire(judged)
        self.frontier = following

    # One state ---------------------------------------------------------------------------------------------------

    def _expand(self, node: Node, following: list[Node]) -> None:
        """Perform every possible operation in this state, each on a manager of its own.

        A manager that is in the same state afterwards, as after a refusal, serves for the next operation as well.  The
        last operation is performed on the original, once it is certain that the operations on its copies left it alone.
        """
        back = self.alphabet.renamed[self.alphabet.inverse[node.renaming]]
        again, self.quiet = None, []
        left = len(node.judged.possible)
        for operation in node.judged.possible:
            left -= 1
            adapter = (again or self.manager_in(node)) if left else self._original(node, again)
            actual = back[operation]
            again = adapter if self._same_after(node, adapter, operation, actual, following) else None
            self.quiet = [*self.quiet, actual] if again else []
        if node.counts:
            self.transitions += len(node.judged.possible)
            self.expansions[node.judged.kinds] += 1
        if node.number < CHECK_ONE_OF or not node.number % CHECK_ONE_OF:
            self.checked += check_replay(self, node)

    def _same_after(self, node: Node, adapter: Adapter, operation: int, actual: int, following: list[Node]) -> bool:
        """As `_perform`; if one clause is wanted, violations of others are dead ends."""
        try:
            return self._perform(node, adapter, operation, actual, following)
        except _Found as found:
            if self.wanted in (None, found.violation.clause):
                raise
            return False

    def _original(self, node: Node, again: Adapter | None) -> Adapter:
        if node.adapter is not None and self.look(node.adapter) != node.shown:
            raise NotFaithful(f"an operation on a copy changed the original, after {self.spell(node.number)}")
        if again is not None:
            return again
        return node.adapter if node.adapter is not None else self.manager_in(node)

    def manager_in(self, node: Node) -> Adapter:
        """A manager in this state, to be done with as one likes.  Raises NotFaithful if it can be copied no more."""
        if node.adapter is None:
            return self.replay(node.number)
        try:
            if node.copies is None:
                node.copies = self.copier.many(node.adapter)
            return node.copies()  # type: ignore[no-any-return]
        except Exception as error:
            after = self.spell(node.number)
            raise NotFaithful(f"no copy can be made, after {after}: {type(error).__name__}: {error}") from error

    def replay(self, number: int) -> Adapter:
        """A fresh manager, brought into a state by its shortest program."""
        adapter = self.copier.create()
        for operation in self.program(number):
            self.ask(adapter, operation)
        return adapter

    def _perform(self, node: Node, adapter: Adapter, operation: int, actual: int, following: list[Node]) -> bool:
        """Perform and rule; true if the manager is in the same state as before.  Raises _Found."""
        outcome, shown = self.ask(adapter, self.alphabet.operations[actual])
        answer = self.names.rename_outcome(outcome, node.blocks)
        same = shown == node.shown
        if not same and (type(outcome) in QUIET or operation in node.judged.second_releases):
            self._inspect(node, operation, actual, answer, shown)
        try:
            ruling = self.judging.rule(node.judged, operation, answer, self.pools(node, shown))
        except NotLinked as difference:
            path = (*self.program(node.number), self.alphabet.operations[actual])
            raise NotLinked(f"{difference}, after {'; '.join(map(spoken, path))}") from None
        if isinstance(ruling, Violation):
            raise _Found(node.number, actual, ruling, self.quiet)
        if same and ruling.after is node.judged and not ruling.renaming and not ruling.blocks and not self._hidden:
            return True
        arrived = self.arrive(node, adapter, ruling, shown)
        if self.remember(arrived, node.number, actual):
            self._look_into(node, arrived, operation, actual, answer)
            following.append(arrived)
        elif not self._trusts_release:
            self._inspect(node, operation, actual, answer, shown)
        return False

    def pools(self, node: Node, shown: Snapshot | None) -> Pools | None:
        """What the judge must see of the cache, in local names, where it follows a cache."""
        if not self._follows or node.shown is None or shown is None:
            return None
        get = self.names.maps[node.blocks].get

        def local(pool: tuple[int, ...] | None) -> tuple[int, ...] | None:
            return None if pool is None else tuple(sorted([get(block, block) for block in pool]))

        earlier, now = (Snapshot(free=local(each.free), owned=local(each.owned)) for each in (node.shown, shown))
        return earlier, now

    def arrive(self, node: Node, adapter: Adapter | None, ruling: Ruling, shown: Snapshot | None) -> Node:
        """The state that an operation in `node` leads to."""
        renaming = self.alphabet.after[ruling.renaming][node.renaming]
        blocks = self.names.after(ruling.blocks, node.blocks) if ruling.blocks else node.blocks
        return Node(
            adapter, ruling.after, renaming, blocks, shown, self.digests.key(ruling.after, renaming, blocks, shown)
        )

    def _look_into(self, node: Node, arrived: Node, operation: int, actual: int, answer: op.Outcome) -> None:
        """What a state shows is judged once, when it is new, and in full if something is wrong with it.

        What a release must leave behind is part of PARTITION and REFCOUNT, unless these are only noted.
        """
        released = self._is_release[operation] and not self._trusts_release
        if released or self._broken(arrived.judged, arrived.renaming, arrived.blocks, arrived.shown):
            self._inspect(node, operation, actual, answer, arrived.shown)
        if self.copier.way == "replay":
            arrived.adapter = None

    def _broken(self, judged: JudgeClass, renaming: int, blocks: int, shown: Snapshot | None) -> bool:
        if shown is None:
            return False
        local = self.names.rename_snapshot(shown, blocks, self.alphabet.renamings[renaming].tokens)
        assert local is not None
        return self.judging.breaks_an_invariant(judged, renaming, local)

    def ask(self, adapter: Adapter, operation: op.Operation) -> tuple[op.Outcome, Snapshot | None]:
        """Perform an operation; the answer, and what the manager shows then."""
        self.calling = True
        outcome = ask(adapter, operation)
        try:
            shown = adapter.snapshot() if self._observe else None  # type: ignore[attr-defined]
        except Exception as error:
            outcome, shown = op.Nonsense(f"its state cannot be read: {type(error).__name__}: {error}"), None
        self.calling = False
        self.performed += 1
        return outcome, shown

    def look(self, adapter: Adapter) -> Snapshot | None:
        """What a manager shows."""
        return adapter.snapshot() if self._observe else None  # type: ignore[attr-defined,no-any-return]

    def _inspect(self, node: Node, operation: int, actual: int, answer: op.Outcome, shown: Snapshot | None) -> None:
        """Judge with all that is shown, in full; raises _Found."""
        tokens = self.alphabet.renamings[node.renaming].tokens
        earlier = self.names.rename_snapshot(node.shown, node.blocks, tokens)
        now = self.names.rename_snapshot(shown, node.blocks, tokens)
        violation = self.judging.inspect(node.judged, operation, answer, earlier, now, node.renaming)
        if violation:
            raise _Found(node.number, actual, violation, self.quiet)

    def remember(self, node: Node, parent: int, cause: int) -> bool:
        """Is this state new?  Then it gets its number."""
        key = node.key
        if self._hidden:
            node.counts = key not in self.counted
            self.counted.add(key)
            key = blake2b(key + self._hidden(node.adapter), digest_size=16).digest()
        if key in self.visited:
            if key in self.samples:
                self.checked += check_equal(self, node, key, parent, cause)
            return False
        self.visited.add(key)
        node.number = len(self.parents)
        self.parents.append(parent)
        self.causes.append(cause)
        self.levels[-1] += node.counts
        if not key[0] % (32 if node.number < FEW else 256):
            self.samples[key] = node.without_adapter()
        return True

    # Programs ----------------------------------------------------------------------------------------------------

    def program(self, number: int) -> tuple[op.Operation, ...]:
        """The shortest program to a state."""
        steps = []
        while number:
            steps.append(self.alphabet.operations[self.causes[number]])
            number = self.parents[number]
        return tuple(reversed(steps))

    def spell(self, number: int) -> str:
        """The same in words."""
        return "; ".join(map(spoken, self.program(number))) or "nothing"

    def _counterexample(self, found: _Found) -> Counterexample:
        """The program, run once more from scratch, must break the same clause.

        If it takes the operations that seemed to change nothing, the program is longer, and not proved the shortest.
        """
        path = self.program(found.number)
        for quiet in ([], found.quiet):
            operations = (*path, *(self.alphabet.operations[each] for each in (*quiet, found.operation)))
            program = Program(self.world.world, operations)
            lockstep, violation = run(self.implementation, program, self.muted)
            if violation is not None and len(lockstep.operations) == len(operations):
                return Counterexample(program, violation, CONTEXT, self.muted, shortest=not quiet)
        said = f"a copy broke {found.violation.clause} ({found.violation.because})"
        raise NotFaithful(f"{said}, a fresh manager does not: {'; '.join(map(spoken, operations))}")


def explore(
    implementation: Implementation,
    world: SmallWorld,
    muted: frozenset[str] | None = None,
    limit_states: int | None = None,
    limit_seconds: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    way: str = "auto",
    limit_depth: int | None = None,
    wanted: str | None = None,
    invariants: bool = False,
) -> Exploration:
    """Explore everything that `implementation` can reach in `world`.

    `muted`: clauses that are noted only; by default the survivable ones of profiles that are not declared.  `way` to go
    back to a state: copy, deepcopy, replay, or what is possible.  `limit_depth`: the most operations of a program.
    `wanted`: only a violation of this clause counts, others are dead ends, and nothing is exhausted.  `invariants`: what
    is proved of the micro-steps is evaluated after each transition.
    Raises lockstep.CannotCreate, NotFaithful if copies or replays cannot be trusted, or NotLinked if something that is
    proved does not hold.
    """
    muted = undeclared(implementation.declaration) if muted is None else muted
    search = Search(implementation, world, muted, way, progress, wanted, invariants)
    return search.run(limit_states, limit_seconds, limit_depth)
