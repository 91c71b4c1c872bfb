"""The checks of the GPU script: each returns what it measured, and `ok`: True, False or None (recorded only)."""

import itertools
import platform
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from . import fingerprint, paged_checks
from .backends import NumPyBackend, TorchBackend
from .by_hand import change_one_block
from .decoder import Decoder, Shape
from .faults import EQUIVALENT, FAULTS, implementation
from .gpu_kernels import PAGED, OneBackend
from .lanes import AttentionLane, bits
from .ordinary import OrdinaryTorch
from .paged_kernel import PagedTriton
from .portable import Portable
from .provenance import ProvenanceLane
from .schedulers import SCHEDULERS, drive
from .workload import build

Check = tuple[str, Callable[[], dict[str, Any]]]


@dataclass(frozen=True)
class Size:
    """How much is done: `full` on a GPU; `small` shows that the script itself runs, interpreted on a CPU."""

    fingerprints: int
    runs: int
    requests: int
    cases: tuple[tuple[int, int], ...]
    heads: tuple[int, int]
    head_size: int
    dtypes: tuple[str, ...]
    lengths: tuple[int, ...]
    faults: tuple[str, ...]
    paged: tuple[str, ...]


SEEN = tuple(fault for fault in FAULTS if fault not in EQUIVALENT)
FULL = Size(
    100,
    3,
    14,
    paged_checks.LARGE,
    (16, 8),
    128,
    ("bfloat16", "float16", "float32"),
    (512, 2048, 8192),
    SEEN,
    tuple(PAGED),
)
SMALL = Size(3, 1, 3, paged_checks.SMALL, (4, 2), 16, ("float32", "float16"), (), ("hash not chained",), ())
BACKENDS = ("MATH", "EFFICIENT_ATTENTION", "FLASH_ATTENTION", "CUDNN_ATTENTION")


def checks(device: str, size: Size) -> Iterator[Check]:
    """All checks, the cheap and exact ones first."""
    kernel = (device, size.heads, size.head_size)
    yield "environment", partial(environment, device)
    yield "fingerprint", partial(fingerprints, device, size.fingerprints)
    yield "portable decoder", partial(portable_decoder, device, size.runs)
    for dtype in size.dtypes:
        yield f"triton kernel {dtype}", partial(paged_checks.kernel_is_bitwise, dtype, *kernel, size.cases)
        yield f"triton mixed batch {dtype}", partial(paged_checks.mixed_batch_is_bitwise, dtype, *kernel)
    for scheduler in SCHEDULERS:
        through = partial(paged_checks.decoder_is_bitwise, device, range(size.runs), size.requests, scheduler)
        yield f"decoder with triton attention, {scheduler}", through
    for dtype in size.dtypes:
        yield f"provenance {dtype}", partial(provenance, device, dtype, size.runs)
    yield "bundled manager", partial(bundled, device, size.runs, size.requests)
    for fault in size.faults:
        yield f"fault seen: {fault}", partial(fault_seen, fault, device, size.runs, size.requests)
    for backend, dtype in itertools.product(BACKENDS, size.dtypes):
        yield f"sdpa {backend.lower()} {dtype}", partial(recorded_lane, backend, dtype, device)
    for name in size.paged:
        yield f"paged: {name}", partial(recorded_kernel, name, device, size)
    for length in size.lengths:
        yield f"time at {length} tokens", partial(timing, length, device, size)


def environment(device: str) -> dict[str, Any]:
    """Versions and device; TF32 is switched off, so that fp32 means fp32."""
    import triton

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_num_threads(1)
    found = {"python": platform.python_version(), "torch": torch.__version__, "triton": triton.__version__}
    found |= {"numpy": np.__version__, "cuda": torch.version.cuda}
    if device == "cuda":
        found |= {"device": torch.cuda.get_device_name(), "capability": list(torch.cuda.get_device_capability())}
        query = ["nvidia-smi", "--query-gpu=driver_version,clocks.sm,memory.total", "--format=csv,noheader"]
        found["nvidia_smi"] = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
    return {"ok": device == "cpu" or torch.cuda.is_available(), **found}


def fingerprints(device: str, seeds: int) -> dict[str, Any]:
    """Real block tables, integers in the memory of the device; one table changed by hand must be seen."""
    rows = unequal = hits = seen = 0
    for scheduler, seed in itertools.product(SCHEDULERS, range(seeds)):
        run = drive(implementation("correct"), scheduler, seed)
        run.require_everything()
        findings = fingerprint.replay(run, device)
        rows, unequal, hits = rows + findings.rows, unequal + findings.unequal, hits + run.counts.hits
        if seed < 3:
            seen += not fingerprint.replay(change_one_block(run).run, device).clean
    return {"ok": not unequal and seen == 2 * min(3, seeds), "runs": 2 * seeds, "rows": rows, "hits": hits}


def portable_decoder(device: str, seeds: int) -> dict[str, Any]:
    """Cold against warm on the device, to the bit; whether the device agrees with NumPy is recorded, not required."""
    there, here = Decoder(Portable(TorchBackend(device))), Decoder(Portable(NumPyBackend()))
    rows = unequal = foreign = 0
    for scheduler, seed in itertools.product(SCHEDULERS, range(seeds)):
        run = drive(implementation("correct"), scheduler, seed)
        findings = AttentionLane(there).replay(run)
        rows, unequal = rows + findings.rows, unequal + findings.unequal
        for request in run.workload.requests[:3]:
            foreign += int((bits(there.cold(request.tokens)) != bits(here.cold(request.tokens))).any(-1).sum())
    return {"ok": not unequal, "rows": rows, "unequal": unequal, "rows_unlike_numpy": foreign}


def provenance(device: str, dtype: str, seeds: int) -> dict[str, Any]:
    """Ordinary kernels of the device: each byte that is read was computed for that prefix."""
    lane, rows, unequal = ProvenanceLane(Decoder(OrdinaryTorch(dtype, device))), 0, 0
    for scheduler, seed in itertools.product(SCHEDULERS, range(seeds)):
        findings = lane.replay(drive(implementation("correct"), scheduler, seed))
        rows, unequal = rows + findings.rows, unequal + findings.unequal
    return {"ok": not unequal, "rows": rows, "unequal": unequal}


def fault_seen(fault: str, device: str, seeds: int, requests: int) -> dict[str, Any]:
    """By the fingerprint and by the decoder with the Triton kernel, in the same runs."""
    by_kernel = paged_checks.decoder_sees(fault, device, range(seeds), requests)
    runs = [paged_checks.recorded_run(fault, seed, requests, "adversarial") for seed in range(seeds)]
    by_fingerprint = sum(not fingerprint.replay(run, device).clean for run in runs)
    same = by_kernel["detected"] == by_fingerprint
    return {**by_kernel, "ok": same and (by_kernel["ok"] or requests < 14), "by_fingerprint": by_fingerprint}


def bundled(device: str, seeds: int, requests: int) -> dict[str, Any]:
    """The manager that comes with kvspec, through the decoder with the Triton kernel."""
    from kvspec.impl.loader import load

    manager, lane = load("bundled"), AttentionLane(Decoder(PagedTriton(device)))
    rows = unequal = hits = 0
    for seed in range(seeds):
        workload = build(seed, 12, manager.declaration, count=requests)
        run = drive(manager, "fifo", seed, workload=workload)
        findings = lane.replay(run)
        rows, unequal, hits = rows + findings.rows, unequal + findings.unequal, hits + run.counts.hits
    return {"ok": not unequal and hits > 0, "rows": rows, "unequal": unequal, "hits": hits}


def recorded_lane(backend: str, dtype: str, device: str) -> dict[str, Any]:
    """How far one backend is from itself, hit against cold; a backend that does not do this is named, not passed."""
    lane = AttentionLane(Decoder(OneBackend(backend, dtype, device), Shape(bias=False)), tolerance=float("inf"))
    run = drive(implementation("correct"), "fifo", 0)
    findings = lane.replay(run)
    return {"ok": None, "rows": findings.rows, "unequal": findings.unequal, "largest": findings.largest}


def recorded_kernel(name: str, device: str, size: Size) -> dict[str, Any]:
    """A paged kernel of somebody else, suffix and decode against one pass: are the bits equal?"""
    tokens, block_size, dtype = 700, 256, "bfloat16" if device == "cuda" else "float32"
    q, k, v = paged_checks.make_inputs(tokens, dtype, device, size.heads, size.head_size, seed=1)
    outputs = {}
    for start in (0, 512, tokens - 1):
        pool, tables = paged_checks.paged([(k, v)], block_size, seed=start, fill=0.0)
        table = torch.tensor(tables, dtype=torch.int32, device=device)
        outputs[start] = PAGED[name](q[start:], pool, table, tokens, block_size)
    differences = {start: float((outputs[start] - outputs[0][start:]).abs().max()) for start in (512, tokens - 1)}
    return {"ok": None, "bitwise": not any(differences.values()), "differences": differences}


def timing(length: int, device: str, size: Size) -> dict[str, Any]:
    """Milliseconds of a prefill and of one decode row: the fixed-tile kernel, and SDPA on contiguous K/V."""
    dtype = size.dtypes[0]
    q, k, v = paged_checks.make_inputs(length, dtype, device, size.heads, size.head_size, seed=1)
    pool, tables = paged_checks.paged([(k, v)], 16, seed=1)
    group = size.heads[0] // size.heads[1]
    keys, values = (part.repeat_interleave(group, 1).transpose(0, 1)[None] for part in (k, v))
    rows = q.transpose(0, 1)[None]
    attend = torch.nn.functional.scaled_dot_product_attention
    measured = {
        "prefill": lambda: paged_checks.launch(q, pool, tables, [0], [0, length], 16),
        "decode": lambda: paged_checks.launch(q[-1:], pool, tables, [length - 1], [0, 1], 16),
        "sdpa_prefill": lambda: attend(rows, keys, values, is_causal=True),
        "sdpa_decode": lambda: attend(rows[:, :, -1:], keys, values),
    }
    return {"ok": None, "dtype": dtype, **{name: _milliseconds(call, device) for name, call in measured.items()}}


def _milliseconds(call: Callable[[], Any], device: str, repeats: int = 5) -> float:
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    call()
    wait()
    start = time.perf_counter()
    for _ in range(repeats if device == "cuda" else 1):
        call()
    wait()
    return round((time.perf_counter() - start) / (repeats if device == "cuda" else 1) * 1000, 3)


def compiled() -> Iterator[Check]:
    """What needs no GPU: the kernel down to the binary for an H100 or H200, in each number format."""
    for dtype in FULL.dtypes:
        yield f"compiled for sm_90, {dtype}", partial(paged_checks.compiles_for, 90, dtype)
