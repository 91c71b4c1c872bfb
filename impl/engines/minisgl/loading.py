"""What of mini-sglang is loaded for real, and what the adapter needs of it.

PyTorch is needed, on a CPU, and nothing else.  The native comparison of keys is stood in for by one of PyTorch.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvspec.impl.engines.finding import Place, find
from kvspec.impl.engines.light import LightImports
from kvspec.impl.engines.with_torch import need_torch
from kvspec.impl.errors import LoadError
from kvspec.impl.modules import with_place

MANAGER = "minisgl.scheduler.cache"
REAL = (
    MANAGER,
    "minisgl.core",
    "minisgl.kvcache",
    "minisgl.kvcache.base",
    "minisgl.kvcache.radix_cache",
    "minisgl.scheduler.prefill",
    "minisgl.scheduler.table",
    "minisgl.scheduler.utils",
    "minisgl.utils",
    "minisgl.utils.misc",
    "minisgl.utils.registry",
)
FOREIGN = ("flashinfer", "sgl_kernel", "transformers", "triton", "tvm_ffi", "zmq")


def _equal_tokens(one: Any, other: Any) -> int:
    """How many leading tokens of two keys are equal."""
    count = min(len(one), len(other))
    different = (one[:count] != other[:count]).nonzero()
    return int(different[0]) if len(different) else count


VALUES: dict[str, dict[str, Any]] = {"minisgl.kernel": {"fast_compare_key": _equal_tokens}}


@dataclass(frozen=True)
class Minisgl:
    """What is used of one mini-sglang, found once."""

    place: Place
    how: str
    core: Any  # the module with the global context
    manager: Any  # CacheManager
    rows: Any  # TableManager
    adder: Any  # PrefillAdder
    chunked: Any  # ChunkedReq
    pending: Any  # PendingReq


def light(where: str) -> Minisgl:
    """The cache manager of the mini-sglang in `where`, or of the installed one.  Raises LoadError."""
    need_torch("mini-sglang")
    place = find("minisgl", ("minisgl",), _inside(where), REAL)
    imports = LightImports(place.folder, "minisgl", REAL, FOREIGN, VALUES)
    if MANAGER not in imports.real:
        raise LoadError(f"{place.source} (version {place.version}) has no {MANAGER}.")
    try:
        prefill = imports.load("minisgl.scheduler.prefill")
        return Minisgl(
            place=place,
            how=f"light, {len(imports.real)} modules",
            core=imports.load("minisgl.core"),
            manager=imports.load(MANAGER).CacheManager,
            rows=imports.load("minisgl.scheduler.table").TableManager,
            adder=prefill.PrefillAdder,
            chunked=prefill.ChunkedReq,
            pending=imports.load("minisgl.scheduler.utils").PendingReq,
        )
    except Exception as error:
        raise LoadError(f"mini-sglang {place.version} cannot be loaded light: {with_place(error)}.") from error


def _inside(where: str) -> str:
    """A checkout has its package in the folder ``python``."""
    below = Path(where).expanduser() / "python"
    return str(below) if where and (below / "minisgl").is_dir() else where
