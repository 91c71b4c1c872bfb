"""A time limit for calls into a manager that costs nothing a call: a slow tick looks whether the search has moved."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from kvspec.conformance import time_limit


@contextmanager
def watching(search: Any) -> Iterator[None]:
    """Raise TimeLimitExceeded inside a call that goes on for more than the limit; `search.performed` counts calls."""
    if not time_limit.can_limit():
        yield
        return
    seen = -1

    def tick(_signal: int, _frame: FrameType | None) -> None:
        nonlocal seen
        if search.performed == seen and search.calling:
            raise time_limit.TimeLimitExceeded
        seen = search.performed

    before = signal.signal(signal.SIGALRM, tick)
    signal.setitimer(signal.ITIMER_REAL, time_limit.DEFAULT_SECONDS, time_limit.DEFAULT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
