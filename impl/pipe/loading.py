"""From the text ``cmd:./program --flag`` to an implementation."""

import os
import shlex
from collections.abc import Callable
from functools import lru_cache

from kvspec.impl.adapter import Adapter, Implementation
from kvspec.impl.errors import ImplementationError, LoadError
from kvspec.impl.pipe.adapter import ObservablePipeAdapter, PipeAdapter
from kvspec.impl.pipe.connection import ANSWER_SECONDS, START_SECONDS, BrokenProgram, Connection
from kvspec.impl.pipe.protocol import PROTOCOL, BlockHash, HashBlock, Hello, Introduction, Started, failure
from kvspec.spec.operations import Failed, Nonsense
from kvspec.spec.state import World

PREFIX = "cmd:"
GUIDE = "spec/PORTING.md has the protocol"


class StartAccident(AssertionError):
    """The program makes no manager, and does not say clearly why."""


def load_pipe(target: str, seconds: float = ANSWER_SECONDS, start_seconds: float = START_SECONDS) -> Implementation:
    """The implementation behind ``cmd:…``: the program is started, and introduces itself.

    It is run without a shell, `seconds` at most for an answer, `start_seconds` for its first one.  Raises LoadError.
    """
    connection = Connection(command_of(target), seconds, start_seconds)
    introduction = introduce(connection, target)
    chain_hash = _chain_hash(connection) if introduction.hash else None
    _try(chain_hash, target)
    declaration = introduction.declaration
    return Implementation(
        declaration.name,
        declaration,
        _creator(connection, introduction.snapshot),
        target,
        connection.command[0],
        f"pipe protocol {introduction.protocol}, {introduction.language}, version {introduction.version}",
        chain_hash,
    )


def command_of(target: str) -> list[str]:
    """The words of the command.  Raises LoadError."""
    if os.name != "posix":
        raise LoadError(f"{target}: programs can be checked on Linux and macOS only")
    try:
        words = shlex.split(target.removeprefix(PREFIX))
    except ValueError as error:
        raise LoadError(f"{target}: the command cannot be split into words: {error}") from None
    if not words:
        raise LoadError(f'{target}: no program is named; write --impl "cmd:./program --flag"')
    return words


def introduce(connection: Connection, target: str) -> Introduction:
    """Start the program and ask who it is.  Raises LoadError."""
    try:
        answer = connection.ask(Hello())
    except OSError as error:
        raise LoadError(f"{target}: the program cannot be started: {error.strerror}: {connection.command[0]}") from None
    except BrokenProgram as error:
        raise LoadError(f"{target}: the program does not answer hello: {error}; {GUIDE}") from None
    if not isinstance(answer, Introduction):
        connection.stop(0)
        raise LoadError(f"{target}: the program answers hello with {failure(answer) or answer}; {GUIDE}")
    if problem := problem_of(answer):
        connection.stop(0)
        raise LoadError(f"{target}: {problem}")
    return answer


def problem_of(introduction: Introduction) -> str | None:
    """Why nothing can be checked after this introduction, or None."""
    if introduction.protocol != PROTOCOL:
        return f"the program speaks protocol {introduction.protocol}; this kvspec speaks {PROTOCOL}"
    if introduction.declaration.nano_vllm_order and not introduction.hash:
        return 'the program declares nano_vllm_order, which needs "hash":true in hello: keys are compared'
    return None


def _try(chain_hash: Callable[[tuple[int, ...], int | None], int] | None, target: str) -> None:
    """Ask for one hash, so that a program that cannot answer is told so before anything rests on it."""
    try:
        if chain_hash:
            chain_hash((0,), None)
    except BrokenProgram as error:
        raise LoadError(f'{target}: hello says "hash":true, but {error}; {GUIDE}') from None


def _creator(connection: Connection, observes: bool) -> Callable[[World], Adapter]:
    kind = ObservablePipeAdapter if observes else PipeAdapter

    def create(world: World) -> Adapter:
        adapter = kind(connection, world, observes)
        answer = adapter.begin()
        if isinstance(answer, Started):
            return adapter
        if isinstance(answer, Failed) and answer.clear:
            raise ImplementationError(answer.error)
        nonsense = answer.answer if isinstance(answer, Nonsense) else f"the answer was {answer}"
        raise StartAccident(failure(answer) or nonsense)

    return create


def _chain_hash(connection: Connection) -> Callable[[tuple[int, ...], int | None], int]:
    @lru_cache(1 << 16)
    def chain_hash(tokens: tuple[int, ...], prefix: int | None) -> int:
        answer = connection.ask(HashBlock(tokens, prefix))
        if not isinstance(answer, BlockHash):
            raise BrokenProgram(f"hash was answered with {failure(answer) or answer}")
        return answer.key

    return chain_hash
