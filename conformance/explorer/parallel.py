"""Several worlds at once, one process each: a search shares nothing, so cores are used in full.

Processes are forked, so that an implementation that was loaded from a file need not be loaded or pickled again.
"""

import multiprocessing
import os
import queue
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kvspec.conformance.explorer.search import Exploration, Progress, explore
from kvspec.conformance.explorer.world import SmallWorld
from kvspec.impl.adapter import Implementation

OnProgress = Callable[[SmallWorld, Progress], None]


def explore_all(
    implementation: Implementation,
    worlds: Sequence[SmallWorld],
    muted: frozenset[str] | None = None,
    limit_states: int | None = None,
    limit_seconds: float | None = None,
    progress: OnProgress | None = None,
    jobs: int | None = None,
    invariants: bool = False,
) -> list[Exploration]:
    """The exploration of each world, in order.  An exception in one of them is raised here.

    Ctrl-C ends all of them; each then says that it was interrupted.
    """
    options = _Options(muted, limit_states, limit_seconds, invariants)
    jobs = min(jobs or os.cpu_count() or 1, len(worlds))
    if jobs < 2 or "fork" not in multiprocessing.get_all_start_methods():
        return [_explore(implementation, world, options, progress) for world in worlds]
    return _Pool(implementation, worlds, options, progress).run(jobs)


@dataclass(frozen=True, slots=True)
class _Options:
    muted: frozenset[str] | None
    limit_states: int | None
    limit_seconds: float | None
    invariants: bool


def _explore(
    implementation: Implementation, world: SmallWorld, options: _Options, progress: OnProgress | None
) -> Exploration:
    show = (lambda where: progress(world, where)) if progress else None
    limits = options.limit_states, options.limit_seconds
    return explore(implementation, world, options.muted, *limits, show, invariants=options.invariants)


class _Pool:
    """Starts the next process when one ends; listens to all of them."""

    def __init__(
        self,
        implementation: Implementation,
        worlds: Sequence[SmallWorld],
        options: _Options,
        progress: OnProgress | None,
    ) -> None:
        self.implementation, self.worlds, self.options, self.progress = implementation, worlds, options, progress
        self.context = multiprocessing.get_context("fork")
        self.news = self.context.Queue()
        self.running: dict[int, Any] = {}
        self.results: dict[int, Exploration | BaseException] = {}

    def run(self, jobs: int) -> list[Exploration]:
        waiting = list(range(len(self.worlds)))
        try:
            while waiting or self.running:
                while waiting and len(self.running) < jobs:
                    self._start(waiting.pop(0))
                try:
                    self._listen()
                except KeyboardInterrupt:
                    waiting.clear()  # the processes were interrupted too, and report what they have
        finally:
            self._end()
        done = [self.results[number] for number in sorted(self.results)]
        for result in done:
            if isinstance(result, BaseException):
                raise result
        return done  # type: ignore[return-value]

    def _start(self, number: int) -> None:
        process = self.context.Process(target=self._work, args=(number,), daemon=True)
        self.running[number] = process
        process.start()

    def _work(self, number: int) -> None:
        def show(world: SmallWorld, where: Progress) -> None:
            self.news.put((number, where))

        try:
            result: Any = _explore(
                self.implementation, self.worlds[number], self.options, show if self.progress else None
            )
        except BaseException as error:
            result = error
        self.news.put((number, result))

    def _listen(self) -> None:
        try:
            number, news = self.news.get(timeout=0.5)
        except queue.Empty:
            self._bury()
            return
        if isinstance(news, Progress):
            if self.progress:
                self.progress(self.worlds[number], news)
            return
        self.results[number] = news
        self.running.pop(number).join()

    def _bury(self) -> None:
        """A process that was killed leaves no result."""
        for number, process in list(self.running.items()):
            if not process.is_alive() and self.news.empty():
                code = process.exitcode
                self.results[number] = RuntimeError(
                    f"the process that explored {self.worlds[number].label} died ({code})"
                )
                del self.running[number]

    def _end(self) -> None:
        for process in self.running.values():
            process.terminate()
            process.join()
