"""What a lane reports: where it saw a difference, how large it was, and how much it compared."""

import math
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the run through the block tables differs from the run without a cache.

    `row`: the position whose output differs, or that reads.  `position`, `block`, `slot`: the first K/V that is not the
    one of this sequence's prefix (-1 if the lane can't tell).  `size`: largest difference of the logits, NaN if the
    output is not a number because a slot was read that nobody had written.
    """

    step: int
    sequence: str
    row: int
    position: int
    block: int
    slot: int
    because: str
    size: float = math.nan

    def __str__(self) -> str:
        named = f"position {self.position}, block {self.block}, slot {self.slot}"
        place = named if self.block >= 0 else "no foreign K/V"
        return f"step {self.step}: sequence {self.sequence}, row {self.row} reads {place}: {self.because}"


@dataclass(slots=True)
class Findings:
    """All that one lane has to say about one run.

    `rows`: positions compared.  `unequal`: rows whose bits differ.  `largest`: the largest finite difference; `wrong`:
    the same among the rows that the lane does not accept.  `poisoned`: rows that are not a number.  `flips`: rows where
    the greedy token differs.
    """

    differences: list[Difference] = field(default_factory=list, repr=False)
    rows: int = 0
    unequal: int = 0
    largest: float = 0.0
    wrong: float = 0.0
    poisoned: int = 0
    flips: int = 0

    @property
    def clean(self) -> bool:
        """Did the lane accept the run?"""
        return not self.differences

    def require_none(self, lane: str) -> None:
        """Fail with the first difference, spelled out."""
        assert self.rows, f"{lane}: nothing was compared"
        assert self.clean, f"{lane}: {len(self.differences)} differences; the first: {self.differences[0]}"
