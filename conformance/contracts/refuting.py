"""Looking for a counterexample with CrossHair, in a process of its own.

The process is forked, so that an implementation that was loaded from a file need not be loaded again; it has a limit of
processor time, because CrossHair cannot stop a manager that does not come back; and what it found is run again here,
without CrossHair, before it is reported.
"""

import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from kvspec.conformance.contracts.injection import CannotBeTried, injected
from kvspec.conformance.contracts.planted import PLANTED
from kvspec.conformance.contracts.results import Budget, ContractResult, ContractRun, Refutation
from kvspec.conformance.contracts.shapes import Shape, shapes_for
from kvspec.conformance.lockstep import CannotCreate
from kvspec.conformance.program import run
from kvspec.impl.adapter import Implementation
from kvspec.impl.errors import ImplementationError
from kvspec.impl.known_bad import KNOWN_BAD

if TYPE_CHECKING:
    from kvspec.conformance.contracts.symbolic import Search

PLANTED_BUDGET = Budget(paths=60, seconds=60.0)  # far more than they need: the slowest is refuted after 44 paths in all

_ROUND = 10  # paths in each shape before the next one has its turn: which shape shows a fault is not known before
_ROUND_SECONDS = 15.0  # of processor time; a round takes one tenth of that, unless the manager does not come back
_SILENCE = 300.0  # seconds without a word, which comes after each round; for a manager that waits and uses no processor

Job = tuple[Implementation, Budget]


def refute(implementation: Implementation, budget: Budget, planted: Sequence[str] = PLANTED) -> ContractRun:
    """Look for a program that breaks a clause of `implementation`, and of each known-bad manager in `planted`."""
    return Refuting(implementation, budget, planted).result()


class Refuting:
    """A search that was started and goes on by itself; ``result`` waits for its end.

    Nothing is started, and no known-bad manager planted, where `untried` says why the implementation cannot be tried.
    """

    def __init__(self, implementation: Implementation, budget: Budget, planted: Sequence[str] = PLANTED) -> None:
        self.untried = why_untried(implementation)
        self._planted = () if self.untried else planted
        known_bad: list[Job] = [(KNOWN_BAD[slug].implementation(), PLANTED_BUDGET) for slug in self._planted]
        self._jobs = [*known_bad, (implementation, budget)]
        self._process = None if self.untried else _Process(self._jobs)

    def result(self) -> ContractRun:
        """What it showed: each program has been run again in this process."""
        found = self._process.results() if self._process else [_untried(job, self.untried) for job in self._jobs]
        *others, own = (_confirm(job[0], result) for job, result in zip(self._jobs, found, strict=True))
        return ContractRun(own, dict(zip(self._planted, others, strict=True)))


def why_untried(implementation: Implementation) -> str:
    """Why CrossHair cannot go through this manager, as far as that is known before; empty if it can."""
    if "fork" not in multiprocessing.get_all_start_methods():
        return "this system cannot fork a process"
    try:
        _prepared(implementation)
    except (CannotBeTried, ImplementationError) as reason:
        return str(reason)
    return ""


def _prepared(implementation: Implementation) -> tuple[list[Shape], Implementation]:
    """The shapes to go through, and the implementation with a pure hash."""
    shapes = shapes_for(implementation.declaration)
    return shapes, injected(implementation, max(shape.block_size(implementation.declaration) for shape in shapes))


def _untried(job: Job, why: str) -> ContractResult:
    return ContractResult(job[1], untried=why)


def _confirm(implementation: Implementation, result: ContractResult) -> ContractResult:
    """The result, if its program breaks the same clause in this process, too."""
    if result.refutation is None:
        return result
    found = result.refutation.counterexample
    _, violation = run(implementation, found.program, found.muted)
    if violation and violation.clause == found.violation.clause:
        return result
    seen = f"broke {found.violation.clause} under CrossHair, and not when it ran again"
    return ContractResult(result.budget, untried=f"{result.refutation.call} {seen}", seconds=result.seconds)


# The process --------------------------------------------------------------------------------------------------------


class _Process:
    def __init__(self, jobs: list[Job]) -> None:
        context = multiprocessing.get_context("fork")
        self._jobs = jobs
        self._receiver, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(jobs, sender), daemon=True)
        self._process.start()
        sender.close()

    def results(self) -> list[ContractResult]:
        """One for each job; where the process was ended, by its limit or by the manager, the rest are not tried."""
        found: list[ContractResult] = []
        why = ""
        try:
            while len(found) < len(self._jobs) and not why:
                if not self._receiver.poll(_SILENCE):
                    why = f"the process was silent for {_SILENCE:g} s: a call of the manager waits for something"
                elif (news := self._receiver.recv()) is not None:
                    found.append(news)
        except EOFError:
            self._process.join()
            why = f"the process ended ({_ended_by(self._process.exitcode)})"
        finally:
            self._process.terminate()
            self._process.join()
        return found + [_untried(job, why) for job in self._jobs[len(found) :]]


def _ended_by(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name
    return f"{name}: a call of the manager does not return" if name == "SIGXCPU" else name


def _work(jobs: list[Job], sender: Connection) -> None:
    for implementation, budget in jobs:
        sender.send(_searched(implementation, budget, lambda: sender.send(None)))
    sender.close()
    os._exit(0)  # nothing that the parent process registered for its own end


def _limit_processor_time(seconds: float) -> None:
    """From now on; the system ends the process then."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = math.ceil(time.process_time() + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _searched(implementation: Implementation, budget: Budget, alive: Callable[[], None]) -> ContractResult:
    """Everything that can go wrong becomes the reason why it could not be tried.  `alive` is called after each round."""
    started = time.process_time()
    try:
        searches = _searches(implementation)
        _go_through(searches, budget, started, alive)
    except (CannotBeTried, CannotCreate, ImplementationError) as reason:
        return ContractResult(budget, untried=str(reason))
    except BaseException as error:  # of CrossHair; that it is not deterministic, above all
        return ContractResult(budget, untried=f"CrossHair gave up: {type(error).__name__}: {error}")
    return _result(searches, budget, time.process_time() - started)


def _searches(implementation: Implementation) -> "list[Search]":
    from kvspec.conformance.contracts.symbolic import Search

    shapes, pure = _prepared(implementation)
    return [Search(implementation, pure, shape) for shape in shapes]


def _go_through(searches: "list[Search]", budget: Budget, started: float, alive: Callable[[], None]) -> None:
    """Each shape in turn, until one refutes, all are exhausted, or the budget is used up."""
    open_ones = searches
    while open_ones := [search for search in open_ones if not search.exhausted and search.paths < budget.paths]:
        for search in open_ones:
            if time.process_time() - started > budget.seconds:
                return
            _limit_processor_time(_ROUND_SECONDS)
            search.advance(min(_ROUND, budget.paths - search.paths))
            alive()
            if search.found or search.strays:
                return


def _result(searches: "list[Search]", budget: Budget, seconds: float) -> ContractResult:
    found = next((search.found for search in searches if search.found), None)
    stray = next((search.strays[0] for search in searches if search.strays), "")
    counts: dict[str, Any] = {
        "paths": sum(search.paths for search in searches),
        "shapes": len(searches),
        "exhausted": sum(search.exhausted for search in searches),
        "seconds": seconds,
    }
    if found:
        return ContractResult(budget, Refutation(found.counterexample, found.call), **counts)
    untried = f"CrossHair does not follow this manager: {stray}" if stray else ""
    return ContractResult(budget, untried=untried, **counts)
