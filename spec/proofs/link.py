"""The link between proof and execution: the proved invariants, evaluated in a state of the judge.

The judge performs the very steps that are proved, with the blocks that a manager chose.  So after any operation the
invariants must hold of its ledger; if one does not, the text and its execution differ.
"""

import itertools
from collections.abc import Iterator

from ..judge import StateLogic
from ..state import State
from ..steps import INVARIANTS


def broken_invariants(state: State) -> Iterator[tuple[str, tuple[object, ...]]]:
    """The slug of each invariant of ``steps`` that does not hold, with the sequence, entry, block or key where."""
    logic, ledger = StateLogic(state), state.ledger
    longest = max((ledger.length[name] for name in state.sequences), default=0)
    keys = [key for key in ledger.index if key is not None]
    domains = {"s": list(state.sequences), "t": range(longest), "b": sorted(state.blocks), "h": keys}
    for slug, invariant in INVARIANTS.items():
        for values in itertools.product(*(domains[letter] for letter in invariant.variables)):
            if not invariant.holds(logic, ledger, *values):
                yield slug, values
