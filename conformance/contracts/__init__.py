"""Short symbolic programs against the real manager: CrossHair chooses the programs, the judge rules on them.

What is claimed is *no counterexample within a budget*: never more, even where every path of a shape was gone through.
The programs are plain integers in fixed shapes (``shapes``); the manager runs on them with a pure chain hash
(``injection``), path by path (``symbolic``), in a process of its own (``refuting``).

What is not done, because it does not work: Hypothesis' state machines with ``backend="crosshair"`` end in internal errors
("Not Deterministic") and find less than the ordinary backend; ``crosshair diffbehavior`` of a manager and the model gains
nothing over trying the inputs in turn, ignores preconditions, and misses what one fixed scenario cannot show; programs as
lists of operations, instead of integers in a shape, took 11 to 76 s a fault where they found one.
"""

from kvspec.conformance.contracts.planted import PLANTED
from kvspec.conformance.contracts.refuting import Refuting, refute
from kvspec.conformance.contracts.results import NO_PATH_LIMIT, Budget, ContractResult, ContractRun, Refutation

__all__ = [
    "NO_PATH_LIMIT",
    "PLANTED",
    "Budget",
    "ContractResult",
    "ContractRun",
    "Refutation",
    "Refuting",
    "refute",
]
