"""What is proved of the specification, and how: *the specification is proved; implementations are checked against it*.

``steps`` is one text.  Here it is read a second time, as SMT terms, and a solver shows that each step keeps each
invariant.  This package holds only what a proof adds.

    terms          the reading for all sizes: sorts, facts on finite sets, the assumption on the chain hash
    conditions     steps x invariants, the first state, growing prompts; triggers
    theorems       what follows: no leak, room, index never larger than the pool, the repaired hit rule under any hash
    bounded        the reading for fixed sizes, which can show a state in which a condition fails
    collision      the program that breaks "comparing the block's own tokens is enough"
    faults         wrong texts that must not prove
    witnesses      cases that must be possible, so that no condition is empty
    solver         z3, limited by work; second_solver: cvc5
    prover         all of it, as results; report: as a table; command: ``kvspec prove``
    contracts      pure functions of the specification that CrossHair exhausts
    ledger_of_claims   each clause with the strongest that can be said of it

Importing this package imports no solver; calling `prove` does.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .prover import ConditionResult


def prove(**options: Any) -> "list[ConditionResult]":
    """All conditions with their verdicts; see ``prover.prove``.  Raises ModuleNotFoundError without z3-solver."""
    from . import prover

    return prover.prove(**options)
