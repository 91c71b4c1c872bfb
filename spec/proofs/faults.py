"""Planted faults: small changes of the text that must stop the proof, or the proof proves nothing.

Each names the condition that it must break.  That condition must lose its proof for all sizes, and within small bounds
a state must be found in which it fails.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..steps import NONE, Invariant, Step
from .conditions import TEXT, Text

Change = Callable[[Any, Any, dict[str, Any], Step], Step]


@dataclass(frozen=True)
class Fault:
    """One wrong text: what is wrong with it, and the condition that must fail."""

    slug: str
    sentence: str
    breaks: str
    text: Text


def _in_step(name: str, change: Change) -> Text:
    """The text with one step changed; `change` gets the algebra, the state, the step's arguments and the step."""
    original, letters = TEXT.steps[name]

    def changed(logic: Any, z: Any, *arguments: Any) -> Step:
        step = original(logic, z, *arguments)
        return change(logic, z, dict(zip(letters, arguments, strict=True)), step)

    return replace(TEXT, steps=TEXT.steps | {name: (changed, letters)})


def _never_writes(*fields: str) -> Change:
    return lambda logic, z, at, step: step._replace(assigns=tuple(a for a in step.assigns if a[0] not in fields))


def _writes(field: str, value: Callable[..., Any]) -> Change:
    """Write something else into a map that the step writes."""

    def change(logic: Any, z: Any, at: dict[str, Any], step: Step) -> Step:
        return step._replace(
            assigns=tuple((f, keys, value(logic, z, at, old) if f == field else old) for f, keys, old in step.assigns)
        )

    return change


def _also_writes(field: str, keys: Callable[..., tuple[Any, ...]], value: Callable[..., Any]) -> Change:
    return lambda logic, z, at, step: step._replace(assigns=(*step.assigns, (field, keys(z, at), value(logic, z, at))))


def _never_asks(*requirements: str) -> Change:
    return lambda logic, z, at, step: step._replace(
        requires={slug: holds for slug, holds in step.requires.items() if slug not in requirements}
    )


def _asks(slug: str, holds: Callable[..., Any]) -> Change:
    return lambda logic, z, at, step: step._replace(requires=step.requires | {slug: holds(logic, z, at)})


def _in_invariant(slug: str, holds: Callable[..., Any]) -> Text:
    changed = TEXT.invariants[slug]._replace(holds=holds)
    return replace(TEXT, invariants=TEXT.invariants | {slug: changed})


def _unchained(logic: Any, z: Any, at: dict[str, Any], step: Step) -> Step:
    """Register under the hash of the block's own tokens, without the prefix before them."""
    key = logic.chain(logic.integer(NONE), logic.last(logic.prompt(at["o"], z.computed[at["o"]])))
    assigns = tuple(
        (field, (key,) if field == "index" else keys, key if field == "hash" else value)
        for field, keys, value in step.assigns
    )
    return step._replace(
        assigns=assigns,
        ensures=step.ensures | {"INDEX-CHAIN": key == logic.hash_of(logic.prompt(at["o"], z.computed[at["o"]]))},
    )


def _same_tokens(logic: Any, z: Any, at: dict[str, Any]) -> Any:
    prefix = logic.prompt(at["o"], z.length[at["o"]])
    return logic.all(logic.is_block(at["b"]), z.hash[at["b"]] != NONE, z.content[at["b"]] == logic.last(prefix))


def _last_block(z: Any, at: dict[str, Any]) -> tuple[Any, ...]:
    return (z.table[at["o"]][z.length[at["o"]] - 1],)


def _closed_under_prefixes(logic: Any, z: Any, b: Any) -> Any:
    before = logic.before(z.identity[b])
    findable = logic.all(logic.is_block(b), z.hash[b] != NONE, z.index[z.hash[b]] == b, before != logic.nothing)
    return logic.implies(findable, z.index[logic.hash_of(before)] != NONE)


_CLOSED = Invariant("b", "where a block is findable, the block before it is findable as well", _closed_under_prefixes)

FAULTS: tuple[Fault, ...] = (
    Fault(
        "stale-entry",
        "take leaves the index entry of the block that it recycles",
        "take keeps INDEX-MATCH",
        _in_step("take", _never_writes("index")),
    ),
    Fault(
        "stale-hash",
        "take leaves the stored hash of the block that it recycles",
        "take keeps UNCOMPUTED-KEYLESS",
        _in_step("take", _never_writes("hash")),
    ),
    Fault(
        "take-uncounted",
        "take does not count the new reference",
        "take keeps PARTITION",
        _in_step("take", _never_writes("references")),
    ),
    Fault(
        "take-in-use",
        "take accepts a block that is in use",
        "take ensures FRESH",
        _in_step("take", _asks("FRESH", lambda logic, z, at: logic.is_block(at["b"]))),
    ),
    Fault(
        "take-outside",
        "take accepts a number that is no block",
        "take keeps RANGE",
        _in_step("take", _asks("FRESH", lambda logic, z, at: logic.no(z.used[at["b"]]))),
    ),
    Fault(
        "take-unnoted",
        "take does not make the table longer by the block",
        "take keeps OWNER-HOLDS",
        _in_step("take", _never_writes("length")),
    ),
    Fault(
        "claim-uncounted",
        "claim does not count the new reference",
        "claim keeps REFCOUNT",
        _in_step("claim", _never_writes("references")),
    ),
    Fault(
        "claim-stays-free",
        "claim leaves a free block among the free ones",
        "claim keeps PARTITION",
        _in_step("claim", _never_writes("used")),
    ),
    Fault(
        "claim-own-tokens",
        "claim compares the tokens of the block and not its chain hash",
        "claim ensures CONTENT",
        _in_step("claim", _asks("CONTENT", _same_tokens)),
    ),
    Fault(
        "claim-after-gap",
        "claim accepts a hit behind an entry that is not computed",
        "claim keeps CONTENT",
        _in_step("claim", _never_asks("HEAD")),
    ),
    Fault(
        "register-unchained",
        "register hashes the block's own tokens without the prefix before them",
        "register ensures INDEX-CHAIN",
        _in_step("register", _unchained),
    ),
    Fault(
        "register-past-end",
        "register accepts an entry that the table does not have",
        "register keeps BOUNDS",
        _in_step("register", _never_asks("COVERS")),
    ),
    Fault(
        "register-unstored",
        "register points the index at the block without storing its hash",
        "register keeps INDEX-MATCH",
        _in_step("register", _never_writes("hash")),
    ),
    Fault(
        "register-wrong-block",
        "register points the index at another block",
        "register keeps INDEX-MATCH",
        _in_step("register", _writes("index", lambda logic, z, at, old: logic.integer(0))),
    ),
    Fault(
        "register-ahead",
        "register counts one block more as computed than it registers",
        "register keeps BOUNDS",
        _in_step("register", _writes("computed", lambda logic, z, at, old: old + 1)),
    ),
    Fault(
        "register-other-tokens",
        "register does not store the tokens of the block",
        "register keeps INDEX-CHAIN",
        _in_step("register", _never_writes("content")),
    ),
    Fault(
        "freed-too-early",
        "pop frees a block that one sequence still holds",
        "pop keeps PARTITION",
        _in_step(
            "pop", _writes("used", lambda logic, z, at, old: logic.all(old, z.references[_last_block(z, at)[0]] > 2))
        ),
    ),
    Fault(
        "never-freed",
        "pop leaves a block in use that nobody holds any more",
        "pop keeps PARTITION",
        _in_step("pop", _never_writes("used")),
    ),
    Fault(
        "pop-uncounted",
        "pop does not count the reference as dropped",
        "pop keeps REFCOUNT",
        _in_step("pop", _never_writes("references")),
    ),
    Fault(
        "pop-still-computed",
        "pop leaves the entry that it dropped among the computed ones",
        "pop keeps BOUNDS",
        _in_step("pop", _never_writes("computed")),
    ),
    Fault(
        "pop-still-owned",
        "pop leaves the sequence among the owners of the block",
        "pop keeps OWNER-HOLDS",
        _in_step("pop", _never_writes("owners")),
    ),
    Fault(
        "erased-on-release",
        "pop erases the block although others may hold it",
        "pop keeps CONTENT",
        _in_step("pop", _also_writes("identity", _last_block, lambda logic, z, at: logic.nothing)),
    ),
    Fault(
        "none-as-key",
        "the invariant on the index allows an entry under the value for 'no hash'",
        "register keeps INDEX-MATCH",
        _in_invariant(
            "INDEX-MATCH",
            lambda logic, z, h: logic.implies(
                z.index[h] != NONE, logic.all(logic.is_block(z.index[h]), z.hash[z.index[h]] == h)
            ),
        ),
    ),
    Fault(
        "any-prefix-under-key",
        "the invariant on stored hashes does not say whose hash it is",
        "claim ensures CONTENT",
        _in_invariant(
            "INDEX-CHAIN",
            lambda logic, z, b: logic.implies(
                logic.all(logic.is_block(b), z.hash[b] != NONE),
                logic.all(z.identity[b] != logic.nothing, z.content[b] == logic.last(z.identity[b])),
            ),
        ),
    ),
    Fault(
        "shared-uncomputed",
        "the invariant on uncomputed entries allows two sequences to hold one",
        "register ensures NO-CLOBBER",
        _in_invariant(
            "UNCOMPUTED-PRIVATE",
            lambda logic, z, s, t: logic.implies(
                logic.all(z.computed[s] <= t, t < z.length[s]), z.references[z.table[s][t]] >= 1
            ),
        ),
    ),
    Fault(
        "content-of-all",
        "the invariant on content speaks of entries that are not computed yet",
        "take keeps CONTENT",
        _in_invariant(
            "CONTENT",
            lambda logic, z, s, t: logic.implies(
                logic.all(t >= 0, t < z.length[s]), z.identity[z.table[s][t]] == logic.prompt(s, t)
            ),
        ),
    ),
    Fault(
        "erased-twin-entry",
        "take erases the index entry under the block's hash even if it names another block",
        "take leaves every other block and its index entry",
        _in_step("take", _writes("index", lambda logic, z, at, old: logic.integer(NONE))),
    ),
    Fault(
        "closed-index",
        "an added invariant says that the index is closed under prefixes; a parent can be recycled before its child",
        "take keeps INDEX-CLOSED",
        replace(TEXT, invariants=TEXT.invariants | {"INDEX-CLOSED": _CLOSED}),
    ),
)
