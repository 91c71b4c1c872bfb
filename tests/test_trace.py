"""Traces: what is written is read back exactly, and whatever is wrong with a trace, it never passes for a verdict."""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import jsonschema
import pytest

from kvspec.conformance.campaign import run_campaign
from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.generator import Generator
from kvspec.conformance.lockstep import Lockstep
from kvspec.conformance.program import Counterexample, Program, run
from kvspec.conformance.robustness import check_robust
from kvspec.conformance.shrink import shrink
from kvspec.conformance.trace import (
    OPERATION,
    OUTCOME,
    SNAPSHOT,
    EncodingError,
    NotRepeatable,
    TraceError,
    header_of,
    judge_trace,
    read_trace,
    slug_of,
    write_lockstep,
    write_trace,
)
from kvspec.conformance.trace.commands import judge_command, replay_command, show_command, shrink_command
from kvspec.spec import operations as op
from kvspec.spec.judge import Violation
from kvspec.spec.state import Snapshot, World

from .sample_managers import FreesShared, ModelManager, StaleIndex, implementation

SCHEMA = Path(__file__).parent.parent / "conformance" / "schemas" / "trace.schema.json"
LIMIT = 1 << 20

FREED_TOO_SOON = Program(
    World(2, 2),
    (
        op.Admit("A", (7, 7), LIMIT),
        op.Commit(("A",)),
        op.Admit("B", (7, 7, 9), LIMIT),
        op.Release("A"),
    ),
)
BAD = implementation(FreesShared)
GOOD = implementation(ModelManager)


def broken(program: Program = FREED_TOO_SOON, bad: object = BAD) -> Counterexample:
    _, violation = run(bad, program)  # type: ignore[arg-type]
    assert violation is not None
    return Counterexample(program, violation, "steps")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "trace.ndjson", BAD, broken(), seed=7)


# What is written is read back -------------------------------------------------------------------------------------

OPERATIONS = (
    op.Admit("A", (1, 2), 3, "x"),
    op.Reserve("A", 2),
    op.Commit(("A", "B")),
    op.Append("A", 5),
    op.Release("A", op.Cause.PREEMPTED),
)
OUTCOMES = (
    op.Admitted(2, 1, (0, 3)),
    op.Reserved((1,)),
    op.Committed(((0,), (1, 2))),
    op.Appended(),
    op.Released(),
    op.Refused(op.Reason.TOO_LARGE),
    op.Failed("ValueError: no", promised=True, clear=True),
    op.Nonsense("the answer was None"),
)


@pytest.mark.parametrize("value", OPERATIONS, ids=lambda value: type(value).__name__)
def test_operations_survive_encoding(value: op.Operation) -> None:
    assert OPERATION.read(json.loads(json.dumps(OPERATION.write(value)))) == value


@pytest.mark.parametrize("value", OUTCOMES, ids=lambda value: type(value).__name__)
def test_outcomes_survive_encoding(value: op.Outcome) -> None:
    assert OUTCOME.read(json.loads(json.dumps(OUTCOME.write(value)))) == value


def test_snapshots_survive_encoding_and_keys_beyond_53_bits_stay_exact() -> None:
    shown = Snapshot((1,), (0,), None, (1, 0), (2**64 - 1, None), ((1, 2), ()), ((2**64 - 1, 0), (-1, 1)))
    assert SNAPSHOT.read(json.loads(json.dumps(SNAPSHOT.write(shown)))) == shown
    assert SNAPSHOT.read({}) == Snapshot()


def test_fields_with_a_default_may_be_left_out_and_no_others() -> None:
    assert OPERATION.read({"op": "release", "sequence": "A"}) == op.Release("A")
    with pytest.raises(EncodingError, match="field 'limit' is missing"):
        OPERATION.read({"op": "admit", "sequence": "A", "tokens": []})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (["admit"], "an object"),
        ({"op": "grow", "sequence": "A"}, "one of admit, reserve"),
        ({"op": "append", "sequence": "A", "token": "1"}, "field 'token': a whole number"),
        ({"op": "append", "sequence": "A", "token": True}, "field 'token': a whole number"),
        ({"op": "append", "sequence": "A", "token": 1, "more": 1}, "unknown field 'more'"),
        ({"op": "commit", "sequences": "A"}, "field 'sequences': a list"),
        ({"op": "release", "sequence": "A", "cause": "bored"}, "finished, preempted, aborted"),
    ],
)
def test_what_is_no_operation_is_refused_with_the_field(value: object, message: str) -> None:
    with pytest.raises(EncodingError, match=message):
        OPERATION.read(value)


def test_a_counterexample_is_read_back_whole(trace: Path) -> None:
    stored = read_trace(trace)
    assert tuple(record.request for record in stored.records) == FREED_TOO_SOON.operations
    assert stored.header.world == FREED_TOO_SOON.world
    assert stored.header.declaration == BAD.declaration
    assert stored.header.snapshot == Snapshot((0, 1), (), None, (0, 0), (None, None), ((), ()), ())
    assert (stored.header.seed, stored.header.context, stored.footer.verdict) == (7, "steps", "RELEASE")
    assert stored.header.slug == slug_of("RELEASE", FREED_TOO_SOON, "steps")


def test_two_writers_write_the_same_bytes(trace: Path, tmp_path: Path) -> None:
    again = write_trace(tmp_path / "again.ndjson", BAD, broken(), seed=7)
    assert again.read_bytes() == trace.read_bytes()


def test_slugs_differ_where_programs_differ() -> None:
    other = Program(World(3, 2), FREED_TOO_SOON.operations)
    slugs = {slug_of("RELEASE", FREED_TOO_SOON, "steps"), slug_of("RELEASE", other, "steps")}
    slugs |= {slug_of("RELEASE", FREED_TOO_SOON, "chunked")}
    assert len(slugs) == 3


def test_every_line_is_valid_under_the_schema(trace: Path) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    for line in trace.read_text().splitlines():
        validator.validate(json.loads(line))


def test_the_schema_refuses_what_the_reader_refuses() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    for value in ({"op": "append"}, {"number": 0, "request": {}, "answer": {}}, {"operations": 1, "verdict": None}):
        assert not validator.is_valid(value)


def test_a_counterexample_that_does_not_repeat_is_not_stored(tmp_path: Path) -> None:
    with pytest.raises(NotRepeatable, match="breaks nothing when it runs again"):
        write_trace(tmp_path / "trace.ndjson", GOOD, broken())
    assert not (tmp_path / "trace.ndjson").exists()


# What is wrong with a trace ----------------------------------------------------------------------------------------


def swapped(lines: list[str]) -> list[str]:
    return [lines[0], lines[2], lines[1], *lines[3:]]


def edited(lines: list[str]) -> list[str]:
    return [*lines[:2], lines[2].replace('"table":[0]', '"table":[1]').replace("[[0]]", "[[1]]"), *lines[3:]]


def with_header(**changes: object) -> Callable[[list[str]], list[str]]:
    def change(lines: list[str]) -> list[str]:
        return [json.dumps(json.loads(lines[0]) | changes) + "\n", *lines[1:]]

    return change


def with_footer(**changes: object) -> Callable[[list[str]], list[str]]:
    def change(lines: list[str]) -> list[str]:
        return [*lines[:-1], json.dumps(json.loads(lines[-1]) | changes) + "\n"]

    return change


DAMAGE: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "empty": (lambda lines: [], "the trace is empty"),
    "blank": (lambda lines: ["\n"], "the trace is empty"),
    "no footer": (lambda lines: lines[:-1], "no footer: it was cut off after 4 operations, so it has no verdict"),
    "header only": (lambda lines: lines[:1], "no footer: it was cut off after 0 operations"),
    "cut inside a line": (lambda lines: [*lines[:2], lines[2][:30]], "line 3 is cut off"),
    "last byte lost": (lambda lines: [*lines[:-1], lines[-1][:-1]], "line 6 is cut off"),
    "no header": (lambda lines: lines[1:], "not the header of a kvspec trace"),
    "not JSON": (lambda lines: [lines[0], "admit A\n", *lines[1:]], "line 2 is not JSON"),
    "not an object": (lambda lines: [lines[0], "[1]\n", *lines[1:]], "line 2 is not a JSON object"),
    "a field twice": (lambda lines: [lines[0].replace('{"kvspec"', '{"seed":1,"kvspec"'), *lines[1:]], "named twice"),
    "reordered": (swapped, "line 2 holds operation 2 where 1 is due: lines were reordered or lost"),
    "an operation lost": (lambda lines: [lines[0], *lines[2:]], "line 2 holds operation 2 where 1 is due"),
    "the last operation lost": (lambda lines: [*lines[:-2], lines[-1]], "the footer counts 4 operations, but 3 are"),
    "edited": (edited, "the digest does not match: the trace was edited"),
    "the verdict edited": (with_footer(verdict=None), "the digest does not match"),
    "the reason edited": (with_footer(because="all is well"), "the digest does not match"),
    "muted more": (with_header(muted=["TWIN"]), "the digest does not match"),
    "lines after the footer": (lambda lines: [*lines, lines[1]], "lines after the footer"),
    "two traces": (lambda lines: [*lines, *lines], "lines after the footer"),
    "another format": (with_header(format=2), "the trace has format 2; this kvspec reads format 1"),
    "another spec": (with_header(spec="9.1.0"), "judged by spec '9.1.0'"),
    "unknown header field": (with_header(mood="good"), "line 1: unknown field 'mood'"),
    "unknown footer field": (with_footer(mood="good"), "unknown field 'mood'"),
    "unknown context": (with_header(context="moonlight"), "the context 'moonlight'"),
    "unknown clause muted": (with_header(muted=["GRAVITY"]), "mutes GRAVITY"),
    "no pool": (with_header(world={"blocks": 0, "block_size": 2}), "0 blocks of 2 tokens"),
}


def damaged(trace: Path, kind: str) -> str:
    change, message = DAMAGE[kind]
    trace.write_text("".join(change(trace.read_text().splitlines(keepends=True))))
    return message


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_trace_has_one_clear_message(trace: Path, kind: str) -> None:
    message = damaged(trace, kind)
    with pytest.raises(TraceError, match=message.replace("[", r"\[")):
        read_trace(trace)
    with pytest.raises(TraceError):
        judge_trace(trace)


@pytest.mark.parametrize("kind", DAMAGE)
def test_commands_say_so_in_one_line_and_exit_with_3(
    trace: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    message = damaged(trace, kind)
    for command in (judge_command, show_command, lambda path: replay_command(path, BAD)):
        assert command(trace) == 3
        out, err = capsys.readouterr()
        assert message in err
        assert len(err.splitlines()) == 1
        assert out == ""


def test_no_damage_of_one_byte_passes(trace: Path) -> None:
    """Flip bytes all over the file: each is refused, whatever it hits."""
    whole, numbers = trace.read_bytes(), random.Random(1)
    for _ in range(300):
        place = numbers.randrange(len(whole))
        changed = bytes([whole[place] ^ (1 << numbers.randrange(7))])
        trace.write_bytes(whole[:place] + changed + whole[place + 1 :])
        with pytest.raises(TraceError):
            read_trace(trace)


def test_no_cut_passes(trace: Path) -> None:
    whole = trace.read_bytes()
    for length in {*range(0, len(whole), 11), *range(len(whole) - 120, len(whole))}:
        trace.write_bytes(whole[:length])
        with pytest.raises(TraceError):
            read_trace(trace)


def test_a_missing_file_is_a_trace_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read"):
        read_trace(tmp_path / "none.ndjson")


# Judging without an implementation ---------------------------------------------------------------------------------


def test_a_trace_is_judged_by_itself(trace: Path) -> None:
    judgement = judge_trace(trace)
    assert judgement.operations == 4
    assert judgement.violation is not None
    assert judgement.violation.clause == "RELEASE"


def recorded(path: Path, manager: object, verdict: Violation | None, operations: int = 300) -> Path:
    lockstep = Lockstep(manager, World(4, 2))  # type: ignore[arg-type]
    lockstep.state.muted = frozenset({"TWIN", "RELEASE", "REFCOUNT", "PARTITION", "NO-LEAK"})
    generator = Generator(random.Random(5), CONTEXTS["steps"], lockstep.state)
    header = header_of(manager, lockstep.world, "log", "steps", muted=["TWIN"], snapshot=lockstep.look())  # type: ignore[arg-type]
    for _ in range(operations):
        lockstep.step(generator.next())
    return write_lockstep(path, header, lockstep, verdict)


def test_a_log_without_violation_is_judged_to_its_end(tmp_path: Path) -> None:
    path = recorded(tmp_path / "log.ndjson", GOOD, None)
    judgement = judge_trace(path)
    assert (judgement.operations, judgement.violation) == (300, None)
    assert judge_command(path) == 0


def test_a_log_that_claims_nothing_is_judged_up_to_its_first_violation(tmp_path: Path) -> None:
    path = recorded(tmp_path / "log.ndjson", BAD, None)
    judgement = judge_trace(path)
    assert judgement.violation is not None
    assert judgement.operations < 300
    assert judge_command(path) == 1


def test_a_claim_that_the_judge_does_not_share_proves_nothing(tmp_path: Path) -> None:
    path = recorded(tmp_path / "log.ndjson", GOOD, Violation("CONTENT", "because I say so"))
    with pytest.raises(TraceError, match="claims to break CONTENT, but breaks no clause"):
        judge_trace(path)


def test_an_illegal_request_in_a_trace_proves_nothing(tmp_path: Path) -> None:
    lockstep = Lockstep(GOOD, World(2, 2))
    lockstep.step(op.Admit("A", (1,), LIMIT))
    lockstep.operations[0] = op.Append("A", 1)
    path = write_lockstep(tmp_path / "log.ndjson", header_of(GOOD, World(2, 2), "log", "steps"), lockstep, None)
    with pytest.raises(TraceError, match="operation 1 is one that no scheduler may ask for: the sequence is not live"):
        judge_trace(path)


def test_a_trace_without_operations_proves_nothing(tmp_path: Path) -> None:
    lockstep = Lockstep(GOOD, World(2, 2))
    path = write_lockstep(tmp_path / "log.ndjson", header_of(GOOD, World(2, 2), "log", "steps"), lockstep, None)
    with pytest.raises(TraceError, match="no operations: it proves nothing"):
        judge_trace(path)


def scenarios() -> Iterator[tuple[str, Violation]]:
    for clause, violation in check_robust(GOOD).items():
        if violation:
            yield clause, violation


def test_a_scenario_is_stored_without_operations_and_replayed(tmp_path: Path) -> None:
    clause, violation = next(scenarios())
    found = Counterexample(Program(World(0, 0), ()), violation, "robust")
    path = write_trace(tmp_path / "scenario.ndjson", GOOD, found)
    assert read_trace(path).footer.verdict == clause
    assert replay_command(path, GOOD) == 1
    with pytest.raises(TraceError, match="cannot be judged from the trace alone"):
        judge_trace(path)


# Replaying and shrinking -------------------------------------------------------------------------------------------


def test_replay_shows_the_failure_again(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay_command(trace, BAD) == 1
    assert "VIOLATES  RELEASE" in capsys.readouterr().out


def test_replay_on_a_correct_manager_passes(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay_command(trace, GOOD) == 0
    assert "RELEASE holds now (4 operations replayed)" in capsys.readouterr().out.replace("\n", " ")


def test_replay_of_a_target_that_does_not_load_is_a_usage_error(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay_command(trace, "no/such/file.py:BlockManager") == 2
    assert "file.py" in capsys.readouterr().err


def test_shrink_writes_a_shorter_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    longer = Program(World(4, 2), (op.Admit("C", (5,), LIMIT), op.Commit(("C",)), *FREED_TOO_SOON.operations))
    path = write_trace(tmp_path / "long.ndjson", BAD, broken(longer))
    assert shrink_command(path, BAD, tmp_path / "short.ndjson") == 1
    assert len(read_trace(tmp_path / "short.ndjson").records) == 4
    assert "6 -> 4 operations" in capsys.readouterr().out


@pytest.mark.parametrize("manager", [FreesShared, StaleIndex])
@pytest.mark.parametrize("context", ["steps", "chunked", "collision", "one"])
def test_whatever_a_campaign_finds_is_stored_judged_and_replayed_alike(
    manager: type, context: str, tmp_path: Path
) -> None:
    bad = implementation(manager)
    result = run_campaign(bad, CONTEXTS[context], 3, 120)
    for clause, found in result.found.items():
        path = write_trace(tmp_path / f"{clause}.ndjson", bad, shrink(bad, found))
        judged = judge_trace(path).violation
        assert judged is not None
        assert judged.clause == clause
        assert replay_command(path, bad) == 1
