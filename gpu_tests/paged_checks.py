"""Checks of the Triton kernel, each a function that returns what it measured; used interpreted, compiled, on a GPU."""

import hashlib
import itertools
import math
import re
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from . import paged_kernel
from .decoder import Decoder
from .engine import Run
from .faults import implementation
from .lanes import AttentionLane
from .paged_kernel import ROWS, TILE, attend
from .schedulers import SCHEDULERS, drive
from .workload import build

# (tokens, block size of the warm pool): around tiles of 16 rows and 32 positions, and around blocks
SMALL = ((1, 4), (17, 16), (35, 8))
LARGE = tuple(itertools.product((1, 255, 256, 257, 1000, 4096), (16, 256)))


def kernel_is_bitwise(
    dtype: str, device: str, heads: tuple[int, int], size: int, cases: Sequence[tuple[int, int]]
) -> dict:
    """One pass over contiguous K/V against suffix, chunks and decode through shuffled tables in a poisoned pool.

    Also the error against fp64 of the kernel and of plain torch in the same format (FlashAttention's criterion: at most
    twice as far away, plus 1e-5).
    """
    rows = unequal = 0
    error = plain = 0.0
    for number, (tokens, block_size) in enumerate(cases):
        q, k, v = make_inputs(tokens, dtype, device, heads, size, seed=number)
        cold = _contiguous(q, k, v)
        for start, end, warm in _warm(q, k, v, block_size, seed=number):
            rows += end - start
            unequal += int((_bits(warm) != _bits(cold[start:end])).flatten(1).any(1).sum())
        exact = _reference(q.double(), k.double(), v.double())
        error = max(error, float((cold.double() - exact).abs().max()))
        plain = max(plain, float((_reference(q, k, v).double() - exact).abs().max()))
    accurate = error <= 2 * plain + 1e-5
    return {"ok": not unequal and accurate, "rows": rows, "unequal": unequal, "error": error, "plain_error": plain}


def mixed_batch_is_bitwise(dtype: str, device: str, heads: tuple[int, int], size: int) -> dict:
    """A decode row, a suffix and a whole prompt in one launch, against each of them alone."""
    lengths, starts, block_size = (40, 23, 17), (39, 7, 0), 8
    inputs = [make_inputs(length, dtype, device, heads, size, seed=50 + length) for length in lengths]
    pool, tables = paged([(k, v) for _, k, v in inputs], block_size, seed=9)
    query = torch.cat([q[start:] for (q, _, _), start in zip(inputs, starts, strict=True)])
    firsts = np.cumsum([0] + [length - start for length, start in zip(lengths, starts, strict=True)]).tolist()
    together = launch(query, pool, tables, list(starts), firsts, block_size)
    unequal = 0
    for number, (start, (q, k, v)) in enumerate(zip(starts, inputs, strict=True)):
        rows = together[firsts[number] : firsts[number + 1]]
        unequal += int((_bits(rows) != _bits(_contiguous(q, k, v)[start:])).flatten(1).any(1).sum())
    return {"ok": not unequal, "rows": firsts[-1], "unequal": unequal}


def decoder_is_bitwise(device: str, seeds: Sequence[int], requests: int, scheduler: str = "adversarial") -> dict:
    """The decoder with this kernel through real block tables, cold against warm."""
    lane, rows, unequal, hits = AttentionLane(Decoder(paged_kernel.PagedTriton(device))), 0, 0, 0
    for seed in seeds:
        run = recorded_run("correct", seed, requests, scheduler)
        findings = lane.replay(run)
        rows, unequal, hits = rows + findings.rows, unequal + findings.unequal, hits + run.counts.hits
    return {"ok": not unequal and hits > 0, "rows": rows, "unequal": unequal, "hits": hits}


def decoder_sees(fault: str, device: str, seeds: Sequence[int], requests: int) -> dict:
    """A planted fault through the same lane: it must be seen."""
    lane = AttentionLane(Decoder(paged_kernel.PagedTriton(device)))
    findings = [lane.replay(recorded_run(fault, seed, requests, "adversarial")) for seed in seeds]
    return {
        "ok": not all(one.clean for one in findings),
        "detected": sum(not one.clean for one in findings),
        "runs": len(findings),
        "largest": max(one.largest for one in findings),
        "poisoned": sum(one.poisoned for one in findings),
    }


def compiles_for(capability: int, dtype: str, size: int = 128, block_size: int = 16) -> dict:
    """Compile without a GPU, down to the binary: registers are not known then, shared memory and PTX are."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, compile

    number = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}[dtype]
    pointers = dict.fromkeys(("query", "keys", "values", "output"), f"*{number}")
    whole = dict.fromkeys(("tables", "starts", "firsts"), "*i32")
    constants = {"HEADS": 16, "KV_HEADS": 8, "BLOCK": block_size, "SIZE": size, "ROWS": ROWS, "TILE": TILE}
    signature = {**pointers, **whole, "slopes": "*fp32", "scale": "fp32", "table_width": "i32"}
    signature |= dict.fromkeys(constants, "constexpr")
    ordered = {name: signature[name] for name in paged_kernel.paged_attention.arg_names}
    source = ASTSource(fn=paged_kernel.paged_attention, signature=ordered, constexprs=constants)
    made = compile(source, target=GPUTarget("cuda", capability, 32))
    ptx = made.asm["ptx"]
    atomics = len(re.findall(r"^\s*(?:@\S+\s+)?(?:atom|red)\.", ptx, re.MULTILINE))
    return {
        "ok": f"sm_{capability}" in ptx and bool(made.asm["cubin"]) and not atomics,
        "shared_bytes": made.metadata.shared,
        "ptx_sha256": hashlib.sha256(ptx.encode()).hexdigest(),
        "matrix_instructions": len(re.findall(r"^\s*(?:wg)?mma\.", ptx, re.MULTILINE)),
        "atomics": atomics,
    }


def recorded_run(fault: str, seed: int, requests: int, scheduler: str) -> Run:
    """A run of a planted fault, or of the correct base, with so many requests."""
    planted = implementation(fault)
    blocks = 10 if requests < 10 else SCHEDULERS[scheduler][1]
    return drive(planted, scheduler, seed, workload=build(seed, blocks, planted.declaration, count=requests))


def make_inputs(
    tokens: int, dtype: str, device: str, heads: tuple[int, int], size: int, seed: int
) -> list[torch.Tensor]:
    """Queries [tokens, heads, size], keys and values [tokens, kv_heads, size]; the same numbers on every device."""
    rng = np.random.default_rng(seed)
    shapes = [(tokens, heads[0], size), (tokens, heads[1], size), (tokens, heads[1], size)]
    values = [torch.from_numpy(rng.standard_normal(shape, dtype=np.float32)) for shape in shapes]
    return [one.to(device=device, dtype=getattr(torch, dtype)) for one in values]


def _contiguous(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """All rows in one launch, K/V contiguous, the table the identity."""
    return launch(q, (k.contiguous(), v.contiguous()), [list(range(len(k)))], [0], [0, len(q)], 1)


def _warm(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, block_size: int, seed: int
) -> Iterator[tuple[int, int, torch.Tensor]]:
    """Rows start .. end - 1 through a shuffled table: two suffixes, some chunks, some single tokens."""
    tokens, rng = len(q), np.random.default_rng(seed)
    cuts = sorted({0, tokens, *rng.integers(0, tokens + 1, size=3).tolist()})
    spans = {*itertools.pairwise(cuts), (tokens - 1, tokens), (tokens // 2, tokens), (tokens // 2, tokens // 2 + 1)}
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        pool, tables = paged([(k[:end], v[:end])], block_size, seed + start)
        yield start, end, launch(q[start:end], pool, tables, [start], [0, end - start], block_size)


def paged(
    sequences: Sequence[tuple[torch.Tensor, torch.Tensor]], block_size: int, seed: int, fill: float = math.nan
) -> tuple[tuple[torch.Tensor, torch.Tensor], list[list[int]]]:
    """Scatter K/V of several sequences into one pool that is `fill` elsewhere; tables are drawn at random."""
    needed = [-(-len(k) // block_size) for k, _ in sequences]
    order = np.random.default_rng(seed).permutation(sum(needed) + 3).tolist()
    shape = (len(order) * block_size, *sequences[0][0].shape[1:])
    pool = tuple(torch.full(shape, fill, dtype=part.dtype, device=part.device) for part in sequences[0])
    tables = []
    for (k, v), blocks in zip(sequences, needed, strict=True):
        table, order = order[:blocks], order[blocks:]
        slots = torch.as_tensor([table[p // block_size] * block_size + p % block_size for p in range(len(k))])
        for part, new in zip(pool, (k, v), strict=True):
            part[slots.to(new.device)] = new
        tables.append(table)
    return pool, tables


def launch(
    query: torch.Tensor, pool: tuple, tables: list[list[int]], starts: list[int], firsts: list[int], block_size: int
) -> torch.Tensor:
    """The kernel, with everything but the tensors as lists."""
    width = max(map(len, tables))
    whole = [[*table, *[0] * (width - len(table))] for table in tables]
    numbers = (torch.tensor(part, dtype=torch.int32, device=query.device) for part in (whole, starts, firsts))
    slopes = torch.zeros(query.shape[1], dtype=torch.float32, device=query.device)
    return attend(query, *pool, *numbers, slopes, block_size)


def _reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Plain causal attention in the format of its inputs."""
    group = q.shape[1] // k.shape[1]
    k, v = (part.repeat_interleave(group, 1).transpose(0, 1) for part in (k, v))
    scores = q.transpose(0, 1) @ k.transpose(1, 2) / q.shape[2] ** 0.5
    future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    return (scores.masked_fill(future, float("-inf")).softmax(-1) @ v).transpose(0, 1)


def _bits(values: torch.Tensor) -> torch.Tensor:
    return values.contiguous().view({2: torch.int16, 4: torch.int32}[values.element_size()])
