"""The second solver, cvc5: its Python package if it is installed, else its program, else none."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from .solver import Answer

WORK_LIMIT = 5_000_000
_SECONDS = 60  # against a hang only; the work limit decides


def find() -> Callable[[str], Answer] | None:
    """A function that asks cvc5 about an SMT-LIB text; None if cvc5 is not here."""
    try:
        import cvc5  # noqa: F401
    except ImportError:
        return _program if shutil.which("cvc5") else None
    return _package


def _package(script: str) -> Answer:
    import cvc5

    begun = time.process_time()
    terms = cvc5.TermManager()
    solver, symbols = cvc5.Solver(terms), cvc5.SymbolManager(terms)
    solver.setOption("rlimit-per", str(WORK_LIMIT))
    parser = cvc5.InputParser(solver, symbols)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, script, "condition")
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said += str(command.invoke(solver, symbols))
    return Answer(said.strip(), 0, time.process_time() - begun)


def _program(script: str) -> Answer:
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "condition.smt2"
        file.write_text(script)
        command = ["cvc5", f"--rlimit-per={WORK_LIMIT}", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    return Answer((done.stdout.split() or [done.stderr.strip()])[0], 0, time.perf_counter() - begun)
