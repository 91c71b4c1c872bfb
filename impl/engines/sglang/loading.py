"""What of SGLang is loaded for real, and what the adapter needs of it.

PyTorch is needed, on a CPU, and nothing else of what SGLang imports.  The list holds for release 0.5.23.
"""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from kvspec.impl.engines.finding import Place, find
from kvspec.impl.engines.light import LightImports
from kvspec.impl.engines.with_torch import need_torch
from kvspec.impl.errors import LoadError
from kvspec.impl.modules import with_place

CACHE = "sglang.srt.mem_cache."
BATCH = "sglang.srt.managers.schedule_batch"
TREE = CACHE + "radix_cache"
REAL = (
    TREE,
    BATCH,
    CACHE + "allocation",
    CACHE + "allocator",
    CACHE + "allocator.base",
    CACHE + "allocator.page_interleave",
    CACHE + "allocator.paged",
    CACHE + "allocator.token",
    CACHE + "base_prefix_cache",
    CACHE + "cache_init_params",
    CACHE + "common",
    CACHE + "events",
    CACHE + "evict_policy",
    CACHE + "memory_pool",
    CACHE + "unified_cache.component_type",
    CACHE + "utils",
)
FOREIGN = ("PIL", "msgspec", "numpy", "orjson", "psutil", "requests", "sgl_kernel", "triton")


def _aligned(length: int, page: int) -> int:
    return -(-length // page) * page


def _new_pages(seq_lens: Any, page_size: int, prefix_lens: Any = None, decode: bool = False) -> int:
    """How many pages a batch begins."""
    if decode:
        return int((seq_lens % page_size == 1).sum() if page_size > 1 else len(seq_lens))
    before = (prefix_lens + page_size - 1) // page_size
    return int(((seq_lens + page_size - 1) // page_size - before).sum())


class _NoDiffusion:
    """The part of a request that diffusion models need."""

    dllm_config = None

    def init_diffusion_llm(self, _config: Any) -> None:
        """There is none."""

    def is_dllm(self) -> bool:
        """No."""
        return False


# Names of modules that are not loaded, whose values matter all the same.
VALUES: dict[str, dict[str, Any]] = {
    "sglang.srt.constants": {"GPU_MEMORY_TYPE_KV_CACHE": "kv_cache"},
    "sglang.srt.dllm.mixin.req": {"ReqDllmMixin": _NoDiffusion},
    "sglang.srt.platforms": {"current_platform": SimpleNamespace(capabilities=SimpleNamespace(supports_triton=False))},
    "sglang.srt.runtime_context": {
        "attention_backends": lambda: ("torch_native", "torch_native"),
        "get_serving": lambda: SimpleNamespace(strip_thinking_cache=False),
        "get_spec": lambda: SimpleNamespace(speculative_algorithm=None),
    },
    "sglang.srt.utils": {"get_num_new_pages": _new_pages},
    "sglang.srt.utils.common": {"ceil_align": _aligned, "is_pin_memory_available": lambda _device=None: False},
}


@dataclass(frozen=True)
class Sglang:
    """What is used of one SGLang, found once."""

    place: Place
    how: str
    request: Any  # Req
    rows: Any  # ReqToTokenPool
    parameters: Any  # CacheInitParams
    tree: Any  # RadixCache
    token_allocator: Any
    paged_allocator: Any
    extend: Any  # alloc_for_extend
    decode: Any  # alloc_for_decode
    checkpoint: Any  # checkpoint_kv_cache
    release: Any  # release_kv_cache


def _used(place: Place, imports: LightImports) -> Sglang:
    def of(module: str, name: str) -> Any:
        return getattr(imports.load(CACHE + module), name)

    return Sglang(
        place=place,
        how=f"light, {len(imports.real)} modules",
        request=imports.load(BATCH).Req,
        rows=of("memory_pool", "ReqToTokenPool"),
        parameters=of("cache_init_params", "CacheInitParams"),
        tree=of("radix_cache", "RadixCache"),
        token_allocator=of("allocator.token", "TokenToKVPoolAllocator"),
        paged_allocator=of("allocator.paged", "PagedTokenToKVPoolAllocator"),
        extend=of("allocation", "alloc_for_extend"),
        decode=of("allocation", "alloc_for_decode"),
        checkpoint=of("common", "checkpoint_kv_cache"),
        release=of("common", "release_kv_cache"),
    )


def light(where: str) -> Sglang:
    """The radix cache and the allocators of the SGLang in `where`, or of the installed one.  Raises LoadError."""
    need_torch("sglang")
    place = find("sglang", ("sglang",), where, REAL)
    imports = LightImports(place.folder, "sglang", REAL, FOREIGN, VALUES)
    if missing := [name for name in (TREE, BATCH, CACHE + "allocation") if name not in imports.real]:
        raise LoadError(
            f"{place.source} (version {place.version}) has no {missing[0]}: kvspec drives SGLang from 0.5.23 on."
        )
    try:
        return _used(place, imports)
    except Exception as error:
        raise LoadError(f"SGLang {place.version} cannot be loaded light: {with_place(error)}.") from error
