"""Known failures: replayed, with a reason and a link, and a list that can only shrink."""

from pathlib import Path

import pytest

from kvspec.conformance.known_failures import KnownFailures, KnownFailuresError, add_known, write_known
from kvspec.conformance.program import Counterexample, Program, run
from kvspec.conformance.trace import read_trace, write_trace
from kvspec.conformance.trace.commands import accept_command
from kvspec.spec import operations as op
from kvspec.spec.state import World

from .sample_managers import BlindFreesShared, FreesShared, ModelManager, implementation

LIMIT = 1 << 20
BAD, GOOD = implementation(FreesShared), implementation(ModelManager)
PROGRAM = Program(
    World(2, 2),
    (op.Admit("A", (7, 7), LIMIT), op.Commit(("A",)), op.Admit("B", (7, 7, 9), LIMIT), op.Release("A")),
)
ENTRY = """\
[[known]]
trace = "{trace}"
clause = "{clause}"
reason = "{reason}"
link = "{link}"
"""


def counterexample() -> Counterexample:
    _, violation = run(BAD, PROGRAM)
    assert violation is not None
    return Counterexample(PROGRAM, violation, "steps")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write_trace(tmp_path / "release.ndjson", BAD, counterexample())


def listed(folder: Path, **changes: str) -> Path:
    fields = {"trace": "release.ndjson", "clause": "RELEASE", "reason": "old fault", "link": "https://example.com/1"}
    path = folder / "known.toml"
    path.write_text(ENTRY.format(**fields | changes))
    return path


def test_what_still_fails_is_covered(trace: Path) -> None:
    known = KnownFailures.load(listed(trace.parent))
    (result,) = known.check(BAD)
    assert result.still_fails
    assert result.sentence == "release.ndjson (RELEASE, https://example.com/1) still fails: old fault"
    assert known.covers("RELEASE", "steps")


def test_only_its_own_clause_and_context_are_covered(trace: Path) -> None:
    known = KnownFailures.load(listed(trace.parent))
    assert not known.covers("REFCOUNT", "steps")
    assert not known.covers("RELEASE", "chunked")


def test_what_is_fixed_must_be_deleted(trace: Path) -> None:
    (result,) = KnownFailures.load(listed(trace.parent)).check(GOOD)
    assert not result.still_fails
    assert result.sentence.endswith("it passes now")


def test_what_fails_differently_now_must_be_deleted_as_well(trace: Path) -> None:
    class Raises(ModelManager):
        def release(self, sequence: str, cause: op.Cause) -> op.Outcome:
            raise IndexError("pop from an empty deque")

    (result,) = KnownFailures.load(listed(trace.parent)).check(implementation(Raises))
    assert not result.still_fails
    assert result.sentence.endswith("it breaks TOTAL instead")


def test_replay_is_the_same_every_time(trace: Path) -> None:
    known = KnownFailures.load(listed(trace.parent))
    assert len({tuple(result.sentence for result in known.check(BAD)) for _ in range(20)}) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reason": ""}, "entry 1 has no reason: every known failure needs trace, clause, reason, link"),
        ({"reason": "  "}, "entry 1 has no reason"),
        ({"link": ""}, "entry 1 has no link"),
        ({"link": "see chat"}, "the link must be a web address, not 'see chat'"),
        ({"trace": "gone.ndjson"}, "gone.ndjson: the trace cannot be read: No such file or directory"),
        ({"clause": "REFCOUNT"}, "the clause is REFCOUNT, but release.ndjson breaks RELEASE"),
        ({"clause": "GRAVITY"}, "there is no clause 'GRAVITY'"),
    ],
)
def test_an_entry_that_says_too_little_or_the_wrong_thing_is_refused(
    trace: Path, changes: dict[str, str], message: str
) -> None:
    path = listed(trace.parent, **changes)
    with pytest.raises(KnownFailuresError, match=message):
        KnownFailures.load(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("known = 1 = 2", "is not TOML"),
        ("[known]\ntrace = 'a'", r"write \[\[known\]\]"),
        ("[[know]]\ntrace = 'a'", "unknown entry 'know'"),
        ("[[known]]\nclause = 'RELEASE'", "entry 1 has no trace"),
        (ENTRY + "mood = 'good'", "unknown field 'mood'"),
    ],
)
def test_a_file_that_is_no_list_of_known_failures_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "known.toml").write_text(text)
    with pytest.raises(KnownFailuresError, match=message):
        KnownFailures.load(tmp_path / "known.toml")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KnownFailuresError, match="cannot be read"):
        KnownFailures.load(tmp_path / "known.toml")


def test_a_damaged_trace_is_refused(trace: Path) -> None:
    trace.write_bytes(trace.read_bytes()[:-40])
    with pytest.raises(KnownFailuresError, match=r"entry 1: release\.ndjson: line 6 is cut off"):
        KnownFailures.load(listed(trace.parent))


def test_a_trace_may_be_listed_once(trace: Path) -> None:
    path = listed(trace.parent)
    path.write_text(path.read_text() * 2)
    with pytest.raises(KnownFailuresError, match=r"lists release\.ndjson twice"):
        KnownFailures.load(path)


def test_an_empty_list_is_fine(tmp_path: Path) -> None:
    (tmp_path / "known.toml").write_text("")
    assert KnownFailures.load(tmp_path / "known.toml").check(BAD) == []


def test_the_first_file_must_be_filled_in_before_it_counts(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    assert write_known(path, [counterexample()], BAD) == 1
    with pytest.raises(KnownFailuresError, match="has no reason"):
        KnownFailures.load(path)
    path.write_text(path.read_text().replace('reason = ""', 'reason = "old"').replace('""', '"https://example.com/1"'))
    (result,) = KnownFailures.load(path).check(BAD)
    assert result.still_fails


def test_a_list_that_was_filled_in_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    write_known(path, [counterexample()], BAD)
    with pytest.raises(KnownFailuresError, match="never overwritten"):
        write_known(path, [], BAD)


def test_accepting_appends_an_entry_that_counts(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = trace.parent / "lists" / "known.toml"
    path.parent.mkdir()
    assert accept_command(trace, path, 'a "quoted" reason\\', "https://example.com/2") == 0
    (entry,) = KnownFailures.load(path).entries
    assert (entry.reason, entry.path.resolve()) == ('a "quoted" reason\\', trace.resolve())
    assert "is listed as known" in capsys.readouterr().out


def test_accepting_without_a_reason_writes_nothing(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = trace.parent / "known.toml"
    assert accept_command(trace, path, "", "https://example.com/2") == 2
    assert "has no reason" in capsys.readouterr().err
    assert not path.exists()


def test_accepting_twice_leaves_the_list_as_it_was(trace: Path) -> None:
    path = trace.parent / "known.toml"
    add_known(path, trace, "old fault", "https://example.com/1")
    before = path.read_text()
    with pytest.raises(KnownFailuresError, match="already"):
        add_known(path, trace, "old fault", "https://example.com/1")
    assert path.read_text() == before


def test_a_trace_of_a_blind_manager_can_be_listed(tmp_path: Path) -> None:
    blind = implementation(BlindFreesShared)
    program = Program(PROGRAM.world, (*PROGRAM.operations, op.Commit(("B",)), op.Admit("C", (1,), LIMIT)))
    _, violation = run(blind, program)
    assert violation is not None
    path = write_trace(tmp_path / "release.ndjson", blind, Counterexample(program, violation, "steps"))
    assert read_trace(path).footer.verdict == "FRESH"
    (result,) = KnownFailures.load(listed(tmp_path, clause="FRESH")).check(blind)
    assert result.still_fails
