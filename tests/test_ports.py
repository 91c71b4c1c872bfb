"""The ports in other languages: complete, equal to the model where they claim it, and every planted fault is caught.

They need a C++ toolchain and node.  Where these are missing the tests say so and are skipped; on CI they fail.
"""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jsonschema
import pytest

from kvspec.conformance.campaign import run_campaign
from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.examination import Examination, Options, decided_clauses
from kvspec.conformance.explorer import SmallWorld, explore
from kvspec.conformance.explorer.certificate import differences
from kvspec.conformance.hash_check import check_hash
from kvspec.conformance.lockstep import ask
from kvspec.conformance.program import run
from kvspec.conformance.robustness import check_robust
from kvspec.conformance.trace import OPERATION, WORLD, read_trace
from kvspec.conformance.vector_programs import FOLDER
from kvspec.conformance.vector_running import load_vectors, run_vectors, stored_program
from kvspec.impl.adapter import Implementation
from kvspec.impl.loader import load
from kvspec.impl.model_adapter import MODEL
from kvspec.impl.pipe.child import Child
from kvspec.spec import operations as op
from kvspec.spec.clauses import EXTENSIONS

PORTS = Path(__file__).parents[1] / "impl" / "ports"
SCHEMAS = Path(__file__).parents[1] / "conformance" / "schemas"
PROFILES = ("pool", "prefix", "order", "chunked", "one", "collision", "hash", "robust")
DEBIAN = "apt-get install g++ cmake nlohmann-json3-dev libxxhash-dev"


@dataclass(frozen=True)
class Fault:
    """A planted fault of a port, and how it must be caught."""

    port: str
    name: str
    context: str
    clause: str


FAULTS = [
    Fault("cpp", "four-byte-tokens", "hash", "HASH-BYTES"),
    Fault("cpp", "half-filled-block", "chunked", "COMPUTED"),
    Fault("cpp", "head-first", "steps", "TAIL-FIRST"),
    Fault("cpp", "remainder-of-one", "one", "COVERS"),
    Fault("cpp", "stale-index", "steps", "INDEX-MATCH"),
    Fault("cpp", "zero-is-no-hash", "hash", "HASH-BYTES"),
    Fault("javascript", "counts-hits-twice", "steps", "NO-MEANS-NO"),
    Fault("javascript", "forgets-on-release", "model", "NANO-ORDER"),
    Fault("javascript", "keys-as-numbers", "hash", "HASH-BYTES"),
    Fault("javascript", "own-tokens-only", "collision", "CONTENT"),
    Fault("javascript", "releases-twice", "steps", "RELEASE"),
    Fault("javascript", "waits-for-ever", "robust", "OVERSIZED"),
]


# --- building ---------------------------------------------------------------------------------------------------------


def missing(what: str) -> None:
    """Skip; on CI that would hide that a port is never tested."""
    if os.environ.get("CI"):
        pytest.fail(f"not installed: {what}", pytrace=False)
    pytest.skip(f"not installed: {what}")


@pytest.fixture(scope="session")
def commands(request: pytest.FixtureRequest) -> dict[str, str]:
    """The command of each port, built when first asked; the build is kept beside pytest's cache."""
    return _Commands(Path(request.config.cache.mkdir("kvspec-cpp")))


class _Commands(dict):
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __missing__(self, port: str) -> str:
        self[port] = {"cpp": self.cpp, "javascript": self.javascript}[port]()
        return self[port]

    def javascript(self) -> str:
        if shutil.which("node") is None:
            missing("node")
        return f"node {PORTS / 'javascript' / 'main.js'}"

    def cpp(self) -> str:
        if shutil.which("cmake") is None or shutil.which("c++") is None:
            missing(f"cmake and a C++ compiler ({DEBIAN})")
        quick = "-DCMAKE_CXX_FLAGS_RELEASE=-O1"
        configure = ["cmake", "-S", str(PORTS / "cpp"), "-B", str(self.folder), quick]
        done = subprocess.run(configure, capture_output=True, text=True, check=False)
        if done.returncode:
            needed = ("nlohmann_json", "XXHASH")
            assert any(name in done.stderr for name in needed), done.stderr
            missing(f"nlohmann-json or xxhash ({DEBIAN})")
        build = ["cmake", "--build", str(self.folder), "--parallel", "2"]
        built = subprocess.run(build, capture_output=True, text=True, check=False)
        assert built.returncode == 0, built.stdout + built.stderr
        assert "warning" not in built.stdout + built.stderr
        return str(self.folder / "kvspec-cpp")


@pytest.fixture(params=["cpp", "javascript"], scope="session")
def port(request: pytest.FixtureRequest, commands: dict[str, str]) -> Implementation:
    """Each port in turn."""
    return load(f"cmd:{commands[request.param]}")


@cache
def examination(port: Implementation) -> Examination:
    return Examination(port, Options(effort="smoke"))


# --- conformance ------------------------------------------------------------------------------------------------------


def test_a_port_declares_what_the_bundled_manager_does_and_more(port):
    assert port.declaration.profiles == set(PROFILES)
    assert port.declaration.profiles >= load("bundled").declaration.profiles
    assert port.declaration.nano_vllm_order


@pytest.mark.parametrize("profile", PROFILES)
def test_a_port_conforms(port, profile):
    for clause in decided_clauses(profile):
        found = examination(port).decide(profile, clause).counterexample
        assert found is None, found
    assert examination(port).vacuous(profile) == []


def test_a_run_over_a_port_proves_something(port):
    examination(port).decide("pool", "PARTITION")
    assert examination(port).report().proves_nothing == []


def test_every_vector_passes(port):
    results = list(run_vectors(port, load_vectors()))
    assert [result.vector.slug for result in results if result.counterexample] == []
    undeclared = {f"{name} is not declared" for name in ("namespace", *EXTENSIONS)}
    assert {result.untried for result in results} == {"", *undeclared}


def test_a_port_answers_as_the_model_does(port):
    for vector in load_vectors():
        if vector.filled_by == "model":
            lockstep, _ = run(port, stored_program(vector))
            records = read_trace(vector.path).records
            assert lockstep.outcomes == [record.answer for record in records], vector.slug
            assert lockstep.snapshots == [record.snapshot for record in records], vector.slug


def test_chain_hashes_without_kvspec_in_between(port):
    stored = json.loads((FOLDER / "chain_hash.json").read_text())
    for entry in stored["blocks"]:
        parent = None if entry["parent"] is None else int(entry["parent"])
        assert port.chain_hash(tuple(entry["tokens"]), parent) == int(entry["key"]), entry["name"]
    for chain in stored["chains"]:
        size, tokens, key = chain["block_size"], chain["tokens"], None
        for number, wanted in enumerate(chain["keys"]):
            key = port.chain_hash(tuple(tokens[number * size : (number + 1) * size]), key)
            assert key == int(wanted)
    collision = json.loads((FOLDER / "collision.json").read_text())
    assert [str(port.chain_hash(tuple(collision[name]), None)) for name in ("one", "other")] == [collision["key"]] * 2


def test_bad_requests_are_clear_errors(port):
    stored = json.loads((FOLDER / "bad_requests.json").read_text())
    for entry in stored["requests"]:
        adapter = port.create(WORLD.read(entry["world"]))
        for operation in entry["before"]:
            ask(adapter, OPERATION.read(operation))
        before = adapter.snapshot()
        outcome = ask(adapter, OPERATION.read(entry["request"]))
        harmless = entry["may_be_harmless"] and outcome == op.Released()
        assert harmless or (isinstance(outcome, op.Failed) and outcome.clear), entry
        assert adapter.snapshot() == before
    for entry in stored["worlds"]:
        with pytest.raises(Exception, match="at least one"):
            port.create(WORLD.read(entry["world"]))


@pytest.mark.parametrize("name", ["cpp", "javascript"])
def test_the_session_in_the_guide(commands, name):
    guide = (PORTS.parents[1] / "spec" / "PORTING.md").read_text(encoding="utf-8")
    lines = guide.partition("```text\n")[2].partition("```")[0].splitlines()
    asked = "".join(f"{line[2:]}\n" for line in lines if line.startswith("> "))
    done = subprocess.run(commands[name].split(), input=asked, capture_output=True, text=True, check=True, timeout=20)
    first, *answers = done.stdout.splitlines()
    wanted, *others = [line[2:] for line in lines if line.startswith("< ")]
    assert answers == others
    if name == "javascript":
        assert first == wanted


@pytest.mark.parametrize("world", [SmallWorld(2, 2, 2, 1, 4, True), SmallWorld(2, 1, 2, 2, 2)], ids=lambda w: w.label)
def test_the_certificate_is_the_models(port, world):
    wanted = explore(MODEL, world).certificate
    found = explore(port, world)
    assert found.counterexample is None
    assert wanted.exhausted
    assert differences(found.certificate.as_data(), wanted.as_data()) == []


def test_the_lines_of_a_port_are_valid(port, monkeypatch):
    lines: list[bytes] = []
    original = Child.ask

    def recording(self, asked, seconds):
        answers, trouble = original(self, asked, seconds)
        lines.extend(answers)
        return answers, trouble

    monkeypatch.setattr(Child, "ask", recording)
    run_campaign(port, CONTEXTS["chunked"], 3, 10)
    check_robust(port)
    check_hash(port)
    answers = jsonschema.Draft202012Validator(json.loads((SCHEMAS / "pipe-answer.schema.json").read_text()))
    assert len(lines) > 300
    for line in lines:
        answers.validate(json.loads(line))


def test_a_large_prompt_and_a_long_run(port):
    adapter = port.create(WORLD.read({"blocks": 5000, "block_size": 16, "weak_hash": False}))
    prompt = tuple(place % 1000 for place in range(16 * 4000))
    assert ask(adapter, op.Admit("A", prompt, 1 << 20)).table == tuple(range(4000))
    ask(adapter, op.Commit(("A",)))
    ask(adapter, op.Release("A"))
    assert ask(adapter, op.Admit("B", prompt, 1 << 20)).cached == 16 * 3999


# --- planted faults ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.port}-{fault.name}")
def test_a_planted_fault_is_caught(commands, fault):
    planted = load(f"cmd:{commands[fault.port]} --fault {fault.name}")
    assert fault.clause in broken(planted, fault.context)


@pytest.mark.parametrize("context", sorted({fault.context for fault in FAULTS}))
def test_without_a_fault_nothing_is_caught(port, context):
    found = broken(port, context)
    assert {clause for clause in found if clause not in ("TWIN", "NO-LOST-HIT", "SURVIVES-RELEASE")} == set()


def broken(implementation: Implementation, context: str) -> set[str]:
    if context == "hash":
        return {"HASH-BYTES"} if check_hash(implementation) else set()
    if context == "robust":
        return {clause for clause, violation in check_robust(implementation).items() if violation}
    return set(run_campaign(implementation, CONTEXTS[context], 0, 150).found)


@pytest.mark.parametrize("name", ["cpp", "javascript"])
def test_every_fault_of_a_port_is_tested(commands, name):
    usage = subprocess.run([*commands[name].split(), "--fault", "?"], capture_output=True, text=True, check=False)
    assert usage.returncode == 2
    named = usage.stderr.partition("NAME being one of ")[2].replace(",", " ").split()
    assert sorted(named) == sorted(fault.name for fault in FAULTS if fault.port == name)
