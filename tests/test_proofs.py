"""The specification is proved, the proof is complete, and it notices what it must notice."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import xxhash

from kvspec.impl.block_manager import BlockManager
from kvspec.impl.sequence import Sequence
from kvspec.spec import model
from kvspec.spec import operations as op
from kvspec.spec.clauses import CLAUSES
from kvspec.spec.declaration import Covers, Declaration
from kvspec.spec.judge import Violation, begin, illegal, judge
from kvspec.spec.proofs import command, contracts, second_solver
from kvspec.spec.proofs.bounded import SMALL
from kvspec.spec.proofs.collision import Collision, find_collision
from kvspec.spec.proofs.conditions import ENSURED, TEXT, TRIGGERS, Condition, inductive_conditions
from kvspec.spec.proofs.contracts import chain, little_endian
from kvspec.spec.proofs.faults import FAULTS, Fault
from kvspec.spec.proofs.ledger_of_claims import CLAIMS, SMALL_WORLDS, SmallWorld, ledger_markdown
from kvspec.spec.proofs.link import broken_invariants
from kvspec.spec.proofs.prover import (
    ConditionResult,
    all_conditions,
    asked_again,
    bounded,
    kept_under_any_hash,
    prove,
    proved_under_any_hash,
    settle,
    unproved,
    without,
)
from kvspec.spec.proofs.report import closing, table
from kvspec.spec.proofs.solver import Verdict
from kvspec.spec.proofs.theorems import any_hash_text, theorems
from kvspec.spec.state import State, World
from kvspec.spec.steps import FIELDS, INVARIANTS, STEPS

SECTIONS_HERE = ("any hash", "collision", "witnesses", "planted falsehoods")  # the others have tests of their own


def told(results: list[ConditionResult]) -> str:
    return "\n".join(closing(results))


# The proof is there ------------------------------------------------------------------------------------------


def test_every_step_has_a_condition_for_every_invariant() -> None:
    names = {condition.name for condition in inductive_conditions()}
    wanted = {f"{step} keeps {slug}" for step in (*STEPS, "append", "forget") for slug in INVARIANTS}
    wanted |= {f"the first state has {slug}" for slug in INVARIANTS}
    wanted |= {f"{step} ensures {slug}" for step, slug in ENSURED}
    assert wanted <= names
    assert all(condition.goal is not None for condition in inductive_conditions())


def test_every_invariant_has_a_trigger() -> None:
    assert set(TRIGGERS) == set(INVARIANTS)


@pytest.mark.parametrize("section", SECTIONS_HERE)
def test_section_is_as_it_must_be(section: str) -> None:
    results = prove(sections=[section])
    assert results
    assert not unproved(results), told(results)


def test_all_is_proved_and_where_the_assumption_is_needed() -> None:
    """All that rests on an injective chain hash is about a hit."""
    results = prove(sections=["steps and invariants", "theorems"])
    assert not unproved(results), told(results)
    assert {result.name for result in results if result.assumption} == {
        "claim keeps CONTENT",
        "claim ensures CONTENT",
        "a claim costs a block only if it was free",
    }


def test_the_same_holds_for_fixed_sizes_without_facts_on_finite_sets() -> None:
    results = list(bounded(TEXT, SMALL))
    assert {result.verdict for result in results} == {Verdict.PROVED_BOUNDED}, told(results)


def test_the_second_solver_agrees() -> None:
    """A sample; `kvspec prove` asks about all."""
    pytest.importorskip("cvc5")
    ask = second_solver.find()
    results = [asked_again(condition, ask) for condition in all_conditions()[::5]]
    assert {result.verdict for result in results} == {Verdict.PROVED}, told(results)


def test_without_a_second_solver_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_solver, "find", lambda: None)
    (result,) = prove(sections=["second solver"])
    assert (result.verdict, result.holds) == (Verdict.NOT_RUN, True)


def test_crosshair_exhausts_pure_functions_and_refutes_a_falsehood() -> None:
    """The quick ones; `kvspec prove` has all."""
    quick = ("rounding_is_exact", "hashed_bytes_tell_apart")
    seen = {line["name"]: line["state"] for line in contracts.exhaust(only=quick)}
    assert seen == dict.fromkeys(quick, "CONFIRMED") | {"rounding_down_is_enough": "POST_FAIL"}


@pytest.mark.parametrize(
    ("said", "verdict", "code"),
    [("CONFIRMED", "proved for the stated bounds", 0), ("CANNOT_CONFIRM", "no counterexample within a budget", 0),
     ("POST_FAIL", "refuted", 1), ("EXEC_ERR", "not proved", 1)],
)  # fmt: skip
def test_what_crosshair_says_becomes_a_verdict(
    said: str, verdict: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [{"name": one.check.__name__, "state": said, "message": "", "seconds": 0.0} for one in contracts.CONTRACTS]
    falsehood = {"name": "rounding_down_is_enough", "state": "POST_FAIL", "message": "", "seconds": 0.0}
    monkeypatch.setattr(contracts, "exhaust", lambda: [*lines, falsehood])
    results = prove(sections=["contracts"])
    assert {str(result.verdict) for result in results[:-1]} == {verdict}
    assert command.exit_code(results) == code


def test_a_run_in_which_crosshair_confirms_a_falsehood_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    every = (*contracts.CONTRACTS, contracts.FALSEHOOD)
    lines = [{"name": one.check.__name__, "state": "CONFIRMED", "message": "", "seconds": 0.0} for one in every]
    monkeypatch.setattr(contracts, "exhaust", lambda: lines)
    assert command.exit_code(prove(sections=["contracts"])) == 3


def test_crosshair_looks_at_the_bytes_that_are_hashed() -> None:
    """The pure encoding under contract is the one that the bundled manager hashes."""
    tokens, parent = [7, 2**40], 2**63 + 5
    assert BlockManager.compute_hash(tokens, parent) == xxhash.xxh64(bytes(little_endian(parent, *tokens))).intdigest()


def test_the_same_verdicts_and_the_same_work_again() -> None:
    def run() -> list[tuple[str, str, int]]:
        return [(result.name, result.verdict, result.work) for result in prove(sections=["theorems"])]

    assert run() == run()


def test_only_content_rests_on_the_assumption() -> None:
    """The pool and the index are right under any hash, whatever a hit returns."""
    assert set(INVARIANTS) - set(kept_under_any_hash().invariants) == {"CONTENT"}


# The proof notices -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", INVARIANTS)
def test_without_one_invariant_the_proof_is_red_and_says_what_broke(
    slug: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.run(section=["steps and invariants"], without=slug) == 1
    said = capsys.readouterr().out
    assert f"take keeps {slug}: missing" in said


@pytest.mark.parametrize("slug", INVARIANTS)
def test_each_strengthening_is_needed(slug: str) -> None:
    result = without(slug)
    assert result.holds, result.detail
    assert result.detail.startswith("breaks ")


def test_a_step_that_ensures_less_is_noticed() -> None:
    step, letters = STEPS["claim"]
    silent = replace(TEXT, steps=STEPS | {"claim": (lambda *given: step(*given)._replace(ensures={}), letters)})
    assert [result.name for result in unproved(prove(text=silent, sections=["steps and invariants"]))] == [
        "claim ensures CONTENT"
    ]


def test_an_impossible_step_proves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    step, letters = STEPS["pop"]

    def never(logic, z, o):
        asked = step(logic, z, o)
        return asked._replace(requires=asked.requires | {"NEVER": logic.false})

    results = prove(
        text=replace(TEXT, steps=STEPS | {"pop": (never, letters)}), sections=["witnesses", "planted falsehoods"]
    )
    assert {result.subject for result in unproved(results)} == {"pop"}
    assert command.exit_code(results) == 3


def test_there_are_enough_faults_for_every_step() -> None:
    assert len(FAULTS) >= 15
    assert len({fault.slug for fault in FAULTS}) == len(FAULTS)
    assert {fault.breaks.split()[0] for fault in FAULTS} == set(STEPS)


def test_every_fault_breaks_what_it_says() -> None:
    """Of each fault in a step or an invariant a state is shown in which the named condition fails."""
    results = prove(sections=["planted faults"])
    assert not unproved(results), told(results)
    assert len([result for result in results if result.verdict is Verdict.REFUTED]) >= 15


@pytest.mark.parametrize("fault", [FAULTS[0], FAULTS[-4]], ids=lambda fault: fault.slug)
def test_a_fault_turns_the_whole_proof_red(fault: Fault) -> None:
    broken = unproved(prove(text=fault.text, sections=["steps and invariants"]))
    assert fault.breaks in {result.name for result in broken}


def test_a_false_theorem_has_no_proof() -> None:
    some = next(condition for condition in theorems() if condition.name == "a take needs a free block")
    import z3

    wrong = Condition("wrong", "", "", some.premises, z3.Not(some.goal))
    assert settle(wrong, "test")[0].verdict is Verdict.NOT_PROVED


# Without an injective chain hash -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def collision() -> Collision:
    found = find_collision()
    assert found is not None
    return found


def run_bundled(collision: Collision, chain_hash: Callable[..., int] | None) -> State | Violation:
    """The program on the bundled manager, judged."""
    hashing = {"compute_hash": staticmethod(chain_hash)} if chain_hash else {}
    manager = type("Hashing", (BlockManager,), hashing)(collision.blocks, collision.block_size)
    kind = type("Sized", (Sequence,), {"block_size": collision.block_size})
    state: State | Violation = begin(
        World(collision.blocks, collision.block_size), Declaration("bundled", covers=Covers.KNOWN)
    )
    sequences: dict[str, Sequence] = {}
    for operation in collision.operations():
        outcome = (_admit if isinstance(operation, op.Admit) else _commit)(manager, kind, sequences, operation)
        assert isinstance(state, State)
        state = judge(state, operation, outcome)
        if isinstance(state, Violation):
            return state
    return state


def _admit(manager: BlockManager, kind: type[Sequence], sequences: dict[str, Sequence], asked: op.Admit) -> op.Admitted:
    sequence = sequences[asked.sequence] = kind(list(asked.tokens))
    manager.allocate(sequence, manager.can_allocate(sequence))
    sequence.num_scheduled_tokens = len(sequence) - sequence.num_cached_tokens
    return op.Admitted(sequence.num_cached_tokens, sequence.num_scheduled_tokens, tuple(sequence.block_table))


def _commit(
    manager: BlockManager, kind: type[Sequence], sequences: dict[str, Sequence], asked: op.Commit
) -> op.Committed:
    sequence = sequences[asked.sequences[0]]
    manager.hash_blocks(sequence)
    sequence.num_cached_tokens += sequence.num_scheduled_tokens
    return op.Committed((tuple(sequence.block_table),))


def test_own_tokens_are_not_enough_on_the_bundled_manager(collision: Collision) -> None:
    violation = run_bundled(collision, collision.weak_hash)
    assert isinstance(violation, Violation)
    assert (violation.clause, violation.sequence) == ("CONTENT", "c")


def test_the_same_program_is_right_with_the_real_hash(collision: Collision) -> None:
    assert isinstance(run_bundled(collision, None), State)


def test_only_two_prefixes_collide(collision: Collision) -> None:
    values = collision.weak_hash.values
    assert len(values) == len(set(values.values())) + 1


def test_the_repaired_rule_refuses_the_program() -> None:
    assert find_collision(any_hash_text()) is None


# The proved text is the executed text ------------------------------------------------------------------------

Broken = Violation | tuple[str, tuple[object, ...]]


def requests(state: State, longest: int, alphabet: int) -> Iterator[op.Operation]:
    """Everything that may be asked, with two sequences and a few tokens."""
    for name in [name for name in "ab" if name not in state.sequences][:1]:
        for length in range(1, longest + 1):
            yield from (op.Admit(name, tokens, 99) for tokens in itertools.product(range(alphabet), repeat=length))
    for name, sequence in state.sequences.items():
        yield from (op.Release(name), op.Commit((name,)), op.Reserve(name, 1))
        if len(sequence.tokens) < longest:
            yield from (op.Append(name, token) for token in range(alphabet))


def key(manager: model.Model) -> object:
    """Equal for managers in the same state."""
    return (
        manager.blocks,
        manager.free,
        frozenset(manager.index.items()),
        tuple(sorted(manager.sequences.items(), key=str)),
    )


def explore(world: World, longest: int, alphabet: int = 2) -> Broken | tuple[int, int]:
    """Every reachable state of the model and every transition, judged, with the proved invariants evaluated after each.

    The first thing that is broken, or the numbers of states and transitions.
    """
    first = begin(world, model.DECLARATION)
    first.muted = frozenset({"TWIN"})
    todo: list[tuple[model.Model, State]] = [(model.start(world, chain), first)]
    seen, transitions = {key(todo[0][0])}, 0
    while todo:
        manager, state = todo.pop()
        for operation in requests(state, longest, alphabet):
            if illegal(state, operation):
                continue
            following, outcome = model.perform(manager, operation)
            after = judge(state, operation, outcome, model.snapshot(following))
            transitions += 1
            if isinstance(after, Violation):
                return after
            if broken := next(broken_invariants(after), None):
                return broken
            if key(following) not in seen:
                seen.add(key(following))
                todo.append((following, after))
    return len(seen), transitions


@pytest.mark.parametrize("world", SMALL_WORLDS, ids=lambda world: f"{world.blocks}-blocks-of-{world.block_size}")
def test_every_transition_of_a_small_world_is_proved_steps(world: SmallWorld) -> None:
    found = explore(World(world.blocks, world.block_size), world.longest, world.alphabet)
    assert found == (world.states, world.transitions)


STATED = tuple(INVARIANTS)
WRONG_WRITES = [
    fault for fault in FAULTS if fault.slug in (
        "stale-entry", "stale-hash", "take-uncounted", "take-unnoted", "claim-uncounted", "claim-stays-free",
        "register-unchained", "register-unstored", "register-wrong-block", "register-ahead", "register-other-tokens",
        "freed-too-early", "never-freed", "pop-uncounted", "pop-still-owned", "erased-on-release",
    )
]  # fmt: skip


@pytest.mark.parametrize("fault", WRONG_WRITES, ids=lambda fault: fault.slug)
def test_a_fault_in_the_text_is_noticed_on_a_right_manager(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    name = fault.breaks.split()[0]
    monkeypatch.setitem(STEPS, name, fault.text.steps[name])
    found = explore(World(2, 1), 2)
    assert isinstance(found, Violation) or found[0] in STATED


def test_a_fault_in_a_manager_is_noticed_by_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "claim", lambda manager, block: manager)
    assert isinstance(explore(World(2, 1), 2), Violation)


# The command -------------------------------------------------------------------------------------------------


def test_a_green_run_exits_with_0_and_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--section", "steps and invariants"]) == 0
    said = capsys.readouterr().out
    assert "proved for all sizes" in said
    assert "89 of 89 conditions are as they must be" in said


def test_one_row_a_condition() -> None:
    results = prove(sections=["witnesses"])
    assert table(results, each=True).renderables[0].row_count == len(results)


def test_wrong_options_exit_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--section", "nonsense"]) == 2
    assert command.main(["--without", "nonsense"]) == 2
    assert "there are:" in capsys.readouterr().err


def test_a_part_of_a_name_is_enough_for_a_section(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--section", "witness"]) == 0
    assert command.main(["--section", "planted"]) == 2
    assert "several sections like 'planted': planted faults, planted falsehoods" in capsys.readouterr().err


def test_export_writes_smt_lib(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--export", str(tmp_path)]) == 0
    written = (tmp_path / "claim_ensures_CONTENT.smt2").read_text()
    assert "(set-logic ALL)" in written
    assert written.rstrip().endswith("(check-sat)")


def test_importing_the_package_imports_no_solver() -> None:
    import subprocess
    import sys

    code = "import sys, kvspec.spec.proofs, kvspec.spec.proofs.command; sys.exit('z3' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_fields_and_their_sorts_agree() -> None:
    from kvspec.spec.proofs.terms import SORTS

    assert set(SORTS) == set(FIELDS)


# The ledger of claims ----------------------------------------------------------------------------------------


def test_every_clause_has_a_claim() -> None:
    assert list(CLAIMS) == list(CLAUSES)
    assert all(f"| `{slug}` |" in ledger_markdown() for slug in CLAUSES)


@pytest.fixture(scope="module")
def results() -> dict[str, ConditionResult]:
    return {result.name: result for result in prove(sections=["steps and invariants", "theorems"])}


@pytest.fixture(scope="module")
def without_assumption() -> set[str]:
    return proved_under_any_hash()


@pytest.mark.parametrize("slug", [slug for slug, claim in CLAIMS.items() if claim.strength == "proved for all sizes"])
def test_a_claim_for_all_sizes_is_proved_under_its_assumption(
    slug: str, results: dict[str, ConditionResult], without_assumption: set[str]
) -> None:
    """All of it; and "none" is said only if the invariants that it starts from need no assumption either."""
    claim = CLAIMS[slug]
    assert claim.conditions
    assert {results[name].verdict for name in claim.conditions} == {Verdict.PROVED}
    assert bool(claim.assumption) == (not set(claim.conditions) <= without_assumption)


def test_claims_for_stated_bounds_are_contracts() -> None:
    sentences = {contract.sentence for contract in contracts.CONTRACTS}
    bounded_claims = [claim for claim in CLAIMS.values() if claim.strength == "proved for the stated bounds"]
    assert bounded_claims
    assert all(set(claim.conditions) <= sentences for claim in bounded_claims)


def test_claims_use_the_five_words_only() -> None:
    assert {claim.strength for claim in CLAIMS.values()} <= {
        "proved for all sizes",
        "proved for the stated bounds",
        "exhausted",
        "no counterexample within a budget",
        "tested",
    }
