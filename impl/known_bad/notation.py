"""Short programs as text: ``3x2: admit A 0110 / commit A / append A 1 / reserve A 1 / release A preempted``.

``3x2`` is 3 blocks of 2 slots; ``3x2 weak`` replaces the chain hash by a weak one.  Each digit of a prompt is a token.
``admit A 011 limit=1 in=x`` reserves one token only and asks in namespace ``x``.  Of the extensions: ``extend A 01``,
``draft A 01`` (the tokens are a guess), ``truncate A 3``, ``reset``, ``probe 011 limit=1 in=x``, ``retain A K``, ``drop K``.
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
        return op.Admit(names[0], *_question(names[1:]))
    if verb == "release":
        return op.Release(names[0], op.Cause(names[1] if len(names) > 1 else "finished"))
    if verb == "commit":
        return op.Commit(tuple(names))
    if verb == "reserve":
        return op.Reserve(names[0], int(names[1]))
    if verb == "append":
        return op.Append(names[0], int(names[1]))
    return _extension(verb, names)


def _question(words: list[str]) -> tuple[tuple[int, ...], int, str]:
    """Tokens, limit and namespace."""
    options = dict(word.split("=", 1) for word in words[1:])
    return tuple(map(int, words[0])), int(options.get("limit", NO_LIMIT)), options.get("in", "")


def _extension(verb: str, names: list[str]) -> op.Operation:
    if verb in ("extend", "draft"):
        return op.Extend(names[0], tuple(map(int, names[1])), verb == "draft")
    if verb == "truncate":
        return op.Truncate(names[0], int(names[1]))
    if verb == "probe":
        return op.Probe(*_question(names))
    kinds: dict[str, type[op.Reset | op.Retain | op.Drop]] = {"reset": op.Reset, "retain": op.Retain, "drop": op.Drop}
    if verb in kinds:
        return kinds[verb](*names)
    raise ValueError(f"{verb} is no operation")


def write(world: World, operations: tuple[op.Operation, ...]) -> str:
    """The text for a program whose tokens are digits; ``read`` is its inverse."""
    head = f"{world.blocks}x{world.block_size}{' weak' if world.weak_hash else ''}: "
    return head + " / ".join(map(_spell, operations))


def _spell(operation: op.Operation) -> str:
    if isinstance(operation, op.Admit):
        return f"admit {operation.sequence} {_asked(operation)}"
    if isinstance(operation, op.Reserve):
        return f"reserve {operation.sequence} {operation.count}"
    if isinstance(operation, op.Commit):
        return "commit " + " ".join(operation.sequences)
    if isinstance(operation, op.Append):
        return f"append {operation.sequence} {operation.token}"
    if isinstance(operation, op.Release):
        cause = "" if operation.cause is op.Cause.FINISHED else f" {operation.cause}"
        return f"release {operation.sequence}{cause}"
    return _spell_extension(operation)


def _asked(operation: op.Admit | op.Probe) -> str:
    limit = f" limit={operation.limit}" if operation.limit != NO_LIMIT else ""
    space = f" in={operation.namespace}" if operation.namespace else ""
    return f"{_digits(operation.tokens)}{limit}{space}"


def _digits(tokens: tuple[int, ...]) -> str:
    return "".join(map(str, tokens))


def _spell_extension(operation: op.Extension) -> str:
    if isinstance(operation, op.Extend):
        return f"{'draft' if operation.drafts else 'extend'} {operation.sequence} {_digits(operation.tokens)}"
    if isinstance(operation, op.Truncate):
        return f"truncate {operation.sequence} {operation.length}"
    if isinstance(operation, op.Probe):
        return f"probe {_asked(operation)}"
    if isinstance(operation, op.Retain):
        return f"retain {operation.sequence} {operation.owner}"
    return f"drop {operation.owner}" if isinstance(operation, op.Drop) else "reset"
