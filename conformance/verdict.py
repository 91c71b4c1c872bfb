"""What a run has shown: a verdict a profile, a counterexample a broken clause, and the counts that make it worth something."""

from collections import Counter
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from kvspec.conformance.program import Counterexample
from kvspec.spec.clauses import CLAUSES, PROFILES

# What is counted in a context, in the order in which it is shown (see ``lockstep.Lockstep``).
COUNTED = ("operations", "hits", "free_hits", "recycles", "refusals", "preemptions")


class ExitCode(IntEnum):
    """What a run says to the shell."""

    CONFORMS = 0
    VIOLATES = 1
    USAGE = 2
    PROVES_NOTHING = 3


class Standing(StrEnum):
    """The verdict of one profile."""

    CONFORMS = "conforms"
    PARTIAL = "partial"
    VIOLATES = "violates"
    INCOMPLETE = "incomplete"  # nothing is broken, but not all of its clauses were tried
    NOT_DECLARED = "not declared"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True)
class ClauseResult:
    """One clause in one profile; `counterexample` is None where it held, `known` where its failure is listed as known."""

    profile: str
    clause: str
    counterexample: Counterexample | None = None
    known: bool = False


@dataclass(frozen=True, slots=True)
class ProfileVerdict:
    """The standing of a profile, the clauses that were decided in it, and those that broke."""

    profile: str
    declared: bool
    standing: Standing
    decided: int
    broken: tuple[str, ...]
    untried: str = ""


@dataclass(slots=True)
class ConformanceReport:
    """Everything that a run has to say; the renderers read nothing else.

    `counts`: context -> what happened in it.  `proves_nothing`: reasons why the run as a whole proves nothing.
    `incomplete`: profiles of which only some clauses were decided.  `certificates`: of the exhausted small worlds, as
    plain data.  `command`: repeats this run.
    """

    name: str
    target: str
    source: str
    shape: str
    declared: tuple[str, ...]
    effort: str
    seed: int
    command: str
    results: list[ClauseResult] = field(default_factory=list)
    untried: dict[str, str] = field(default_factory=dict)
    incomplete: frozenset[str] = frozenset()
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    certificates: list[dict[str, object]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    proves_nothing: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def profiles(self) -> list[ProfileVerdict]:
        """The verdict of each profile, in the order of the registry: the most basic first."""
        return [self._profile(name) for name in PROFILES]

    def _profile(self, name: str) -> ProfileVerdict:
        results = [result for result in self.results if result.profile == name]
        broken = tuple(result.clause for result in results if result.counterexample)
        declared = name in self.declared
        if name in self.untried or not results:
            return ProfileVerdict(name, declared, Standing.NOT_TRIED, 0, (), self.untried.get(name, "not selected"))
        standing = _standing(declared, [result for result in results if result.counterexample])
        if standing is Standing.CONFORMS and name in self.incomplete:
            standing = Standing.INCOMPLETE
        return ProfileVerdict(name, declared, standing, len(results), broken)

    def broken(self) -> list[ClauseResult]:
        """The broken clauses of declared profiles that are not known, the most basic first."""
        order = list(PROFILES)
        failing = [r for r in self.results if r.counterexample and not r.known and r.profile in self.declared]
        return sorted(failing, key=lambda r: (order.index(r.profile), list(CLAUSES).index(r.clause)))

    def exit_code(self) -> ExitCode:
        """1 if a declared profile is violated; else 3 if the run proves nothing; else 0."""
        if self.broken():
            return ExitCode.VIOLATES
        return ExitCode.PROVES_NOTHING if self.proves_nothing else ExitCode.CONFORMS


def _standing(declared: bool, failing: list[ClauseResult]) -> Standing:
    if not declared:
        return Standing.NOT_DECLARED
    if not failing:
        return Standing.CONFORMS
    return Standing.PARTIAL if all(result.known for result in failing) else Standing.VIOLATES
