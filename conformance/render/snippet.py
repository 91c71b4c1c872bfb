"""A stand-alone Python script that reproduces a counterexample without kvspec.

For the nano-vllm shapes it makes the manager's own calls, keeps a tiny shadow of the K/V memory and ends in an
assertion that states the fault.  For other shapes it performs the five operations through the adapter.
"""

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvspec.conformance.program import Counterexample
from kvspec.conformance.render.counterexample import story_of
from kvspec.conformance.render.moments import Moment, Story
from kvspec.conformance.render.snippet_calls import Calls, calls_of, names_of
from kvspec.conformance.render.snippet_claims import claim
from kvspec.conformance.render.words import answered, spoken
from kvspec.impl.adapter import Implementation
from kvspec.impl.targets import Place, place_of
from kvspec.spec import operations as op
from kvspec.spec.clauses import CLAUSES
from kvspec.spec.state import World

HASH_NAMES = ("compute_hash", "_compute_hash", "hash_block_tokens", "compute_block_hash")

SEQUENCE = '''\
class Sequence:
    """Stands for your own class: what a manager of this shape reads and writes."""

    block_size = SIZE

    def __init__(self, token_ids):
        Sequence.made = getattr(Sequence, "made", 0) + 1
        self.seq_id, self.token_ids, self.block_table = Sequence.made, list(token_ids), []
        self.num_prompt_tokens, self.num_cached_tokens, self.num_scheduled_tokens = len(token_ids), 0, 0
        self.computed = 0  # positions whose K/V exists

    def __len__(self):
        return len(self.token_ids)

    def __getitem__(self, key):
        return self.token_ids[key]

    @property
    def num_tokens(self):
        return len(self.token_ids)

    @property
    def num_completion_tokens(self):
        return len(self.token_ids) - self.num_prompt_tokens

    @property
    def last_token(self):
        return self.token_ids[-1]

    @property
    def num_blocks(self):
        return -(-len(self.token_ids) // SIZE)

    @property
    def num_cached_blocks(self):
        return self.num_cached_tokens // SIZE

    @property
    def last_block_num_tokens(self):
        return len(self.token_ids) - (self.num_blocks - 1) * SIZE

    def block(self, i):
        return self.token_ids[i * SIZE : (i + 1) * SIZE]

    def append_token(self, token):
        self.token_ids.append(token)
'''

SHADOW = '''\
kv = {}  # (block, offset) -> the tokens whose K/V was written there last, up to and including its own


def forward(*sequences):
    """The forward pass of one step: the K/V of all scheduled tokens is written into their slots."""
    for seq in sequences:
        for p in range(seq.computed, seq.computed + seq.num_scheduled_tokens):
            kv[seq.block_table[p // SIZE], p % SIZE] = seq.token_ids[: p + 1]
        seq.computed += seq.num_scheduled_tokens


def held(seq, position):
    """The tokens whose K/V attention would read at this position of the sequence."""
    return kv.get((seq.block_table[position // SIZE], position % SIZE))
'''

WEAK = '''\
def weak_hash(*arguments):
    """A chain hash with five values, so that different blocks collide."""
    tokens = next(value for value in arguments if hasattr(value, "__iter__"))
    mixed = 7 * next((value for value in arguments if isinstance(value, int)), -1) + 3
    for token in tokens:
        mixed = 11 * mixed + int(token)
    return 1 + mixed % 5
'''


DEFINITIONS = tuple(part.strip("\n") for part in (SEQUENCE, SHADOW, WEAK))

ADAPTER = """\
from kvspec.conformance.lockstep import ask
from kvspec.impl.loader import load
from kvspec.spec import operations as op
from kvspec.spec.state import World
"""


@dataclass(frozen=True, slots=True)
class Script:
    """The parts of a script, in order; definitions get one blank line more."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        parts = [part.strip("\n") for part in self.parts if part]
        text = "\n\n".join(f"\n{part}\n" if part in DEFINITIONS else part for part in parts) + "\n"
        ast.parse(text)
        return text


def standalone_snippet(found: Counterexample, implementation: Implementation, seed: int = 0) -> str:
    """A script that fails with an AssertionError which names the clause, as long as the fault is there.

    Raises trace.NotRepeatable or lockstep.CannotCreate if the counterexample cannot be shown again.
    """
    story = story_of(found, implementation, seed)
    if not story.moments:
        return str(
            Script((_head(story), f"# No program shows this clause.  Run: kvspec check {_target(implementation)}"))
        )
    adapter: Any = implementation.create(_plain_world(story))
    calls = calls_of(adapter)
    if calls is None or _beyond_the_shape(story) or "<locals>" in type(adapter.manager).__qualname__:
        return str(_through_adapter(story, implementation))
    return str(_direct(story, implementation, calls, type(adapter.manager)))


def _beyond_the_shape(story: Story) -> bool:
    """Are there operations that the calls of no shape stand for: extensions, namespaces?"""
    requests = [moment.request for moment in story.moments]
    return any(isinstance(each, op.Extension) or (isinstance(each, op.Admit) and each.namespace) for each in requests)


def _head(story: Story) -> str:
    clause = CLAUSES[story.clause]
    because = story.violation.because.replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{clause.slug}: {clause.sentence}.\n\n{because}\n"""'


# Direct calls -----------------------------------------------------------------------------------------------------


def _direct(story: Story, implementation: Implementation, calls: Calls, cls: type) -> Script:
    world, names = story.header.world, names_of(story)
    setup = f"SIZE = {world.block_size}  # tokens in a block"
    manager = f"manager = {cls.__name__}({world.blocks}, SIZE)  # {world.blocks} blocks"
    weak = [WEAK, _patch(cls)] if world.weak_hash else []
    message, lines = claim(story, names, calls)
    steps = calls.script(story, names)
    if isinstance(story.moments[-1].answer, op.Failed):
        steps[-1], lines = _caught(steps[-1]), []
    parts = (setup, SEQUENCE, SHADOW, *weak, f"MESSAGE = {message!r}", manager, *steps, "\n".join(lines))
    return Script((_head(story), _imports(cls, implementation), *parts))


def _caught(step: str) -> str:
    """A step whose exception is the fault."""
    comment, *lines = step.split("\n")
    body = "\n".join(f"    {line}" for line in lines)
    return f"{comment}\ntry:\n{body}\nexcept Exception as error:\n    raise AssertionError(MESSAGE) from error"


def _plain_world(story: Story) -> World:
    return World(story.header.world.blocks, story.header.world.block_size)


def _patch(cls: type) -> str:
    for name in HASH_NAMES:
        if inspect.getattr_static(cls, name, None) is not None:
            return f"{cls.__name__}.{name} = staticmethod(weak_hash)"
    return f"sys.modules[{cls.__name__}.__module__].{HASH_NAMES[0]} = weak_hash"


def _imports(cls: type, implementation: Implementation) -> str:
    path = implementation.target.rsplit(":", 1)[0] if ".py" in implementation.target else ""
    if not path:
        return f"import sys\n\nfrom {cls.__module__} import {cls.__qualname__}"
    place = place_of(Path(implementation.source or path).resolve())
    lines = ["import sys", "import types", "", f"sys.path.insert(0, {str(place.folder)!r})"]
    for package, folder in _bare_packages(place):  # their __init__ modules would import the whole engine
        lines += [
            f"sys.modules[{package!r}] = types.ModuleType({package!r})",
            f"sys.modules[{package!r}].__path__ = [{str(folder)!r}]",
        ]
    return "\n".join((*lines, f"from {place.module} import {cls.__qualname__}"))


def _bare_packages(place: Place) -> Iterator[tuple[str, Path]]:
    """The packages around a module, outermost first, and their folders."""
    parents = place.module.split(".")[:-1]
    for depth in range(1, len(parents) + 1):
        yield ".".join(parents[:depth]), place.folder.joinpath(*parents[:depth])


# Through the adapter ----------------------------------------------------------------------------------------------


def _target(implementation: Implementation) -> str:
    return implementation.target or "IMPL"


def _through_adapter(story: Story, implementation: Implementation) -> Script:
    world = story.header.world
    size = f"{world.blocks}, {world.block_size}, {world.weak_hash}"
    make = f"manager = load({_target(implementation)!r}).create(World({size}))"
    lines = [_asked(moment) for moment in story.moments]
    last = story.moments[-1]
    message = f"{story.clause}: {CLAUSES[story.clause].sentence}; {story.violation.because}"
    return Script((_head(story), ADAPTER, make, *lines, f"assert outcome != {_op(last.answer)}, {message!r}"))


def _asked(moment: Moment) -> str:
    return f"# {moment.number}. {spoken(moment.request)}: {answered(moment.answer)}\n{_call(moment.request)}"


def _call(request: Any) -> str:
    return f"outcome = ask(manager, {_op(request)})\nprint(outcome)"


def _op(value: Any) -> str:
    """A value of ``operations`` as Python text."""
    kind = type(value)
    if hasattr(kind, "__members__"):
        return f"op.{kind.__name__}.{value.name}"
    if hasattr(kind, "__dataclass_fields__"):
        return f"op.{kind.__name__}({', '.join(_op(getattr(value, name)) for name in kind.__slots__)})"
    return repr(value)
