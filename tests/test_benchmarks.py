"""The benchmarks run: each once, unmeasured."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_benchmark_runs() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "tests/benchmarks/bench_suite.py", "--benchmark-disable"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert passed is not None, ran.stdout
    assert int(passed[1]) >= 25
