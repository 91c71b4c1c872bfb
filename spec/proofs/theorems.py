"""What follows from the invariants, beyond that each step keeps them.

Loops (an admission of any length, a pool of any size) are proved by induction: one condition says that the first case
holds, another that each case gives the next.  What the solver is given besides the invariants is written out here.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import z3

from ..steps import NONE, Step, key_of
from .conditions import (
    ARGUMENTS,
    BASIS,
    TEXT,
    Condition,
    Text,
    all_invariants,
    perform,
    step_conditions,
)
from .terms import INT, NUMBERS, POOL_SIZE, Ledger, Terms, any_ledger, for_all, prompt, unrolled

member, put, drop, size, some = NUMBERS.member, NUMBERS.put, NUMBERS.drop, NUMBERS.size, NUMBERS.some
_b, _k, _k2, _s, _t, _s2, _t2 = z3.Ints("any_b any_k any_k2 any_s any_t any_s2 any_t2")


def consequence_conditions(text: Text = TEXT) -> Iterator[Condition]:
    """What the invariants mean for a reader who does not trust their wording: stated again, from outside the text."""
    z = any_ledger()
    held = (*BASIS, *all_invariants(text, z, Terms()))
    for clause, name, further, goal in (*_about_tables(z), *_about_blocks(text, z)):
        yield Condition(name, "what the invariants mean", clause, (*held, *further), goal)


# What is counted besides table entries: keys of the index, free blocks.
COUNTING = (*BASIS, *NUMBERS.facts.values())

Statement = tuple[str, str, tuple[Any, ...], Any]


def _about_tables(z: Ledger) -> Iterator[Statement]:
    first, second = z.table[_s][_t], z.table[_s2][_t2]
    entry, entry2 = z3.And(_t >= 0, _t < z.length[_s]), z3.And(_t2 >= 0, _t2 < z.length[_s2])
    right = z3.Implies(z3.And(_t >= 0, _t < z.computed[_s]), z.identity[first] == prompt(_s, _t))
    yield "CONTENT", "computed entries hold the prefix of their sequence", (), right
    twice = z3.And(entry, entry2, _s == _s2, _t != _t2)
    yield "HOLDER-OWNS", "no block is twice in a table", (), z3.Implies(twice, first != second)
    both = z3.And(entry, entry2, _s != _s2, first == second)
    shared = z3.And(_t == _t2, prompt(_s, _t) == prompt(_s2, _t2), _t < z.computed[_s], _t2 < z.computed[_s2])
    yield "NO-CLOBBER", "tables share equal computed prefixes only", (), z3.Implies(both, shared)
    in_use = z3.And(z.used[first], z.references[first] >= 1)
    yield "PARTITION", "a block in a table is not free", (entry,), in_use


def _about_blocks(text: Text, z: Ledger) -> Iterator[Statement]:
    logic, o, b = Terms(), ARGUMENTS["o"], ARGUMENTS["b"]
    empty = for_all([_s], z.length[_s] == 0, z.length[_s])
    free = z3.Implies(logic.is_block(_b), z3.And(z3.Not(z.used[_b]), z.references[_b] == 0))
    yield "NO-LEAK", "with all tables empty every block is free", (empty,), free
    key = key_of(logic, z, o, z.length[o])
    looked_up = z3.And(logic.is_block(z.index[key]), z.hash[z.index[key]] == key)
    yield "INDEX-MATCH", "what the index names under a key has that key", (z.index[key] != NONE,), looked_up
    hit = (unrolled(o, z.length[o]), *text.steps["claim"][0](logic, z, o, b).requires.values())
    uncomputed = z3.And(z.computed[_s] <= _t, _t < z.length[_s], z.table[_s][_t] == b)
    yield "COMPUTED", "a block that is hit is no uncomputed entry", hit, z3.Not(uncomputed)


def frame_conditions(text: Text = TEXT) -> Iterator[Condition]:
    """What a step leaves alone."""
    for name in text.steps:
        done = perform(text, name, Terms())
        z, after = done.before, done.after
        kept = z3.And(_t >= 0, _t < z.length[_s], _t < after.length[_s])
        stable = z3.Implies(kept, after.table[_s][_t] == z.table[_s][_t])
        yield Condition(
            f"{name} changes no table entry that stays", "what a step leaves alone", "STABLE", done.premises, stable
        )
        read = z3.And(_t >= 0, _t < z.computed[_s], _t < after.length[_s])
        same = z3.Implies(read, after.identity[z.table[_s][_t]] == z.identity[z.table[_s][_t]])
        yield Condition(
            f"{name} overwrites no computed entry", "what a step leaves alone", "NO-CLOBBER", done.premises, same
        )
        yield from _survival(name, done.before, done.after, done.premises)


def _survival(name: str, z: Ledger, after: Ledger, premises: tuple[Any, ...]) -> Iterator[Condition]:
    intact = z3.And(
        after.hash[_b] == z.hash[_b], after.content[_b] == z.content[_b], after.identity[_b] == z.identity[_b]
    )
    if name in ("pop", "claim"):
        yield Condition(
            f"{name} leaves all content findable", "what a step leaves alone", "SURVIVES-RELEASE", premises, intact
        )
    if name == "take":
        named = z3.And(z.index[_k] == _b, _b != NONE)
        twin = z3.Implies(
            z3.And(_b != ARGUMENTS["b"], Terms.is_block(_b)),
            z3.And(intact, z3.Implies(named, after.index[_k] == _b)),
        )
        yield Condition(
            "take leaves every other block and its index entry", "what a step leaves alone", "TWIN", premises, twin
        )


# The index is never larger than the pool ----------------------------------------------------------------------------


def _fits(group: Any, number: Any, names: Any) -> Any:
    """`names` maps the members of the group into 0 … number - 1, no two to the same."""
    inside = for_all([_k], z3.Implies(member(group, _k), z3.And(names[_k] >= 0, names[_k] < number)), member(group, _k))
    apart = z3.Implies(z3.And(member(group, _k), member(group, _k2), names[_k] == names[_k2]), _k == _k2)
    return z3.And(inside, for_all([_k, _k2], apart, z3.MultiPattern(member(group, _k), member(group, _k2))))


def index_conditions(text: Text = TEXT) -> Iterator[Condition]:
    """Entries name different blocks, so they are not more than the blocks: by induction on the size of the pool."""
    group, last, number = z3.Const("keys", NUMBERS.sort), z3.Int("last_key"), z3.Int("number")
    names = z3.Array("names", INT, INT)
    subject, clause = "size of the index", "INDEX-BOUNDED"
    start = (*COUNTING, _fits(group, 0, names))
    yield Condition("a set named in no blocks is empty", subject, clause, start, size(group) <= 0)
    step = (*COUNTING, number >= 0, _fits(group, number + 1, names))
    taken = z3.And(member(group, last), names[last] == number)
    without, smaller = drop(group, last), z3.Implies(_fits(group, number, names), size(group) <= number)
    unnamed = for_all([_k], z3.Implies(member(group, _k), names[_k] != number), member(group, _k))
    goal = size(group) <= number + 1
    yield Condition("one block more, which nobody names", subject, clause, (*step, smaller, unnamed), goal)
    fewer = z3.Implies(_fits(without, number, names), size(without) <= number)
    yield Condition("one block more, which one key names", subject, clause, (*step, taken, fewer), goal)
    z = any_ledger()
    entries = for_all([_k], z3.Implies(member(group, _k), z.index[_k] != NONE), member(group, _k))
    held = (*COUNTING, *all_invariants(text, z, Terms()), entries)
    pigeons = z3.Implies(_fits(group, POOL_SIZE, z.index), size(group) <= POOL_SIZE)
    yield Condition(
        "the index has at most one entry a block", subject, clause, (*held, pigeons), size(group) <= POOL_SIZE
    )


# Room: an admission fits exactly if the blocks it needs, less the hits that are in use, are free --------------------

_free = z3.Const("free", NUMBERS.sort)
_F, _n, _hits, _live, _i, _u, _j = z3.Ints("free_before needed hits hits_in_use claimed claimed_in_use taken")
_entry_of = z3.Array("entry_of", INT, INT)
_used_before = z3.Array("used_before", INT, z3.BoolSort())


def _is_free_set(z: Ledger, group: Any) -> Any:
    right = member(group, _b) == z3.And(Terms.is_block(_b), z3.Not(z.used[_b]))
    return for_all([_b], right, member(group, _b), z.used[_b])


def _free_after(name: str, done_step: Step, z: Ledger) -> tuple[Any, Any]:
    """The set of free blocks after a step, and by how much it grew."""
    b = z.table[ARGUMENTS["o"]][z.length[ARGUMENTS["o"]] - 1] if name == "pop" else ARGUMENTS["b"]
    if name == "register":
        return _free, z3.IntVal(0)
    if name == "pop":
        gone = z.references[b] == 1
        return z3.If(gone, put(_free, b), _free), z3.If(gone, 1, 0)
    return drop(_free, b), z3.If(z.used[b], 0, -1)


def room_conditions(text: Text = TEXT) -> Iterator[Condition]:
    """YES-MEANS-YES and NO-MEANS-NO: claims first, then takes; the count of free blocks tells beforehand if all fit."""
    for name in text.steps:
        yield from _free_count(text, name)
    yield from _claims_loop(text)
    yield from _takes(text)


def _free_count(text: Text, name: str) -> Iterator[Condition]:
    done = perform(text, name, Terms())
    later, grown = _free_after(name, done.step, done.before)
    premises = (*COUNTING, *done.premises, _is_free_set(done.before, _free))
    right = member(later, _b) == z3.And(Terms.is_block(_b), z3.Not(done.after.used[_b]))
    yield Condition(f"the free blocks after {name}", "room", "YES-MEANS-YES", premises, right)
    yield Condition(
        f"the number of free blocks after {name}", "room", "YES-MEANS-YES", premises, size(later) == size(_free) + grown
    )


def _only_own_claims(z: Ledger, entry_of: Any) -> Any:
    """Since the admission began, a block came into use only because this sequence claimed it, for entry `entry_of`."""
    own = z3.Or(_used_before[_b], z.owners[_b][ARGUMENTS["o"], entry_of[_b]])
    return for_all([_b], z3.Implies(Terms.is_block(_b), z.used[_b] == own), z.used[_b])


def _claims_loop(text: Text) -> Iterator[Condition]:
    """After i claims, u of them of blocks in use before, i - u blocks fewer are free."""
    o, b, start = ARGUMENTS["o"], ARGUMENTS["b"], any_ledger()
    begun = (*COUNTING, *all_invariants(text, start, Terms()), start.length[o] == 0)
    begun = (*begun, for_all([_b], start.used[_b] == _used_before[_b], start.used[_b]))
    yield Condition("an admission begins", "room", "NO-MEANS-NO", begun, _only_own_claims(start, _entry_of))
    done = perform(text, "claim", Terms())
    z, count = done.before, size(_free) == _F - (_i - _u)
    premises = (*COUNTING, *done.premises, _is_free_set(z, _free), _only_own_claims(z, _entry_of), count)
    more = _u + z3.If(_used_before[b], 1, 0)
    fewer = size(drop(_free, b)) == _F - (_i + 1 - more)
    yield Condition("a claim costs a block only if it was free", "room", "NO-MEANS-NO", premises, fewer)
    own = _only_own_claims(done.after, z3.Store(_entry_of, b, z.length[ARGUMENTS["o"]]))
    yield Condition("a claim changes only its own block", "room", "NO-MEANS-NO", premises, own)


def _takes(text: Text) -> Iterator[Condition]:
    """With all claims done and j blocks taken: the next take is possible as long as the arithmetic says so."""
    z, o, b = any_ledger(), ARGUMENTS["o"], ARGUMENTS["b"]
    count = z3.And(_live >= 0, _live <= _hits, _hits <= _n, _j >= 0, size(_free) == _F - (_hits - _live) - _j)
    held = (*COUNTING, *all_invariants(text, z, Terms()), _is_free_set(z, _free), count)
    step, _ = text.steps["take"]
    possible = z3.And(*step(Terms(), z, o, some(_free)).requires.values())
    enough = (_n - _live <= _F, _j < _n - _hits)
    yield Condition("with enough room every take is possible", "room", "YES-MEANS-YES", (*held, *enough), possible)
    asked = z3.And(*step(Terms(), z, o, b).requires.values())
    yield Condition("a take needs a free block", "room", "NO-MEANS-NO", (*held, asked), size(_free) >= 1)
    all_taken = _j == _n - _hits
    yield Condition(
        "all takes done means that there was room", "room", "NO-MEANS-NO", (*held, all_taken), _n - _live <= _F
    )


# A refused admission changes nothing --------------------------------------------------------------------------------


def refusal_conditions(text: Text = TEXT) -> Iterator[Condition]:
    """Room is counted before the first step, so a refusal is no step at all; and claims can be taken back."""
    done = perform(text, "claim", Terms())
    z, claimed = done.before, done.after
    undone = claimed.after(text.steps["pop"][0](Terms(), claimed, ARGUMENTS["o"]))
    held = [
        getattr(undone, name)[_b] == getattr(z, name)[_b]
        for name in ("references", "used", "hash", "content", "identity")
    ]
    held += [undone.owners[_b][_s, _t] == z.owners[_b][_s, _t], undone.length[_s] == z.length[_s]]
    held += [undone.computed[_s] == z.computed[_s]]
    same = z3.Implies(Terms.is_block(_b), z3.And(*held))
    yield Condition(
        "a claim taken back leaves every block and every length as it was", "refusal", "ATOMIC", done.premises, same
    )


# Tokens and blocks --------------------------------------------------------------------------------------------------


def arithmetic_conditions(text: Text = TEXT) -> Iterator[Condition]:
    """Block rounding for any block size: at least one token is left, the table is neither short nor long."""
    tokens, block, hits = z3.Ints("tokens block_size hits")
    blocks = (tokens + block - 1) / block
    sizes = (tokens >= 1, block >= 1)
    exact = z3.And(blocks * block >= tokens, (blocks - 1) * block < tokens)
    yield Condition("rounding up is exact", "block rounding", "COVERS", sizes, exact)
    # Products of unknowns: the solver is given the one product it needs.
    q = z3.Int("blocks")
    rounded = (*sizes, q * block >= tokens, (q - 1) * block < tokens, hits >= 0, hits <= q - 1)
    product = (q - 1 - hits) * block >= 0
    yield Condition(
        "all blocks but the last leave a token",
        "block rounding",
        "PROGRESS",
        (*rounded, product),
        hits * block < tokens,
    )


def any_hash_text(text: Text = TEXT) -> Text:
    """The text with the repaired hit rule: a hit also compares the prefix that the block follows."""

    def claim_after_parent(logic: Any, z: Any, o: Any, b: Any) -> Step:
        step, t = text.steps["claim"][0](logic, z, o, b), z.length[o]
        before = logic.choose(t == 0, logic.nothing, z.identity[z.table[o][t - 1]])
        same_parent = logic.all(z.identity[b] != logic.nothing, logic.before(z.identity[b]) == before)
        return step._replace(requires=step.requires | {"PARENT": same_parent})

    return replace(text, steps=text.steps | {"claim": (claim_after_parent, "ob")})


def any_hash_conditions(text: Text = TEXT) -> Iterator[Condition]:
    """With the repaired hit rule every condition on steps and every theorem is proved without assumption on the hash."""
    repaired = any_hash_text(text)
    for condition in (*step_conditions(repaired), *theorems(repaired)):
        yield replace(condition, name=f"repaired hit rule: {condition.name}", subject="repaired hit rule")


def theorems(text: Text = TEXT) -> Iterator[Condition]:
    """All of the above but the repaired hit rule, which is another text."""
    for conditions in (
        consequence_conditions,
        frame_conditions,
        index_conditions,
        room_conditions,
        refusal_conditions,
        arithmetic_conditions,
    ):
        yield from conditions(text)
