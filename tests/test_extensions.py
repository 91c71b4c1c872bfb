"""Extensions from end to end: who offers them, contexts in which they happen, traces, scripts, counterexamples, the pipe."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kvspec.conformance.campaign import run_campaign
from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.examination import MUST_HAPPEN_HERE, Examination, Options
from kvspec.conformance.extension_calls import EXTENSION_CALLS
from kvspec.conformance.program import Program, others_muted, run
from kvspec.conformance.render import plain_counterexample, standalone_snippet
from kvspec.conformance.shrink import shrink
from kvspec.conformance.state_machine import run_machine
from kvspec.conformance.summary import summary_text
from kvspec.conformance.trace import header_of, judge_trace, write_lockstep
from kvspec.conformance.trace.validating import validate
from kvspec.impl.adapter import Implementation
from kvspec.impl.known_bad import KNOWN_BAD
from kvspec.impl.known_bad.bases.hard import Hard
from kvspec.impl.known_bad.notation import read
from kvspec.impl.loader import load
from kvspec.impl.model_adapter import ExtendedModelAdapter
from kvspec.impl.pipe.protocol import ANSWER, REQUEST
from kvspec.spec import operations as op
from kvspec.spec.clauses import EXTENSIONS, clauses_of

OFFER_ALL = ("hardened", "extended")
PLANTED = [slug for slug, bad in KNOWN_BAD.items() if bad.context in EXTENSIONS]


def everything(implementation: Implementation) -> Any:
    """A program in which each extension of the implementation occurs."""
    text = """8x2: admit A 010 / commit A / extend A 11 / reserve A 2 / commit A / draft A 01 / reserve A 2 / commit A
        / truncate A 6 / append A 1 / reserve A 1 / commit A / retain A K / probe 0101100 / admit B 0101100 / commit B
        / reset / release A / release B / admit A 0101100 / commit A / release A / drop K / reset / admit A 010"""
    example = read(" ".join(text.split()))
    lockstep, violation = run(implementation, Program(example.world, example.operations))
    assert violation is None
    assert len(lockstep.operations) == len(example.operations)
    return lockstep


# --- who is asked -----------------------------------------------------------------------------------------------------


def test_who_does_not_declare_is_not_asked() -> None:
    bundled = Examination(load("bundled"), Options(effort="smoke", profiles=EXTENSIONS))
    assert {bundled.untried(profile) for profile in EXTENSIONS} == {"not offered"}
    bundled.decide_all()
    assert not bundled.report().results
    text = summary_text(bundled.report())
    assert not [profile for profile in EXTENSIONS if f"\n{profile} " in text]


def test_who_declares_without_the_method_proves_nothing() -> None:
    model = load("model")
    declared = replace(model.declaration, profiles=model.declaration.profiles | {"truncate"})
    examination = Examination(replace(model, declaration=declared), Options(effort="smoke", profiles=("truncate",)))
    assert examination.untried("truncate") == "the adapter has no method extend and no truncate"
    examination.decide_all()
    assert "truncate is declared, but cannot be tried" in " ".join(examination.report().proves_nothing)


@pytest.mark.parametrize("target", OFFER_ALL)
@pytest.mark.parametrize("profile", EXTENSIONS)
def test_sound_managers_conform_and_it_really_happens(target: str, profile: str) -> None:
    implementation = load(target)
    assert profile in implementation.declaration.profiles
    result = run_campaign(implementation, CONTEXTS[profile], 1, 300)
    declared = {clause.slug for name in implementation.declaration.profiles for clause in clauses_of(name)}
    assert not declared & result.found.keys()
    assert all(result.counts[what] for what in MUST_HAPPEN_HERE[profile]), result.counts


class ResetTakesFromOwners(Hard):
    """A reset asks only whether sequences hold blocks, and frees those of owners outside."""

    def reset(self) -> bool:
        kept = [block_id for blocks in self._owners.values() for block_id in blocks]
        if any(block.ref_count > kept.count(block.block_id) for block in self.blocks):
            return False
        for block_id in kept:
            self.blocks[block_id].ref_count = 0
            self.free_block_ids[block_id] = None
        return super().reset()


class ProbeCountsOnOwners(Hard):
    """A probe takes blocks of owners outside for free."""

    def probe(self, seq: Any) -> tuple[int, bool]:
        kept = {each for blocks in self._owners.values() for each in blocks if self.blocks[each].ref_count == 1}
        hits, shared = self._search(seq)
        return len(hits), seq.num_blocks - shared <= len(self.free_block_ids) + len(kept.difference(hits))


@pytest.mark.parametrize(
    ("kind", "context", "clause"),
    [(ResetTakesFromOwners, "reset", "PARTITION"), (ProbeCountsOnOwners, "probe", "PROBE")],
)
def test_faults_that_show_only_where_two_extensions_meet(kind: type[Hard], context: str, clause: str) -> None:
    assert clause in run_campaign(kind.implementation(), CONTEXTS[context], 1, 1500, until=clause).found


class ProbeForgetsNamespaces(ExtendedModelAdapter):
    """A probe looks for the tokens alone."""

    def probe(self, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        return super().probe(tokens, limit, "")


def test_a_probe_that_forgets_the_namespace_is_found() -> None:
    forgetful = replace(load("extended"), create=ProbeForgetsNamespaces)
    assert "PROBE" in run_campaign(forgetful, CONTEXTS["probe"], 0, 400, until="PROBE").found


class ResetBesideLiveSequences(Hard):
    """A reset is never refused: what is held is emptied, too, and those who hold it publish nothing more."""

    def __init__(self, num_blocks: int, block_size: int) -> None:
        super().__init__(num_blocks, block_size)
        self.old: set[int] = set()

    def reset(self) -> bool:
        held = {block.block_id: block.ref_count for block in self.blocks if block.ref_count}
        for block_id in held:
            self.blocks[block_id].ref_count = 0
        super().reset()
        for block_id, references in held.items():
            self.blocks[block_id].ref_count = references
        self.old = set(held)
        return True

    def _publish(self, seq: Any, start: int, end: int) -> None:
        if seq.block_table[0] not in self.old:
            super()._publish(seq, start, end)

    def _take(self) -> int:
        block_id = super()._take()
        self.old.discard(block_id)
        return block_id


def test_who_is_never_in_the_way_of_a_reset_conforms() -> None:
    examination = Examination(ResetBesideLiveSequences.implementation(), Options(effort="smoke", profiles=("reset",)))
    assert not examination.campaign("reset").found
    assert not examination.vacuous("reset")


def test_reports_say_so(tmp_path: Path) -> None:
    examination = Examination(load("extended"), Options(effort="smoke", profiles=("truncate",)))
    examination.decide_all()
    assert "CONFORMS" in summary_text(examination.report())


# --- what is made of a failure ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", PLANTED)
def test_counterexamples_are_told_and_scripted(slug: str, tmp_path: Path) -> None:
    bad = KNOWN_BAD[slug]
    implementation = bad.implementation()
    found = run_campaign(implementation, CONTEXTS[bad.context], 3, 2000, until=bad.clause).found[bad.clause]
    short = shrink(implementation, found)
    assert len(short.program.operations) <= 10
    assert bad.clause in plain_counterexample(short, implementation, tmp_path / "trace.ndjson")
    script = subprocess.run([sys.executable, "-c", standalone_snippet(short, implementation)], capture_output=True)
    assert script.returncode == 1
    assert bad.clause in script.stderr.decode()


# --- traces -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", OFFER_ALL)
def test_traces_are_judged_whole_and_from_the_middle(target: str, tmp_path: Path) -> None:
    implementation, path = load(target), tmp_path / "whole.ndjson"
    lockstep = everything(implementation)
    header = header_of(implementation, lockstep.world, "whole", "steps")
    write_lockstep(path, header, lockstep, None)
    assert judge_trace(path).violation is None
    found = validate([path], compact_from=1)
    assert (found.violation, found.judged, found.remarks) == (None, len(lockstep.operations), [])
    lines = path.read_bytes().splitlines(keepends=True)
    for start in range(2, len(lines) - 2):
        cut = tmp_path / f"from-{start}.ndjson"
        cut.write_bytes(b"".join([lines[0], *lines[start:-1]]))
        found = validate([cut])
        assert found.violation is None, (start, found.violation)


def test_what_does_not_declare_is_written_as_ever(tmp_path: Path) -> None:
    header = header_of(load("model"), read("2x2: admit A 0").world, "model", "steps")
    write_lockstep(
        tmp_path / "t.ndjson", header, run(load("model"), Program(header.world, (op.Admit("A", (0,), 9),)))[0], None
    )
    declared = json.loads((tmp_path / "t.ndjson").read_text().splitlines()[0])["declaration"]
    assert not {"publish_at_truncate", "namespace_axes"} & declared.keys()


@pytest.mark.parametrize(("slug", "clause"), [("reset-keeps-the-cache", "RESET"), ("owner-never-lets-go", "RELEASE")])
def test_hypothesis_finds_them_as_well(slug: str, clause: str) -> None:
    bad = KNOWN_BAD[slug]
    found = run_machine(bad.implementation(), CONTEXTS[bad.context], 0, 300)
    assert found is not None
    assert found.violation.clause == clause


@pytest.mark.parametrize("profile", EXTENSIONS)
def test_hypothesis_finds_nothing_in_a_sound_manager(profile: str) -> None:
    assert run_machine(load("extended"), CONTEXTS[profile], 0, 5, others_muted("")) is None


# --- the pipe ---------------------------------------------------------------------------------------------------------

SCHEMAS = Path(__file__).parents[1] / "conformance" / "schemas"


@pytest.fixture(scope="module")
def program() -> Implementation:
    return load(f"cmd:{sys.executable} {Path(__file__).parent / 'pipe_extended.py'}")


@pytest.mark.parametrize("profile", EXTENSIONS)
def test_a_program_that_declares_them_is_asked(program: Implementation, profile: str) -> None:
    result = run_campaign(program, CONTEXTS[profile], 0, 25)
    declared = {clause.slug for name in program.declaration.profiles for clause in clauses_of(name)}
    assert not declared & result.found.keys()
    assert result.counts["operations"] > 100


def test_a_program_answers_as_the_manager_in_it(program: Implementation) -> None:
    assert everything(program).outcomes == everything(load("extended")).outcomes


def test_the_lines_of_the_pipe_and_of_a_trace_are_valid(tmp_path: Path) -> None:
    schemas = {name: json.loads((SCHEMAS / f"{name}.schema.json").read_text()) for name in LINES}
    implementation = load("extended")
    lockstep = everything(implementation)
    path = tmp_path / "whole.ndjson"
    header = header_of(implementation, lockstep.world, "whole", "steps")
    for line in write_lockstep(path, header, lockstep, None).read_bytes().splitlines():
        Draft202012Validator(schemas["trace"]).validate(json.loads(line))
    for operation, outcome in zip(lockstep.operations, lockstep.outcomes, strict=True):
        Draft202012Validator(schemas["pipe-request"]).validate(REQUEST.write(operation))
        Draft202012Validator(schemas["pipe-answer"]).validate(ANSWER.write(outcome))
    assert {type(operation) for operation in lockstep.operations} >= set(EXTENSION_CALLS)


LINES = ("trace", "pipe-request", "pipe-answer")
