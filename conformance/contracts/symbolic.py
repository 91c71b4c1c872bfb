"""CrossHair goes through one shape: the manager runs on symbolic integers, path by path.

A path is a set of branches that the manager took, with one program that takes them.  When it ends, that program is run
again on the untouched manager in the ordinary lockstep, and only what that shows counts: CrossHair chooses programs, the
judge rules.  A path whose answers differ from those of the ordinary run is a *stray*: CrossHair does not follow the
manager there.
"""

import inspect
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from crosshair.core import deep_realize, explore_paths
from crosshair.core_and_libs import NoTracing
from crosshair.libimpl.builtinslib import SymbolicInt
from crosshair.options import DEFAULT_OPTIONS, AnalysisOptions
from crosshair.statespace import RootNode, context_statespace

from kvspec.conformance.contracts.shapes import Shape
from kvspec.conformance.lockstep import perform
from kvspec.conformance.program import Counterexample, Program, run
from kvspec.impl.adapter import Implementation
from kvspec.spec import operations as op
from kvspec.spec.clauses import CLAUSES
from kvspec.spec.state import World

_PATH_SECONDS = (
    60.0  # a path takes hundredths of one; a limit that is reached would make the result depend on the machine
)


@dataclass(frozen=True, slots=True)
class Found:
    """A program which breaks a clause, and the integers that made it, as the call of its shape."""

    counterexample: Counterexample
    call: str


class Search:
    """The search through one shape; ``advance`` goes on where it stopped.

    `paths`: how many were gone through.  `exhausted`: there are no more.  `found`: the refutation.  `strays`: what
    CrossHair and the ordinary run disagreed on.
    """

    def __init__(self, implementation: Implementation, pure: Implementation, shape: Shape) -> None:
        self.shape, self.size = shape, shape.block_size(implementation.declaration)
        self.paths, self.exhausted = 0, False
        self.found: Found | None = None
        self.strays: list[str] = []
        self._implementation, self._pure = implementation, pure
        self._declared = implementation.declaration.profiles
        self._muted = undeclared(implementation)
        self._root = RootNode()

    def advance(self, paths: int) -> None:
        """Go through so many paths more, or to the end, or to a refutation."""
        options = _options(paths)
        explore_paths(self._follow, inspect.Signature(), options, self._root, self._ended)
        assert options.stats is not None
        self.paths += options.stats["num_paths"]
        self.exhausted = options.stats["exhaustion"] > 0

    def _follow(self, _: inspect.BoundArguments) -> tuple[World, list[Any], list[Any], dict[str, int]]:
        """One path, on symbolic integers; at its end they get values.  All that happens here is traced."""
        with NoTracing():
            integers = {name: _integer(name, *bounds) for name, bounds in self.shape.bounds.items()}
        world, script = self.shape(self.size, integers)
        with NoTracing():
            adapter = self._pure.create(world)
        asked, answers = [next(script)], []
        while True:
            answers.append(perform(adapter, asked[-1]))
            if isinstance(answers[-1], op.Failed | op.Nonsense):
                break
            try:
                asked.append(script.send(answers[-1]))
            except StopIteration:
                break
        return deep_realize((world, asked, answers, integers))

    def _ended(self, space: Any, before: Any, after: Any, result: Any, error: BaseException | None, stack: Any) -> bool:
        """Rule on a path.  True ends the search."""
        with NoTracing():
            if error is not None:
                self.strays.append(f"{self.shape.name}: {type(error).__name__}: {error}")
                return False
            world, asked, answers, integers = result
            return self._rule(Program(world, tuple(asked)), answers, integers)

    def _rule(self, program: Program, answers: list[Any], integers: dict[str, int]) -> bool:
        lockstep, violation = run(self._implementation, program, self._muted)
        call = f"{self.shape.name}({', '.join(f'{name}={value}' for name, value in integers.items())})"
        if violation and self.counts(violation.clause):
            shown = Program(program.world, tuple(lockstep.operations))
            self.found = Found(Counterexample(shown, violation, self._context, self._muted), call)
            return True
        if lockstep.outcomes != answers[: len(lockstep.outcomes)]:
            self.strays.append(f"{call}: {_difference(lockstep.outcomes, answers)}")
        return False

    def counts(self, clause: str) -> bool:
        """Does the implementation claim this clause?"""
        return CLAUSES[clause].profile in self._declared

    @property
    def _context(self) -> str:
        if self.shape.one:
            return "one"
        return "chunked" if self.shape.chunked else "steps"


def _integer(name: str, least: int, most: int) -> Any:
    """A symbolic integer within bounds."""
    integer, space = SymbolicInt(name, int), context_statespace()
    space.add(integer.var >= least)
    space.add(integer.var <= most)
    return integer


def _options(paths: int) -> AnalysisOptions:
    """Paths are counted, and time is not: a result must not depend on the machine."""
    return replace(
        DEFAULT_OPTIONS,
        max_iterations=paths,
        per_condition_timeout=float("inf"),
        per_path_timeout=_PATH_SECONDS,
        max_uninteresting_iterations=0,
        stats=Counter(),
    )


def undeclared(implementation: Implementation) -> frozenset[str]:
    """The survivable clauses that the implementation does not claim."""
    declared = implementation.declaration.profiles
    return frozenset(slug for slug, c in CLAUSES.items() if c.survivable and c.profile not in declared)


def _difference(outcomes: list[Any], answers: list[Any]) -> str:
    for number, (outcome, answer) in enumerate(zip(outcomes, answers, strict=False), 1):
        if outcome != answer:
            return f"operation {number} gave {answer} under CrossHair, and {outcome} without"
    return f"{len(answers)} answers under CrossHair, and {len(outcomes)} without"
