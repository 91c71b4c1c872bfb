"""The judge, remembered: equal states up to all names are judged once for each operation and answer.

The judge never depends on block numbers, so all states that differ only in the names of sequences, tokens and blocks
form one class, and what it rules on an operation and its answer in one of them holds, renamed, in all of them.  A class
keeps one judge's state as its representative ("local" names).  Classes live as long as the frontier needs them.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any
from weakref import WeakValueDictionary

from kvspec.conformance.explorer.blocks import BlockNames
from kvspec.conformance.explorer.canonical import Numbering, canonical
from kvspec.conformance.explorer.world import Alphabet, Possible
from kvspec.conformance.lockstep import answered_key
from kvspec.impl.adapter import Implementation
from kvspec.spec import operations as op
from kvspec.spec.invariants import STATE_INVARIANTS
from kvspec.spec.judge import Violation, advance, begin
from kvspec.spec.proofs.link import broken_invariants
from kvspec.spec.state import EMPTY, Prefixes, Snapshot, State
from kvspec.spec.steps import INVARIANTS

MOST_KEPT = 200_000  # rulings of classes that are not in the frontier: about 100 MB
Pools = tuple[Snapshot, Snapshot]  # free blocks and those of the cache, before and after an operation
QUIET = frozenset((op.Refused, op.Failed, op.Nonsense))  # answers after which nothing may have changed


class NotLinked(Exception):
    """After an operation the judge's state lacks what is proved of every state: the proof and its execution differ."""


class JudgeClass:
    """All judge's states that are equal up to names; `state` is the representative.

    `digest` stands for the canonical form, `numberings` lead from the representative to it.  `possible`: what may be
    asked, and how many operations of which kind.  `rulings`: (operation, answer) in local names -> what follows.
    `orders`: (numbering, block names) -> the blocks in canonical order, for keys of states (``digest``).
    """

    __slots__ = (
        "__weakref__",
        "digest",
        "kinds",
        "numberings",
        "orders",
        "possible",
        "rulings",
        "second_releases",
        "state",
    )

    def __init__(self, state: State, digest: bytes, numberings: list[Numbering], possible: Possible) -> None:
        self.state, self.digest, self.numberings = state, digest, numberings
        self.possible, self.kinds = possible.operations, possible.kinds
        self.second_releases = possible.second_releases
        self.rulings: dict[Any, Ruling | Violation] = {}
        self.orders: dict[tuple[int, int], bytes] = {}


@dataclass(frozen=True, slots=True)
class Ruling:
    """What follows: a class, and the way from the local names before to the local names after."""

    after: JudgeClass
    renaming: int
    blocks: int


class Judging:
    """All classes of one small world.

    `invariants`: evaluate what is proved (``spec.steps.INVARIANTS``) after every transition; states that are equal up to
    names have it or lack it together.  `evaluated` counts the states in which that was done.
    """

    def __init__(
        self,
        implementation: Implementation,
        alphabet: Alphabet,
        names: BlockNames,
        muted: frozenset[str],
        invariants: bool = False,
    ) -> None:
        self.evaluates, self.evaluated = invariants, 0
        self.alphabet, self.names, self.muted = alphabet, names, muted
        self.implementation, self.prefixes = implementation, Prefixes()
        self.classes: WeakValueDictionary[bytes, JudgeClass] = WeakValueDictionary()
        self._keys = [_key_function(implementation, alphabet, self.prefixes, r) for r in range(len(alphabet.renamings))]
        self._invariants = [(slug, broken) for slug, broken in STATE_INVARIANTS.items() if slug not in muted]
        self._retired: deque[JudgeClass] = deque()
        self._kept = 0
        self.calls = 0

    def start(self) -> JudgeClass:
        """The class before the first operation; local and actual names agree."""
        state = begin(self.alphabet.world.world, self.implementation.declaration, self.prefixes)
        state.muted = self.muted
        return self.enter(state).after

    def rule(
        self, before: JudgeClass, operation: int, outcome: op.Outcome, pools: Pools | None = None
    ) -> Ruling | Violation:
        """What follows when `operation` has `outcome`, both in local names.

        Of the state that is shown only the `pools` are looked at, and only where the declaration lets the cache decide
        what must be found.
        """
        found = before.rulings.get((operation, outcome, pools))
        if found is None:
            found = before.rulings[operation, outcome, pools] = self._rule_anew(before, operation, outcome, pools)
        return found

    def _rule_anew(
        self, before: JudgeClass, operation: int, outcome: op.Outcome, pools: Pools | None
    ) -> Ruling | Violation:
        """Refusals, failures and second releases leave the judge's state alone: no copy is needed, and none is made."""
        alone = pools is None and (type(outcome) in QUIET or operation in before.second_releases)
        state = before.state if alone else before.state.copy()
        earlier, now = pools or (None, None)
        state.shown = earlier
        violation = self._advance(state, operation, outcome, now)
        if self.evaluates and not alone and violation is None:
            self._evaluate(state)
        return violation or (Ruling(before, 0, 0) if alone else self.enter(state))

    def _evaluate(self, state: State) -> None:
        self.evaluated += 1
        for slug, where in broken_invariants(state):
            variables = ", ".join(f"{kind} {each}" for kind, each in zip(_kinds(slug), where, strict=True))
            raise NotLinked(f"{slug} is proved of every state ({INVARIANTS[slug].sentence}), but fails for {variables}")

    def inspect(
        self,
        before: JudgeClass,
        operation: int,
        outcome: op.Outcome,
        earlier: Snapshot | None,
        shown: Snapshot | None,
        renaming: int,
    ) -> Violation | None:
        """As `rule`, with all that is shown (in local names, but hashes as they are) and nothing remembered.

        `renaming` leads from actual to local names: a hash says something of the actual tokens.
        """
        state = before.state.copy()
        state.shown, state.key_of = earlier, self._keys[self.alphabet.inverse[renaming]]
        return self._advance(state, operation, outcome, shown)

    def breaks_an_invariant(self, judged: JudgeClass, renaming: int, shown: Snapshot) -> bool:
        """Does what is shown, in local names, contradict the judge's state?  As at the end of ``judge.advance``."""
        state = judged.state
        state.key_of = self._keys[self.alphabet.inverse[renaming]]
        settled = not any(sequence.unread for sequence in state.sequences.values())
        return any(broken(state, shown) for slug, broken in self._invariants if settled or not slug.startswith("INDEX"))

    def retire(self, judged: JudgeClass) -> None:
        """All states of this class in the frontier are expanded: keep its rulings for a while, for states met later."""
        self._retired.append(judged)
        self._kept += len(judged.rulings)
        while self._kept > MOST_KEPT:
            oldest = self._retired.popleft()
            self._kept -= len(oldest.rulings)
            oldest.rulings.clear()

    def _advance(self, state: State, operation: int, outcome: op.Outcome, shown: Snapshot | None) -> Violation | None:
        self.calls += 1
        violation = advance(state, self.alphabet.operations[operation], outcome, shown)
        state.noted.clear()
        return violation

    def enter(self, state: State) -> Ruling:
        """The class of a state, and the way from the names of this state to the local ones of the class."""
        form, numberings = canonical(state, self.alphabet)
        digest = blake2b(form, digest_size=16).digest()
        known = self.classes.get(digest)
        if known is None:
            state.shown = state.key_of = None
            known = JudgeClass(state, digest, numberings, self.alphabet.possible(state))
            self.classes[digest] = known
            return Ruling(known, 0, 0)
        return Ruling(known, *self._way(numberings[0], known.numberings[0]))

    def _way(self, source: Numbering, target: Numbering) -> tuple[int, int]:
        names = _through(source.names, target.names)
        tokens = tuple(target.tokens.index(number) for number in source.tokens)
        return self.alphabet.place(names, tokens), self.names.way(source.blocks, target.blocks)


def _kinds(slug: str) -> list[str]:
    """What the variables of a proved invariant stand for."""
    names = {"s": "sequence", "t": "entry", "b": "block", "h": "key"}
    return [names[letter] for letter in INVARIANTS[slug].variables]


def _through(source: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """The permutation that sends each entry of `source` to the entry of `target` at the same place."""
    pairs = dict(zip(source, target, strict=True))
    return tuple(pairs[each] for each in range(len(source)))


def _key_function(
    implementation: Implementation, alphabet: Alphabet, prefixes: Prefixes, renaming: int
) -> Callable[[int], int] | None:
    """The manager's chain hash of a prefix in local names; `renaming` leads to the actual ones."""
    chain_hash, world = implementation.chain_hash, alphabet.world
    if chain_hash is None or world.weak_hash:
        return None
    actual, known = alphabet.renamings[renaming].tokens, dict[int, int]()
    key_after = answered_key(chain_hash)

    def key_of(prefix: int) -> int:
        if prefix not in known:
            before, tokens = prefixes.tail(prefix, world.block_size)
            parent = key_of(before) if prefixes.parents[before] != EMPTY else None
            known[prefix] = key_after(tuple([actual[token] for token in tokens]), parent)  # type: ignore[call-overload]
        return known[prefix]

    return key_of
