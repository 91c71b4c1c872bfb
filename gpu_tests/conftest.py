"""Fixtures: the implementation named by ``--impl``, recorded runs of it, and what is installed."""

import importlib.util

import pytest

from kvspec.gpu_tests.schedulers import drive
from kvspec.impl.adapter import Implementation
from kvspec.impl.loader import load

if importlib.util.find_spec("torch"):
    import torch

    torch.set_num_threads(1)  # small operations on two shared cores are 10 to 30 times slower with two threads


@pytest.fixture(scope="session")
def under_test(request: pytest.FixtureRequest) -> Implementation:
    """The manager under test: ``--impl``, by default the bundled one."""
    target = request.config.getoption("--impl", default="bundled")
    stubs = request.config.getoption("--stub", default=[])
    return load(target, stubs)


@pytest.fixture(params=["fifo", "adversarial"])
def scheduler(request: pytest.FixtureRequest) -> str:
    """Each test that asks for it runs under both schedulers."""
    return request.param


@pytest.fixture
def runs(under_test: Implementation, scheduler: str):
    """``runs(count)``: recorded runs of seeds 0 .. count - 1, each of which exercised everything."""

    def record(count: int):
        recorded = [drive(under_test, scheduler, seed) for seed in range(count)]
        for run in recorded:
            assert run.stopped is None, run.stopped
            run.require_everything()
        return recorded

    return record


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    """Print the matrix lane by fault, if it was measured."""
    folder = getattr(config, "attention_report", None)
    if folder is not None:
        terminalreporter.section("attention: which lane sees which planted fault (fifo / adversarial)")
        terminalreporter.write_line((folder / "attention.txt").read_text())
        terminalreporter.write_line(f"data, table and drawing: {folder}")
