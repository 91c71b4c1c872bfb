"""From what a manager did to outcomes: exceptions become ``Failed``, impossible answers become ``Nonsense``."""

import dis
import operator
import re
from collections.abc import Callable
from types import TracebackType
from typing import Any

from kvspec.spec.operations import Failed, Nonsense, Outcome

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_RAISE = dis.opmap["RAISE_VARARGS"]
_DELIBERATE = (ValueError, TypeError, KeyError, RuntimeError)


class Answered(Exception):
    """Carries an outcome out of the middle of an operation; never leaves the adapters."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome = outcome


def ask(name: str, call: Callable[..., Any], *arguments: Any, promised: bool = False) -> Any:
    """Make one call into the manager; raises Answered(Failed) if it raises.

    `name` is what the error text calls it.  Only ordinary exceptions and SystemExit are outcomes: a time limit passes.
    """
    try:
        return call(*arguments)
    except (Exception, SystemExit) as error:
        raise Answered(Failed(f"{spoken(error)}, in {name}", promised, is_clear(error))) from error


def spoken(error: BaseException) -> str:
    """Type and message of an exception in one line, without addresses, so that it is the same in the next run."""
    message = without_addresses(" ".join(str(error).split()))
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def without_addresses(text: str) -> str:
    """The text without the memory addresses of objects, so that it is the same in the next run."""
    return _ADDRESS.sub("", text)


def is_clear(error: BaseException) -> bool:
    """Did code raise this on purpose, with words?  An assertion, or a container that complained, is an accident."""
    if not (error.args and isinstance(error.args[0], str) and error.args[0].strip()):
        own = type(error).__module__ != "builtins" and bool(str(error).strip())
        return own and isinstance(error, Exception)
    if isinstance(error, AssertionError | IndexError | AttributeError | SystemExit):
        return type(error).__module__ != "builtins"
    deliberate = type(error).__module__ != "builtins" or type(error) in _DELIBERATE
    return deliberate and _was_raised_by_statement(error.__traceback__)


def _was_raised_by_statement(traceback: TracebackType | None) -> bool:
    """Does the innermost frame stand at a ``raise`` statement?  Else a built-in operation failed there."""
    if traceback is None:
        return True
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback.tb_frame.f_globals is globals():
        return True  # the manager is compiled: its frames do not show
    return traceback.tb_frame.f_code.co_code[traceback.tb_lasti] == _RAISE


def nonsense(call: str, answer: object, expected: str) -> Answered:
    """The exception for an answer that is none: which call, what it said, what it should have said."""
    return Answered(Nonsense(f"{call} gave {_shown(answer)}; expected {expected}"))


def _shown(answer: object) -> str:
    try:
        text = without_addresses(repr(answer))
    except Exception as error:
        text = f"something whose repr raises {type(error).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


def yes_or_no(call: str, answer: Any) -> bool:
    """A truth value: bool, numpy's bool, or the integers 0 and 1."""
    if answer is True or answer is False:
        return answer is True
    if type(answer).__name__ in ("bool", "bool_") and type(answer).__module__ == "numpy":
        return bool(answer)
    value = _integer(answer)
    if value not in (0, 1):
        raise nonsense(call, answer, "True or False")
    return bool(value)


def whole_number(call: str, answer: Any, least: int, most: int, what: str) -> int:
    """An integer (numpy's too, bool not) from `least` to `most`."""
    value = answer if type(answer) is int else _integer(answer)
    if value is None or not least <= value <= most:
        raise nonsense(call, answer, f"{what}, a whole number from {least} to {most}")
    return value


def _integer(answer: Any) -> int | None:
    if isinstance(answer, bool):
        return None
    try:
        return operator.index(answer)
    except TypeError:
        return None


def block_table(call: str, table: Any) -> tuple[int, ...]:
    """The block table as a tuple of block ids; entries may be block objects that know their id."""
    try:
        found = tuple(table)
    except TypeError:
        raise nonsense(call, table, "a block table, which is a list of block ids") from None
    for entry in found:
        if type(entry) is not int:
            return tuple(_block_id(call, entry) for entry in found)
    return found


def _block_id(call: str, entry: Any) -> int:
    for candidate in (entry, getattr(entry, "block_id", None), getattr(entry, "id", None)):
        if (value := _integer(candidate)) is not None:
            return value
    raise nonsense(call, entry, "block ids in the block table")
