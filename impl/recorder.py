"""Record what a live block manager does, as a trace that ``kvspec validate`` judges.

Two lines in an engine whose manager has one of nano-vllm's shapes:

    from kvspec.impl.recorder import record
    recorder = record(scheduler.block_manager, "kv.ndjson")

or one, which records only if the environment variable KVSPEC_RECORD names a file:

    record_if_asked(scheduler.block_manager)

The manager's own methods are shadowed on this one object and run as before; where nothing is recorded nothing is
shadowed.  Whatever goes wrong in the recorder ends the recording with one warning and never reaches the engine.
"""

import atexit
import contextlib
import os
import secrets
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from kvspec.impl.recorder_lines import Entry, Opaque
from kvspec.impl.recorder_output import Output
from kvspec.impl.recorder_sight import CannotRecord, calls_of, header_of, is_fresh, shape_to_record

VARIABLE = "KVSPEC_RECORD"  # names the file; "{pid}" in it is replaced
VARIABLE_KEY = "KVSPEC_RECORD_KEY"  # a secret: tokens are replaced by opaque numbers; "random" makes a new one
ROTATE = 256 << 20

Manager = TypeVar("Manager")


class Recorder:
    """One recording.  `active`: is anything still recorded?  `parts`: the files, oldest first.  `error`: what ended it."""

    def __init__(self) -> None:
        self.active = False
        self.error: BaseException | None = None
        self._manager: Any = None
        self._shadowed: dict[str, Any] = {}
        self._batch: list[Entry] = []
        self._output: Output | None = None
        self._inside = False

    @property
    def parts(self) -> list[Path]:
        """The files of this recording that are kept, oldest first."""
        return list(self._output.parts) if self._output else []

    def close(self) -> None:
        """End the recording and write the footer; the manager is as it was before.  Harmless a second time."""
        if not self.active:
            return
        self._guarded(self._calls.finish)
        if self.active:
            self._stop()
            self._guarded(self._hand_over)
        assert self._output is not None
        self._output.close()
        if self._output.error and not self.error:
            self._fail(self._output.error)

    # The hot path ------------------------------------------------------------------------------------------------

    def _hand_over(self) -> None:
        batch = self._batch[:]
        self._batch.clear()
        assert self._output is not None
        self._output.put(batch)

    def _shadow(self, name: str) -> Callable[..., Any]:
        """The manager's method `name`, noted; calls that the manager makes to itself are not."""
        original, calls = getattr(self._manager, name), self._calls
        after, failed = calls.after[name], calls.failed[name]

        def call(*arguments: Any, **named: Any) -> Any:
            if self._inside:
                return original(*arguments, **named)
            self._inside = True
            try:
                if not calls.calm:
                    self._guarded(calls.before, arguments[0] if arguments else named.get("seq"))
                answer = original(*arguments, **named)
            except Exception as error:
                self._guarded(failed, error, *arguments, **named)
                raise
            finally:
                self._inside = not self.active
            try:
                after(answer, *arguments, **named)
            except Exception as error:
                self._fail(error)
            return answer

        return call

    # Beginning and end -------------------------------------------------------------------------------------------

    def begin(self, manager: Any, path: str | os.PathLike[str], options: dict[str, Any]) -> None:
        """Shadow the calls of `manager` (see ``record``); a manager that cannot be recorded stays as it is."""
        try:
            self._begin(manager, path, **options)
        except Exception as error:
            self._fail(error)

    def _begin(self, manager: Any, path: Any, key: bytes | None, rotate: int, keep: int, patience: float) -> None:
        shape = shape_to_record(manager)
        header = header_of(manager, shape)
        hide = Opaque(key) if key is not None else None
        place = Path(os.fspath(path).replace("{pid}", str(os.getpid())))
        number = 0 if is_fresh(manager) else 1
        self._manager, self._calls = manager, calls_of(type(manager), shape, self._batch, self._hand_over)
        self._output = Output(place, header, rotate, keep, hide, number, patience)
        self.active = True
        atexit.register(self.close)
        for name in self._calls.after:
            before = vars(manager).get(name, self)
            setattr(manager, name, self._shadow(name))
            self._shadowed[name] = before

    def _guarded(self, work: Callable[..., None], *arguments: Any, **named: Any) -> None:
        try:
            work(*arguments, **named)
        except Exception as error:
            self._fail(error)

    def _stop(self) -> None:
        self.active, self._inside = False, True  # a method that somebody has kept goes straight to the manager
        atexit.unregister(self.close)
        for name, before in self._shadowed.items():
            if before is self:
                delattr(self._manager, name)
            else:
                setattr(self._manager, name, before)
        self._shadowed = {}

    def _fail(self, error: BaseException) -> None:
        """One warning, and the manager as it was."""
        if self.error is not None:
            return
        self.error = error
        self._batch.clear()
        with contextlib.suppress(Exception):  # warnings are errors in some processes
            text = str(error) if isinstance(error, CannotRecord) else f"{type(error).__name__}: {error}"
            warnings.warn(f"kvspec does not record this manager: {text}", RuntimeWarning, stacklevel=4)
        with contextlib.suppress(Exception):
            self._stop()
        if self._output is not None:
            self._output.abandon()


def record(
    manager: Any,
    path: str | os.PathLike[str],
    *,
    key: bytes | None = None,
    rotate: int = ROTATE,
    keep: int = 0,
    patience: float = 1.0,
) -> Recorder:
    """Record what `manager` does from now on, in `path`; ``close`` the recorder (or end the process) to finish.

    `key`: replace tokens by opaque numbers that depend on this secret.  `rotate`: begin a new file after so many bytes.
    `keep`: delete the oldest files beyond so many (0: keep all).  `patience`: seconds that the engine may have to wait
    for a slow disk before the recording is given up.  Never raises.
    """
    recorder = Recorder()
    recorder.begin(manager, path, {"key": key, "rotate": rotate, "keep": keep, "patience": patience})
    return recorder


def record_if_asked(manager: Manager) -> Manager:
    """The same manager, recorded if KVSPEC_RECORD names a file; KVSPEC_RECORD_KEY hides tokens ("random": a new key)."""
    if path := os.environ.get(VARIABLE):
        secret = os.environ.get(VARIABLE_KEY, "")
        key = secrets.token_bytes(16) if secret == "random" else secret.encode() or None
        record(manager, path, key=key)
    return manager
