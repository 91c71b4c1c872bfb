"""The stored vectors: small, whole, made from their sources, each of use, and run against managers."""

import io
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from kvspec.conformance.hash_check import check_hash, reference_hash
from kvspec.conformance.program import Program, run
from kvspec.conformance.trace import TraceError, judge_trace, read_trace
from kvspec.conformance.vector_collision import colliding_blocks, collision_operations
from kvspec.conformance.vector_filling import BadProgram, fill
from kvspec.conformance.vector_manifest import MANIFEST, write_vectors
from kvspec.conformance.vector_plain import PLAIN
from kvspec.conformance.vector_programs import FOLDER, SOURCE, all_programs, line_of, read_programs
from kvspec.conformance.vector_running import BadVectors, load_vectors, run_vector, run_vectors, stored_program
from kvspec.conformance.vectors_command import vectors_command
from kvspec.impl.known_bad import KNOWN_BAD
from kvspec.impl.loader import load
from kvspec.impl.model_adapter import MODEL
from kvspec.spec.clauses import CLAUSES
from kvspec.spec.state import World

FILES = sorted(path for path in FOLDER.rglob("*") if path.is_file())
STORED = json.loads((FOLDER / MANIFEST).read_text())
VECTORS = {vector.slug: vector for vector in load_vectors()}


# --- what is stored ---------------------------------------------------------------------------------------------------


def test_they_are_few_and_small():
    assert len(FILES) <= 300
    assert sum(path.stat().st_size for path in FILES) <= 1_000_000


def test_they_are_made_again_byte_for_byte(tmp_path):
    shutil.copy(SOURCE, tmp_path)
    write_vectors(tmp_path)
    made = {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    stored = {path.relative_to(FOLDER).as_posix(): path.read_bytes() for path in FILES}
    assert made.keys() == stored.keys()
    assert [name for name in stored if made[name] != stored[name]] == [], (
        "run python -m kvspec.conformance.vector_manifest"
    )


def test_each_kills_a_known_bad_manager_and_together_they_kill_all_of_them():
    entries = [*STORED["traces"], *STORED["plain"]]
    assert [entry["file"] for entry in entries if not entry["kills"]] == ["collision.json"]
    killed = {slug for entry in entries for slug in entry["kills"]}
    assert sorted(KNOWN_BAD.keys() - killed) == []


def test_every_clause_has_a_vector():
    exercised = {clause for entry in (*STORED["traces"], *STORED["plain"]) for clause in entry["clauses"]}
    assert sorted(CLAUSES.keys() - exercised) == []


def test_a_slug_is_never_used_again():
    """Nor is a vector changed: a program that is in the history under a slug is what it stands for today."""
    try:
        root = FOLDER.parents[1]
        log = ["git", "log", "--format=%H", "--", str(SOURCE)]
        commits = subprocess.run(log, cwd=root, capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no git checkout: there is no history to compare with")
    today = {vector.slug: line_of(vector) for vector in all_programs()}
    for commit in commits:
        show = ["git", "show", f"{commit}:{SOURCE.relative_to(root).as_posix()}"]
        text = subprocess.run(show, cwd=root, capture_output=True, text=True, check=False).stdout
        for vector in read_programs(text):
            assert today.get(vector.slug) == line_of(vector), f"{vector.slug} was changed or deleted since {commit[:8]}"


@pytest.mark.parametrize("slug", VECTORS)
def test_the_stored_answers_are_sound(slug):
    vector = VECTORS[slug]
    judgement = judge_trace(vector.path)
    assert judgement.violation is None
    assert judgement.operations == vector.operations
    trace = read_trace(vector.path)
    assert (trace.header.slug, trace.header.context) == (slug, vector.context.name)
    assert trace.header.snapshot is not None
    assert all(record.snapshot is not None for record in trace.records)


def test_a_program_that_no_sound_manager_runs_is_no_vector(tmp_path):
    (twin,) = read_programs("x steps model 2x2: admit A 00 / release B")
    with pytest.raises(BadProgram, match=r"^x: operation 2 may not be asked: the sequence is not live$"):
        fill(twin, tmp_path / "x.ndjson")


def test_a_slug_cannot_be_used_twice():
    with pytest.raises(ValueError, match="the slug is used twice"):
        read_programs("x steps model 2x2: admit A 00\nx steps model 2x2: admit A 01")


def test_damage_is_noticed(tmp_path):
    shutil.copytree(FOLDER, tmp_path / "v")
    path = tmp_path / "v" / STORED["traces"][0]["file"]
    path.write_bytes(path.read_bytes().replace(b'"cached":0', b'"cached":2', 1))
    with pytest.raises(BadVectors, match="is not what the manifest says"):
        load_vectors(tmp_path / "v")
    with pytest.raises(TraceError, match="the digest does not match"):
        judge_trace(path)


# --- plain vectors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLAIN)
def test_plain_vectors_are_one_case_a_line(name):
    text = (FOLDER / name).read_text()
    assert json.loads(text) == PLAIN[name]()
    assert max(map(len, text.splitlines())) < 8000


def test_chain_hashes_are_what_the_profile_demands():
    stored = json.loads((FOLDER / "chain_hash.json").read_text())
    assert len(stored["blocks"]) >= 50
    assert [chain["block_size"] for chain in stored["chains"]] == [1, 2, 16, 256]
    for entry in stored["blocks"]:
        parent = None if entry["parent"] is None else int(entry["parent"])
        assert reference_hash(tuple(entry["tokens"]), parent) == int(entry["key"])
        assert MODEL.chain_hash(tuple(entry["tokens"]), parent) == int(entry["key"])
    assert check_hash(MODEL) is None


def test_two_ordinary_prompts_have_one_key():
    one, other = colliding_blocks()
    assert one != other
    assert len(one) == len(other) == 16
    assert all(0 <= token < 32_000 for token in one + other)
    assert reference_hash(one, None) == reference_hash(other, None)
    assert reference_hash(one + (5,) * 240, None) == reference_hash(other + (5,) * 240, None), (
        "and so at block size 256"
    )


def test_comparing_the_tokens_of_each_block_is_not_enough():
    program = Program(World(6, 16), collision_operations())
    for target in ("bundled", "model"):
        _, violation = run(load(target), program)
        assert violation is not None
        assert violation.clause == "CONTENT"
        assert violation.position == 16, "the first block is right, the second one follows another prefix"
    assert run(load("hardened"), program)[1] is None


# --- running them -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["model", "bundled", "hardened"])
def test_sound_managers_pass(target):
    results = list(run_vectors(load(target), VECTORS.values()))
    assert [result.vector.slug for result in results if result.counterexample] == []
    assert sum(not result.untried for result in results) > 70


def test_model_vectors_are_what_the_model_does():
    for vector in VECTORS.values():
        if vector.filled_by == "model":
            lockstep, _ = run(MODEL, stored_program(vector))
            assert lockstep.outcomes == [record.answer for record in read_trace(vector.path).records], vector.slug


def command(*arguments, **named) -> tuple[int, str]:
    output = io.StringIO()
    code = vectors_command(*arguments, console=Console(file=output, width=120, highlight=False), **named)
    return int(code), output.getvalue()


def test_the_list():
    code, text = command()
    assert code == 0
    assert all(slug in text for slug in VECTORS)
    assert f"{len(VECTORS)} vectors in" in text


def test_a_known_bad_manager_fails_with_a_counterexample():
    planted = KNOWN_BAD["own-tokens-compared"]
    implementation = planted.implementation()
    code, text = command(implementation)
    assert code == 1
    assert "vector hash-alone-believed" in text, "the shortest one is shown"
    assert planted.clause in text
    failing = [line.split()[1:] for line in text.splitlines() if line.startswith("fails ")]
    assert {slug for line in failing for slug in line} > {"hash-alone-believed"}
    assert f"kvspec vectors {implementation.target} --slug hash-alone-believed" in text
    assert "kvspec accept" not in text, "a vector is no trace of this manager"


def test_a_world_that_gets_no_manager_is_no_pass():
    def none(world: World) -> object:
        raise ValueError("no licence")

    code, text = command(replace(MODEL, create=none), ["negative-hit", "namespace-not-in-key"])
    assert (code, text.splitlines()) == (
        2,
        [
            "1 cannot be run, the first because model makes no manager of 1 blocks of 2: ValueError: no licence",
            "1 not counted: namespace is not declared",
            "model: 0 of 2 vectors pass, 0 fail",
        ],
    )


def test_a_single_vector():
    code, text = command(load("model"), ["late-stale-entry"])
    assert (code, text) == (0, "model: 1 of 1 vectors pass, 0 fail\n")
    code, text = command(load("model"), ["no-such-vector"])
    assert (code, text) == (2, "no such vector: no-such-vector; `kvspec vectors` lists them\n")


def test_nothing_tried_proves_nothing():
    code, text = command(load("model"), ["namespace-not-in-key"])
    assert (code, text.splitlines()) == (
        3,
        ["1 not counted: namespace is not declared", "model: 0 of 1 vectors pass, 0 fail"],
    )


def test_what_is_not_declared_does_not_count():
    result = run_vector(load("bundled"), VECTORS["xxh64-collision"])
    assert result.untried == "collision is not declared"


def test_export(tmp_path: Path):
    code, _ = command(export=tmp_path / "copy")
    assert code == 0
    assert load_vectors(tmp_path / "copy")
    code, text = command(export=tmp_path / "copy")
    assert code == 2
    assert "exists already" in text
