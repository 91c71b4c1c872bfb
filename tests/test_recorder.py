"""The recorder: what it writes is judged as what happened, and nothing that goes wrong in it reaches the engine."""

from __future__ import annotations

import json
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kvspec.conformance.trace import FORMAT_VERSION, judge_trace
from kvspec.conformance.trace.format import RECORD
from kvspec.conformance.trace.parts import Parts
from kvspec.conformance.trace.validating import validate
from kvspec.conformance.trace.writer import to_line
from kvspec.impl import recorder_output
from kvspec.impl.block_manager import BlockManager
from kvspec.impl.hardened import BlockManager as Hardened
from kvspec.impl.known_bad.bases.named import Early, Layout
from kvspec.impl.known_bad.early import EarlyStaleEntry, EarlyWholePromptCached
from kvspec.impl.known_bad.late import LateForwardRelease, LateFreeHitsAreRoom, LateGrowthRaises, LateStaleEntry
from kvspec.impl.recorder import Recorder, record, record_if_asked
from kvspec.impl.recorder_sight import FORMAT

from .sample_engine import Engine, run

SOUND = (BlockManager, Hardened, Early)
SIZES = {"longest": 9, "most": 4, "budget": 9}


def recorded(path: Path, manager: Any, steps: int = 300, **options: Any) -> Recorder:
    """A recorded run; an accident of a known-bad manager ends it, as it would end an engine."""
    accidents = (IndexError, AssertionError, KeyError) if type(manager) not in SOUND else ()
    recorder = record(manager, path, **options)
    with suppress(*accidents):
        run(manager, steps, **SIZES)
    recorder.close()
    assert recorder.error is None
    return recorder


def tokens_in(path: Path) -> set[int]:
    requests = [json.loads(line)["request"] for line in path.read_text().splitlines()[1:-1]]
    return {request["token"] for request in requests if request["op"] == "append"}


# What is recorded is what happened ---------------------------------------------------------------------------------


@pytest.mark.parametrize("manager", SOUND)
def test_a_sound_manager_is_recorded_and_breaks_nothing(manager: type, tmp_path: Path) -> None:
    path = tmp_path / "kv.ndjson"
    recorded(path, manager(9, 2))
    found = validate([path])
    assert (found.violation, found.remarks, found.skipped) == (None, [], 0)
    assert found.judged > 1000
    counts = found.statistics
    assert min(counts.admitted, counts.refused, counts.preempted, counts.cached, counts.recycled) > 10
    assert judge_trace(path).operations == found.judged


@pytest.mark.parametrize(
    ("manager", "clause"),
    [
        (LateStaleEntry, "CONTENT"),
        (LateFreeHitsAreRoom, "YES-MEANS-YES"),
        (LateGrowthRaises, "TOTAL"),
        (LateForwardRelease, "TAIL-FIRST"),
        (EarlyStaleEntry, "CONTENT"),
        (EarlyWholePromptCached, "PROGRESS"),
    ],
)
def test_a_known_bad_manager_is_found_in_its_recording(manager: type, clause: str, tmp_path: Path) -> None:
    for name, key in (("plain", None), ("opaque", b"secret")):
        recorded(tmp_path / name, manager(9, 2), 400, key=key)
    plain, opaque = validate([tmp_path / "plain"]), validate([tmp_path / "opaque"])
    assert plain.violation is not None
    assert opaque.violation is not None
    assert plain.violation.clause == opaque.violation.clause == clause
    assert plain.judged == opaque.judged


def test_lines_are_spelled_as_the_writer_of_traces_spells_them(tmp_path: Path) -> None:
    recorded(tmp_path / "kv.ndjson", LateGrowthRaises(9, 2))
    recorded(tmp_path / "good.ndjson", BlockManager(9, 2), 100)
    kinds = set()
    for path in tmp_path.iterdir():
        for line in path.read_bytes().splitlines(keepends=True)[1:-1]:
            value = json.loads(line)
            kinds.add(value["answer"]["outcome"])
            assert to_line(RECORD.write(RECORD.read(value))) == line
    assert kinds == {"admitted", "reserved", "committed", "appended", "released", "refused", "failed"}
    assert FORMAT == FORMAT_VERSION


def test_chunks_of_a_prompt_are_reserved_one_by_one(tmp_path: Path) -> None:
    manager = BlockManager(9, 2)
    recorder, engine = record(manager, tmp_path / "kv.ndjson"), Engine(manager, budget=3)
    engine.add([1, 2, 3, 4, 5, 6, 7], 1)
    for _ in range(3):
        engine.step(lambda: 8)
    recorder.close()
    requests = [json.loads(line)["request"] for line in (tmp_path / "kv.ndjson").read_text().splitlines()[1:-1]]
    told = [(request["op"], request.get("limit") or request.get("count")) for request in requests]
    commit = ("commit", None)
    assert told == [
        ("admit", 3),
        commit,
        ("reserve", 3),
        commit,
        ("reserve", 1),
        commit,
        ("append", None),
        ("release", None),
    ]


def test_opaque_tokens_differ_with_the_key_and_hide_the_token(tmp_path: Path) -> None:
    for name, key in (("plain", None), ("a", b"a"), ("b", b"b")):
        recorded(tmp_path / name, BlockManager(9, 2), 50, key=key)
    plain, first, second = (tokens_in(tmp_path / name) for name in ("plain", "a", "b"))
    assert plain == {0, 1}
    assert len(first) == len(second) == 2
    assert not first & second
    assert all(1 << 20 < token < 1 << 63 for token in first | second)


def test_the_recorded_manager_does_what_it_does_without(tmp_path: Path) -> None:
    managers = [BlockManager(9, 2), BlockManager(9, 2)]
    recorded(tmp_path / "kv.ndjson", managers[0])
    run(managers[1], 300, **SIZES)
    assert managers[0].free_block_ids == managers[1].free_block_ids
    assert managers[0].hash_to_block_id == managers[1].hash_to_block_id


# On and off --------------------------------------------------------------------------------------------------------


def test_off_leaves_the_manager_untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KVSPEC_RECORD", raising=False)
    manager = BlockManager(4, 2)
    before = dict(vars(manager))
    assert record_if_asked(manager) is manager
    assert vars(manager) == before


def test_the_environment_variable_switches_it_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closing: list[Any] = []
    monkeypatch.setattr("atexit.register", closing.append)
    monkeypatch.setenv("KVSPEC_RECORD", str(tmp_path / "kv-{pid}.ndjson"))
    monkeypatch.setenv("KVSPEC_RECORD_KEY", "random")
    manager = record_if_asked(BlockManager(9, 2))
    run(manager, 30, **SIZES)
    closing[0]()
    (path,) = tmp_path.glob("kv-*[0-9].ndjson")
    assert validate([path]).violation is None
    assert min(tokens_in(path)) > 1000


def test_after_close_the_manager_is_as_before_and_closing_again_is_harmless(tmp_path: Path) -> None:
    manager = BlockManager(9, 2)
    before = set(vars(manager))
    recorder = record(manager, tmp_path / "kv.ndjson")
    assert set(vars(manager)) > before
    recorder.close()
    recorder.close()
    assert set(vars(manager)) == before
    assert not recorder.active


def test_an_earlier_recording_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "kv.ndjson").write_text("mine")
    recorder = recorded(tmp_path / "kv.ndjson", BlockManager(9, 2), 10)
    assert recorder.parts == [tmp_path / "kv-2.ndjson"]
    assert (tmp_path / "kv.ndjson").read_text() == "mine"


# Rotation, and recordings that start in the middle -----------------------------------------------------------------


def test_a_rotated_recording_is_judged_as_one(tmp_path: Path) -> None:
    recorder = recorded(tmp_path / "kv.ndjson", BlockManager(9, 2), 600, rotate=100_000)
    assert len(recorder.parts) >= 3
    assert recorder.parts[1].name == "kv.0002.ndjson"
    found = validate(recorder.parts[::-1])
    assert (found.violation, found.remarks) == (None, [])
    assert found.judged == sum(part.footer.operations for part in read_to_the_end(recorder.parts))


def read_to_the_end(paths: list[Path]) -> list[Any]:
    parts = Parts(paths).parts
    for part in parts:
        for _ in part.operations():
            pass
    return parts


def test_only_so_many_files_are_kept_and_the_rest_is_judged_from_the_middle(tmp_path: Path) -> None:
    recorder = recorded(tmp_path / "kv.ndjson", BlockManager(9, 2), 600, rotate=100_000, keep=2)
    assert sorted(tmp_path.iterdir()) == recorder.parts
    assert len(recorder.parts) == 2
    found = validate(recorder.parts)
    assert found.violation is None
    assert "starts in the middle" in found.remarks[0]
    assert found.judged > 1000


def test_a_fault_is_found_without_the_beginning(tmp_path: Path) -> None:
    recorder = recorded(tmp_path / "kv.ndjson", LateStaleEntry(9, 2), 1500, rotate=100_000, keep=2)
    found = validate(recorder.parts)
    assert found.violation is not None
    assert found.violation.clause in {"CONTENT", "COMPUTED"}


@pytest.mark.parametrize("kind", [BlockManager, Early])
def test_a_recording_may_begin_while_the_engine_runs(kind: type, tmp_path: Path) -> None:
    manager = kind(9, 2)
    engine = run(manager, 100, **SIZES)
    recorder = record(manager, tmp_path / "kv.ndjson")
    for step in range(200):
        if len(engine.waiting) < 2:
            engine.add([step % 2, 1, 0, step % 3 % 2, 1], 5)
        engine.step(lambda step=step: step % 2)
    recorder.close()
    found = validate([tmp_path / "kv.ndjson"])
    assert found.violation is None
    assert found.skipped > 0
    assert "starts in the middle" in found.remarks[0]


# Failures stay in the recorder -------------------------------------------------------------------------------------


def still_works(manager: Any) -> None:
    assert not {"allocate", "deallocate", "can_allocate"} & set(vars(manager))
    if isinstance(manager, BlockManager) and not isinstance(manager, Layout):
        run(manager, 50, **SIZES)


def test_an_unwritable_path(tmp_path: Path) -> None:
    manager = BlockManager(9, 2)
    with pytest.warns(RuntimeWarning, match="does not record this manager: FileNotFoundError") as told:
        recorder = record(manager, tmp_path / "no" / "such" / "folder.ndjson")
    assert len(told) == 1
    assert not recorder.active
    recorder.close()
    still_works(manager)


class Slotted:
    """Accepts no attributes."""

    __slots__ = ("block_size", "blocks", "free_block_ids", "hash_to_block_id", "used_block_ids")
    can_allocate, allocate, deallocate = BlockManager.can_allocate, BlockManager.allocate, BlockManager.deallocate
    can_append, may_append, hash_blocks = BlockManager.can_append, BlockManager.may_append, BlockManager.hash_blocks
    __init__ = BlockManager.__init__


@pytest.mark.parametrize(
    ("manager", "why"),
    [
        (object(), "object has none of the shapes"),
        (Layout(9, 2), "Layout has none of the shapes"),
        (Slotted(9, 2), "'Slotted' object|vars"),
        (type("Sizeless", (BlockManager,), {"__init__": lambda self: None})(), "does not show its blocks|block_size"),
    ],
)
def test_a_manager_that_cannot_be_recorded(manager: Any, why: str, tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match=why) as told:
        recorder = record(manager, tmp_path / "kv.ndjson")
    assert len(told) == 1
    assert not recorder.active
    recorder.close()


def test_a_full_disk_ends_the_recording_and_not_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Any, text: bytes) -> None:
        raise OSError(28, "No space left on device")

    manager = BlockManager(9, 2)
    recorder = record(manager, tmp_path / "kv.ndjson")
    monkeypatch.setattr(recorder_output.Output, "_write", full)
    with pytest.warns(RuntimeWarning, match="No space left") as told:
        run(manager, 1000, **SIZES)
    assert len(told) == 1
    assert not recorder.active
    still_works(manager)


def test_a_disk_that_falls_behind_ends_the_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_output, "BATCHES_WAITING", 0)
    manager = BlockManager(9, 2)
    recorder = record(manager, tmp_path / "kv.ndjson", patience=0.01)
    with pytest.warns(RuntimeWarning, match="falls behind"):
        run(manager, 300, **SIZES)
    assert not recorder.active
    still_works(manager)


def test_an_accident_in_the_recorder_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = BlockManager(9, 2)
    recorder = record(manager, tmp_path / "kv.ndjson")
    monkeypatch.setattr(recorder._calls, "_appended", lambda known: 1 / 0)
    with pytest.warns(RuntimeWarning, match="ZeroDivisionError"):
        run(manager, 50, **SIZES)
    still_works(manager)


def test_a_warning_that_is_an_error_does_not_reach_the_engine(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert record(object(), tmp_path / "kv.ndjson").error is not None


def test_what_the_manager_raises_reaches_the_engine_unchanged(tmp_path: Path) -> None:
    manager = LateGrowthRaises(9, 2)
    recorder = record(manager, tmp_path / "kv.ndjson")
    with pytest.raises(AssertionError):
        run(manager, 300, **SIZES)
    recorder.close()
    assert recorder.error is None
