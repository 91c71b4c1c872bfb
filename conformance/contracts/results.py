"""What CrossHair's search for a counterexample came to."""

from dataclasses import dataclass

from kvspec.conformance.program import Counterexample


@dataclass(frozen=True, slots=True)
class Budget:
    """How long to look: at most `paths` in each shape, and at most `seconds` of processor time.

    Paths decide the result, so that it is the same on every machine; the seconds are there to end a search that has no
    such limit.
    """

    paths: int
    seconds: float

    @property
    def sentence(self) -> str:
        """The budget in words."""
        paths = f"{self.paths} paths a shape and " if self.paths != NO_PATH_LIMIT else ""
        return f"{paths}{self.seconds:g} s CPU"


NO_PATH_LIMIT = 1 << 40


@dataclass(frozen=True, slots=True)
class Refutation:
    """A program which breaks a clause, run again without CrossHair, and the call of the shape that made it."""

    counterexample: Counterexample
    call: str


@dataclass(frozen=True, slots=True)
class ContractResult:
    """What a search showed.

    `untried`: why it could not be made, or is worth nothing.  `paths`: gone through, over `shapes` shapes, of which
    `exhausted` have no more.  `seconds`: of processor time.
    """

    budget: Budget
    refutation: Refutation | None = None
    untried: str = ""
    paths: int = 0
    shapes: int = 0
    exhausted: int = 0
    seconds: float = 0.0

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        if self.refutation:
            clause = self.refutation.counterexample.violation.clause
            return f"{clause} is refuted by {self.refutation.call}"
        if self.untried:
            return f"cannot be tried: {self.untried}"
        ended = f", {self.exhausted} of them exhausted" if self.exhausted else ""
        return (
            f"no counterexample within the budget of {self.budget.sentence} "
            f"({self.paths} paths over {self.shapes} shapes{ended})"
        )


@dataclass(frozen=True, slots=True)
class ContractRun:
    """The search for the implementation, and those for the planted known-bad managers in the same process."""

    own: ContractResult
    planted: dict[str, ContractResult]

    def missed(self) -> list[str]:
        """The planted managers that were not refuted, as sentences: what the run then proves is nothing.

        None where the implementation could not be tried: nothing is claimed then.
        """
        return [
            f"contracts: the planted known-bad manager {slug} was not refuted: {result.sentence}"
            for slug, result in self.planted.items()
            if result.refutation is None and not self.own.untried
        ]
