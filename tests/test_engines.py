"""Engines: what is loaded of them and how, and whether a fault planted in one is found through its adapter.

An engine comes from a wheel in the folder KVSPEC_ENGINE_WHEELS, or is the installed one; without either its tests are
skipped as "not installed".  CI downloads those of requirements-engines.txt: there, nothing may be missing.
"""

import importlib.util
import os
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvspec.conformance.campaign import run_campaign
from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.examination import Examination, Options
from kvspec.conformance.program import Program, run
from kvspec.impl.adapter import Implementation
from kvspec.impl.engines.finding import find
from kvspec.impl.engines.light import LightImports
from kvspec.impl.errors import LoadError
from kvspec.impl.loader import load
from kvspec.spec import operations as op
from kvspec.spec.state import World

ROOT = Path(__file__).resolve().parents[1]
ENGINES = ("vllm", "lmdeploy")
KNOWN = {"lmdeploy": {"ATOMIC"}}  # clauses that an engine breaks: impl/engines/README.md says how
WHEELS = os.environ.get("KVSPEC_ENGINE_WHEELS")


def in_ci() -> list[str]:
    """The packages of the engines that CI downloads."""
    names = re.findall(r"^([\w-]+)==", (ROOT / "requirements-engines.txt").read_text(), re.MULTILINE)
    return [name.partition("-")[0] for name in names]


def target(engine: str) -> str:
    """What to load: a wheel, or what is installed; skips if there is neither."""
    wheels = sorted(Path(WHEELS).glob(f"{engine}*.whl")) if WHEELS else []
    if wheels:
        return f"{engine}:{wheels[0]}"
    if importlib.util.find_spec(engine):
        return engine
    if (WHEELS or os.environ.get("CI")) and engine in in_ci():
        pytest.fail(f"{engine} is missing: KVSPEC_ENGINE_WHEELS names no folder with its wheel", pytrace=False)
    pytest.skip(f"{engine}: not installed")


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Implementation:
    return load(target(request.param))


@pytest.fixture
def vllm() -> Implementation:
    """Loaded anew, so that a test may change its classes."""
    return load(target("vllm"))


# --- real engines -----------------------------------------------------------------------------------------------------


def test_an_engine_is_loaded_light() -> None:
    before = set(sys.modules)
    load(target("vllm"))
    new = {module.partition(".")[0] for module in set(sys.modules) - before}
    assert not new & {*ENGINES, "torch", "transformers", "zmq", "msgspec"}, new


def test_an_engine_conforms_but_for_what_is_known(engine: Implementation) -> None:
    examination = Examination(engine, Options(effort="smoke"))
    examination.decide_all()
    report = examination.report()
    assert {result.clause for result in report.broken()} == KNOWN.get(engine.name, set())
    assert not report.proves_nothing
    assert not set(report.declared) & report.untried.keys()


PROGRAM = Program(
    World(4, 2),
    (
        op.Admit("A", (0, 1, 0), 2),
        op.Commit(("A",)),
        op.Reserve("A", 1),
        op.Admit("B", (0, 1, 1), 1 << 20),
        op.Commit(("A", "B")),
        op.Append("A", 1),
        op.Reserve("A", 1),
        op.Commit(("A",)),
        op.Release("B", op.Cause.PREEMPTED),
        op.Release("A"),
        op.Admit("B", (0, 1, 1), 1 << 20),
        op.Commit(("B",)),
    ),
)


def test_the_same_engine_loaded_twice_does_the_same(engine: Implementation) -> None:
    """Keys included: neither addresses nor a random seed are in them."""
    again = load(engine.target)
    one, two = run(engine, PROGRAM)[0], run(again, PROGRAM)[0]
    assert one.outcomes == two.outcomes
    assert one.snapshots == two.snapshots
    assert one.counts["hits"] in (1, 2)  # lmdeploy finds the block that decoding filled one step later


@pytest.mark.filterwarnings("ignore")
def test_light_and_full_do_the_same() -> None:
    if not (importlib.util.find_spec("vllm") and importlib.util.find_spec("torch")):
        pytest.skip("vllm in full: not installed")
    light, full = load("vllm"), load("vllm:full")
    for number in range(3):
        for name in ("steps", "chunked", "namespace"):
            counts = [run_campaign(each, CONTEXTS[name], number, 30).counts for each in (light, full)]
            assert counts[0] == counts[1]
    one, two = run(light, PROGRAM)[0], run(full, PROGRAM)[0]
    assert (one.outcomes, one.snapshots) == (two.outcomes, two.snapshots)


def test_the_null_block_of_vllm_is_none_of_the_pool(vllm: Implementation) -> None:
    adapter: Any = vllm.create(World(3, 2))
    assert adapter.snapshot().free == (1, 2, 3)
    assert adapter.admit("A", (0,) * 6, 1 << 20, "").table == (1, 2, 3)
    assert adapter.admit("B", (1,), 1 << 20, "") == op.Refused()


def test_a_copy_of_vllm_is_independent(vllm: Implementation) -> None:
    adapter: Any = vllm.create(World(3, 2))
    adapter.admit("A", (0, 1, 0), 1 << 20, "")
    before, copy = adapter.snapshot(), adapter.copy()
    copy.release("A", op.Cause.FINISHED)
    assert adapter.snapshot() == before != copy.snapshot()


# Faults planted in the classes of vLLM: (class that is changed, method, what replaces it), and how they must be caught.


def _kept(self: Any, block: Any) -> bool:
    block.reset_hash()
    return True


def _uncounted(self: Any, blocks: Any) -> None:
    for block in blocks:
        if block.ref_cnt == 0:
            self.free_block_queue.remove(block)
            block.ref_cnt += 1


def _all_of_it(self: Any, request: Any, num_tokens: int) -> None:
    type(self).cache_unfaulted(self, request, request.num_tokens)


def _never(self: Any, *arguments: Any, **named: Any) -> None:
    return None


FAULTS: dict[str, tuple[str, str, Callable[..., Any], str, str]] = {
    "evicted block stays in the index": ("pool", "_maybe_evict_cached_block", _kept, "steps", "INDEX-MATCH"),
    "hit on a used block is not counted": ("pool", "touch", _uncounted, "steps", "REFCOUNT"),
    "free does nothing": ("manager", "free", _never, "steps", "RELEASE"),
    "a chunk lists blocks it does not fill": ("single", "cache_blocks", _all_of_it, "chunked", "INDEX-CHAIN"),
    "salt is ignored": ("request", "cache_salt", property(lambda self: None, _never), "namespace", "CONTENT"),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_planted_in_vllm_is_found(fault: str, vllm: Implementation) -> None:
    where, name, replacement, context, clause = FAULTS[fault]
    manager = vllm.create(World(2, 2))._manager  # type: ignore[attr-defined]
    request = vllm.create(World(2, 2))._request("A", (0,), "")  # type: ignore[attr-defined]
    owner = {
        "pool": type(manager.block_pool),
        "manager": type(manager),
        "single": type(manager.coordinator.single_type_managers[0]),
        "request": type(request),
    }[where]
    if where == "single":
        owner.cache_unfaulted = owner.cache_blocks
    setattr(owner, name, replacement)
    found = run_campaign(vllm, CONTEXTS[context], seed=1, programs=150).found
    assert clause in found, list(found)
    if context == "chunked":  # and only there: whole prompts are filled at once
        assert not run_campaign(vllm, CONTEXTS["steps"], seed=1, programs=150).found


# --- loading, without an engine ---------------------------------------------------------------------------------------

FILES = {
    "motor/__init__.py": "raise ImportError('too much')",
    "motor/core/__init__.py": "raise ImportError('too much')",
    "motor/core/pool.py": "import torch\nfrom motor import envs\nfrom motor.core.keys import key\nfrom motor.logs import log\n"
    "from motor.utils import count, Thing\n\n"
    "class Pool(Thing):\n    speed = envs.SPEED\n    keys = key\n    logged = log('x')\n    tensor = torch.Tensor | None\n",
    "motor/core/keys.py": "key = 7\n",
    "motor/utils.py": "raise ImportError('too much')",
}
REAL = ("motor.core.pool", "motor.core.keys", "motor.core.not_in_this_version")


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    file = tmp_path / "motor_cpu-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in FILES.items():
            archive.writestr(name, text)
    return file


def light(where: Path) -> LightImports:
    place = find("motor", ("motor", "motor-cpu"), str(where), REAL)
    values = {"motor.envs": {"SPEED": 3}, "motor.utils": {"count": len}}
    return LightImports(place.folder, "motor", REAL, ("torch",), values)


def test_only_what_is_listed_is_loaded(wheel: Path) -> None:
    imports = light(wheel)
    pool = imports.load("motor.core.pool").Pool
    assert (pool.keys, pool.speed, imports.real) == (7, 3, REAL[:2])
    assert not [name for name in sys.modules if name.partition(".")[0] == "motor"]


def test_only_what_is_listed_leaves_the_wheel(wheel: Path) -> None:
    place = find("motor", ("motor", "motor-cpu"), str(wheel), REAL)
    unpacked = {file.relative_to(place.folder).as_posix() for file in place.folder.rglob("*.py")}
    assert unpacked == {"motor/core/pool.py", "motor/core/keys.py"}
    assert (place.version, place.source) == ("1.2.3", str(wheel))


@pytest.fixture
def unpacked(wheel: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(folder)
    (folder / "motor_cpu-1.2.4.dist-info").mkdir()
    return folder


@pytest.mark.parametrize("inside", ["", "motor"])
def test_a_folder_serves_as_well(unpacked: Path, inside: str) -> None:
    place = find("motor", ("motor", "motor-cpu"), str(unpacked / inside), REAL)
    assert (place.folder, place.version) == (unpacked, "1.2.4")
    assert light(unpacked / inside).load("motor.core.pool").Pool.keys == 7


def test_a_place_without_the_engine_is_one_message(wheel: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    text = tmp_path / "text"
    text.write_text("no wheel")
    for engine, where, message in (
        ("motor", "", r"motor is not installed. `pip download --no-deps motor` fetches its wheel"),
        ("motor", str(tmp_path / "none"), "none is not there"),
        ("motor", str(text), "text is no wheel. Give a wheel, or a folder"),
        ("motor", str(empty), "there is no package motor in this folder"),
        ("other", str(wheel), "there is no package other in this wheel"),
    ):
        with pytest.raises(LoadError, match=message):
            find(engine, (engine,), where, REAL)


def test_an_engine_too_old_or_too_strange_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "vllm" / "v1" / "core").mkdir(parents=True)
    with pytest.raises(LoadError, match=r"has no vllm.v1.core.kv_cache_manager: kvspec drives vLLM from 0\.14 on"):
        load(f"vllm:{tmp_path}")
    (tmp_path / "vllm" / "v1" / "core" / "kv_cache_manager.py").write_text("import no_such_module\n")
    with pytest.raises(LoadError, match=r"vLLM unknown cannot be loaded light: .*no_such_module.*`vllm:full`"):
        load(f"vllm:{tmp_path}")
