"""Why a counterexample breaks its clause: what was required, the history of the block, what else falls with it."""

from collections.abc import Callable

from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.render.moments import Moment, Story, held_by
from kvspec.conformance.render.words import numbers, plural
from kvspec.spec import operations as op
from kvspec.spec.clauses import CLAUSES
from kvspec.spec.state import State

# Which profiles mean nothing where another one is broken.
BUILT_ON: dict[str, tuple[str, ...]] = {
    "pool": ("prefix", "reuse", "order", "chunked", "one", "collision", "namespace"),
    "prefix": ("reuse", "chunked", "one", "collision", "namespace"),
}


def broken_profile(clause: str, context: str) -> str:
    """The profile in whose name the clause was decided."""
    own = CLAUSES[clause].profile
    decided = CONTEXTS[context].profiles if context in CONTEXTS else (own,)
    return own if own in decided else decided[0]


def weakest(clause: str, context: str) -> str:
    """Which profile is broken, and what is not claimed because of it."""
    profile = broken_profile(clause, context)
    above = BUILT_ON.get(profile, ())
    rest = f"{', '.join(above)} build on it and are not claimed" if above else "no other profile builds on it"
    return f"{profile} is broken; {rest}"


def because(story: Story) -> list[str]:
    """The reason in words, then what happened to the block."""
    lines = [story.violation.because, *_credit(story)]
    block = blamed_block(story)
    if block is not None:
        lines += history(story, block)
    if missed_block(story) is not None:
        lines.append(f"before operation {len(story.moments)}, block {block} held the K/V that was missed")
    return lines


def _credit(story: Story) -> list[str]:
    """A refused admission may have wanted room for hits that need none: then the declaration may be what is wrong."""
    asked = story.moments[-1].request if story.moments else None
    credited = story.header.declaration.credits_shared and isinstance(asked, op.Admit)
    if story.clause != "NO-MEANS-NO" or not credited:
        return []
    return ["hits on blocks in use are counted as needing no room; where that is not so, declare credits_shared false"]


def blamed_block(story: Story) -> int | None:
    """The block that the violation is about, or None; of a lost hit the block that should have been hit."""
    violation = story.violation
    if CLAUSES[story.clause].kind == "completeness":
        return missed_block(story)
    if violation.block is not None or violation.position is None or not story.moments:
        return violation.block
    sequence = story.moments[-1].state.sequences.get(violation.sequence or "")
    entry = violation.position // story.header.world.block_size
    return sequence.table[entry] if sequence and entry < len(sequence.table) else None


def missed_block(story: Story) -> int | None:
    """The first block of the prompt that was intact and yet not hit, or None."""
    if not story.moments or story.violation.position is None:
        return None
    sequence = story.moments[-1].state.sequences.get(story.violation.sequence or "")
    last = story.violation.position + story.header.world.block_size - 1
    if sequence is None or last >= len(sequence.prefixes):
        return None
    state = story.before
    wanted = story.moments[-1].state.prefixes.spell(sequence.prefixes[last])
    intact = (blocks for prefix, blocks in state.copies.items() if state.prefixes.spell(prefix) == wanted)
    return min((block for blocks in intact for block in blocks), default=None)


def history(story: Story, block: int) -> list[str]:
    """What happened to a block, one line an event."""
    lines, before = [], set[str]()
    for moment in story.moments:
        now = holders(moment, block)
        lines += [f"operation {moment.number}: {_gained(moment, name, block)}" for name in sorted(now - before)]
        lines += [f"operation {moment.number}: {name} gave block {block} back" for name in sorted(before - now)]
        lines += [f"operation {moment.number}: {line}" for line in _answers_again(moment, block, before)]
        before = now
    return lines


def holders(moment: Moment, block: int) -> set[str]:
    """Who holds a block by the judge; an admission that broke a clause counts as the manager meant it."""
    found = set(held_by(moment.state, block))
    answer, request = moment.answer, moment.request
    if isinstance(answer, op.Admitted) and isinstance(request, op.Admit) and block in answer.table:
        found.add(request.sequence)
    return found


def _gained(moment: Moment, name: str, block: int) -> str:
    answer = moment.answer
    hits = answer.table[: -(-answer.cached // moment.state.world.block_size)] if isinstance(answer, op.Admitted) else ()
    return f"{name} was given block {block} as {'cached' if block in hits else 'new'}"


def _answers_again(moment: Moment, block: int, before: set[str]) -> list[str]:
    """A free list that shows the block although somebody holds it."""
    free = moment.shown.free if moment.shown else None
    others = sorted(set(held_by(moment.state, block)) & before)
    if free is None or block not in free or not others:
        return []
    verb = "holds" if len(others) == 1 else "hold"
    return [f"block {block} is in the free list, but {' and '.join(others)} still {verb} it"]


# What was required ------------------------------------------------------------------------------------------------


def required(story: Story) -> dict[str, str]:
    """What the last row must have said, by column; only the columns that differ by the clause."""
    if not story.moments:
        return {}
    rule = _REQUIRED.get(story.clause)
    return rule(story) if rule else {}


def _counts(story: Story) -> dict[str, str]:
    """The judge's own counts: complete, because these clauses are checked after all micro-steps."""
    state = story.moments[-1].state
    return {"free": _free(state) or "none", "references": _references(state)}


def _free(state: State) -> str:
    return " ".join(str(block) for block in sorted(state.blocks) if not state.ledger.used[block])


def _references(state: State) -> str:
    return " ".join(str(state.ledger.references[block]) for block in sorted(state.blocks))


def _fresh(story: Story) -> dict[str, str]:
    free = _free(story.before)
    return {"returned": f"a block out of {free}" if free else "refused: no block is free"}


def _content(story: Story) -> dict[str, str]:
    violation, moment = story.violation, story.moments[-1]
    if violation.position is None or violation.sequence is None:
        return {"returned": "another block, or none"}
    request = moment.request
    tokens = (
        request.tokens if isinstance(request, op.Admit) else tuple(moment.state.sequences[violation.sequence].tokens)
    )
    return {"returned": f"K/V of {numbers(tokens[: violation.position + 1])} at position {violation.position}"}


def _unchanged(story: Story) -> dict[str, str]:
    shown = story.before.shown
    columns = {"returned": "nothing changed"}
    if shown is not None and shown.free is not None:
        columns["free"] = " ".join(map(str, shown.free))
    if shown is not None and shown.references is not None:
        columns["references"] = " ".join(map(str, shown.references))
    return columns


def _stable(story: Story) -> dict[str, str]:
    name = story.violation.sequence or ""
    return (
        {"returned": f"table {numbers(story.before.sequences[name].table)} …"} if name in story.before.sequences else {}
    )


def _covers(story: Story) -> dict[str, str]:
    request, answer, size = story.moments[-1].request, story.moments[-1].answer, story.header.world.block_size
    if isinstance(request, op.Admit) and isinstance(answer, op.Admitted):
        ready = answer.cached + answer.reserved
    elif isinstance(request, op.Reserve):
        ready = story.before.sequences[request.sequence].computed + request.count
    else:
        return {}
    return {"returned": f"at least {plural(-(-ready // size), 'block')}"}


def _more_cached(story: Story) -> dict[str, str]:
    found = [word for word in story.violation.because.replace(",", "").split() if word.isdigit()]
    return {"returned": f"{int(found[1]) * story.header.world.block_size} cached"} if len(found) > 1 else {}


def _says(words: str) -> Callable[[Story], dict[str, str]]:
    return lambda story: {"returned": words}


_REQUIRED: dict[str, Callable[[Story], dict[str, str]]] = {
    "REFCOUNT": _counts,
    "PARTITION": _counts,
    "RELEASE": _counts,
    "NO-LEAK": _counts,
    "FRESH": _fresh,
    "CONTENT": _content,
    "COMPUTED": _says("a block that is computed, or none"),
    "NO-CLOBBER": _says("a block that nobody reads"),
    "ATOMIC": _unchanged,
    "STABLE": _stable,
    "COVERS": _covers,
    "TOTAL": _says("an answer"),
    "YES-MEANS-YES": _says("success, or 'no' before"),
    "NO-MEANS-NO": _says("yes: it fits"),
    "OVERSIZED": _says("refused, too large"),
    "PROGRESS": _says("a token left to compute"),
    "ALIGNED": _says("a hit of whole blocks"),
    "NO-LOST-HIT": _more_cached,
    "SURVIVES-RELEASE": _more_cached,
    "TWIN": _more_cached,
}
