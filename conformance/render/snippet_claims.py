"""The last lines of a script: an assertion that states the fault, in the terms of the manager itself."""

from collections.abc import Callable

from kvspec.conformance.render.explain import missed_block
from kvspec.conformance.render.moments import Story
from kvspec.conformance.render.snippet_calls import Calls
from kvspec.spec import operations as op
from kvspec.spec.clauses import CLAUSES

Names = dict[str, str]


def claim(story: Story, names: Names, calls: Calls) -> tuple[str, list[str]]:
    """What the script says when it fails (clause, sentence, reason), and the lines that assert it."""
    message = f"{story.clause}: {CLAUSES[story.clause].sentence}; {story.violation.because}"
    rule = _CLAIMS.get(story.clause, _same_answer)
    return message, rule(story, names, calls)


def _live(story: Story, names: Names) -> str:
    return f"[{', '.join(names[name] for name in story.moments[-1].state.sequences)}]"


def _last(story: Story, names: Names) -> str:
    """The Python name of the sequence of the last operation."""
    request = story.moments[-1].request
    return names[op.sequences_of(request)[0]]


def _counts(story: Story, names: Names, calls: Calls) -> list[str]:
    return [
        f"live = {_live(story, names)}",
        "for block in manager.blocks:",
        "    owners = sum(seq.block_table.count(block.block_id) for seq in live)",
        "    assert block.ref_count == owners, MESSAGE",
    ]


def _pools(story: Story, names: Names, calls: Calls) -> list[str]:
    return [
        f"live, free = {_live(story, names)}, list(manager.free_block_ids)",
        "assert len(free) == len(set(free)), MESSAGE",
        "for block in range(len(manager.blocks)):",
        "    used = any(block in seq.block_table for seq in live)",
        "    assert used != (block in free), MESSAGE",
        "    assert used == (block in getattr(manager, 'used_block_ids', [block] if used else [])), MESSAGE",
    ]


def _no_leak(story: Story, names: Names, calls: Calls) -> list[str]:
    return ["assert len(set(manager.free_block_ids)) == len(manager.blocks), MESSAGE"]


def _reads(story: Story, names: Names, calls: Calls) -> list[str]:
    if story.violation.sequence is None or story.violation.position is None:
        return _reads_anywhere(story, names)
    name, position = names[story.violation.sequence], story.violation.position
    return [
        f"seen = held({name}, {position})  # the K/V that attention reads there",
        f"assert {position} >= {name}.computed or seen == {name}.token_ids[:{position + 1}], MESSAGE",
    ]


def _reads_anywhere(story: Story, names: Names) -> list[str]:
    """A hit on a block of which it is only known that it is the wrong one: what attention reads once the step ends."""
    name = _last(story, names)
    live = dict.fromkeys([*(names[other] for other in story.before.sequences), name])
    return [
        f"cached = {name}.computed",
        f"forward({', '.join(live)})  # the step ends",
        "for position in range(cached):",
        f"    assert held({name}, position) == {name}.token_ids[: position + 1], MESSAGE",
    ]


def _computed(story: Story, names: Names, calls: Calls) -> list[str]:
    name, position = names[story.violation.sequence or ""], story.violation.position
    others = [names[other] for other in story.moments[-1].state.sequences if names[other] != name]
    return [
        f"entry = {position} // SIZE",
        f"assert entry < {name}.num_cached_tokens // SIZE",
        f"for other in [{', '.join(others)}]:",
        "    for place, block in enumerate(other.block_table):",
        f"        if block == {name}.block_table[entry]:",
        f"            assert other.computed > place * SIZE + {position} % SIZE, MESSAGE",
    ]


def _fresh(story: Story, names: Names, calls: Calls) -> list[str]:
    name = _last(story, names)
    others = [names[other] for other in story.before.sequences if names[other] != name]
    return [
        f"taken = {name}.block_table",
        "assert len(taken) == len(set(taken)), MESSAGE",
        f"for other in [{', '.join(others)}]:",
        f"    shared = {name}.num_cached_tokens // SIZE",
        "    assert not set(taken[shared:]) & set(other.block_table), MESSAGE",
    ]


def _no_means_no(story: Story, names: Names, calls: Calls) -> list[str]:
    said_no = calls.refusal if isinstance(story.moments[-1].request, op.Admit) else "is False"
    return [f"assert not (answer {said_no}), MESSAGE"]


def _covers(story: Story, names: Names, calls: Calls) -> list[str]:
    name = _last(story, names)
    return [f"assert len({name}.block_table) * SIZE >= {name}.computed + {name}.num_scheduled_tokens, MESSAGE"]


def _more_hits(story: Story, names: Names, calls: Calls) -> list[str]:
    name, block = _last(story, names), missed_block(story)
    position = story.violation.position or 0
    note = f"  # block {block} held the next one" if block is not None else ""
    return [f"assert {name}.computed > {position}, MESSAGE{note}"]


def _progress(story: Story, names: Names, calls: Calls) -> list[str]:
    name = _last(story, names)
    return [f"assert {name}.num_cached_tokens < len({name}), MESSAGE"]


def _aligned(story: Story, names: Names, calls: Calls) -> list[str]:
    return [f"assert {_last(story, names)}.num_cached_tokens % SIZE == 0, MESSAGE"]


def _index_bounded(story: Story, names: Names, calls: Calls) -> list[str]:
    return ["assert len(manager.hash_to_block_id) <= len(manager.blocks), MESSAGE"]


def _index_match(story: Story, names: Names, calls: Calls) -> list[str]:
    return [
        "for key, block in manager.hash_to_block_id.items():",
        "    assert manager.blocks[block].hash == key, MESSAGE",
    ]


def _index_tokens(story: Story, names: Names, calls: Calls) -> list[str]:
    return [
        "for block in manager.hash_to_block_id.values():",
        "    written = kv.get((block, SIZE - 1), [])[-SIZE:]",
        "    assert not written or list(manager.blocks[block].token_ids) == written, MESSAGE",
    ]


def _index_chain(story: Story, names: Names, calls: Calls) -> list[str]:
    return [
        "for key, block in manager.hash_to_block_id.items():",
        "    written, chain = kv.get((block, SIZE - 1), []), -1",
        "    for start in range(0, len(written), SIZE):",
        "        chain = manager.compute_hash(written[start : start + SIZE], chain)",
        "    assert key == chain, MESSAGE",
    ]


def _same_answer(story: Story, names: Names, calls: Calls) -> list[str]:
    """No more general statement is known: the same answer must not come back."""
    answer, name = story.moments[-1].answer, _last(story, names)
    if isinstance(answer, op.Admitted | op.Reserved):
        return [f"assert {name}.block_table != {list(answer.table)}, MESSAGE"]
    if isinstance(answer, op.Committed):
        return [f"assert {name}.block_table != {list(answer.tables[0])}, MESSAGE"]
    if isinstance(answer, op.Refused):
        return _no_means_no(story, names, calls)
    return ["raise AssertionError(MESSAGE)"]


_CLAIMS: dict[str, Callable[[Story, Names, Calls], list[str]]] = {
    "REFCOUNT": _counts,
    "RELEASE": _counts,
    "PARTITION": _pools,
    "NO-LEAK": _no_leak,
    "CONTENT": _reads,
    "NO-CLOBBER": _reads,
    "COMPUTED": _computed,
    "FRESH": _fresh,
    "NO-MEANS-NO": _no_means_no,
    "OVERSIZED": _no_means_no,
    "COVERS": _covers,
    "NO-LOST-HIT": _more_hits,
    "SURVIVES-RELEASE": _more_hits,
    "TWIN": _more_hits,
    "PROGRESS": _progress,
    "ALIGNED": _aligned,
    "INDEX-BOUNDED": _index_bounded,
    "INDEX-MATCH": _index_match,
    "INDEX-TOKENS": _index_tokens,
    "INDEX-CHAIN": _index_chain,
}
