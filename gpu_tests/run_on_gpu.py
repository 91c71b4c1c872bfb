"""All checks on a GPU in one call, below seven minutes: ``python gpu_tests/run_on_gpu.py --out results.jsonl``.

One JSON line a check: its name, `ok` (true, false, or null for what is only recorded), seconds, and what was measured.
What could not run says why, and is never counted as passed.  Needs torch with CUDA, triton and NumPy; kvspec itself
need not be installed.  Without a GPU: ``--device cpu --small`` with TRITON_INTERPRET=1 runs the same script on a few
small cases, and ``--compile`` compiles the kernel for sm_90.
"""

import argparse
import importlib.util
import json
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def find_kvspec() -> None:
    """Make ``kvspec`` a package over this checkout, where it isn't installed."""
    if importlib.util.find_spec("kvspec") is None:
        package = types.ModuleType("kvspec")
        package.__path__ = [str(Path(__file__).resolve().parent.parent)]
        sys.modules["kvspec"] = package


def chosen(options: argparse.Namespace) -> Any:
    """The checks that were asked for."""
    from kvspec.gpu_tests.gpu_checks import FULL, SMALL, checks, compiled

    return compiled() if options.compile else checks(options.device, SMALL if options.small else FULL)


def results(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Run the checks until the time limit; the rest is reported as not run."""
    started = time.monotonic()
    for name, check in chosen(options):
        begun = time.monotonic()
        if begun - started > options.limit:
            yield {"check": name, "ok": None, "not_run": "out of time"}
            continue
        try:
            measured = check()
        except (ImportError, NotImplementedError) as absent:
            measured = {"ok": None, "not_run": f"{type(absent).__name__}: {absent}"[:300]}
        except Exception as error:  # one broken check must not hide the others
            recorded_only = name.startswith(("sdpa", "paged", "time"))
            measured = {"ok": None if recorded_only else False, "error": f"{type(error).__name__}: {error}"[:300]}
        yield {"check": name, **measured, "seconds": round(time.monotonic() - begun, 2)}


def main() -> int:
    """Print and keep one line a check; exit code 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="a few small cases: shows that the script runs")
    parser.add_argument("--compile", action="store_true", help="only compile the kernel, for sm_90")
    parser.add_argument("--limit", type=float, default=360, help="start no check after so many seconds")
    parser.add_argument("--out", type=Path, help="also write the lines to this file")
    options = parser.parse_args()
    find_kvspec()
    failed = 0
    with (options.out or Path("/dev/null")).open("w") as kept:
        for result in results(options):
            line = json.dumps(result)
            print(line, flush=True)
            print(line, file=kept, flush=True)
            failed += result["ok"] is False
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
