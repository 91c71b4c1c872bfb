"""Where text for people goes."""

import os
import sys

from rich.console import Console

WIDE = 100  # columns of a file or a pipe, which have no width of their own: what the widest table needs


def terminal() -> Console:
    """Standard output, as wide as the terminal is, as COLUMNS says, or else as the widest table needs."""
    wide = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE
    return Console(highlight=False, width=wide)
