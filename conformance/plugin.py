"""The pytest plugin: options, the examined implementation as a fixture, the verdict as terminal summary, the exit code.

It is loaded in every pytest run of an environment that has kvspec installed, so it imports nothing heavy before a test of
the suite is collected.
"""

from __future__ import annotations

import importlib
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kvspec.conformance.contracts import ContractRun
    from kvspec.conformance.examination import Examination
    from kvspec.impl.adapter import Implementation

EXAMINATION: pytest.StashKey[Examination] = pytest.StashKey()
WRITTEN: pytest.StashKey[list[str]] = pytest.StashKey()  # what was written at the end, for the terminal summary
USES = {"examination", "implementation", "contract_run"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the suite; see ``kvspec check --help`` for the same ones."""
    group = parser.getgroup("kvspec", "conformance of a KV-cache block manager")
    group.addoption("--impl", default="bundled", help="path/to/file.py:Class, module:Class, or bundled (the default)")
    group.addoption("--stub", action="append", default=[], metavar="MODULE", help="stand-in for a missing heavy module")
    group.addoption("--effort", default="default", choices=("smoke", "default", "deep"), help="how much is tried")
    group.addoption(
        "--contracts-budget",
        type=float,
        default=None,
        metavar="SECONDS",
        help="processor time for CrossHair's search; by effort if not given, 0 for none",
    )
    group.addoption("--profiles", default="", help="comma-separated profiles; all if not given")
    group.addoption("--declare", default="", help="hold it to these profiles, too; comma-separated")
    group.addoption("--kvspec-seed", type=int, default=0, help="seed of every random choice")
    group.addoption("--known", default=None, metavar="FILE", help="known failures (TOML); the list can only shrink")
    group.addoption("--write-known", default=None, metavar="FILE", help="write the failures of this run as known ones")
    group.addoption(
        "--kvspec-report", default=None, metavar="FOLDER", help="write report.json, .md, .html and badge.json"
    )


FOLDERS = {Path(__file__).resolve().parents[1] / name for name in ("conformance", "gpu_tests")}


class _TestModule(pytest.Module):
    """A test module of kvspec: imported under its one name, in a wheel, an editable install and a checkout alike."""

    def _getobj(self) -> Any:
        return importlib.import_module(f"kvspec.{self.path.parent.name}.{self.path.stem}")


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Not a ``Package``: pytest would import it as a top-level ``conformance`` and put its parent on ``sys.path``."""
    return pytest.Dir.from_parent(parent, path=path) if path.resolve() in FOLDERS else None


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """See ``_TestModule``."""
    if module_path.resolve().parent not in FOLDERS:
        return None
    return _TestModule.from_parent(parent, path=module_path)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Load the implementation once it is certain that a test needs it; a target that does not load ends the run."""
    if any(USES & set(getattr(item, "fixturenames", ())) for item in items):
        config.stash[EXAMINATION] = _examine(config)
        if any("contract_run" in getattr(item, "fixturenames", ()) for item in items):
            config.stash[EXAMINATION].start_contracts()
        items[:] = [item for item in items if not _of_an_extension_not_offered(item, config)]


def _of_an_extension_not_offered(item: pytest.Item, config: pytest.Config) -> bool:
    """What only some engines can do is no item at all where it is neither declared nor asked for."""
    from kvspec.spec.clauses import EXTENSIONS

    profile = item.callspec.params.get("profile") if hasattr(item, "callspec") else None
    examination = config.stash[EXAMINATION]
    wanted = {*examination.implementation.declaration.profiles, *examination.options.profiles}
    return profile in EXTENSIONS and profile not in wanted


def _examine(config: pytest.Config) -> Examination:
    from kvspec.conformance.examination import Examination, Options, cannot_create
    from kvspec.conformance.known_failures import KnownFailures, KnownFailuresError
    from kvspec.conformance.profile_names import split_profiles
    from kvspec.impl.errors import LoadError
    from kvspec.impl.loader import load

    option = config.getoption
    try:
        profiles, more = split_profiles(option("--profiles")), split_profiles(option("--declare"))
    except ValueError as error:
        pytest.exit(str(error), returncode=2)
    try:
        implementation = load(option("--impl"), stubs=option("--stub")).declaring(more)
        known = KnownFailures.load(option("--known")) if option("--known") else None
    except (LoadError, KnownFailuresError) as error:
        pytest.exit(str(error), returncode=2)
    if reason := cannot_create(implementation):
        pytest.exit(reason, returncode=2)
    command = shlex.join(["pytest", *config.invocation_params.args])
    options = Options(
        option("--effort"), option("--kvspec-seed"), profiles, command, contracts=option("--contracts-budget")
    )
    return Examination(implementation, options, _progress(config), known)


def _progress(config: pytest.Config) -> Any:
    """A progress line on a terminal, outside of captured output; nothing elsewhere."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    capture = config.pluginmanager.getplugin("capturemanager")
    if reporter is None or capture is None or not reporter.isatty:
        return None

    def show(what: str, done: int, total: int) -> None:
        if done == total or done % 50 == 0:
            with capture.global_and_fixture_disabled():
                line = "" if done == total else f"kvspec: {what} {100 * done // max(total, 1)} %"
                sys.stderr.write(f"\r\033[K{line}{chr(13) if done == total else ''}")
                sys.stderr.flush()

    return show


@pytest.fixture(scope="session")
def examination(pytestconfig: pytest.Config) -> Examination:
    """The run over the implementation given by ``--impl``."""
    return pytestconfig.stash[EXAMINATION]


@pytest.fixture(scope="session")
def implementation(pytestconfig: pytest.Config) -> Implementation:
    """The implementation given by ``--impl``."""
    return pytestconfig.stash[EXAMINATION].implementation


@pytest.fixture(scope="session")
def contract_run(examination: Examination) -> ContractRun:
    """What CrossHair found: it was started when the tests were collected."""
    if examination.contracts is None:
        pytest.skip("no budget at this effort; --contracts-budget SECONDS gives one")
    return examination.contracts


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The verdict by profile."""
    examination = config.stash.get(EXAMINATION, None)
    if examination is None or not examination.decided_something:
        return
    from kvspec.conformance.summary import summary_text

    terminalreporter.section("kvspec")
    width = terminalreporter._tw.fullwidth
    terminalreporter.write(summary_text(examination.report(), width))
    for line in config.stash.get(WRITTEN, []):
        terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Iterator[None]:
    """0 conforms, 1 violation, 2 usage or adapter error, 3 the run proves nothing."""
    examination = session.config.stash.get(EXAMINATION, None)
    if examination is not None and examination.decided_something:
        report = examination.report()
        folder, known = session.config.getoption("--kvspec-report"), session.config.getoption("--write-known")
        if folder or known:
            from kvspec.conformance.outputs import write_outputs

            try:
                session.config.stash[WRITTEN] = write_outputs(examination, report, folder, known)
            except OSError as error:
                session.config.stash[WRITTEN] = [f"not written: {error.filename}: {error.strerror}"]
        if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            session.exitstatus = _exit_status(session, int(report.exit_code()))
    return (yield)


def _exit_status(session: pytest.Session, verdict: int) -> int:
    """Tests of other suites in the same run may fail too; a violation or a failure is never hidden by a 3."""
    from kvspec.conformance.verdict import ExitCode

    if verdict == ExitCode.CONFORMS or (verdict == ExitCode.PROVES_NOTHING and _others_failed(session)):
        return int(session.exitstatus)
    return verdict


def _others_failed(session: pytest.Session) -> bool:
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    failed = reporter.stats.get("failed", []) if reporter else []
    return any("proves_something" not in report.nodeid for report in failed)
