"""A wall-clock limit for calls into an implementation that may never return."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

DEFAULT_SECONDS = 5.0
NO_ANSWER = "no answer within"


class TimeLimitExceeded(BaseException):
    """The limit ran out.  Not an Exception, so that ``except Exception`` in an implementation cannot swallow it."""


def _expire(_signal: int, _frame: FrameType | None) -> None:
    raise TimeLimitExceeded


def can_limit() -> bool:
    """Signals interrupt the main thread of a Unix process only; elsewhere calls run without a limit."""
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


@contextmanager
def alarm_installed() -> Iterator[None]:
    """Install the handler once around many limited calls, and restore what was there."""
    if not can_limit():
        yield
        return
    before = signal.signal(signal.SIGALRM, _expire)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def arm(seconds: float) -> None:
    """Start the limit.  Outside of ``alarm_installed`` there is none: the signal would end the process."""
    if signal.getsignal(signal.SIGALRM) is _expire:
        signal.setitimer(signal.ITIMER_REAL, seconds)


def disarm() -> None:
    """Stop the limit."""
    signal.setitimer(signal.ITIMER_REAL, 0)
