"""Short programs as text: ``3x2: admit A 0110 / commit A / append A 1 / reserve A 1 / release A preempted``.

``3x2`` is 3 blocks of 2 slots; ``3x2 weak`` replaces the chain hash by a weak one.  Each digit of a prompt is a token.
``admit A 011 limit=1 in=x`` reserves one token only and asks in namespace ``x``.
"""

from dataclasses import dataclass

from kvspec.spec import operations as op
from kvspec.spec.state import World

NO_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class Example:
    """A world and the operations that are asked of a fresh manager in it."""

    world: World
    operations: tuple[op.Operation, ...]


def read(text: str) -> Example:
    """The program that `text` stands for.  Raises ValueError if it is not one."""
    head, _, body = text.partition(":")
    size, *weak = head.split()
    blocks, block_size = map(int, size.split("x"))
    world = World(blocks, block_size, weak == ["weak"])
    return Example(world, tuple(_operation(part.split()) for part in body.split("/")))


def _operation(words: list[str]) -> op.Operation:
    verb, names = words[0], words[1:]
    if verb == "admit":
        options = dict(word.split("=") for word in names[2:])
        tokens = tuple(map(int, names[1]))
        return op.Admit(names[0], tokens, int(options.get("limit", NO_LIMIT)), options.get("in", ""))
    if verb == "release":
        return op.Release(names[0], op.Cause(names[1] if len(names) > 1 else "finished"))
    if verb == "commit":
        return op.Commit(tuple(names))
    if verb == "reserve":
        return op.Reserve(names[0], int(names[1]))
    if verb == "append":
        return op.Append(names[0], int(names[1]))
    raise ValueError(f"{verb} is none of the five operations")


def write(world: World, operations: tuple[op.Operation, ...]) -> str:
    """The text for a program whose tokens are digits; ``read`` is its inverse."""
    head = f"{world.blocks}x{world.block_size}{' weak' if world.weak_hash else ''}: "
    return head + " / ".join(map(_spell, operations))


def _spell(operation: op.Operation) -> str:
    if isinstance(operation, op.Admit):
        limit = f" limit={operation.limit}" if operation.limit != NO_LIMIT else ""
        space = f" in={operation.namespace}" if operation.namespace else ""
        return f"admit {operation.sequence} {''.join(map(str, operation.tokens))}{limit}{space}"
    if isinstance(operation, op.Reserve):
        return f"reserve {operation.sequence} {operation.count}"
    if isinstance(operation, op.Commit):
        return "commit " + " ".join(operation.sequences)
    if isinstance(operation, op.Append):
        return f"append {operation.sequence} {operation.token}"
    cause = "" if operation.cause is op.Cause.FINISHED else f" {operation.cause}"
    return f"release {operation.sequence}{cause}"
