"""SGLang and mini-sglang, which are built on PyTorch: verdicts, what is declared of them, and planted faults.

SGLang comes from a wheel in the folder KVSPEC_ENGINE_WHEELS, mini-sglang from a checkout in a folder ``mini-sglang`` there;
or they are the installed ones.  Without PyTorch, or without the engine, the tests are skipped as "not installed".
"""

import importlib.util
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kvspec.conformance.campaign import run_campaign
from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.examination import Examination, Options
from kvspec.conformance.program import Program, run
from kvspec.impl.adapter import Implementation
from kvspec.impl.engines.tree_keys import chain_hash, chained, order_of_use, root_of
from kvspec.impl.errors import LoadError
from kvspec.impl.known_bad.notation import read
from kvspec.impl.loader import load
from kvspec.spec import operations as op
from kvspec.spec.clauses import clauses_of
from kvspec.spec.declaration import Covers, Publish
from kvspec.spec.state import World

WHEELS = os.environ.get("KVSPEC_ENGINE_WHEELS")
TORCH = importlib.util.find_spec("torch") is not None
WITHOUT_ORDER = {clause.slug for profile in ("order", "robust", "hash") for clause in clauses_of(profile)}
LIMIT = 1 << 20


def loaded(engine: str, package: str, pattern: str) -> Implementation:
    """The engine, loaded anew, so that a test may change its classes."""
    if not TORCH:
        pytest.skip(f"PyTorch, for {engine}: not installed")
    there = sorted(Path(WHEELS).glob(pattern)) if WHEELS else []
    if not there and importlib.util.find_spec(package) is None:
        pytest.skip(f"{engine}: not installed")
    return load(f"{engine}:{there[-1]}" if there else engine)


@pytest.fixture
def sglang() -> Implementation:
    return loaded("sglang", "sglang", "sglang-*.whl")


@pytest.fixture
def minisgl() -> Implementation:
    return loaded("mini-sglang", "minisgl", "mini-sglang")


@pytest.fixture(params=["sglang", "minisgl"])
def engine(request: pytest.FixtureRequest) -> Implementation:
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


def broken(implementation: Implementation, *contexts: str, programs: int = 60) -> set[str]:
    """The clauses that break, but for those of profiles that no tree declares."""
    found: set[str] = set()
    for context in contexts:
        found |= run_campaign(implementation, CONTEXTS[context], seed=3, programs=programs).found.keys()
    return found - WITHOUT_ORDER


# --- verdicts ---------------------------------------------------------------------------------------------------------


def test_sglang_conforms(sglang: Implementation) -> None:
    examination = Examination(sglang, Options(effort="smoke"))
    examination.decide_all()
    report = examination.report()
    assert not report.broken()
    assert not report.proves_nothing
    assert not set(report.declared) & report.untried.keys()


TWINS = read("3x2: admit A 01 / admit B 01 / commit A B")


def is_repaired(minisgl: Implementation) -> bool:
    """Does this mini-sglang repoint the row of whoever computed the same again?"""
    return run(minisgl, Program(TWINS.world, TWINS.operations))[1] is None


def test_mini_sglang_frees_pages_that_a_live_row_names(minisgl: Implementation) -> None:
    """At 20fcd7f, as its pull request 142 says: found, in three operations."""
    if is_repaired(minisgl):
        assert not broken(minisgl, "steps", "chunked", "one")
        return
    lockstep, violation = run(minisgl, Program(TWINS.world, TWINS.operations))
    assert violation is not None
    assert (violation.clause, len(lockstep.operations)) == ("PARTITION", 3)
    assert broken(minisgl, "steps") == {"PARTITION"}


def test_mini_sglang_with_the_row_repointed_is_clean(minisgl: Implementation) -> None:
    repair(type(minisgl.create(World(2, 2))._manager))  # type: ignore[attr-defined]
    assert is_repaired(minisgl)
    assert not broken(minisgl, "steps", "chunked", "one")


def repair(manager: type[Any]) -> None:
    """Free copies, since what is freed is a view of the row, and let the row name the pages of the tree."""
    cache = manager.cache_req

    def cache_req(self: Any, req: Any, *, finished: bool) -> None:
        free, lazy = self._free, "_free" in vars(self)
        self._free = lambda indices: free(indices.clone())
        cache(self, req, finished=finished)
        if lazy:
            self._free = free
        else:
            del self._free
        if not finished and req.cache_handle.cached_len:
            self.page_table[req.table_idx, : req.cache_handle.cached_len] = req.cache_handle.get_matched_indices()

    manager.cache_req = cache_req


# --- what is declared is needed, and no more --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("without", "clauses"),
    [
        ({"repoints": False}, {"STABLE"}),
        ({"evicts_early": False}, {"SURVIVES-RELEASE", "ATOMIC"}),
        ({"publish": Publish.COMMIT}, {"NO-LOST-HIT", "SURVIVES-RELEASE"}),
        ({"covers": Covers.KNOWN}, {"COVERS"}),
        ({"unusable": frozenset[int]()}, {"ANSWER", "PARTITION"}),
    ],
)
def test_each_difference_of_sglang_is_needed(
    without: dict[str, Any], clauses: set[str], sglang: Implementation
) -> None:
    strict = replace(sglang, declaration=replace(sglang.declaration, **without))
    assert broken(strict, "steps", "chunked") & clauses


def test_the_padded_page_of_sglang_is_none_of_the_pool(sglang: Implementation) -> None:
    for size in (1, 2):
        adapter: Any = sglang.create(World(3, size))
        assert adapter.snapshot().free == (1, 2, 3)
        assert adapter.admit("A", (0,) * 3 * size, LIMIT, "").table == (1, 2, 3)
        assert adapter.admit("B", (1,), LIMIT, "") == op.Refused()


def test_a_decode_step_that_sglang_refuses_has_emptied_the_cache(sglang: Implementation) -> None:
    adapter: Any = sglang.create(World(2, 1))
    for name in ("A", "B"):
        adapter.admit(name, (int(name == "B"),), LIMIT, "")
        adapter.commit((name,))
    for name, token in (("A", 0), ("B", 1)):
        adapter.append(name, token)
    before = adapter.snapshot()
    assert (before.free, before.owned) == ((), (1, 2))
    assert adapter.reserve("A", 1) == op.Refused()
    adapter.release("B", op.Cause.PREEMPTED)
    assert adapter.snapshot().owned == (1, 2)
    assert adapter.reserve("A", 1).table == (1, 2)
    assert adapter.snapshot().owned == (1,)


# --- adapters ---------------------------------------------------------------------------------------------------------

PROGRAM = read(
    "4x2: admit A 010 limit=2 / commit A / reserve A 1 / commit A / append A 1 / reserve A 1 / admit B 011 / commit A B /"
    " release B preempted / release A / admit B 011 / commit B"
)


def test_the_same_engine_loaded_twice_does_the_same(engine: Implementation) -> None:
    program = Program(PROGRAM.world, PROGRAM.operations)
    one, two = run(engine, program)[0], run(load(engine.target), program)[0]
    assert (one.outcomes, one.snapshots) == (two.outcomes, two.snapshots)
    assert one.counts["hits"] == 2


def test_a_copy_is_independent(engine: Implementation) -> None:
    adapter: Any = engine.create(World(3, 2))
    adapter.admit("A", (0, 1, 0), LIMIT, "")
    adapter.commit(("A",))
    before, copy = adapter.snapshot(), adapter.copy()
    copy.release("A", op.Cause.FINISHED)
    assert adapter.snapshot() == before != copy.snapshot()
    assert adapter.fingerprint() == copy.fingerprint()


def test_an_impossible_pool_is_an_error(engine: Implementation) -> None:
    for blocks, size in ((0, 2), (3, 0), (-1, 1)):
        with pytest.raises(ValueError, match="impossible"):
            engine.create(World(blocks, size))


# --- faults planted in SGLang -----------------------------------------------------------------------------------------


def _nothing(self: Any, *arguments: Any, **named: Any) -> None:
    return None


def _unlocked(self: Any, node: Any) -> Any:
    from types import SimpleNamespace

    return SimpleNamespace(node=node, receipt=None, to_dec_params=lambda: None)


def _first_page(self: Any, other: Any, offset: int, page_size: int = 1) -> int:
    length = min(len(self), len(other) - offset)
    return length // page_size * page_size


def _without_namespace(self: Any, offset: int, page_size: int = 1) -> Any:
    return tuple(self.token_ids[offset : offset + page_size])


FAULTS: dict[str, tuple[dict[str, Callable[..., Any]], str, set[str]]] = {
    "nothing is locked": ({"tree.inc_lock_ref": _unlocked, "tree.dec_lock_ref": _nothing}, "steps", {"PARTITION"}),
    "what is freed is lost": ({"allocator.free_segment": _nothing}, "steps", {"PARTITION"}),
    "only the first page of a node is compared": ({"key.match_at": _first_page}, "steps", {"CONTENT", "INDEX-CHAIN"}),
    "the extra key is ignored": (
        {"key.child_key_at": _without_namespace, "key._check_compatible": _nothing},
        "namespace",
        {"CONTENT"},
    ),
    "rows are not repointed": ({"rows.write": _nothing}, "steps", {"ANSWER", "PARTITION", "CONTENT"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_planted_in_sglang_is_found(fault: str, sglang: Implementation) -> None:
    changes, context, clauses = FAULTS[fault]
    tree: Any = sglang.create(World(2, 2))._tree  # type: ignore[attr-defined]
    owners = {
        "tree": type(tree),
        "allocator": type(tree.token_to_kv_pool_allocator),
        "key": type(tree.root_node.key),
        "rows": type(tree.req_to_token_pool),
    }
    for place, replacement in changes.items():
        owner, _, method = place.partition(".")
        setattr(owners[owner], method, replacement)
    assert clauses & broken(sglang, context)


# --- without an engine ------------------------------------------------------------------------------------------------


def test_keys_of_a_tree_tell_prefixes_and_namespaces_apart() -> None:
    first = chain_hash((0, 1), None)
    assert chained((0, 1, 2, 3), 2, None) == [first, chain_hash((2, 3), first)]
    assert chain_hash((2, 3), first) != chain_hash((2, 3), None)
    assert root_of("") is root_of(None) is None
    assert len({root_of("x"), root_of("y"), None}) == 3
    assert chained((0, 1), 2, root_of("x")) != [first]


def test_who_is_evicted_next_does_not_depend_on_the_clock() -> None:
    assert order_of_use([([2], 7.5), ([1, 3], 3.25)]) == order_of_use([([1, 3], 1.0), ([2], 2.0)])
    assert order_of_use([([2], 1.0), ([1, 3], 2.0)]) != order_of_use([([2], 2.0), ([1, 3], 1.0)])


@pytest.mark.skipif(not TORCH, reason="PyTorch: not installed")
def test_a_place_without_the_engine_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "sglang").mkdir()
    (tmp_path / "minisgl").mkdir()
    with pytest.raises(LoadError, match=r"has no sglang\.srt\.mem_cache\.radix_cache: kvspec drives SGLang from"):
        load(f"sglang:{tmp_path}")
    with pytest.raises(LoadError, match=r"has no minisgl\.scheduler\.cache"):
        load(f"mini-sglang:{tmp_path}")


@pytest.mark.skipif(TORCH, reason="PyTorch is installed")
@pytest.mark.parametrize("engine_name", ["sglang", "mini-sglang"])
def test_without_torch_is_one_message(engine_name: str) -> None:
    with pytest.raises(LoadError, match="needs PyTorch, which is not installed: `pip install torch`"):
        load(engine_name)
