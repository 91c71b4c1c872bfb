"""The executable specification of a KV-cache block manager.

Read in this order: ``README.md``, ``state``, ``operations``, ``declaration``, ``clauses``, ``steps``, ``invariants``,
``judge``, ``model``; then, if your engine has them, ``tree_caches``, ``extensions``, ``extension_rules`` and
``model_extensions``.  Nothing here does I/O, reads a clock, draws a random number or imports a third-party package, so
that it can be ported line by line.
"""

__version__ = "0.1.0"

from . import extension_rules as _extension_rules  # noqa: F401  (it enters its rules in the judge's tables)
from . import tree_caches as _tree_caches  # noqa: F401  (so does this)
