"""What of lmdeploy's PyTorch engine is loaded for real: block manager, trie, and its class of sequences; numpy is real, too."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from types import ModuleType, SimpleNamespace
from typing import Any

from kvspec.impl.engines.finding import Place, find
from kvspec.impl.engines.light import LightImports
from kvspec.impl.errors import LoadError
from kvspec.impl.modules import with_place

DISTRIBUTIONS = ("lmdeploy",)
_TOP = "lmdeploy.pytorch"
_TRIE = f"{_TOP}.paging.block_trie.trie"
_MANAGER = f"{_TOP}.paging.block_manager.default_block_manager"
_ALLOCATOR = f"{_TOP}.paging.block_manager.base_block_manager"
_SEQUENCES = f"{_TOP}.strategies.ar.sequence"
_MESSAGES = f"{_TOP}.messages"
REAL = (
    _TRIE,
    f"{_TOP}.paging.block_trie.checkpoint",
    f"{_TOP}.paging.block_trie.checkpoint_lifecycle",
    f"{_TOP}.paging.block_trie.kv_lifecycle",
    f"{_TOP}.paging.block_trie.node",
    _MANAGER,
    _ALLOCATOR,
    f"{_TOP}.paging.state_manager",
    f"{_TOP}.block",
    _MESSAGES,
    f"{_TOP}.prefix_cache_state",
    f"{_TOP}.strategies.base.sequence",
    _SEQUENCES,
)
FOREIGN = ("torch", "transformers", "pydantic", "ray", "zmq")


@dataclass(frozen=True)
class Lmdeploy:
    """The loaded classes of one lmdeploy."""

    place: Place
    loaded: int
    trie: Any
    manager: Any
    sequence: Any
    messages: ModuleType


def light(where: str) -> Lmdeploy:
    """The block manager of the lmdeploy in `where`, or of the installed one.  Raises LoadError."""
    place = find("lmdeploy", DISTRIBUTIONS, where, REAL)
    imports = LightImports(place.folder, "lmdeploy", REAL, FOREIGN, {})
    if _TRIE not in imports.real:
        raise LoadError(
            f"{place.source} (version {place.version}) has no {_TRIE}: kvspec drives lmdeploy from 0.16 on."
        )
    try:
        trie, manager, sequences, messages = map(imports.load, (_TRIE, _MANAGER, _SEQUENCES, _MESSAGES))
        _tick(imports.load)
    except Exception as error:
        raise LoadError(f"lmdeploy {place.version} cannot be loaded light: {with_place(error)}.") from error
    classes = (trie.BlockTrie, manager.DefaultBlockManager, sequences.SchedulerSequenceDefault)
    return Lmdeploy(place, len(imports.real), *classes, messages)


def _tick(load: Callable[[str], ModuleType]) -> None:
    """Give the allocator a clock that counts its calls: which leaf is the oldest then does not depend on the machine."""
    ticks = count(1)
    load(_ALLOCATOR).time = SimpleNamespace(perf_counter=lambda: next(ticks))  # type: ignore[attr-defined]
