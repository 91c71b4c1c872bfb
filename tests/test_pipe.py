"""Programs that speak the pipe protocol, and programs that do not."""

import io
import json
import os
import sys
import time
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console

from kvspec.conformance.campaign import run_campaign
from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.lockstep import Lockstep
from kvspec.conformance.robustness import check_robust
from kvspec.conformance.smoke import smoke_command
from kvspec.impl.errors import ImplementationError, LoadError
from kvspec.impl.pipe import child, load_pipe
from kvspec.impl.pipe.child import Child
from kvspec.impl.pipe.protocol import (
    ANSWER,
    BlockHash,
    HashBlock,
    Hello,
    Introduction,
    Look,
    NoAnswer,
    Started,
    Stop,
    Stopped,
    read_answer,
    request_line,
)
from kvspec.spec import operations as op
from kvspec.spec.declaration import Covers, Declaration
from kvspec.spec.state import Snapshot, World

PROGRAM = Path(__file__).parent / "pipe_program.py"
SCHEMAS = Path(__file__).parents[1] / "conformance" / "schemas"
REQUEST_SCHEMA = json.loads((SCHEMAS / "pipe-request.schema.json").read_text())
ANSWER_SCHEMA = json.loads((SCHEMAS / "pipe-answer.schema.json").read_text())


def target(way: str = "", folder: object = "") -> str:
    return f"cmd:{sys.executable} {PROGRAM} '{way}' '{folder}'"


def load(way: str = "", folder: object = "", seconds: float = 20):
    return load_pipe(target(way, folder), seconds=seconds)


STEPS = (
    op.Admit("A", (0, 0, 0), 9),
    op.Commit(("A",)),
    op.Append("A", 1),
    op.Reserve("A", 1),
    op.Commit(("A",)),
    op.Admit("B", (0,) * 5, 9),
    op.Release("A"),
    op.Release("A"),
)


def perform(adapter, operations=STEPS):
    return [adapter._perform(operation) for operation in operations]


# --- a program that behaves -------------------------------------------------------------------------------------------


def test_what_a_program_says_becomes_outcomes():
    implementation = load()
    assert implementation.name == "pool-program"
    assert implementation.declaration == Declaration(
        "pool-program", frozenset({"pool"}), covers=Covers.KNOWN, credits_shared=False, release_in_flight=True
    )
    assert implementation.shape == "pipe protocol 1, Python, version 1"
    assert implementation.chain_hash is None
    assert perform(implementation.create(World(4, 2))) == [
        op.Admitted(0, 3, (0, 1)),
        op.Committed(((0, 1),)),
        op.Appended(),
        op.Reserved((0, 1)),
        op.Committed(((0, 1),)),
        op.Refused(),
        op.Released(),
        op.Released(),
    ]


def test_a_pool_without_cache_conforms_to_pool():
    implementation = load()
    found = run_campaign(implementation, CONTEXTS["steps"], 0, 60).found
    assert set(found) <= {"NO-LOST-HIT", "SURVIVES-RELEASE", "TWIN"}
    assert "NO-LOST-HIT" in found


def test_one_child_serves_all_managers(monkeypatch):
    started = []
    original = Child.__init__
    monkeypatch.setattr(Child, "__init__", lambda self, command: (started.append(command), original(self, command))[1])
    run_campaign(load(), CONTEXTS["chunked"], 0, 20)
    assert len(started) == 1


def test_a_program_that_shows_nothing_has_no_snapshot():
    assert not hasattr(load().create(World(4, 2)), "snapshot")
    assert Lockstep(load(), World(4, 2)).look() is None


def test_an_impossible_world_is_a_clear_error():
    with pytest.raises(ImplementationError, match=r"^no pool of 0 blocks of 2 tokens$"):
        load().create(World(0, 2))
    assert check_robust(load())["BAD-POOL"] is None


def test_a_fork_has_a_child_of_its_own():
    implementation = load()
    adapter = implementation.create(World(6, 2))
    perform(adapter, STEPS[:3])
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(write, repr(perform(adapter, STEPS[3:])).encode())
            perform(implementation.create(World(4, 2)))
        finally:
            os._exit(0)
    os.close(write)
    perform(adapter, STEPS[3:5])
    with os.fdopen(read) as answers:
        forked = answers.read()
    os.waitpid(pid, 0)
    assert forked == repr(perform(implementation.create(World(6, 2)))[3:])
    assert adapter._perform(STEPS[6]) == op.Released()


def test_a_copy_goes_its_own_way_by_replay():
    adapter = load().create(World(6, 2))
    perform(adapter, STEPS[:3])
    other = adapter.copy()
    assert perform(other, (op.Reserve("A", 1), op.Commit(("A",)), op.Release("A"))) == [
        op.Reserved((0, 1)),
        op.Committed(((0, 1),)),
        op.Released(),
    ]
    assert perform(adapter, STEPS[3:4]) == [op.Reserved((0, 1))]
    assert perform(other, (op.Admit("B", (1,), 1),)) == [op.Admitted(0, 1, (2,))]


def test_a_batch_is_what_single_operations_are():
    implementation = load()
    batch = [outcome for outcome, _ in implementation.create(World(4, 2)).perform_all(STEPS * 200)]
    assert batch == perform(implementation.create(World(4, 2)), STEPS * 200)


def test_a_batch_larger_than_the_pipes_does_not_lock_up():
    adapter = load().create(World(4, 2))
    big = op.Admit("A", tuple(range(20_000)), 1)
    assert [outcome for outcome, _ in adapter.perform_all([big] * 40)] == [op.Refused(op.Reason.TOO_LARGE)] * 40


# --- programs that do not ---------------------------------------------------------------------------------------------

MISBEHAVIOUR = {
    "dies": op.Failed("nothing: the program ended; it exited with code 3; its last words: out of luck"),
    "killed": op.Failed("nothing: the program ended; it was killed by SIGSEGV"),
    "hangs": op.Failed("nothing: no answer within 0.4 s; its last words: thinking"),
    "panics": op.Failed(
        "nothing: the program ended; it exited with code 101; its last words: panicked at manager.rs:7: | no room | "
        "0: frame | 1: frame | … | 86: frame | 87: frame | 88: frame | 89: frame"
    ),
    "closes": op.Failed("nothing: the program ended; it closed its standard output and runs on"),
    "noise": op.Nonsense(
        "standard output is for answers, one JSON object a line; there was 'Loading weights ...'",
    ),
    "unknown": op.Nonsense(
        "unknown answer '{\"outcome\":\"perhaps\"}': field 'outcome': one of hello, started, admitted, reserved, "
        "committed, appended, released, refused, failed, extended, truncated, was_reset, probed, retained, dropped, "
        "snapshot, hash, stopped was expected, not 'perhaps'"
    ),
    "extra field": op.Nonsense(
        'unknown answer \'{"outcome":"released","mood":"fine"}\': unknown field \'mood\'',
    ),
    "partial": op.Nonsense('the last line is cut off: \'{"outcome":"rel\'; it exited with code 0'),
    "endless line": op.Nonsense("more than 16 MiB of output without the end of a line"),
}


@pytest.mark.parametrize("way", MISBEHAVIOUR)
def test_misbehaviour_at_operation_7_is_one_clear_message(way, tmp_path):
    leaves_a_child = way != "closes"
    implementation = load(way, tmp_path if leaves_a_child else "", seconds=0.4 if way == "hangs" else 20)
    adapter = implementation.create(World(4, 2))
    began = time.monotonic()
    outcomes = perform(adapter)
    assert outcomes[:6] == perform(load().create(World(4, 2)), STEPS[:6])
    assert outcomes[6] == MISBEHAVIOUR[way]
    assert isinstance(outcomes[7], op.Failed), "this manager is gone"
    assert time.monotonic() - began < 15
    assert nothing_runs(tmp_path) or not leaves_a_child


def test_a_line_that_nobody_asked_for_is_nonsense():
    adapter = load("extra line").create(World(4, 2))
    outcomes = perform(adapter, STEPS[:7])
    time.sleep(0.1)
    assert outcomes[6] == op.Released()
    unasked = op.Nonsense('there was output that nobody asked for: \'{"outcome": "released"}\\n\'')
    assert adapter._perform(STEPS[7]) == unasked


def test_standard_error_is_for_anything():
    assert perform(load("loud").create(World(4, 2)))[6] == op.Released()


def test_the_next_manager_works_after_a_crash():
    implementation = load("dies")
    for _ in range(2):
        assert perform(implementation.create(World(4, 2)))[6] == MISBEHAVIOUR["dies"]


def test_answers_that_change_on_replay_are_nonsense():
    adapter = load("moody").create(World(500, 2))
    adapter._perform(op.Admit("A", (0,), 1))
    answers = [adapter.copy()._perform(op.Release("A", op.Cause.FINISHED)) for _ in range(3)]
    assert any(isinstance(a, op.Nonsense) and a.answer.startswith("the same requests, another answer") for a in answers)


def test_a_crash_is_a_violation_and_a_hang_is_one():
    for way in ("dies", "hangs"):
        found = run_campaign(load(way, seconds=0.4 if way == "hangs" else 20), CONTEXTS["steps"], 0, 6).found
        assert "TOTAL" in found
        assert found["TOTAL"].violation.because.startswith("the manager gave no answer: ")


def test_nothing_is_left_running_when_the_implementation_goes(tmp_path):
    implementation = load("", tmp_path)
    implementation.create(World(4, 2))
    assert not nothing_runs(tmp_path)
    del implementation
    assert nothing_runs(tmp_path)


def nothing_runs(folder: Path) -> bool:
    """Is every process gone that a program noted here, its children included?  A moment is given."""
    if not (folder / "pids").exists():
        return False
    pids = [int(pid) for line in (folder / "pids").read_text().splitlines() for pid in line.split()]
    deadline = time.monotonic() + 1
    while any(map(runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(runs, pids))


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


NOT_LOADED = {
    "cmd:": 'cmd:: no program is named; write --impl "cmd:./program --flag"',
    "cmd:'": "cmd:': the command cannot be split into words: No closing quotation",
    "cmd:./no-such": "cmd:./no-such: the program cannot be started: No such file or directory: ./no-such",
    "cmd:true": "cmd:true: the program does not answer hello: the program ended; it exited with code 0; "
    "spec/PORTING.md has the protocol",
    "cmd:echo hi there": "cmd:echo hi there: the program does not answer hello: standard output is for answers, one JSON "
    "object a line; there was 'hi there'; spec/PORTING.md has the protocol",
    "cmd:printf half": "cmd:printf half: the program does not answer hello: the last line is cut off: 'half'; "
    "it exited with code 0; spec/PORTING.md has the protocol",
    "cmd:sleep 1000": "cmd:sleep 1000: the program does not answer hello: no answer within 0.3 s; is standard output "
    "flushed after the answer?; spec/PORTING.md has the protocol",
    "cmd:cat": 'cmd:cat: the program does not answer hello: unknown answer \'{"op":"hello","protocol":1}\': an object '
    "with the field 'outcome' was expected, not {'op': 'hello', 'protocol': 1}; spec/PORTING.md has the protocol",
}


@pytest.mark.parametrize("text", NOT_LOADED)
def test_a_program_that_does_not_load_is_one_message(text):
    with pytest.raises(LoadError) as caught:
        load_pipe(text, seconds=0.3, start_seconds=0.3 if "sleep" in text else 10)
    assert str(caught.value) == NOT_LOADED[text]


def answering(answer: dict) -> str:
    return f"cmd:echo '{json.dumps(answer)}'"


HELLO = {"outcome": "hello", "protocol": 1, "version": "1", "language": "sh", "declaration": {"name": "x"}}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (HELLO | {"protocol": 2}, "the program speaks protocol 2; this kvspec speaks 1"),
        ({"outcome": "failed", "error": "no licence"}, "the program answers hello with no licence; "),
        ({"outcome": "started"}, "the program answers hello with Started(); "),
        (HELLO | {"hash": True}, 'hello says "hash":true, but the program ended; it exited with code 0; '),
        (
            HELLO | {"declaration": {"name": "x", "nano_vllm_order": True}},
            'the program declares nano_vllm_order, which needs "hash":true in hello',
        ),
    ],
)
def test_an_introduction_that_is_none_is_one_message(answer, message):
    with pytest.raises(LoadError) as caught:
        load_pipe(answering(answer))
    assert str(caught.value).removeprefix(answering(answer) + ": ").startswith(message)


def test_a_program_that_declares_an_unknown_profile_is_told_which_there_are():
    with pytest.raises(LoadError, match="field 'declaration': x declares poll; the profiles are pool, prefix"):
        load_pipe(answering(HELLO | {"declaration": {"name": "x", "profiles": ["poll"]}}))


def test_there_is_no_shell(tmp_path):
    with pytest.raises(LoadError):
        load_pipe(f"cmd:true; touch {tmp_path}/made")
    assert not list(tmp_path.iterdir())


# --- the protocol as data ---------------------------------------------------------------------------------------------

ANSWERS = [
    Introduction(1, "1", "C", Declaration("x")),
    Started(),
    op.Admitted(2, 1, (0, 1)),
    op.Reserved((0,)),
    op.Committed(((0,), ())),
    op.Appended(),
    op.Released(),
    op.Refused(op.Reason.TOO_LARGE),
    op.Failed("no", clear=True),
    Snapshot(),
    Snapshot((1,), (0,), (), (1, 0), (2**64 - 1, None), ((7, 7), ()), ((2**64 - 1, 0),)),
    BlockHash(2**64 - 1),
    Stopped(),
]
REQUESTS = [
    Hello(),
    *STEPS,
    op.Release("A", op.Cause.PREEMPTED),
    Look(),
    HashBlock((1,), None),
    HashBlock((), 3),
    Stop(),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_every_request_is_valid(request_):
    jsonschema.validate(json.loads(request_line(request_)), REQUEST_SCHEMA)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_every_answer_is_valid_and_read_back(answer):
    written = ANSWER.write(answer)
    jsonschema.validate(written, ANSWER_SCHEMA)
    assert read_answer(json.dumps(written).encode()) == answer


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_what_the_schema_rejects_is_rejected(answer):
    written = ANSWER.write(answer)
    bad = [written | {"mood": 1}, *({**written, name: {"a": 1.5}} for name in written)]
    required = [name for name, field in type(answer).__dataclass_fields__.items() if name in written]
    bad += [{k: v for k, v in written.items() if k != name} for name in ("outcome", *required)]
    for value in bad:
        refused = list(jsonschema.Draft202012Validator(ANSWER_SCHEMA).iter_errors(value))
        if refused:
            with pytest.raises(NoAnswer):
                read_answer(json.dumps(value).encode())
        else:
            read_answer(json.dumps(value).encode())


def test_operations_are_those_of_a_trace():
    trace = json.loads((SCHEMAS / "trace.schema.json").read_text())["$defs"]
    for name in ("operation", "world"):
        assert REQUEST_SCHEMA["$defs"][name] == trace[name]
    assert ANSWER_SCHEMA["$defs"]["declaration"] == trace["declaration"]
    said = [each for each in trace["outcome"]["oneOf"] if each["properties"]["outcome"]["const"] != "nonsense"]
    assert ANSWER_SCHEMA["$defs"]["outcome"]["oneOf"] == said


def test_both_directions_are_valid_under_load(monkeypatch):
    lines: list[tuple[bytes, bytes]] = []
    original = Child.ask

    def recording(self, asked, seconds):
        answers, trouble = original(self, asked, seconds)
        lines.extend(zip(asked, answers, strict=True))
        return answers, trouble

    monkeypatch.setattr(child.Child, "ask", recording)
    run_campaign(load(), CONTEXTS["chunked"], 1, 10)
    assert len(lines) > 200
    requests, answers = (jsonschema.Draft202012Validator(schema) for schema in (REQUEST_SCHEMA, ANSWER_SCHEMA))
    for asked, answered in lines:
        requests.validate(json.loads(asked))
        answers.validate(json.loads(answered))


# --- smoke ------------------------------------------------------------------------------------------------------------


def smoke(text: str) -> tuple[int, list[str]]:
    output = io.StringIO()
    code = smoke_command(text, Console(file=output, width=200, highlight=False, soft_wrap=True))
    return code, output.getvalue().splitlines()


def test_smoke_of_a_pool_says_what_comes_next():
    code, lines = smoke(target())
    assert code == 0
    assert [line for line in lines if line[0].isdigit()] == [
        "1  hello: who are you, and what do you declare?",
        "2  a prompt is admitted, computed, and released",
        "3  the same prompt comes again: its first block can be found",
        "4  a token is sampled, and computed in the next step",
        "5  a fresh, smaller pool: a prompt that needs all of it waits until A is gone",
    ]
    assert lines[-1] == "next    nothing was found again: write the prefix cache, then declare the profile prefix"


def test_smoke_of_nothing_is_three_lines():
    code, lines = smoke("cmd:false")
    assert code == 1
    assert lines == [
        'asked   {"op":"hello","protocol":1}',
        "got     the program ended; it exited with code 1",
        'next    answer with {"outcome":"hello","protocol":1,…} first; everything else can wait (spec/PORTING.md)',
    ]


@pytest.mark.parametrize(
    ("answer", "got"),
    [
        (HELLO | {"protocol": 2}, "got     the program speaks protocol 2; this kvspec speaks 1"),
        (
            HELLO | {"declaration": {"name": "x", "profiles": ["poll"]}},
            "got     unknown answer ",
        ),
        ({"outcome": "started"}, 'got     {"outcome": "started"}'),
    ],
)
def test_smoke_of_a_wrong_introduction_says_what_is_wrong(answer, got):
    code, lines = smoke(answering(answer))
    assert (code, len(lines)) == (1, 3)
    assert lines[1].startswith(got)
    assert lines[2].endswith("(spec/PORTING.md)")


def test_smoke_of_a_start_that_keeps_the_last_manager():
    code, lines = smoke(target("keeps"))
    assert code == 1
    assert lines[-3].startswith('asked   {"op":"admit","sequence":"B"')
    assert lines[-2].startswith("got     ")
    assert any(line.startswith("5  ") for line in lines)


def test_smoke_of_a_snapshot_of_another_size(tmp_path):
    program = tmp_path / "program.py"
    snapshot = {"outcome": "snapshot", "references": [1, 1, 0]}
    hello = HELLO | {"snapshot": True}
    admitted = {"outcome": "admitted", "cached": 0, "reserved": 3, "table": [0, 1]}
    answers = {"hello": hello, "start": {"outcome": "started"}, "admit": admitted, "snapshot": snapshot}
    text = (
        f"import json, sys\nfor line in sys.stdin: print(json.dumps({answers!r}[json.loads(line)['op']]), flush=True)\n"
    )
    program.write_text(text)
    code, lines = smoke(f"cmd:{sys.executable} {program}")
    assert code == 1
    assert lines[-2:] == [
        "got     references does not have an entry for each of 4 blocks: it has 3 entries",
        "next    give a snapshot its form (spec/PORTING.md)",
    ]


def test_smoke_of_a_missing_program_is_one_line():
    assert smoke("cmd:./no-such") == (2, ["cmd:./no-such: the program cannot be started: No such file or directory"])
