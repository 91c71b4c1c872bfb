"""Fixtures: the implementation named by ``--impl``, recorded runs of it, and what is installed."""

import importlib.util
from collections.abc import Callable

import pytest

from kvspec.gpu_tests import faults
from kvspec.gpu_tests.engine import Run
from kvspec.gpu_tests.schedulers import exercised
from kvspec.impl.adapter import Implementation
from kvspec.impl.errors import LoadError
from kvspec.impl.loader import load

if importlib.util.find_spec("torch"):
    import torch

    torch.set_num_threads(1)  # small operations on two shared cores are 10 to 30 times slower with two threads


@pytest.fixture(scope="session")
def under_test(request: pytest.FixtureRequest) -> Implementation:
    """The manager under test: ``--impl``, by default the bundled one."""
    target = request.config.getoption("--impl", default="bundled")
    stubs = request.config.getoption("--stub", default=[])
    try:
        return load(target, stubs)
    except LoadError as error:
        pytest.exit(str(error), returncode=2)


@pytest.fixture(params=["fifo", "adversarial"])
def scheduler(request: pytest.FixtureRequest) -> str:
    """Each test that asks for it runs under both schedulers."""
    return request.param


@pytest.fixture
def runs(under_test: Implementation, scheduler: str) -> Callable[[int], list[Run]]:
    """``runs(count)``: recorded runs of seeds 0 .. count - 1, each of which exercised everything."""

    return lambda count: [exercised(under_test, scheduler, seed) for seed in range(count)]


@pytest.fixture
def sound_run(scheduler: str) -> Run:
    """A run of the correct base of the planted faults: for tests of the lanes, not of the manager under test."""
    return exercised(faults.implementation("correct"), scheduler, seed=0)


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    """Print the matrix lane by fault, if it was measured."""
    folder = getattr(config, "attention_report", None)
    if folder is not None:
        terminalreporter.section("attention: which lane sees which planted fault (fifo / adversarial)")
        terminalreporter.write_line((folder / "attention.txt").read_text())
        terminalreporter.write_line(f"data, table and drawing: {folder}")
