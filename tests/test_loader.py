"""Loading: the right thing is found, nothing heavy is imported, checkouts do not mix, each error says what to do."""

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from kvspec.impl.adapter import Adapter, Implementation
from kvspec.impl.errors import LoadError
from kvspec.impl.loader import load
from kvspec.impl.targets import place_of
from kvspec.spec.operations import Admitted
from kvspec.spec.state import World

SEQUENCE = """
    class Sequence:
        block_size = 64
        def __init__(self, token_ids):
            self.token_ids, self.block_table = list(token_ids), []
            self.num_cached_tokens = self.num_scheduled_tokens = 0
        def __len__(self):
            return len(self.token_ids)
        @property
        def num_blocks(self):
            return -(-len(self) // self.block_size)
        def block(self, i):
            return self.token_ids[i * self.block_size : (i + 1) * self.block_size]
        def append_token(self, token):
            self.token_ids.append(token)
"""

MANAGER = """
    class Pool:
        def __init__(self, num_blocks, block_size):
            self.free_block_ids = list(range(num_blocks))
            if REVERSED:
                self.free_block_ids.reverse()
        def can_allocate(self, seq) -> bool:
            return len(self.free_block_ids) >= seq.num_blocks
        def allocate(self, seq):
            for _ in range(seq.num_blocks):
                seq.block_table.append(self.free_block_ids.pop(0))
        def deallocate(self, seq):
            self.free_block_ids += seq.block_table
            seq.block_table.clear()
        def can_append(self, seq):
            return len(self.free_block_ids) >= seq.num_blocks - len(seq.block_table)
        def may_append(self, seq):
            for _ in range(seq.num_blocks - len(seq.block_table)):
                seq.block_table.append(self.free_block_ids.pop(0))
"""


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return folder


def checkout(folder, reverse=False, head="", init="import torch_that_is_not_there"):
    """An engine whose package imports something heavy, and whose manager needs nothing of it."""
    settings = f"REVERSED = {reverse}\n"
    files = {
        "tinyengine/__init__.py": init,
        "tinyengine/settings.py": settings,
        "tinyengine/core/__init__.py": "from tinyengine.runner import Runner",
        "tinyengine/runner.py": "import torch_that_is_not_there",
        "tinyengine/core/sequence.py": SEQUENCE,
        "tinyengine/core/blocks.py": dedent(head)
        + dedent("""
            from tinyengine.core.sequence import Sequence
            from tinyengine.settings import REVERSED
        """)
        + dedent(MANAGER),
    }
    return write(folder, files) / "tinyengine/core/blocks.py"


def first_table(implementation):
    outcome = implementation.create(World(4, 2)).admit("A", (1, 2, 3), 99, "")
    assert isinstance(outcome, Admitted)
    return outcome.table


def message(target, stubs=()):
    with pytest.raises(LoadError) as caught:
        load(str(target), stubs)
    return str(caught.value)


# Finding -------------------------------------------------------------------------------------------------------


def test_bundled():
    implementation = load("bundled")
    assert isinstance(implementation, Implementation)
    assert (implementation.name, implementation.target) == ("BlockManager", "bundled")
    assert Path(implementation.source).name == "block_manager.py"
    assert first_table(implementation) == (0, 1)


def test_file_in_a_package_whose_init_cannot_be_imported(tmp_path):
    file = checkout(tmp_path)
    implementation = load(f"{file}:Pool")
    assert (implementation.target, implementation.source) == (f"{file}:Pool", str(file))
    assert "own Sequence" in implementation.shape
    assert first_table(implementation) == (0, 1)


def test_class_may_be_left_out(tmp_path):
    assert load(str(checkout(tmp_path))).name == "Pool"


def test_relative_path(tmp_path, monkeypatch):
    checkout(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert load("tinyengine/core/blocks.py:Pool").name == "Pool"


def test_two_checkouts_of_one_name_do_not_mix(tmp_path):
    one, two = checkout(tmp_path / "one"), checkout(tmp_path / "two", reverse=True)
    first, second = load(f"{one}:Pool"), load(f"{two}:Pool")
    assert (first_table(first), first_table(second)) == ((0, 1), (3, 2))
    assert first_table(load(f"{one}:Pool")) == (0, 1)


def test_nothing_stays_in_sys_modules(tmp_path):
    before = set(sys.modules), list(sys.meta_path), list(sys.path)
    load(f"{checkout(tmp_path)}:Pool")
    assert (set(sys.modules), list(sys.meta_path), list(sys.path)) == before
    assert not list(tmp_path.rglob("__pycache__"))


def test_module_of_the_same_name_that_was_imported_before_stays(tmp_path, monkeypatch):
    write(tmp_path / "installed", {"tinyengine/__init__.py": "here = True"})
    monkeypatch.syspath_prepend(tmp_path / "installed")
    import tinyengine  # type: ignore[import-not-found]

    try:
        load(f"{checkout(tmp_path / 'mine')}:Pool")
        assert sys.modules["tinyengine"] is tinyengine
    finally:
        del sys.modules["tinyengine"]


def test_import_inside_a_method_finds_its_own_checkout_later(tmp_path):
    def lazy(folder, reverse):
        file = checkout(folder, reverse)
        late = "        def deallocate(self, seq):\n"
        text = dedent(MANAGER).replace(
            dedent(late).replace("def", "    def", 1),
            "    def deallocate(self, seq):\n        from tinyengine.settings import REVERSED as seen\n"
            "        self.seen = seen\n",
        )
        file.write_text("from tinyengine.core.sequence import Sequence\nREVERSED = False\n" + text)
        return file

    one, two = lazy(tmp_path / "one", False), lazy(tmp_path / "two", True)
    adapters = [load(f"{file}:Pool").create(World(2, 2)) for file in (one, two)]
    for adapter in adapters:
        adapter.admit("A", (1,), 9, "")
        adapter.release("A", "finished")
    assert [adapter.manager.seen for adapter in adapters] == [False, True]
    assert "tinyengine" not in sys.modules


def test_name_from_a_package_init_is_still_found(tmp_path):
    file = checkout(tmp_path, head="from tinyengine.tools import LIMIT\n")
    write(tmp_path, {"tinyengine/tools/__init__.py": "from .numbers import ONE\nLIMIT = ONE + 1"})
    write(tmp_path, {"tinyengine/tools/numbers.py": "ONE = 1"})
    assert load(f"{file}:Pool").name == "Pool"


def test_star_import_from_a_package_runs_its_init(tmp_path):
    file = checkout(tmp_path, head="from tinyengine.tools import *\nassert LIMIT == 1\n")
    write(tmp_path, {"tinyengine/tools/__init__.py": "LIMIT = 1"})
    assert load(f"{file}:Pool").name == "Pool"


def test_relative_imports_without_init_files(tmp_path):
    text = "from .sequence import Sequence\nfrom ..settings import REVERSED\n" + dedent(MANAGER)
    files = {"eng/core/blocks.py": text, "eng/core/sequence.py": SEQUENCE, "eng/settings.py": "REVERSED = True"}
    file = write(tmp_path, files) / "eng/core/blocks.py"
    assert first_table(load(f"{file}:Pool")) == (3, 2)


def test_script_style_imports_of_the_file_beside(tmp_path):
    text = "from sequence import Sequence\nREVERSED = False\n" + dedent(MANAGER)
    file = write(tmp_path, {"blocks.py": text, "sequence.py": SEQUENCE}) / "blocks.py"
    assert "own Sequence" in load(f"{file}:Pool").shape
    assert "sequence" not in sys.modules


def test_script_style_import_inside_a_package(tmp_path):
    file = checkout(tmp_path, head="from limits import MOST\n")
    write(tmp_path, {"tinyengine/core/limits.py": "MOST = 3"})
    assert load(f"{file}:Pool").name == "Pool"


def test_sequence_is_found_in_the_module_beside_although_the_manager_does_not_import_it(tmp_path):
    text = "REVERSED = False\n" + dedent(MANAGER)
    files = {"eng/__init__.py": "", "eng/blocks.py": text, "eng/sequence.py": SEQUENCE}
    assert "own Sequence" in load(f"{write(tmp_path, files) / 'eng/blocks.py'}:Pool").shape


def test_bundled_sequence_where_there_is_none(tmp_path):
    file = write(tmp_path, {"blocks.py": "REVERSED = False\n" + dedent(MANAGER)}) / "blocks.py"
    implementation = load(f"{file}:Pool")
    assert "bundled Sequence" in implementation.shape
    assert first_table(implementation) == (0, 1)


def test_installed_module(tmp_path, monkeypatch):
    write(tmp_path, {"plainengine.py": "REVERSED = True\n" + dedent(MANAGER)})
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert first_table(load("plainengine:Pool")) == (3, 2)
    finally:
        del sys.modules["plainengine"]


def test_module_in_the_current_folder_that_needs_bare_packages(tmp_path, monkeypatch):
    checkout(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert load("tinyengine.core.blocks:Pool").name == "Pool"
    assert "tinyengine" not in sys.modules


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from tinyengine.settings import X", ("top", "tinyengine.core.blocks", "tinyengine")),
        ("import os", ("core", "blocks", None)),
        ("from .sequence import S", ("tinyengine", "core.blocks", "core")),
        ("from ..sequence import S", ("top", "tinyengine.core.blocks", "tinyengine")),
    ],
)
def test_place_of_a_file_follows_its_imports(tmp_path, text, expected):
    files = {"top/tinyengine/core/blocks.py": text, "top/tinyengine/settings.py": "X = 1"}
    place = place_of(write(tmp_path, files) / "top/tinyengine/core/blocks.py")
    assert (place.folder.name, place.module, place.package) == expected


# Stubs ---------------------------------------------------------------------------------------------------------

HEAVY = """
    import heavy_one, heavy_two.ops as ops
    from heavy_one.nn import Module, functional as F
    from heavy_two import jit
    class Layer(Module):
        weight: heavy_one.Tensor | None = None
        @jit
        def forward(self): return 1
        @jit(fast=True)
        def backward(self): return 2
        @heavy_one.inference_mode()
        def infer(self): return 3
    assert (Layer().forward(), Layer().infer()) == (1, 3)
"""


def test_stubs_stand_in_for_missing_modules(tmp_path):
    file = checkout(tmp_path, head=HEAVY)
    assert load(f"{file}:Pool", ["heavy_one", "heavy_two"]).name == "Pool"
    assert "heavy_one" not in sys.modules


def test_missing_modules_are_all_named_with_the_options(tmp_path):
    file = checkout(tmp_path, head=HEAVY)
    text = message(f"{file}:Pool")
    assert f"--impl {file}:Pool --stub heavy_one --stub heavy_two" in text
    assert f"{file}, line 2" in text


def test_missing_modules_that_come_after_the_given_stubs(tmp_path):
    text = message(f"{checkout(tmp_path, head=HEAVY)}:Pool", ["heavy_one"])
    assert text.endswith("--stub heavy_one --stub heavy_two")


def test_stub_for_a_module_of_the_checkout_itself(tmp_path):
    file = checkout(tmp_path, head="from tinyengine.runner import Runner\n")
    assert "--stub torch_that_is_not_there" in message(file)
    assert load(str(file), ["tinyengine.runner"]).name == "Pool"


def test_missing_module_of_the_checkout_itself_is_named_in_full(tmp_path):
    assert "--stub tinyengine.gone" in message(checkout(tmp_path, head="import tinyengine.gone\n"))


def test_stub_wins_over_an_installed_module(tmp_path):
    file = checkout(tmp_path, head="import json\nassert not hasattr(json, '__file__')\njson.anything.at.all()\n")
    import json

    load(f"{file}:Pool", ["json"])
    assert sys.modules["json"] is json
    assert json.loads("1") == 1


# Adapters and factories ----------------------------------------------------------------------------------------

ADAPTER = """
    from kvspec.spec.declaration import Declaration
    from kvspec.spec.operations import Admitted, Appended, Committed, Released, Reserved
    class Mine:
        declaration = Declaration("mine", frozenset({"pool"}))
        def __init__(self, world): self.world = world
        def admit(self, sequence, tokens, limit, namespace): return Admitted(0, 1, (self.world.blocks,))
        def reserve(self, sequence, count): return Reserved(())
        def commit(self, sequences): return Committed(())
        def append(self, sequence, token): return Appended()
        def release(self, sequence, cause): return Released()
        @staticmethod
        def chain_hash(tokens, prefix): return 17
"""


def test_own_adapter(tmp_path):
    file = write(tmp_path, {"mine.py": ADAPTER}) / "mine.py"
    for target in (f"{file}:Mine", str(file)):
        implementation = load(target)
        assert (implementation.name, implementation.shape, implementation.target) == ("mine", "own adapter", target)
        assert isinstance(implementation.create(World(7, 2)), Adapter)
        assert first_table(implementation) == (4,)
        assert implementation.chain_hash is not None
        assert implementation.chain_hash((1,), None) == 17


def test_own_adapter_that_is_not_complete(tmp_path):
    lacking = dedent(ADAPTER).replace("def append", "def add").replace("def reserve", "def plan")
    file = write(tmp_path, {"mine.py": lacking}) / "mine.py"
    assert "lacks reserve, append" in message(f"{file}:Mine")


def test_own_adapter_without_a_declaration(tmp_path):
    file = write(tmp_path, {"mine.py": dedent(ADAPTER).replace("declaration =", "claims =")}) / "mine.py"
    assert "`declaration`" in message(f"{file}:Mine")


def test_own_adapter_with_an_unknown_profile(tmp_path):
    file = write(tmp_path, {"mine.py": dedent(ADAPTER).replace('"pool"', '"pol"')}) / "mine.py"
    assert "declares pol; the profiles are pool, prefix" in message(f"{file}:Mine")


FACTORY = """
    from dataclasses import replace
    from kvspec.impl.loader import load
    def make(): return replace(load("bundled"), name="made")
    ready = make()
    def broken(): raise OSError("no licence")
    def wrong(): return 3
    def wants(argument): return ready
    number = 3
"""


def test_factory_and_ready_implementation(tmp_path):
    file = write(tmp_path, {"factories.py": FACTORY}) / "factories.py"
    assert [load(f"{file}:{name}").name for name in ("make", "ready")] == ["made", "made"]
    assert load(f"{file}:make").target == f"{file}:make"
    assert load(f"{file}:ready").source == load("bundled").source


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("broken", "OSError: no licence"),
        ("wrong", "returned an object of type int"),
        ("wants", "TypeError"),
        ("number", "an object of type int; a class or a factory is needed"),
    ],
)
def test_factory_errors(tmp_path, name, expected):
    file = write(tmp_path, {"factories.py": FACTORY}) / "factories.py"
    assert expected in message(f"{file}:{name}")


# Errors --------------------------------------------------------------------------------------------------------


def test_missing_file(tmp_path):
    assert f"There is no file {tmp_path}/gone.py" in message(f"{tmp_path}/gone.py:Pool")


def test_folder(tmp_path):
    assert "is a folder" in message(tmp_path)


def test_missing_module():
    assert "There is no module nowhere.blocks" in message("nowhere.blocks:Pool")


def test_neither_form():
    assert "is no target" in message("my manager")


def test_missing_class_lists_the_candidates(tmp_path):
    assert "has no Pol. It has: Pool." in message(f"{checkout(tmp_path)}:Pol")


def test_several_candidates(tmp_path):
    file = write(tmp_path, {"b.py": "REVERSED = False\n" + dedent(MANAGER) + "class Other(Pool): pass\n"}) / "b.py"
    assert "several block managers: Pool, Other" in message(file)


def test_no_candidate_lists_the_classes(tmp_path):
    text = message(write(tmp_path, {"b.py": "class Car: pass\nclass Boat: pass"}) / "b.py")
    assert "Its classes are: Car, Boat" in text
    assert "kvspec init" in text


def test_class_without_the_calls_names_them_for_each_shape(tmp_path):
    file = write(tmp_path, {"b.py": "REVERSED = False\n" + dedent(MANAGER).replace("may_append", "grow")}) / "b.py"
    text = message(f"{file}:Pool")
    assert "early registration (allocate(seq) publishes): lacks may_append or append" in text
    assert "kvspec init" in text


def test_only_class_called_a_manager_is_explained(tmp_path):
    file = write(tmp_path, {"b.py": "class CacheManager:\n    def allocate(self, seq): pass"}) / "b.py"
    assert "CacheManager is not a block manager" in message(file)


def test_constructor_that_wants_more(tmp_path):
    text = dedent(MANAGER).replace("block_size)", "block_size, config)")
    file = write(tmp_path, {"b.py": "REVERSED = False\n" + text}) / "b.py"
    assert "it also wants config" in message(file)


def test_constructor_that_fails(tmp_path):
    text = dedent(MANAGER).replace("if REVERSED:", "raise OSError('no device')\n        if REVERSED:")
    file = write(tmp_path, {"b.py": "REVERSED = False\n" + text}) / "b.py"
    assert "OSError: no device" in message(file)


def test_syntax_error_has_file_and_line(tmp_path):
    file = write(tmp_path, {"b.py": "x = 1\ndef f(:\n"}) / "b.py"
    assert f"{file}, line 2" in message(file)


def test_syntax_error_in_a_module_that_is_imported(tmp_path):
    file = checkout(tmp_path)
    (tmp_path / "tinyengine/settings.py").write_text("REVERSED = = 1\n")
    assert f"{tmp_path}/tinyengine/settings.py, line 1" in message(file)


@pytest.mark.parametrize("raised", ["raise RuntimeError('no driver')", "raise SystemExit('bye')", "1 / 0"])
def test_import_that_raises_says_where(tmp_path, raised):
    file = checkout(tmp_path, head=raised + "\n")
    text = message(file)
    assert f"{file}, line 1" in text
    assert "--stub" in text
