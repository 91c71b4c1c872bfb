"""The Triton kernel without a GPU: the GPU script itself, interpreted on small cases, and compiled for sm_90.

Each runs in its own process: Triton decides at import whether it interprets.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from kvspec.gpu_tests import needs

pytestmark = needs.triton
SCRIPT = Path(__file__).with_name("run_on_gpu.py")


def run_script(*arguments: str, **environment: str) -> dict[str, dict]:
    """Results of the script by name of the check."""
    command = [sys.executable, "-W", "ignore", str(SCRIPT), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=400, check=False, env={**os.environ, **environment}
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (done.stderr[-2000:], [line for line in lines if line["ok"] is False])
    return {line.pop("check"): line for line in lines}


def test_interpreted_warm_equals_cold_to_the_bit():
    results = run_script("--device", "cpu", "--small", TRITON_INTERPRET="1")
    for name in ("triton kernel float32", "triton kernel float16", "triton mixed batch float32",
                 "decoder with triton attention, fifo", "decoder with triton attention, adversarial"):  # fmt: skip
        assert results[name]["ok"], results[name]
        assert results[name]["rows"] > 30
        assert results[name]["unequal"] == 0
    assert results["fault seen: hash not chained"]["detected"] == 1


def test_compiles_for_a_hopper_gpu_without_atomics():
    results = run_script("--compile")
    assert len(results) == 3
    for result in results.values():
        assert result["ok"]
        assert result["atomics"] == 0
