"""The adapters of the nano-vllm shapes: recognised by their calls, translated faithfully, nothing repaired."""

import copy
import random
from collections import deque
from enum import Enum

import numpy as np
import pytest

from kvspec.conformance.campaign import run_campaign
from kvspec.conformance.contexts import CONTEXTS
from kvspec.impl.adapter import Adapter, Copyable, Observable
from kvspec.impl.block_manager import BlockManager
from kvspec.impl.errors import ImplementationError, LoadError
from kvspec.impl.nano_vllm import implementation_of
from kvspec.impl.nano_vllm.copying import copier
from kvspec.impl.nano_vllm.weak_hash import twin_with, weak_hash
from kvspec.impl.sequence import Sequence
from kvspec.spec.declaration import Covers, Publish
from kvspec.spec.operations import (
    Admitted,
    Appended,
    Committed,
    Failed,
    Nonsense,
    Refused,
    Released,
    Reserved,
)
from kvspec.spec.state import World

WORLD = World(6, 2)
ALL = 1 << 20


def fresh(cls, world=WORLD, **named):
    return implementation_of(cls, **named).create(world)


# Managers of the other shapes, small and sound -----------------------------------------------------------------


class LateTokens(BlockManager):
    """Answers in tokens, looks the prefix up again in ``allocate``, and spells growth ``append``."""

    may_append = None

    def can_allocate(self, seq):
        blocks = super().can_allocate(seq)
        return blocks if blocks == -1 else blocks * self.block_size

    def allocate(self, seq):
        super().allocate(seq, super().can_allocate(seq))

    def append(self, seq):
        BlockManager.may_append(self, seq)


class HashBlock(BlockManager):
    """Spells the end of the forward pass in the singular."""

    hash_blocks = None

    def hash_block(self, seq):
        BlockManager.hash_blocks(self, seq)


class Early(BlockManager):
    """Registers in ``allocate`` and ``may_append``; asks for room for the whole prompt, whatever is shared."""

    hash_blocks = None

    def can_allocate(self, seq):
        return len(self.free_block_ids) >= seq.num_blocks

    def allocate(self, seq):
        super().allocate(seq, self._hits(seq))
        self._register(seq, len(seq))

    def may_append(self, seq):
        super().may_append(seq)
        self._register(seq, len(seq))

    def _hits(self, seq):
        hits, key = 0, -1
        for i in range(seq.num_blocks - 1):
            key = self.compute_hash(seq.block(i), key)
            block = self.hash_to_block_id.get(key)
            if block is None or self.blocks[block].token_ids != seq.block(i):
                break
            hits += 1
        return hits

    def _register(self, seq, end):
        key = -1
        for i in range(end // self.block_size):
            key = self.compute_hash(seq.block(i), key)
            self.blocks[seq.block_table[i]].update(key, seq.block(i))
            self.hash_to_block_id[key] = seq.block_table[i]


class EarlyNoArgument(Early):
    """The very first generation asked for one free block, whoever grows."""

    def can_append(self):
        return len(self.free_block_ids) >= 1


class Layout(Early):
    """Tables grow as far as tokens are planned; ``can_append(seq, n)`` and ``may_append`` serve chunks as well."""

    def get_token_layout(self, seq):
        table = self._hit_blocks(seq)
        used = sum(block in self.used_block_ids for block in table) * self.block_size
        return used, len(table) * self.block_size - used, len(seq) - len(table) * self.block_size

    def _hit_blocks(self, seq):
        table, key = [], -1
        for i in range(self._hits(seq)):
            key = self.compute_hash(seq.block(i), key)
            table.append(self.hash_to_block_id[key])
        return table

    def can_allocate(self, num_tokens):
        return len(self.free_block_ids) >= -(-num_tokens // self.block_size)

    def allocate(self, seq):
        assert not seq.block_table
        for block in self._hit_blocks(seq):
            self._claim(block)
            seq.block_table.append(block)
        seq.num_cached_tokens = len(seq.block_table) * self.block_size
        self.may_append(seq)

    def can_append(self, seq, count):
        missing = -(-(seq.num_cached_tokens + count) // self.block_size) - len(seq.block_table)
        return len(self.free_block_ids) >= missing

    def may_append(self, seq):
        end = seq.num_cached_tokens + seq.num_new_tokens
        while len(seq.block_table) * self.block_size < end:
            seq.block_table.append(self._take())
        self._register(seq, end)


class Request:
    WAITING, RUNNING = "waiting", "running"

    def __init__(self, prompt):
        self.tokens, self.blocks, self.num_cached_tokens, self.state = list(prompt), [], 0, self.WAITING

    def __len__(self):
        return len(self.tokens)

    def append_output_token(self, token):
        self.tokens.append(token)


class Renamed:
    """Other names for everything; block objects in the table; no prefix cache unless it is asked for."""

    def __init__(self, capacity, block_size, support_prefix_cache=False):
        self.block_size, self.switched_on = block_size, support_prefix_cache
        self.free = deque(range(capacity))
        self.joined = 0

    def can_allocate_new_block(self, req):
        return len(self.free) >= self._missing(req)

    def _missing(self, req):
        return -(-len(req) // self.block_size) - len(req.blocks)

    def allocate_blocks_for_prefill(self, req):
        assert req.state == Request.WAITING
        self._grow(req)

    def allocate_block_for_decode(self, req):
        assert req.state == Request.RUNNING
        self._grow(req)

    def _grow(self, req):
        for _ in range(self._missing(req)):
            req.blocks.append(Entry(self.free.popleft()))

    def cache_block_if_needed(self, req):
        self.joined += 1

    def deallocate(self, req):
        self.free.extend(entry.block_id for entry in reversed(req.blocks))
        req.blocks = []


class Entry:
    def __init__(self, block_id):
        self.block_id = block_id


SOUND = [BlockManager, LateTokens, HashBlock, Early, Layout]


# Recognition and declarations ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cls", "shape"),
    [
        (BlockManager, "late registration (allocate(seq, n), hash_blocks)"),
        (HashBlock, "late registration (allocate(seq, n), hash_blocks)"),
        (LateTokens, "late registration (allocate(seq), hash_blocks)"),
        (Early, "early registration"),
        (EarlyNoArgument, "early registration"),
        (Layout, "token layout"),
        (Renamed, "renamed early registration"),
    ],
)
def test_shape_is_recognised(cls, shape):
    implementation = implementation_of(cls)
    assert implementation.shape.startswith(shape)
    adapter = implementation.create(WORLD)
    assert isinstance(adapter, Adapter)
    assert isinstance(adapter, Observable)
    assert isinstance(adapter, Copyable)


def test_declarations():
    late, tokens, early, layout = (
        implementation_of(cls).declaration for cls in (BlockManager, LateTokens, Early, Layout)
    )
    assert late.profiles == {"pool", "prefix", "order", "chunked", "hash"}
    assert (late.publish, late.covers, late.credits_shared) == (Publish.COMMIT, Covers.KNOWN, True)
    assert (late.release_in_flight, late.same_step_hit, late.nano_vllm_order) == (True, False, True)
    assert (tokens.profiles, tokens.nano_vllm_order) == ({"pool", "prefix", "order", "chunked"}, False)
    assert early.profiles == {"pool", "prefix", "order"}
    assert (early.publish, early.same_step_hit, early.credits_shared) == (Publish.RESERVE, True, False)
    assert not early.release_in_flight
    assert (layout.covers, layout.credits_shared, layout.same_step_hit) == (Covers.RESERVED, True, True)


def test_hash_is_declared_only_where_there_is_one():
    class Plain(BlockManager):
        compute_hash = None

    implementation = implementation_of(Plain)
    assert implementation.chain_hash is None
    assert "hash" not in implementation.declaration.profiles


def test_order_is_declared_only_for_the_pools_of_nano_vllm():
    class Stack(BlockManager):
        def __init__(self, num_blocks, block_size):
            super().__init__(num_blocks, block_size)
            self.free_block_ids = list(self.free_block_ids)

    assert not implementation_of(Stack).declaration.nano_vllm_order


@pytest.mark.parametrize("cls", SOUND)
def test_sound_managers_conform(cls):
    """A wrong translation (a call too late, a count too high) shows as a violation."""
    implementation = implementation_of(cls)
    for name in ("steps", "chunked"):
        if name == "steps" or name in implementation.declaration.profiles:
            result = run_campaign(implementation, CONTEXTS[name], seed=3, programs=80)
            assert set(result.found) <= {"TWIN"}, result.found
            assert result.counts["hits"] > 100


def test_unknown_shape():
    with pytest.raises(LoadError, match="hash_blocks or hash_block"):
        implementation_of(Sequence)


def test_call_with_other_arguments_is_no_known_shape():
    class Needy(BlockManager):
        def hash_blocks(self, seq, count):
            """Wants more than the sequence."""

    with pytest.raises(LoadError, match="take other arguments"):
        implementation_of(Needy)


# Operations ----------------------------------------------------------------------------------------------------


def test_life_of_a_sequence_late():
    adapter = fresh(BlockManager)
    assert adapter.admit("A", (1, 2, 3, 4, 5), 2, "") == Admitted(0, 2, (0, 1, 2))
    assert adapter.commit(("A",)) == Committed(((0, 1, 2),))
    assert adapter.reserve("A", 3) == Reserved((0, 1, 2))
    adapter.commit(("A",))
    assert adapter.append("A", 6) == Appended()
    assert adapter.reserve("A", 1) == Reserved((0, 1, 2))
    adapter.commit(("A",))
    adapter.append("A", 7)
    assert adapter.reserve("A", 1) == Reserved((0, 1, 2, 3))
    adapter.commit(("A",))
    assert [adapter.manager.blocks[b].token_ids for b in (0, 1, 2, 3)] == [[1, 2], [3, 4], [5, 6], []]
    assert adapter.admit("B", (1, 2, 3, 4, 9), ALL, "") == Admitted(4, 1, (0, 1, 4))
    assert adapter.release("A", "finished") == Released()
    assert adapter.release("A", "finished") == Released()
    assert adapter.snapshot().used == (0, 1, 4)


def test_rest_of_a_prompt_asks_for_no_room():
    """One uncomputed token is not decode if it belongs to the prompt."""

    class Strict(BlockManager):
        def can_append(self, seq):
            raise AssertionError("asked")

    adapter = fresh(Strict)
    adapter.admit("A", (1, 2, 3), 2, "")
    adapter.commit(("A",))
    assert adapter.reserve("A", 1) == Reserved((0, 1))
    adapter.commit(("A",))
    adapter.append("A", 4)
    assert adapter.reserve("A", 1) == Failed("AssertionError: asked, in can_append")


def test_refusals():
    adapter = fresh(BlockManager, World(2, 2))
    assert adapter.admit("A", (1, 2, 3, 4, 5), ALL, "") == Refused()
    assert adapter.admit("A", (1, 2, 3, 4), ALL, "") == Admitted(0, 4, (0, 1))
    adapter.commit(("A",))
    adapter.append("A", 5)
    before = adapter.snapshot()
    assert adapter.reserve("A", 1) == Refused()
    assert adapter.reserve("A", 1) == Refused()  # still a sampled token
    assert adapter.snapshot() == before


def test_early_counts_for_itself():
    adapter = fresh(Early)
    adapter.admit("A", (1, 2, 3), 2, "")
    adapter.commit(("A",))
    adapter.reserve("A", 1)
    adapter.commit(("A",))
    assert adapter.admit("B", (1, 2, 4), ALL, "") == Admitted(2, 1, (0, 2))


def test_layout_grows_in_chunks():
    adapter = fresh(Layout)
    assert adapter.admit("A", (1, 2, 3, 4, 5), 2, "") == Admitted(0, 2, (0,))
    adapter.commit(("A",))
    assert adapter.reserve("A", 3) == Reserved((0, 1, 2))
    adapter.commit(("A",))
    assert adapter.admit("B", (1, 2, 3, 4, 6), ALL, "") == Admitted(4, 1, (0, 1, 3))


def test_renamed_calls():
    adapter = fresh(Renamed)
    assert adapter.manager.switched_on
    assert adapter.admit("A", (1, 2), ALL, "") == Admitted(0, 2, (0,))
    adapter.commit(("A",))
    assert adapter.append("A", 3) == Appended()
    assert adapter.manager.joined == 1
    assert adapter.reserve("A", 1) == Reserved((0, 1))
    assert adapter.release("A", "preempted") == Released()
    assert adapter.admit("A", (1, 2, 3), ALL, "") == Admitted(0, 3, (2, 3))


def test_first_generation_asks_without_the_sequence():
    adapter = fresh(EarlyNoArgument)
    adapter.admit("A", (1,), ALL, "")
    adapter.commit(("A",))
    adapter.append("A", 2)
    assert adapter.reserve("A", 1) == Reserved((0,))


def test_preempted_sequence_comes_back_as_the_same_object():
    """A manager that forgets to reset what it wrote on the sequence must be seen."""

    class Forgetful(Early):
        def allocate(self, seq):
            before = seq.num_cached_tokens
            super().allocate(seq)
            seq.num_cached_tokens += before

        def deallocate(self, seq):
            kept = seq.num_cached_tokens
            super().deallocate(seq)
            seq.num_cached_tokens = kept

    def cached_after(cause):
        adapter = fresh(Forgetful)
        adapter.admit("A", (1, 2, 3), ALL, "")
        adapter.commit(("A",))
        adapter.release("A", "finished")
        assert adapter.admit("B", (1, 2, 3), ALL, "").cached == 2
        adapter.commit(("B",))
        adapter.release("B", cause)
        return adapter.admit("B", (1, 2, 3), ALL, "")

    assert cached_after("finished").cached == 2
    assert isinstance(cached_after("preempted"), Nonsense)  # 4 cached tokens of 3


def test_live_sequence_that_is_admitted_again_is_the_same_object():
    adapter = fresh(BlockManager)
    adapter.admit("A", (1, 2, 3), ALL, "")
    outcome = adapter.admit("A", (1, 2, 3), ALL, "")
    assert isinstance(outcome, Failed)
    assert outcome.error == "AssertionError, in allocate"


def test_a_name_that_was_never_admitted_is_an_unknown_sequence_to_the_manager():
    class Strict(BlockManager):
        def deallocate(self, seq):
            if not seq.block_table:
                raise KeyError("this sequence has no blocks")
            super().deallocate(seq)

    assert fresh(BlockManager).release("never", "finished") == Released()
    assert fresh(BlockManager).reserve("never", 1) == Reserved((0,))
    assert isinstance(fresh(Renamed).reserve("never", 1), Failed)  # it asserts that the request is running
    assert fresh(Strict).release("never", "finished").clear


# Failures ------------------------------------------------------------------------------------------------------


class OwnError(Exception):
    pass


def raising(name, error, base=BlockManager):
    def method(self, *arguments):
        raise error

    return type("Raising", (base,), {name: method})


@pytest.mark.parametrize(
    ("error", "text", "clear"),
    [
        (ValueError("too long"), "ValueError: too long", True),
        (TypeError("tokens must be numbers"), "TypeError: tokens must be numbers", True),
        (KeyError("no such sequence"), "KeyError: 'no such sequence'", True),
        (OwnError("pool is full"), "OwnError: pool is full", True),
        (OwnError(), "OwnError", False),
        (KeyError(17), "KeyError: 17", False),
        (ValueError(), "ValueError", False),
        (AssertionError("oh"), "AssertionError: oh", False),
        (IndexError("list index out of range"), "IndexError: list index out of range", False),
        (AttributeError("x"), "AttributeError: x", False),
        (SystemExit("bye"), "SystemExit: bye", False),
    ],
)
def test_errors_are_told_apart(error, text, clear):
    allocate = type("Raising", (BlockManager,), {"allocate": lambda self, seq, cached: _raise(error)})
    assert fresh(allocate).admit("A", (1, 2), ALL, "") == Failed(f"{text}, in allocate", promised=True, clear=clear)


def _raise(error):
    raise error


@pytest.mark.parametrize("accident", [lambda: deque().remove(1), lambda: 1 + "x", lambda: int("x"), lambda: {}["x"]])
def test_a_container_that_complains_is_an_accident(accident):
    broken = type("Broken", (BlockManager,), {"deallocate": lambda self, seq: accident()})
    adapter = fresh(broken)
    adapter.admit("A", (1,), ALL, "")
    outcome = adapter.release("A", "finished")
    assert isinstance(outcome, Failed)
    assert not outcome.clear


@pytest.mark.parametrize(
    ("call", "promised"),
    [("can_allocate", False), ("allocate", True), ("hash_blocks", False), ("can_append", False), ("may_append", True)],
)
def test_the_failing_call_is_named_and_a_promise_remembered(call, promised):
    names = {"allocate": "allocate(self, seq, cached)", "can_allocate": "can_allocate(self, seq)"}
    space = {}
    exec(f"def {names.get(call, call + '(self, seq)')}: raise IndexError('pop')", space)
    adapter = fresh(type("Broken", (BlockManager,), {call: space[call]}))
    outcomes = [adapter.admit("A", (1, 2), ALL, ""), adapter.commit(("A",)), adapter.append("A", 3)]
    outcomes.append(adapter.reserve("A", 1))
    failed = next(outcome for outcome in outcomes if isinstance(outcome, Failed))
    assert failed == Failed(f"IndexError: pop, in {call}", promised=promised, clear=False)


def test_sequence_that_cannot_be_made_is_a_failure():
    class Nonempty(Bare):
        def __init__(self, token_ids):
            super().__init__(token_ids)
            self.last = token_ids[-1]

    outcome = _with_sequence(Nonempty).create(WORLD).admit("A", (), ALL, "")
    assert outcome == Failed("IndexError: list index out of range, in the constructor of the sequence")


def test_time_limit_passes_through():
    class Limit(BaseException):
        pass

    adapter = fresh(type("Slow", (BlockManager,), {"can_allocate": lambda self, seq: _raise(Limit())}))
    with pytest.raises(Limit):
        adapter.admit("A", (1,), ALL, "")


# Nonsense ------------------------------------------------------------------------------------------------------


def answering(name, answer, base=BlockManager):
    return fresh(type("Odd", (base,), {name: lambda self, seq: answer}))


@pytest.mark.parametrize("answer", ["0", 1.0, None, -2, 4, 1 << 70, True, [0]])
def test_number_of_cached_blocks(answer):
    outcome = answering("can_allocate", answer).admit("A", (1, 2, 3), ALL, "")
    assert isinstance(outcome, Nonsense)
    assert outcome.answer.startswith(f"can_allocate gave {answer!r}; expected the number of cached blocks or -1")


@pytest.mark.parametrize("answer", [None, "yes", 2, -1, 0.0, []])
def test_yes_or_no(answer):
    outcome = answering("can_allocate", answer, Early).admit("A", (1, 2, 3), ALL, "")
    assert isinstance(outcome, Nonsense)
    assert outcome.answer == f"can_allocate gave {answer!r}; expected True or False"


@pytest.mark.parametrize(("answer", "admitted"), [(1, True), (np.bool_(True), True), (0, False), (np.False_, False)])
def test_whatever_means_yes_or_no_is_taken(answer, admitted):
    outcome = answering("can_allocate", answer, Early).admit("A", (1, 2, 3), ALL, "")
    assert outcome == (Admitted(0, 3, (0, 1)) if admitted else Refused())


def test_numbers_of_numpy_are_numbers():
    class Numpy(BlockManager):
        def can_allocate(self, seq):
            return np.int64(super().can_allocate(seq))

        def allocate(self, seq, cached):
            super().allocate(seq, cached)
            seq.block_table = [np.int32(block) for block in seq.block_table]
            seq.num_cached_tokens = np.int64(seq.num_cached_tokens)

    outcome = fresh(Numpy).admit("A", (1, 2, 3), ALL, "")
    assert outcome == Admitted(0, 3, (0, 1))
    assert {type(value) for value in (outcome.cached, *outcome.table)} == {int}


def _after_allocate(**attributes):
    class Odd(BlockManager):
        def allocate(self, seq, cached):
            super().allocate(seq, cached)
            vars(seq).update(attributes)

    return fresh(Odd).admit("A", (1, 2, 3), ALL, "")


@pytest.mark.parametrize("table", [[0, "1"], [0, None], [0.0, 1], None, 3, [True, 1]])
def test_block_table(table):
    outcome = _after_allocate(block_table=table)
    assert isinstance(outcome, Nonsense)
    assert "block table" in outcome.answer


@pytest.mark.parametrize("cached", [-1, 4, "2", None, 1.5])
def test_number_of_cached_tokens(cached):
    outcome = _after_allocate(num_cached_tokens=cached)
    assert isinstance(outcome, Nonsense)
    assert outcome.answer.startswith(f"num_cached_tokens after allocate gave {cached!r}")


@pytest.mark.parametrize("answer", [(1, 2), None, (0, 0, "3"), (0, -1, 3), (0, 0, 99)])
def test_token_layout(answer):
    outcome = answering("get_token_layout", answer, Layout).admit("A", (1, 2, 3), ALL, "")
    assert isinstance(outcome, Nonsense)


def test_long_answers_are_cut():
    outcome = answering("can_allocate", "x" * 500).admit("A", (1,), ALL, "")
    assert len(outcome.answer) < 250


# Snapshots -----------------------------------------------------------------------------------------------------


def test_snapshot():
    adapter = fresh(BlockManager, World(4, 2))
    adapter.admit("A", (1, 2, 3), ALL, "")
    adapter.commit(("A",))
    shown = adapter.snapshot()
    key = BlockManager.compute_hash([1, 2])
    assert (shown.free, shown.used, shown.owned) == ((2, 3), (0, 1), None)
    assert shown.references == (1, 1, 0, 0)
    assert shown.hashes == (key, None, None, None)
    assert shown.contents == ((1, 2), (), (), ())
    assert shown.index == ((key, 0),)


def test_snapshot_shows_only_what_there_is():
    shown = fresh(Renamed, World(3, 2)).snapshot()
    assert shown.free == (0, 1, 2)
    assert (shown.used, shown.references, shown.hashes, shown.contents, shown.index) == (None,) * 5


def test_snapshot_under_other_names():
    class Other:
        def __init__(self, block_id):
            self.refcount, self.hash, self.tokens = block_id, None, [block_id]

    class Spelled(Renamed):
        def __init__(self, capacity, block_size):
            super().__init__(capacity, block_size)
            self.block_table = [Other(i) for i in range(capacity)]

    shown = fresh(Spelled, World(2, 2)).snapshot()
    assert (shown.references, shown.hashes, shown.contents) == ((0, 1), (None, None), ((0,), (1,)))


def test_snapshot_does_not_depend_on_the_order_of_insertion():
    one, two = fresh(BlockManager), fresh(BlockManager)
    one.manager.hash_to_block_id = {1: 0, 2: 1}
    two.manager.hash_to_block_id = {2: 1, 1: 0}
    assert one.snapshot() == two.snapshot()


# Copies --------------------------------------------------------------------------------------------------------


def random_call(rng):
    name = rng.choice("AB")
    tokens = tuple(rng.randrange(2) for _ in range(rng.randrange(1, 7)))
    return rng.choice(
        [
            ("admit", name, tokens, rng.choice((1, ALL)), ""),
            ("reserve", name, 1),
            ("commit", (name,)),
            ("append", name, rng.randrange(2)),
            ("release", name, "preempted"),
        ]
    )


def perform(adapter, call):
    return getattr(adapter, call[0])(*call[1:]), adapter.snapshot()


class Slotted(BlockManager):
    """Something the fast copy does not know: two names for one pool, and an object with slots."""

    class Box:
        __slots__ = ("pool",)

    def __init__(self, num_blocks, block_size):
        super().__init__(num_blocks, block_size)
        self.box = Slotted.Box()
        self.box.pool = self.free_block_ids

    def _take(self):
        assert self.box.pool is self.free_block_ids
        return super()._take()


class TwoNames(BlockManager):
    def __init__(self, num_blocks, block_size):
        super().__init__(num_blocks, block_size)
        self.pool = self.free_block_ids

    def _take(self):
        assert self.pool is self.free_block_ids
        return super()._take()


class Holding(BlockManager):
    """The manager keeps the sequences too: copies must agree on who is who."""

    def __init__(self, num_blocks, block_size):
        super().__init__(num_blocks, block_size)
        self.held = {}

    def allocate(self, seq, cached):
        super().allocate(seq, cached)
        self.held[seq.seq_id] = seq

    def deallocate(self, seq):
        assert self.held.pop(seq.seq_id, seq) is seq
        super().deallocate(seq)


class SharedTokens(BlockManager):
    """One list of tokens for all blocks that were filled, changed in place."""

    def __init__(self, num_blocks, block_size):
        super().__init__(num_blocks, block_size)
        self.filled = []

    def hash_blocks(self, seq):
        super().hash_blocks(seq)
        self.filled.append(len(seq))
        for block in self.blocks:
            block.history = self.filled

    def _take(self):
        assert all(getattr(block, "history", self.filled) is self.filled for block in self.blocks)
        return super()._take()


class Described(BlockManager):
    """Attributes that are more than values in a dictionary, and one that comes late."""

    def __setattr__(self, name, value):
        self.__dict__[name] = value
        if name == "block_size":
            self.__dict__["written"] = self.__dict__.get("written", 0) + 1

    def _take(self):
        assert self.written == 1
        self.late = [*getattr(self, "late", []), len(self.used_block_ids)]
        return super()._take()

    def _drop(self, block_id):
        self.late.append(block_id)
        super()._drop(block_id)


class Pickled(Sequence):
    """As in nano-vllm: what is sent to workers lacks the tokens."""

    def __getstate__(self):
        return {"block_table": self.block_table}


@pytest.mark.parametrize("duplicate", [lambda adapter: adapter.copy(), copy.deepcopy], ids=["copy", "deepcopy"])
@pytest.mark.parametrize("cls", [*SOUND, Renamed, Slotted, TwoNames, Holding, SharedTokens, Described])
def test_copies_are_equal_and_independent(cls, duplicate):
    rng = random.Random(cls.__name__)
    for _ in range(40):
        adapter = fresh(cls, World(4, 2))
        for _ in range(rng.randrange(12)):
            perform(adapter, random_call(rng))
        copied, before = duplicate(adapter), adapter.snapshot()
        calls = [random_call(rng) for _ in range(12)]
        after = [perform(copied, call) for call in calls]
        assert adapter.snapshot() == before
        assert [perform(adapter, call) for call in calls] == after


@pytest.mark.parametrize("cls", [SharedTokens, Described])
def test_copies_hold_what_the_original_holds_and_share_none_of_it(cls):
    adapter = fresh(cls)
    adapter.admit("A", (1, 2, 3), ALL, "")
    adapter.commit(("A",))
    many = adapter.copier()
    for copied in (adapter.copy(), many(), many()):
        assert copied.manager.__dict__.keys() == adapter.manager.__dict__.keys()
        own = [value for value in vars(copied.manager).values() if isinstance(value, list | dict | set | deque)]
        assert own
        assert all(value is not other for value in own for other in vars(adapter.manager).values())
        assert [vars(b).keys() for b in copied.manager.blocks] == [vars(b).keys() for b in adapter.manager.blocks]


def test_objects_in_two_lists_are_one_in_a_copy_too():
    class Plain:
        def __init__(self, number):
            self.number, self.references = number, 0

    manager = type("Pool", (), {})()
    manager.blocks = [Plain(0), Plain(1)]
    manager.free = manager.blocks[::-1]
    copied, _ = copier(manager, [])()
    assert copied.free[1] is copied.blocks[0] is not manager.blocks[0]


@pytest.mark.parametrize("base", [random.Random, deque], ids=str)
def test_objects_with_something_in_c_are_copied_whole(base):
    manager = type("Pool", (), {})()
    manager.blocks = [type("Own", (base,), {})([7])] if base is deque else [type("Own", (base,), {})(7)]
    kept = repr(getattr(manager.blocks[0], "getstate", manager.blocks[0].__repr__)())
    copied, _ = copier(manager, [])()
    assert repr(getattr(copied.blocks[0], "getstate", copied.blocks[0].__repr__)()) == kept
    assert copied.blocks[0] is not manager.blocks[0]


def test_copies_do_not_go_through_pickling():
    adapter = fresh(Holding, sequences=(Pickled,))
    adapter._plan.make([1])  # the bundled class is named by the manager's module, so use ours by hand
    adapter.admit("A", (1, 2, 3), ALL, "")
    held = adapter._held["A"]
    pickled = Pickled([1, 2, 3])
    vars(pickled).update(vars(held.sequence))
    held.sequence = adapter.manager.held[pickled.seq_id] = pickled
    copied = adapter.copy()
    assert copied._held["A"].sequence.token_ids == [1, 2, 3]
    assert copied.manager.held[pickled.seq_id] is copied._held["A"].sequence


def test_plain_managers_are_copied_without_deepcopy(monkeypatch):
    class Status(Enum):
        WAITING = 1

    adapter = fresh(BlockManager)
    adapter.admit("A", (1, 2, 3), ALL, "")
    adapter._held["A"].sequence.status = Status.WAITING
    monkeypatch.setattr("kvspec.impl.nano_vllm.copying.deepcopy", lambda *_: pytest.fail("deepcopy"))
    assert adapter.copy()._held["A"].sequence.status is Status.WAITING


# Block sizes and sequences -------------------------------------------------------------------------------------


class Hard(BlockManager):
    """Accepts one block size, as the first nano-vllm did."""

    def __init__(self, num_blocks, block_size=256):
        assert block_size == 256
        super().__init__(num_blocks, block_size)


def test_refused_block_size_is_named():
    implementation = implementation_of(Hard)
    assert (implementation.declaration.smallest_block_size, implementation.declaration.largest_block_size) == (256, 256)
    with pytest.raises(ImplementationError, match="refuses 4 blocks of block size 16"):
        implementation.create(World(4, 16))
    assert isinstance(implementation.create(World(4, 256)).admit("A", (1,) * 257, ALL, ""), Admitted)


def test_impossible_pools_show_the_manager_s_own_error():
    class Careful(BlockManager):
        def __init__(self, num_blocks, block_size):
            if num_blocks < 1:
                raise ValueError("a pool needs a block")
            super().__init__(num_blocks, block_size)

    with pytest.raises(ValueError, match="a pool needs a block"):
        fresh(Careful, World(0, 2))


def test_block_sizes_do_not_disturb_each_other():
    implementation = implementation_of(BlockManager)
    two, three = implementation.create(World(4, 2)), implementation.create(World(4, 3))
    tables = [adapter.admit("A", (1, 2, 3, 4, 5), ALL, "").table for adapter in (two, three)]
    assert [len(table) for table in tables] == [3, 2]
    assert Sequence.block_size == 256


class Bare:
    """What several kinds of sequences share."""

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


class BySetter(Bare):
    _size = 0

    @classmethod
    def set_block_size(cls, size):
        cls._size = size

    @property
    def num_blocks(self):
        return -(-len(self) // self._size)

    def block(self, i):
        return self.token_ids[i * self._size : (i + 1) * self._size]


class ByConstructor(Bare):
    def __init__(self, token_ids, block_size, sampling_params):
        super().__init__(token_ids)
        self.block_size, self.temperature = block_size, sampling_params.temperature


class Fixed(Bare):
    """Its block size cannot be set."""

    num_blocks = property(lambda self: -(-len(self) // 256))


@pytest.mark.parametrize(("kind", "own"), [(Bare, True), (BySetter, True), (ByConstructor, True), (Fixed, False)])
def test_ways_to_set_the_block_size(kind, own):
    implementation = _with_sequence(kind)
    assert (f"own {kind.__name__}" in implementation.shape) is own
    for size in (2, 3):
        adapter = implementation.create(World(5, size))
        assert adapter.admit("A", (1,) * (size + 1), ALL, "") == Admitted(0, size + 1, (0, 1))
        assert isinstance(adapter._held["A"].sequence, kind) is own


def _with_sequence(kind):
    """An implementation whose module names no class of sequences but `kind`."""
    space = {"BlockManager": BlockManager, "__name__": "elsewhere"}
    exec(
        "class Manager(BlockManager):\n    def can_append(self, seq): return BlockManager.can_append(self, seq)", space
    )
    return implementation_of(space["Manager"], sequences=(kind,))


# Weak hash -----------------------------------------------------------------------------------------------------


def test_weak_hash_collides_and_is_a_chain_hash():
    values = {weak_hash([a, b], prefix) for a in range(4) for b in range(4) for prefix in (-1, 1, 2, 3)}
    assert values == {1, 2, 3, 4, 5}
    assert weak_hash([1, 2], 3) == weak_hash(token_ids=[1, 2], prefix=3)
    assert weak_hash([1, 2]) == weak_hash([1, 2], -1)
    assert len({weak_hash([0, 0], prefix) for prefix in range(1, 6)}) == 5  # it looks at the prefix


def keys(cls):
    adapter = fresh(cls, World(6, 2, weak_hash=True))
    adapter.admit("A", (1, 2, 3, 4, 5), ALL, "")
    adapter.commit(("A",))
    return adapter.snapshot().hashes[:2]


EXPECTED = (weak_hash([1, 2]), weak_hash([3, 4], weak_hash([1, 2])))


class ByClassName(BlockManager):
    """Calls the hash through the name of the class."""

    @classmethod
    def compute_hash(cls, token_ids, prefix=-1):
        return BlockManager.compute_hash(token_ids, prefix)

    def hash_blocks(self, seq):
        key = -1
        for i in range(len(seq) // self.block_size):
            key = ByClassName.compute_hash(token_ids=seq.block(i), prefix=key)
            self.blocks[seq.block_table[i]].update(key, seq.block(i))


class PerInstance(BlockManager):
    def compute_hash(self, token_ids, prefix_hash_value=-1):
        return BlockManager.compute_hash(token_ids, prefix_hash_value)


MODULE = """
def compute_hash(tokens, prefix=-1):
    return 1000 + len(tokens)

class Manager(BlockManager):
    compute_hash = None
    def can_allocate(self, seq):
        return 0
    def hash_blocks(self, seq):
        key = -1
        for i in range(len(seq) // self.block_size):
            key = HASH(seq.block(i), key)
            self.blocks[seq.block_table[i]].update(key, seq.block(i))

class Block:
    @staticmethod
    def compute_hash(tokens, prefix=-1):
        return 2000 + len(tokens)
"""


def in_a_module(spelling):
    space = {"BlockManager": BlockManager, "__name__": "elsewhere"}
    text = MODULE.replace("HASH", spelling)
    if spelling != "compute_hash":
        text = text.replace(
            "def compute_hash(tokens, prefix=-1):\n    return 1000", "def other(tokens):\n    return 1000"
        )
    exec(text, space)
    return space["Manager"]


@pytest.mark.parametrize("spelling", ["compute_hash", "Block.compute_hash"])
def test_weak_hash_takes_the_place_of_functions_and_of_other_classes_of_the_module(spelling):
    cls = in_a_module(spelling)
    assert keys(cls) == EXPECTED
    chain_hash = implementation_of(cls).chain_hash
    assert chain_hash is not None
    assert chain_hash((7, 7), None) == (1002 if spelling == "compute_hash" else 2002)


@pytest.mark.parametrize("cls", [BlockManager, ByClassName, PerInstance], ids=lambda cls: cls.__name__)
def test_weak_hash_is_used_wherever_the_chain_hash_is(cls):
    assert keys(cls) == EXPECTED
    adapter = fresh(cls)
    adapter.admit("A", (1, 2, 3), ALL, "")
    adapter.commit(("A",))
    assert adapter.snapshot().hashes[0] == BlockManager.compute_hash([1, 2])


def test_a_twin_lacks_what_the_manager_took_away_from_its_base():
    twin = twin_with(LateTokens)
    assert twin is not None
    assert twin.may_append is None


def test_manager_without_a_chain_hash_cannot_have_a_weak_one():
    with pytest.raises(ImplementationError, match="no chain hash"):
        fresh(Renamed, World(4, 2, weak_hash=True))


def test_weak_hash_makes_collisions_happen():
    """Two different first blocks with one key: only the comparison of tokens keeps them apart."""

    class Trusting(BlockManager):
        def can_allocate(self, seq):
            key = self.compute_hash(seq.block(0))
            return 1 if key in self.hash_to_block_id and seq.num_blocks > 1 else super().can_allocate(seq)

    context = CONTEXTS["collision"]
    found = run_campaign(implementation_of(Trusting), context, seed=1, programs=30).found
    assert "CONTENT" in found


def test_chain_hash_is_the_manager_s_own():
    for cls in (BlockManager, PerInstance):
        chain_hash = implementation_of(cls).chain_hash
        assert chain_hash is not None
        first = chain_hash((1, 2), None)
        assert first == BlockManager.compute_hash([1, 2])
        assert chain_hash((3, 4), first) == BlockManager.compute_hash([3, 4], first)
