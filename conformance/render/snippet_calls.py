"""The five operations as direct calls of a manager in one of nano-vllm's shapes."""

from dataclasses import dataclass

from kvspec.conformance.render.moments import Moment, Story
from kvspec.conformance.render.words import answered, spoken
from kvspec.impl.nano_vllm.early import EarlyAdapter
from kvspec.impl.nano_vllm.late import LateAdapter, LateTokensAdapter
from kvspec.spec import operations as op


@dataclass(frozen=True, slots=True)
class Calls:
    """How one shape spells its calls.

    `counted`: ``can_allocate`` gives the number of cached blocks, which ``allocate`` takes.  `publish`: ends a forward
    pass, empty if there is no such call.  `sized`: ``can_append`` takes the sequence.
    """

    counted: bool
    refusal: str
    publish: str
    grow: str
    sized: bool

    def script(self, story: Story, names: dict[str, str]) -> list[str]:
        """One part an operation."""
        notes = Notes()
        return [self._part(moment, names, notes) for moment in story.moments]

    def _part(self, moment: Moment, names: dict[str, str], notes: "Notes") -> str:
        lines = self._lines(moment.request, moment.answer, names, notes)
        return f"# {moment.number}. {spoken(moment.request)}: {answered(moment.answer)}\n" + "\n".join(lines)

    def _lines(self, request: op.Operation, answer: op.Outcome, names: dict[str, str], notes: "Notes") -> list[str]:
        if isinstance(request, op.Commit):
            return self._commit([names[name] for name in request.sequences], notes)
        assert not isinstance(request, op.Extension), "programs with extensions go through the adapter"
        name = names[request.sequence]
        if isinstance(request, op.Admit):
            return self._admit(request, answer, name, notes)
        if isinstance(request, op.Reserve):
            return self._reserve(request, answer, name, notes)
        if isinstance(request, op.Append):
            notes.sampled.add(name)
            notes.tokens.setdefault(name, []).append(request.token)
            return [f"{name}.append_token({request.token})"]
        return self._release(request, name, notes)

    def _admit(self, request: op.Admit, answer: op.Outcome, name: str, notes: "Notes") -> list[str]:
        lines = [f"{name} = Sequence({list(request.tokens)})"]
        if notes.preempted.get(name) == request.tokens:
            lines = [f"# {name} was preempted and comes back as the same object"]
        notes.preempted.pop(name, None)
        lines.append(f"answer = manager.can_allocate({name})")
        if isinstance(answer, op.Refused):
            return lines
        notes.tokens[name] = list(request.tokens)
        lines.append(f"manager.allocate({name}, answer)" if self.counted else f"manager.allocate({name})")
        lines.append(f"{name}.computed = {name}.num_cached_tokens")
        left = f"len({name}) - {name}.computed"
        scheduled = left if request.limit >= len(request.tokens) else f"min({request.limit}, {left})"
        return [*lines, f"{name}.num_scheduled_tokens = {scheduled}"]

    def _reserve(self, request: op.Reserve, answer: op.Outcome, name: str, notes: "Notes") -> list[str]:
        lines = []
        if name in notes.sampled:
            lines.append(f"answer = manager.can_append({name if self.sized else ''})")
            if isinstance(answer, op.Refused):
                return lines
            lines.append(f"manager.{self.grow}({name})")
        return [*lines, f"{name}.num_scheduled_tokens = {request.count}"]

    def _commit(self, names: list[str], notes: "Notes") -> list[str]:
        lines = [f"forward({', '.join(names)})"]
        for name in names:
            notes.sampled.discard(name)
            if self.publish:
                lines.append(f"manager.{self.publish}({name})")
                lines.append(f"{name}.num_cached_tokens += {name}.num_scheduled_tokens")
            lines.append(f"{name}.num_scheduled_tokens = 0")
        return lines

    def _release(self, request: op.Release, name: str, notes: "Notes") -> list[str]:
        notes.sampled.discard(name)
        if request.cause is op.Cause.PREEMPTED:
            notes.preempted[name] = tuple(notes.tokens.get(name, ()))
        return [f"manager.deallocate({name})", f"{name}.num_scheduled_tokens = {name}.computed = 0"]


class Notes:
    """What the script must remember while it is written: who just sampled a token, who was preempted with what."""

    def __init__(self) -> None:
        self.sampled: set[str] = set()
        self.tokens: dict[str, list[int]] = {}
        self.preempted: dict[str, tuple[int, ...]] = {}


def calls_of(adapter: object) -> Calls | None:
    """How the manager behind an adapter spells its calls, or None if it has none of nano-vllm's shapes."""
    if not isinstance(adapter, LateAdapter | EarlyAdapter):
        return None
    plan = adapter._plan
    if isinstance(adapter, EarlyAdapter):
        return Calls(False, "is False", "", plan.grow, plan.asks_with_sequence)
    counted = not isinstance(adapter, LateTokensAdapter)
    return Calls(counted, "== -1", plan.publish, plan.grow, plan.asks_with_sequence)


def names_of(story: Story) -> dict[str, str]:
    """A Python name for each sequence."""
    named: dict[str, str] = {}
    for moment in story.moments:
        for name in op.sequences_of(moment.request):
            plain = name.lower() if name.isidentifier() and name.isascii() else ""
            named.setdefault(name, f"seq_{plain or len(named)}")
    return named
