"""The small-world explorer: known numbers, planted faults found by provably shortest programs, honest certificates."""

import copy
import json
import os
import signal
import threading
import time
from dataclasses import replace
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from rich.console import Console

from kvspec.conformance import explorer
from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.explorer import (
    Exploration,
    NotFaithful,
    NotLinked,
    Progress,
    SmallWorld,
    explore,
    explore_all,
    explore_command,
    shortest,
)
from kvspec.conformance.explorer.certificate import Certificate, differences, read_certificates
from kvspec.conformance.explorer.copies import Copier
from kvspec.conformance.explorer.defaults import WORLDS, default_worlds
from kvspec.conformance.explorer.search import undeclared
from kvspec.conformance.generator import Generator
from kvspec.conformance.lockstep import Lockstep
from kvspec.conformance.program import run
from kvspec.conformance.trace.reader import read_trace
from kvspec.impl.adapter import Implementation
from kvspec.impl.loader import load
from kvspec.impl.model_adapter import ModelAdapter
from kvspec.impl.nano_vllm.adapter import NanoAdapter
from kvspec.spec import model
from kvspec.spec import operations as op
from kvspec.spec.model import ModelBlock
from kvspec.spec.proofs.faults import FAULTS, Fault
from kvspec.spec.proofs.link import broken_invariants
from kvspec.spec.state import World
from kvspec.spec.steps import INVARIANTS, STEPS

from .plain_explorer import explore_plainly

ORDER_MUTED = undeclared(model.DECLARATION) | {"FIFO", "TAIL-FIRST"}
TINY = SmallWorld(2, 2, 2, 1, 3)
SMALL = SmallWorld(2, 2, 2, 1, 4, partial_commits=True)


def planted(kind: type, **declared: Any) -> Implementation:
    """An implementation around an adapter class."""
    return Implementation(kind.__name__, replace(model.DECLARATION, **declared), kind)


class Planted(ModelAdapter):
    """The state of a model is immutable, so a shallow copy is independent."""

    def copy(self) -> Any:
        return copy.copy(self)


class KeepsIndexEntry(Planted):
    """A recycled block stays findable under its old key."""

    def admit(self, *request: Any) -> op.Outcome:
        before = self.model.index
        outcome = super().admit(*request)
        self.model = replace(self.model, index={**before, **self.model.index})
        return outcome


class TakesNewestFirst(Planted):
    """The free list is a stack."""

    def release(self, sequence: str, cause: str) -> op.Outcome:
        held = len(self.model.free)
        outcome = super().release(sequence, cause)
        free = self.model.free
        self.model = replace(self.model, free=(*reversed(free[held:]), *free[:held]))
        return outcome


class LeaksOnSecondRelease(Planted):
    """Releasing a sequence again takes a block out of the pool."""

    def release(self, sequence: str, cause: str) -> op.Outcome:
        if sequence not in self.model.sequences:
            self.model = replace(self.model, free=self.model.free[1:])
            return op.Released()
        return super().release(sequence, cause)


class ClaimsTooMuch(Planted):
    """A prompt of three tokens is always said to be cached up to its last one."""

    def admit(self, *request: Any) -> op.Outcome:
        outcome = super().admit(*request)
        return replace(outcome, cached=2, reserved=1) if len(request[1]) == 3 else outcome  # type: ignore[call-arg]


class CopyShares(ModelAdapter):
    """The copy shares a mutable part with the original."""

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self.models = [self.model]

    def _perform(self, operation: op.Operation) -> op.Outcome:
        self.models[0], outcome = model.perform(self.models[0], operation)
        return outcome

    def snapshot(self) -> Any:
        return model.snapshot(self.models[0])

    def copy(self) -> "CopyShares":
        other = CopyShares.__new__(CopyShares)
        other.models = self.models
        return other


class CopyIsAnother(Planted):
    """The copy is of another class, which behaves differently."""

    def copy(self) -> ModelAdapter:
        other = ModelAdapter.__new__(ModelAdapter)
        other.model = self.model
        return other


class CopyForgets(ModelAdapter):
    """The copy has an empty index."""

    def copy(self) -> "CopyForgets":
        other = CopyForgets.__new__(CopyForgets)
        other.model = replace(self.model, index={}, blocks=tuple(ModelBlock(b.references) for b in self.model.blocks))
        return other


class CountsSecretly(Planted):
    """Every second append turns the free list round; nothing that it shows says when."""

    count = 0

    def append(self, sequence: str, token: int) -> op.Outcome:
        self.count += 1
        if self.count % 2 == 0:
            self.model = replace(self.model, free=self.model.free[::-1])
        return super().append(sequence, token)


class CountsOpenly(CountsSecretly):
    """The same with a fingerprint."""

    def fingerprint(self) -> int:
        return self.count % 2


class ShowsNothing:
    """A model behind a wall: no snapshot, no copy."""

    def __init__(self, world: Any) -> None:
        self._inside = ModelAdapter(world)
        for name in ("admit", "reserve", "commit", "append", "release"):
            setattr(self, name, getattr(self._inside, name))

    def __deepcopy__(self, memo: object) -> Any:
        raise TypeError("a connection cannot be copied")

    def __reduce__(self) -> Any:
        raise TypeError("a connection cannot be pickled")


# Numbers -------------------------------------------------------------------------------------------------------------

KNOWN = {
    SmallWorld(2, 2, 2, 1, 3): (224, 1010, 9),
    SmallWorld(2, 2, 2, 1, 4, partial_commits=True): (391, 3448, 11),
    SmallWorld(2, 2, 2, 2, 3): (1751, 15385, 9),
    SmallWorld(3, 2, 2, 1, 4): (4914, 23833, 17),
}


@pytest.mark.parametrize("world", KNOWN, ids=lambda world: world.label)
def test_known_numbers_of_the_bundled_manager(world: SmallWorld) -> None:
    certificate = explore(load("bundled"), world).certificate
    assert certificate.exhausted
    assert (certificate.states, certificate.transitions, certificate.depth) == KNOWN[world]
    assert certificate.states == sum(certificate.levels)
    assert certificate.transitions == sum(certificate.operations.values())
    assert certificate.checked


@pytest.mark.parametrize("world", [TINY, SMALL, SmallWorld(2, 2, 2, 2, 3)], ids=lambda world: world.label)
def test_model_and_bundled_manager_have_equal_certificates(world: SmallWorld) -> None:
    one = explore(load("bundled"), world).certificate.as_data()
    other = explore(load("model"), world).certificate.as_data()
    assert not differences(one, other)


@pytest.mark.parametrize("world", [TINY, SMALL, SmallWorld(2, 2, 2, 2, 3)], ids=lambda world: world.label)
def test_a_plain_explorer_counts_the_same(world: SmallWorld) -> None:
    certificate = explore(load("bundled"), world).certificate
    levels, transitions, found = explore_plainly(load("bundled"), world, undeclared(load("bundled").declaration))
    assert (levels, transitions, found) == (certificate.levels, certificate.transitions, [])


def test_ways_to_go_back_count_the_same() -> None:
    found = [explore(load("bundled"), TINY, way=way).certificate.as_data() for way in ("copy", "deepcopy", "replay")]
    assert not differences(found[0], found[1])
    assert not differences(found[0], found[2])


STORED = Path(explorer.__file__).parents[1] / "reports" / "worlds.json"


def test_stored_certificates_are_sealed_and_add_up() -> None:
    stored = read_certificates(STORED)
    for each in stored:
        again = Certificate(**each)
        again.seal()
        assert again.digest == each["digest"]
        assert (each["exhausted"], each["states"]) == (True, sum(each["levels"]))
        assert each["transitions"] == sum(each["operations"].values())
    assert max(each["transitions"] for each in stored) > 20_000_000


@pytest.mark.parametrize("name", ["bundled", "model"])
@pytest.mark.parametrize("options", [{"length": 4, "partial": True}, {"tokens": 2, "length": 3}], ids=str)
def test_stored_certificates_are_those_of_a_new_run(name: str, options: dict[str, Any]) -> None:
    code, text = command(implementation=load(name), compare=STORED, **options)
    assert code == 0, text


# Faults --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [KeepsIndexEntry, TakesNewestFirst, LeaksOnSecondRelease])
def test_a_planted_fault_is_found_by_a_shortest_program(kind: type) -> None:
    world = SmallWorld(2, 2, 2, 2, 3)
    found = explore(planted(kind), world).counterexample
    *program, clause = explore_plainly(planted(kind), world, undeclared(planted(kind).declaration))[2]
    assert found
    assert found.shortest
    assert (len(found.program.operations), found.violation.clause) == (len(program), clause)
    _, violation = run(planted(kind), found.program, found.muted)
    assert violation == found.violation


class TurnsOnSecondRelease(Planted):
    """Prompts of one token go before the other free blocks; a second release turns the queue, to what was seen before."""

    def release(self, sequence: str, cause: str) -> op.Outcome:
        live = self.model.sequences.get(sequence)
        outcome = super().release(sequence, cause)
        first, last = self.model.free[:1], self.model.free[-1:]
        if live is None:
            self.model = replace(self.model, free=self.model.free[1:] + first)
        elif len(live.tokens) == 1:
            self.model = replace(self.model, free=last + self.model.free[:-1])
        return outcome


def test_a_second_release_changes_nothing_though_it_leads_to_a_known_state() -> None:
    found = explore(planted(TurnsOnSecondRelease), SmallWorld(2, 2, 1, 1, 2), ORDER_MUTED).counterexample
    assert found
    assert (found.violation.clause, len(found.program.operations), found.shortest) == ("RELEASE", 3, True)


def test_a_muted_fault_does_not_end_the_search() -> None:
    muted = ORDER_MUTED
    exploration = explore(planted(TakesNewestFirst), TINY, muted)
    assert exploration.counterexample is None
    assert exploration.certificate.exhausted
    assert exploration.certificate.muted == sorted(muted)


def test_other_violations_are_dead_ends_for_the_shortest_program() -> None:
    class Both(LeaksOnSecondRelease):
        def append(self, sequence: str, token: int) -> op.Outcome:
            raise RuntimeError("no")

    for clause, length in (("TOTAL", 3), ("RELEASE", 3)):
        found = shortest(planted(Both), clause, 60, (TINY,))
        assert found
        assert (found.violation.clause, len(found.program.operations)) == (clause, length)


def test_shortest_finds_the_clause_that_was_asked_for() -> None:
    found = shortest(planted(TakesNewestFirst), "FIFO", 60)
    assert found
    assert found.violation.clause == "FIFO"
    assert len(found.program.operations) == 3
    assert shortest(planted(TakesNewestFirst), "NO-LEAK", 2, (TINY,)) is None


# Trust ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [CopyShares, CopyForgets, CopyIsAnother])
def test_an_unfaithful_copy_is_detected(kind: type) -> None:
    with pytest.raises(NotFaithful):
        explore(planted(kind), SmallWorld(2, 2, 2, 2, 3))


def test_what_a_manager_hides_is_detected() -> None:
    with pytest.raises(NotFaithful, match="fingerprint"):
        explore(planted(CountsSecretly), SmallWorld(3, 2, 2, 1, 4), ORDER_MUTED)


def test_a_fingerprint_tells_states_apart() -> None:
    certificate = explore(planted(CountsOpenly), TINY, ORDER_MUTED).certificate
    assert certificate.exhausted
    assert certificate.told_apart == "fingerprint"
    assert certificate.expanded > certificate.states == sum(certificate.levels)


def test_the_order_of_equal_blocks_tells_states_of_the_hardened_manager_apart() -> None:
    certificate = explore(load("hardened"), SmallWorld(3, 2, 3, 1, 2)).certificate
    assert (certificate.exhausted, certificate.told_apart) == (True, "fingerprint")
    assert certificate.expanded > certificate.states


class Locked(Planted):
    """A lock cannot be copied; it is made at first use, or at once."""

    at_once = True

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.lock = threading.Lock() if self.at_once else None

    def copy(self) -> Any:
        other = copy.copy(self)
        other.lock = copy.deepcopy(self.lock)
        return other

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        self.lock = self.lock or threading.Lock()
        return super().admit(sequence, tokens, limit, namespace)


def test_what_cannot_be_copied_is_replayed() -> None:
    locked, plain = (explore(planted(kind), TINY, ORDER_MUTED).certificate for kind in (Locked, Planted))
    assert (locked.copied, locked.exhausted, locked.states) == ("replay", True, plain.states)


def test_what_can_be_copied_no_more_is_no_accident_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Locked, "at_once", False)
    with pytest.raises(NotFaithful, match="no copy can be made, after admit A"):
        explore(planted(Locked), TINY, ORDER_MUTED)


def test_a_copy_of_a_subclass_goes_before_many_copies_of_its_base() -> None:
    class Shares(NanoAdapter):
        def copy(self) -> NanoAdapter:
            return self

    bundled = load("bundled")
    world = World(2, 2)
    copier = Copier(bundled, world)
    original = bundled.create(world)
    assert copier.many(original)() is not original
    other = Shares(original.manager, original._plan)  # type: ignore[attr-defined]
    assert copier.many(other)() is other


def test_a_manager_that_shows_nothing_is_never_exhausted() -> None:
    certificate = explore(planted(ShowsNothing), TINY).certificate
    assert (certificate.told_apart, certificate.copied) == ("unseen", "replay")
    assert not certificate.exhausted
    assert "cannot be seen" in certificate.stopped


# Stopping ------------------------------------------------------------------------------------------------------------


def test_a_limited_run_says_so() -> None:
    certificate = explore(load("model"), TINY, limit_states=20).certificate
    assert not certificate.exhausted
    assert "limit of 20 states" in certificate.stopped
    assert 20 <= certificate.states < 40
    assert explore(load("model"), TINY, limit_seconds=0).certificate.stopped == "time limit"


def test_an_interrupted_run_says_so() -> None:
    def interrupt(where: Progress) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    certificate = explore(load("model"), SmallWorld(3, 2, 2, 2, 5), progress=interrupt).certificate
    assert (certificate.exhausted, certificate.stopped) == (False, "interrupted")
    assert certificate.states == sum(certificate.levels)


def test_a_manager_that_hangs_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hangs(Planted):
        def append(self, sequence: str, token: int) -> op.Outcome:
            while True:
                time.sleep(0.01)

    monkeypatch.setattr("kvspec.conformance.time_limit.DEFAULT_SECONDS", 1)
    found = explore(planted(Hangs), TINY).counterexample
    assert found
    assert found.violation.clause == "TOTAL"
    assert isinstance(found.program.operations[-1], op.Append)


# Several worlds, and the command -------------------------------------------------------------------------------------


def test_several_worlds_run_in_processes_of_their_own() -> None:
    worlds = [TINY, SMALL]
    found = explore_all(load("model"), worlds, jobs=2)
    for world, each in zip(worlds, found, strict=True):
        assert not differences(each.certificate.as_data(), explore(load("model"), world).certificate.as_data())


def test_default_worlds_fit_the_declaration() -> None:
    wide = replace(model.DECLARATION, smallest_block_size=4, profiles=frozenset({"pool", "prefix"}))
    for effort in WORLDS:
        assert default_worlds(model.DECLARATION, effort) == list(WORLDS[effort])
        assert all(world.block_size == 4 and not world.partial_commits for world in default_worlds(wide, effort))


def command(**options: Any) -> tuple[int, str]:
    """Exit code and output of `kvspec explore`."""
    console = Console(file=StringIO(), width=200)
    implementation = options.pop("implementation", load("model"))
    given = {"world": "2x2", "tokens": 1, "length": 3, "partial": False} | options
    return explore_command(implementation, console=console, **given), console.file.getvalue()  # type: ignore[attr-defined]


def test_command_writes_and_compares_certificates(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    assert command(certificate=path)[0] == 0
    code, text = command(compare=path, implementation=load("bundled"))
    assert code == 0
    assert "equal" in text
    stored = json.loads(path.read_text())
    stored[0]["states"] += 1
    path.write_text(json.dumps(stored))
    code, text = command(compare=path)
    assert code == 1
    assert "differs: states" in text


def test_command_prints_the_table_of_a_counterexample_and_stores_its_trace(tmp_path: Path) -> None:
    code, text = command(implementation=planted(LeaksOnSecondRelease), traces=tmp_path)
    assert code == 1
    assert "3 operations, proved to be the shortest in its world" in text
    assert ">3   release A finished" in text
    assert "Admit(" not in text
    [trace] = tmp_path.iterdir()
    assert str(trace) in text
    assert read_trace(trace).footer.verdict == "RELEASE"


def test_a_block_size_that_is_not_declared_is_probed_and_proves_nothing() -> None:
    code, text = command(implementation=load("bundled"), world="3x1", length=2)
    assert code == 3
    assert "block size 1 is outside what is declared (2 or more, and not profile one): probed, not counted" in text
    assert "VIOLATES  COVERS" in text
    assert command(implementation=load("hardened"), world="3x1", length=2)[0] == 0
    wide = replace(load("model"), declaration=replace(model.DECLARATION, smallest_block_size=4, largest_block_size=4))
    code, text = command(implementation=wide)
    assert code == 3
    assert "outside what is declared (4 only)" in text


def test_a_clause_of_a_profile_that_is_not_declared_is_probed_and_proves_nothing() -> None:
    code, text = command(implementation=planted(ClaimsTooMuch, profiles=frozenset({"pool"})))
    assert code == 3
    assert "VIOLATES  CONTENT" in text
    assert "belongs to profile prefix, which is not declared: probed, not counted" in text
    assert command(implementation=planted(ClaimsTooMuch))[0] == 1


def test_command_says_that_it_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> list[Exploration]:
        stopped = explore(load("model"), TINY, progress=lambda where: os.kill(os.getpid(), signal.SIGINT))
        return [stopped]

    monkeypatch.setattr("kvspec.conformance.explorer.command.explore_all", interrupted)
    code, text = command(world=None)
    assert code == 3
    assert "not exhausted (interrupted)" in text
    assert f"{WORLDS['default'][1].label}: not explored (interrupted)" in text


def test_command_says_which_limit_ended_it() -> None:
    assert "not exhausted (limit of 5 states)" in command(limit=5)[1]
    assert "not exhausted (time limit)" in command(seconds=0)[1]


# What is proved, evaluated in every state ---------------------------------------------------------------------------------

LINKED = {
    "bundled": (
        SMALL,
        SmallWorld(2, 2, 2, 2, 3),
        SmallWorld(3, 2, 2, 1, 4),
        SmallWorld(4, 2, 2, 1, 3),
        SmallWorld(3, 2, 3, 1, 2),
    ),
    "hardened": (SMALL, SmallWorld(3, 1, 2, 1, 3), SmallWorld(2, 1, 2, 2, 2, True)),
    "model": (SmallWorld(2, 2, 2, 2, 3, True), SmallWorld(2, 3, 2, 1, 6)),
}
WRONG_STEPS = [
    fault
    for fault in FAULTS
    if fault.breaks.split()[0] in STEPS and fault.slug in ("stale-entry", "stale-hash", "take-uncounted", "claim-uncounted",
    "register-unchained", "register-wrong-block", "freed-too-early", "pop-uncounted", "pop-still-owned", "erased-on-release")
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "world"), [(n, w) for n, worlds in LINKED.items() for w in worlds], ids=lambda each: getattr(each, "label", each)
)  # fmt: skip
def test_every_transition_is_a_sequence_of_proved_steps(name: str, world: SmallWorld) -> None:
    certificate = explore(load(name), world, invariants=True).certificate
    assert certificate.exhausted
    assert certificate.states > certificate.evaluated / 20 > 1
    assert not differences(certificate.as_data(), explore(load(name), world).certificate.as_data())


@pytest.mark.parametrize("fault", WRONG_STEPS, ids=lambda fault: fault.slug)
def test_a_wrong_step_is_noticed_on_the_bundled_manager(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    name = fault.breaks.split()[0]
    monkeypatch.setitem(STEPS, name, fault.text.steps[name])
    try:
        noticed = explore(load("bundled"), SmallWorld(2, 2, 2, 2, 4), invariants=True).counterexample is not None
    except NotLinked:
        noticed = True
    assert noticed


@pytest.mark.parametrize("slug", INVARIANTS)
def test_an_invariant_that_says_something_else_is_noticed(slug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    invariant = INVARIANTS[slug]
    monkeypatch.setitem(INVARIANTS, slug, invariant._replace(holds=lambda *_: False))
    with pytest.raises(NotLinked, match=slug):
        explore(load("bundled"), TINY, invariants=True)


def test_a_faulty_manager_is_noticed_beside_the_invariants() -> None:
    found = explore(planted(KeepsIndexEntry), SmallWorld(2, 2, 2, 2, 3), invariants=True).counterexample
    assert found
    assert found.violation.clause == explore(planted(KeepsIndexEntry), SmallWorld(2, 2, 2, 2, 3)).certificate.violation


def test_command_says_what_is_proved_and_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    code, text = command(invariants=True)
    assert code == 0
    monkeypatch.setitem(INVARIANTS, "BOUNDS", INVARIANTS["BOUNDS"]._replace(holds=lambda *_: False))
    code, text = command(invariants=True)
    assert code == 3
    assert "BOUNDS is proved of every state" in text
    assert "after admit A [0]" in text


@pytest.mark.parametrize("context", ["steps", "chunked"])
@pytest.mark.parametrize("name", ["bundled", "hardened"])
def test_long_random_programs_are_sequences_of_proved_steps(name: str, context: str) -> None:
    implementation, longest, evaluated = load(name), 0, 0
    for seed in range(12):
        random = Random(f"{seed}/{context}")
        size = random.choice((2, 3, 4))
        lockstep = Lockstep(implementation, World(12, size), undeclared(implementation.declaration))
        generator = Generator(random, CONTEXTS[context], lockstep.state)
        for _ in range(60):
            assert lockstep.step(generator.next()) is None
            assert not list(broken_invariants(lockstep.state))
            longest = max([longest, *(len(s.table) for s in lockstep.state.sequences.values())])
            evaluated += 1
    assert evaluated == 720
    assert longest >= 6


def test_command_reports_bad_usage_and_runs_that_prove_nothing(tmp_path: Path) -> None:
    assert command(world="3 by 2")[0] == 2
    assert command(compare=tmp_path / "absent")[0] == 2
    assert command(implementation=planted(CopyShares))[0] == 3
    assert command(limit=5)[0] == 0
