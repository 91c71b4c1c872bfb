"""The judge: the transition relation between what was asked, what was answered, and what must then be true.

``judge(state, operation, outcome)`` returns the next state, or the violation.  It never chooses a block or a victim; it
rules on what the manager chose, by replaying each operation as micro-steps (``steps``) with the manager's own blocks and
by writing the shadow KV memory.  Above each check stands the sentence of its clause.  What the extensions add is in
``extension_rules``, which enters its rules in the tables below.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import operations as op
from .clauses import CLAUSES
from .declaration import Covers, Declaration, FullHit, Publish
from .invariants import STATE_INVARIANTS
from .ledger import Concrete, Ledger
from .merging import is_merged, kept_entries
from .state import EMPTY, Prefixes, SequenceState, Snapshot, State, World
from .steps import STEPS


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken clause, why it is broken, and where (sequence, position of the token, block), as far as that applies."""

    clause: str
    because: str
    sequence: str | None = None
    position: int | None = None
    block: int | None = None


class Breach(Exception):
    """Carries a violation out of the rules; never leaves this module."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(violation.clause, violation.because)
        self.violation = violation


class Illegal(ValueError):
    """The operation is one that no scheduler may ask for in this state; the message says why."""


def begin(world: World, declaration: Declaration, prefixes: Prefixes | None = None) -> State:
    """The state before the first operation: all blocks free, nothing in the shadow KV memory."""
    blocks = declaration.block_ids(world.blocks)
    state = State(world, declaration, prefixes or Prefixes(), Ledger(), blocks)
    state.freed = dict.fromkeys(sorted(blocks), (0, 0))
    return state


def judge(
    state: State, operation: op.Operation, outcome: op.Outcome, shown: Snapshot | None = None
) -> State | Violation:
    """The state after `operation` had `outcome`, or the clause that this breaks; `state` itself is left alone."""
    after = state.copy()
    return advance(after, operation, outcome, shown) or after


def advance(
    state: State, operation: op.Operation, outcome: op.Outcome, shown: Snapshot | None = None
) -> Violation | None:
    """As ``judge``, but in place.  Raises Illegal if no scheduler may ask for this operation now."""
    if reason := illegal(state, operation):
        raise Illegal(reason)
    asked, state.asked = state.asked, None
    try:
        if asked is not None:
            FOLLOW_UPS[type(asked[0])](state, *asked, operation, outcome)
        _rule_on(state, operation, outcome, shown)
        if shown is not None and (state.declaration.repoints or state.declaration.evicts_early):
            CACHE_RULES["shown"](state, shown)
        state.shown = shown
        if shown is not None:
            _inspect(state, shown)
    except Breach as breach:
        return breach.violation
    return None


def breach(state: State, clause: str, because: str, **where: Any) -> None:
    """Raise the violation, or note it if the clause is muted."""
    violation = Violation(CLAUSES[clause].slug, because, **where)
    if clause not in state.muted:
        raise Breach(violation)
    state.noted.append(violation)


# What a scheduler may ask for ------------------------------------------------------------------------------------


def illegal(state: State, operation: op.Operation) -> str | None:
    """Why no scheduler may ask for `operation` now, or None: the caller's half of the contract."""
    if isinstance(operation, op.Commit):
        return _illegal_commit(state, operation)
    if rule := LEGALITY.get(type(operation)):
        return rule(state, operation)
    sequence = state.sequences.get(operation.sequence)  # type: ignore[union-attr]  # no extension comes this far
    if isinstance(operation, op.Admit):
        return "the sequence is live" if sequence else _illegal_admit(operation)
    if sequence is None:
        again = isinstance(operation, op.Release) and operation.sequence in state.released
        return None if again else "the sequence is not live"
    in_flight = sequence.reserved or sequence.unread
    if isinstance(operation, op.Reserve):
        fits = 1 <= operation.count <= len(sequence.tokens) - sequence.computed
        return None if fits and not in_flight else "nothing to reserve, or the last reservation is not committed"
    if isinstance(operation, op.Append):
        done = sequence.computed == len(sequence.tokens) and not in_flight and not sequence.drafts
        return None if done else "a token is sampled only when all tokens are computed, and no guess"
    return "the sequence is in flight" if in_flight and not state.declaration.release_in_flight else None


def _illegal_admit(operation: op.Admit) -> str | None:
    return None if operation.tokens and operation.limit >= 1 else "no tokens, or nothing may be reserved"


def _illegal_commit(state: State, operation: op.Commit) -> str | None:
    flying = {name for name, sequence in state.sequences.items() if sequence.reserved or sequence.unread}
    asked = set(operation.sequences)
    if not asked or len(asked) != len(operation.sequences) or not asked <= flying:
        return "a commit names sequences with reserved tokens, each once"
    whole = not state.declaration.same_step_hit or asked == flying
    return None if whole else "with hits inside a step, the step is committed as a whole"


# One rule an operation -------------------------------------------------------------------------------------------


def _rule_on(state: State, operation: op.Operation, outcome: op.Outcome, shown: Snapshot | None) -> None:
    if isinstance(outcome, op.Nonsense):
        # ANSWER: an answer has the right type and lies in range
        breach(state, "ANSWER", outcome.answer)
    elif isinstance(outcome, op.Failed):
        _failed(state, operation, outcome, shown)
    elif isinstance(outcome, op.Refused):
        _refused(state, operation, outcome, shown)
    else:
        RULES[type(operation)](state, operation, outcome, shown)


def _failed(state: State, operation: op.Operation, outcome: op.Failed, shown: Snapshot | None) -> None:
    oversized = isinstance(operation, op.Admit) and _never_fits(state, operation)
    if oversized and outcome.clear and not outcome.promised:
        unchanged(state, shown, "ATOMIC")
    elif outcome.promised:
        # YES-MEANS-YES: an affirmative answer is followed by success
        breach(state, "YES-MEANS-YES", f"the manager agreed, then {outcome.words}")
    else:
        # TOTAL: a legal operation gets an answer, not an exception
        breach(state, "TOTAL", f"the manager {outcome.words}")


def _refused(state: State, operation: op.Operation, outcome: op.Refused, shown: Snapshot | None) -> None:
    if refusal := REFUSALS.get(type(operation)):
        refusal(state, operation, outcome, shown)
        return
    # ATOMIC: a refused or failed operation changes nothing
    unchanged(state, shown, "ATOMIC")
    if not isinstance(operation, op.Admit | op.Reserve):
        # ANSWER: an answer has the right type and lies in range
        raise Breach(Violation("ANSWER", "only admit and reserve can be refused"))
    needed, free = _needed(state, operation), len(state.freed) - state.declaration.withheld
    # NO-MEANS-NO: a request is refused only if it truly does not fit
    if needed <= free and not (isinstance(operation, op.Admit) and _never_fits(state, operation)):
        breach(state, "NO-MEANS-NO", f"it was refused, but needs {needed} free blocks and there are {free}")
    _check_reason(state, operation, outcome)


def _check_reason(state: State, operation: op.Admit | op.Reserve, outcome: op.Refused) -> None:
    never, said_never = _never_fits(state, operation), outcome.reason is op.Reason.TOO_LARGE
    if never != said_never and (isinstance(operation, op.Admit) or said_never):
        said = "'never', but it fits into the empty pool" if said_never else "'not now', but it never fits"
        # OVERSIZED: a prompt that can never fit is told apart from a pool that is full now
        breach(state, "OVERSIZED", f"the answer was {said} ({state.world.blocks} blocks)")


def unchanged(state: State, shown: Snapshot | None, clause: str) -> None:
    """The manager must show what it showed before, or `clause` is broken."""
    early = clause == "ATOMIC" and state.declaration.evicts_early  # for room, which only admit and reserve ask for
    before = CACHE_RULES["refused"](state.shown, shown) if early else state.shown
    if shown is not None and before is not None and shown != before:
        fields = [name for name in Snapshot.__slots__ if getattr(shown, name) != getattr(before, name)]
        breach(state, clause, f"nothing may change, but the manager's {', '.join(fields)} did")


def _admit(state: State, operation: op.Admit, outcome: op.Admitted, shown: Snapshot | None) -> None:
    tokens = operation.tokens
    root = state.prefixes.child(EMPTY, operation.namespace)
    prefixes = state.prefixes.extend(root, tokens)
    sequence = SequenceState(list(tokens), prefixes, outcome.table, outcome.cached, outcome.reserved)
    sequence.admitted = len(tokens)
    _check_answer(state, operation, outcome)
    _check_table(state, operation.sequence, sequence)
    hits = blocks_for(state, outcome.cached)
    check_bars(state, operation.sequence, outcome.table[:hits])
    _check_hit(state, operation.sequence, sequence)
    lost = _lost_hit(state, sequence, hits, operation.namespace)
    sequence.findable = outcome.cached // state.world.block_size
    state.sequences[operation.sequence] = sequence
    state.released.discard(operation.sequence)
    for entry, block in enumerate(outcome.table[:hits]):
        partly = (entry + 1) * state.world.block_size > outcome.cached
        (_share if partly and _holds_other(state, operation.sequence, entry, block) else _claim)(
            state, operation.sequence, block
        )
    _obtain(state, operation.sequence, outcome.table[hits:])
    if state.declaration.publish is Publish.RESERVE:
        register(state, operation.sequence, outcome.cached + outcome.reserved)
    if lost:
        breach(state, lost[0], lost[1], sequence=operation.sequence, position=outcome.cached)


def _check_answer(state: State, operation: op.Admit, outcome: op.Admitted) -> None:
    length, size = len(operation.tokens), state.world.block_size
    planned = min(operation.limit, length - outcome.cached)
    # ANSWER: an answer has the right type and lies in range
    if not (0 <= outcome.cached <= length and outcome.reserved == planned):
        breach(state, "ANSWER", f"{outcome.cached} cached and {outcome.reserved} reserved of {length} tokens")
    # PROGRESS: at least one token is left to compute
    if outcome.cached >= length and state.declaration.full_hit is not FullHit.NOTHING:
        breach(state, "PROGRESS", f"all {length} tokens are cached: nothing is left to compute", position=length - 1)
    # ALIGNED: a hit is a whole number of blocks
    if outcome.cached % size and not (
        state.declaration.full_hit is FullHit.LAST_TOKEN and outcome.cached == length - 1
    ):
        breach(state, "ALIGNED", f"{outcome.cached} cached tokens are not a multiple of the block size {size}")


def _check_table(state: State, name: str, sequence: SequenceState, held: int = 0) -> None:
    """`held`: so many entries it had before, which it may keep."""
    ready = sequence.computed + sequence.reserved
    least = blocks_for(state, ready)
    known = state.declaration.covers is Covers.KNOWN
    most = {Covers.RESERVED: least, Covers.KNOWN: blocks_for(state, len(sequence.tokens))}
    # ANSWER: an answer has the right type and lies in range
    if not state.blocks.issuperset(sequence.table):
        alien = min(set(sequence.table) - state.blocks)
        breach(state, "ANSWER", f"the table of {name} names {alien}, which is not a block of the pool", sequence=name)
    # COVERS: the table has room for what is reserved, exactly where declared
    if len(sequence.table) < least:
        blocks = f"{len(sequence.table)} blocks of {state.world.block_size}"
        breach(state, "COVERS", f"the table has {blocks} for {ready} computed and reserved tokens", sequence=name)
    if len(sequence.table) != max(held, most.get(state.declaration.covers, len(sequence.table))):
        covered = f"all {len(sequence.tokens)} known" if known else f"the {ready} computed and reserved"
        breach(
            state, "COVERS", f"the table has {len(sequence.table)} blocks; declared is exactly {covered}", sequence=name
        )


def check_bars(state: State, name: str, hit: tuple[int, ...]) -> None:
    """No hit on a block that an extension hides."""
    for block in hit if state.barred else ():
        if block in state.barred:
            clause, because = state.barred[block]
            breach(state, clause, f"block {block} is cached for {name}, but {because}", sequence=name, block=block)


def _check_hit(state: State, name: str, sequence: SequenceState) -> None:
    if state.declaration.same_step_hit:
        sequence.unread = sequence.computed
    else:
        read(state, name, sequence, sequence.computed)


def read(state: State, name: str, sequence: SequenceState, count: int) -> None:
    """Read the first `count` positions: each slot must hold the K/V of exactly the prefix that ends there."""
    size = state.world.block_size
    for position in range(count):
        block = sequence.table[position // size]
        found = state.memory.get(block * size + position % size, EMPTY)
        where = {"sequence": name, "position": position, "block": block}
        if _being_computed(state, name, block, position % size):
            # COMPUTED: a block is hit only after its K/V was computed
            breach(state, "COMPUTED", f"block {block} is cached for {name}, but its K/V is not computed yet", **where)
        elif found != sequence.prefixes[position]:
            held = f"the K/V of {list(state.prefixes.spell(found))}" if found != EMPTY else "nothing"
            wanted = list(state.prefixes.spell(sequence.prefixes[position]))
            # CONTENT: each cached token is backed by K/V of exactly its prefix and namespace
            breach(
                state,
                "CONTENT",
                f"position {position} of {name} needs the K/V of {wanted}; its slot holds {held}",
                **where,
            )


def _being_computed(state: State, reader: str, block: int, offset: int) -> bool:
    """Does another sequence hold this slot for a token that it has not computed yet (and does not compute only again)?"""
    for owner, entry in state.ledger.owners[block]:
        if owner == reader:
            continue
        sure = state.declaration.merges or state.declaration.publish is not Publish.RESERVE
        again = sure and entry < state.ledger.computed[owner]
        if state.holder(owner).computed <= entry * state.world.block_size + offset and not again:
            return True
    return False


def _reserve(state: State, operation: op.Reserve, outcome: op.Reserved, shown: Snapshot | None) -> None:
    sequence = state.sequences[operation.sequence]
    before, sequence.table = sequence.table, outcome.table
    sequence.reserved = operation.count
    kept = kept_entries(state, sequence, before, outcome.table)
    _check_stable(state, operation.sequence, before[:kept], outcome.table, more=state.world.blocks)
    _check_table(state, operation.sequence, sequence, held=len(before))
    if kept < len(before):
        give_back(state, operation.sequence, before, keep=kept)
        sequence.unread = sequence.computed
    _obtain(state, operation.sequence, outcome.table[kept:])
    if sequence.drafts:
        hide_drafts(state, sequence)
    if state.declaration.publish is Publish.RESERVE:
        planned = sequence.computed + sequence.reserved
        register(state, operation.sequence, min(planned, len(sequence.tokens) - sequence.drafts))


def hide_drafts(state: State, sequence: SequenceState) -> None:
    """The blocks of draft tokens may not be found, from now on."""
    first = (len(sequence.tokens) - sequence.drafts) // state.world.block_size
    # DRAFT-HIDDEN: a block that holds a draft token is not findable until the token is confirmed
    for block in sequence.table[first:]:
        state.barred.setdefault(block, ("DRAFT-HIDDEN", "it holds draft tokens that are not confirmed and published"))


def _check_stable(state: State, name: str, before: tuple[int, ...], after: tuple[int, ...], more: int = 0) -> None:
    # STABLE: table entries of a live sequence never change
    if after is not before and (after[: len(before)] != before or len(after) > len(before) + more):
        breach(state, "STABLE", f"the table of {name} was {list(before)} and became {list(after)}", sequence=name)


def _commit(state: State, operation: op.Commit, outcome: op.Committed, shown: Snapshot | None) -> None:
    """All writes of the step, then all reads, then the tables that are repointed."""
    tables = dict(zip(operation.sequences, outcome.tables, strict=True))
    for name in operation.sequences if not state.declaration.repoints else ():
        _check_stable(state, name, state.sequences[name].table, tables[name])
    for name in operation.sequences:
        _write(state, name, state.sequences[name])
    for name in operation.sequences:
        sequence = state.sequences[name]
        if sequence.unread:
            read(state, name, sequence, sequence.unread)
            sequence.unread = 0
        register(state, name, sequence.confirmed)
    for name in operation.sequences:
        sequence = state.sequences[name]
        if state.declaration.repoints and tables[name] != sequence.table:
            CACHE_RULES["repointed"](state, name, sequence, tables[name])
        if state.declaration.publish is not Publish.RELEASE:
            findable(state, sequence, sequence.findable, prompt=state.declaration.publish is Publish.PROMPT)


def _write(state: State, name: str, sequence: SequenceState) -> None:
    """The forward pass writes the K/V of the reserved tokens into their slots."""
    size = state.world.block_size
    for position in range(sequence.computed, sequence.computed + sequence.reserved):
        block, offset = sequence.table[position // size], position % size
        if len(state.ledger.owners[block]) > 1:
            _check_clobber(state, name, sequence.prefixes[position], block, offset)
        state.memory[block * size + offset] = sequence.prefixes[position]
    sequence.computed += sequence.reserved
    sequence.reserved = 0


def _check_clobber(state: State, writer: str, written: int, block: int, offset: int) -> None:
    for owner, entry in state.ledger.owners[block]:
        reader, position = state.holder(owner), entry * state.world.block_size + offset
        # NO-CLOBBER: slots of computed tokens of a live sequence are never overwritten
        if owner != writer and position < reader.computed and reader.prefixes[position] != written:
            because = f"{writer} overwrites the K/V of position {position} of {owner}, which is still live"
            breach(state, "NO-CLOBBER", because, sequence=owner, position=position, block=block)


def findable(state: State, sequence: SequenceState, first: int, prompt: bool = False) -> None:
    """From now on the full computed blocks of the sequence (of its `prompt` only), from its `first`, must be found."""
    size, tokens = state.world.block_size, sequence.confirmed
    tokens = min(tokens, sequence.admitted) if prompt else tokens
    sequence.findable = tokens // size
    for end in range((first + 1) * size, tokens + 1, size) if sequence.bar is None else ():
        prefix = sequence.prefixes[end - 1]
        copies = state.copies.setdefault(prefix, set())
        copies.add(sequence.table[end // size - 1])
        if len(copies) > 1:
            state.twinned.add(prefix)


def _append(state: State, operation: op.Append, outcome: op.Appended, shown: Snapshot | None) -> None:
    sequence = state.sequences[operation.sequence]
    sequence.tokens.append(operation.token)
    sequence.prefixes.append(state.prefixes.child(sequence.prefixes[-1], operation.token))


def _release(state: State, operation: op.Release, outcome: op.Released, shown: Snapshot | None) -> None:
    sequence = state.sequences.pop(operation.sequence, None)
    if sequence is None:
        # RELEASE: a release drops exactly the sequence's own references, once
        unchanged(state, shown, "RELEASE")
        return
    finished = operation.cause is op.Cause.FINISHED and state.declaration.publish is Publish.PROMPT
    if state.declaration.publish is Publish.RELEASE or finished:
        findable(state, sequence, sequence.findable if finished else 0)
    state.released.add(operation.sequence)
    give_back(state, operation.sequence, sequence.table)
    state.ledger.forget(operation.sequence)
    if shown is not None:
        check_release(state, sequence, shown)


def give_back(state: State, name: Any, table: tuple[int, ...], keep: int = 0) -> None:
    """Drop the references to a table from its tail, all but the first `keep`."""
    state.releases += 1
    for entry in range(len(table) - 1, keep - 1, -1):
        perform(state, "pop", name)
        if not state.ledger.used[table[entry]]:
            state.freed[table[entry]] = (state.releases, entry)


def check_release(state: State, sequence: SequenceState, shown: Snapshot) -> None:
    """What is shown of the blocks of a table that was just given back."""
    for block in sequence.table if shown.references and not state.declaration.extra_owners else ():
        counted, held = shown.references[block], state.ledger.references[block]  # type: ignore[index]
        # RELEASE: a release drops exactly the sequence's own references, once
        if counted != held:
            breach(state, "RELEASE", f"block {block} is left with {counted} references; {held} are live", block=block)
    gone = not state.sequences and not state.owners and shown.free is not None
    # NO-LEAK: when all sequences are gone every block is free
    if gone and len(set(shown.free or ()) | set(shown.owned or ())) < state.world.blocks:
        breach(
            state,
            "NO-LEAK",
            f"no sequence is left, but only {len(shown.free or ())} of {state.world.blocks} blocks are free",
        )


Rule = Callable[[State, Any, Any, Snapshot | None], None]

RULES: dict[type, Rule] = {
    op.Admit: _admit,
    op.Reserve: _reserve,
    op.Commit: _commit,
    op.Append: _append,
    op.Release: _release,
}

# What the extensions enter, by the type of the operation: when it may be asked, what its refusal means, and what its
# answer says of the operation that comes next.
LEGALITY: dict[type, Callable[[State, Any], str | None]] = {}
REFUSALS: dict[type, Rule] = {}
FOLLOW_UPS: dict[type, Callable[[State, Any, Any, Any, Any], None]] = {}

# What caches that are trees enter (``tree_caches``): when a table is repointed, a snapshot is shown, or a refusal is.
CACHE_RULES: dict[str, Callable[..., Any]] = {}


# Micro-steps with the manager's own blocks --------------------------------------------------------------------------


class StateLogic(Concrete):
    """The concrete reading of ``steps`` in one state of the judge."""

    __slots__ = ("_state",)

    def __init__(self, state: State) -> None:
        self._state = state

    def is_block(self, block: int) -> bool:
        """Is this a block that may be handed out?"""
        return block in self._state.blocks

    def prompt(self, name: str, entry: int) -> int:
        """The prefix that ends with full block `entry` of the sequence."""
        end = (entry + 1) * self._state.world.block_size - 1
        sequence = self._state.sequences.get(name) or self._state.owners.get(name)  # type: ignore[call-overload]
        return sequence.prefixes[end] if sequence and 0 <= end < len(sequence.prefixes) else EMPTY

    def parent(self, prefix: int) -> int:
        """The prefix one block shorter; EMPTY for a first block."""
        before = self._state.prefixes.tail(prefix, self._state.world.block_size)[0]
        return before if self._state.prefixes.parents[before] != EMPTY else EMPTY


def perform(state: State, name: str, *choice: Any) -> None:
    """A micro-step of ``steps`` with the manager's choice."""
    step = STEPS[name][0](StateLogic(state), state.ledger, *choice)
    for conditions in (step.requires, step.ensures):
        for slug, holds in conditions.items():
            if not holds:
                _break(state, slug, name, choice)
    state.ledger.apply(step)


def _break(state: State, slug: str, name: str, choice: tuple[Any, ...]) -> None:
    block = choice[1] if len(choice) > 1 else None
    clause = slug if slug in CLAUSES else "CONTENT"
    breach(state, clause, _REASONS.get((name, slug), "{0}: {1} is not allowed").format(*choice, name), block=block)


_REASONS = {
    ("take", "FRESH"): "{0} was given block {1} as new, but it is not a free block of the pool",
    ("claim", "CONTENT"): "{0} was given block {1} as cached, but it does not hold that block of its prompt",
    (
        "register",
        "NO-CLOBBER",
    ): "{0} filled a block that it shares with another sequence, which is going to write it too",
}


def _take(state: State, name: str, block: int) -> None:
    if block in state.freed:
        _check_order(state, block)
    forgotten = state.ledger.hash[block]
    # FRESH: a block handed out as new was free and is in no live table
    perform(state, "take", name, block)
    state.freed.pop(block, None)
    uncopy(state, forgotten, block)
    state.barred.pop(block, None)
    if bar := state.sequences[name].bar:
        state.barred[block] = bar


def uncopy(state: State, prefix: int, block: int) -> None:
    """A block with this prefix need not be found any more."""
    copies = state.copies.get(prefix)
    if copies:
        copies.discard(block)
        if not copies:
            del state.copies[prefix]
            state.twinned.discard(prefix)


def _obtain(state: State, name: str, blocks: tuple[int, ...]) -> None:
    """The blocks of a table behind its hits: fresh ones, or merged ones where that is declared."""
    for block in blocks:
        merged = is_merged(state, name, state.sequences[name], block)
        check_bars(state, name, (block,) if merged else ())
        (_claim if merged else _take)(state, name, block)


def _claim(state: State, name: str, block: int) -> None:
    perform(state, "claim", name, block)
    state.freed.pop(block, None)


def _holds_other(state: State, name: str, entry: int, block: int) -> bool:
    """Is the block anything but the full block `entry` of the sequence?"""
    return bool(state.ledger.hash[block] != StateLogic(state).prompt(name, entry) or state.ledger.hash[block] == EMPTY)


def _share(state: State, name: str, block: int) -> None:
    """A hit on the first slots of a block: the sequence holds it, too, and is going to write the slots behind them."""
    ledger, entry = state.ledger, state.ledger.length[name]
    ledger.owners[block].add((name, entry))
    ledger.table[name][entry], ledger.length[name] = block, entry + 1
    ledger.references[block], ledger.used[block] = ledger.references[block] + 1, True
    state.freed.pop(block, None)
    uncopy(state, ledger.hash[block], block)


def register(state: State, name: str, computed: int) -> None:
    """Register the blocks that are full of the first `computed` tokens."""
    for entry in range(state.ledger.computed[name], computed // state.world.block_size):
        perform(state, "register", name)
        if state.barred:
            lift_bar(state, state.sequences[name].table[entry])


def lift_bar(state: State, block: int) -> None:
    """All that the block holds is confirmed now; what is older than a reset stays hidden."""
    if state.barred.get(block, ("", ""))[0] != "RESET":
        state.barred.pop(block, None)


def _check_order(state: State, block: int) -> None:
    release, entry = state.freed[block]
    oldest = next(iter(state.freed.values()))[0]
    # FIFO: blocks are recycled in the order in which they became free
    if release != oldest:
        breach(state, "FIFO", f"block {block} is recycled before blocks that became free earlier", block=block)
    if release == 0 or {"FIFO", "TAIL-FIRST"} <= state.muted:
        return
    for other, (when, position) in state.freed.items():
        if when > release:
            break
        # TAIL-FIRST: of one sequence the tail is recycled before its head
        if when == release and position > entry:
            breach(
                state,
                "TAIL-FIRST",
                f"block {block} is recycled before block {other}, further back in its sequence",
                block=block,
            )


# What must be found, and what must fit ------------------------------------------------------------------------------


def blocks_for(state: State, tokens: int) -> int:
    """How many blocks that many tokens need."""
    return -(-tokens // state.world.block_size)


def _chain(state: State, prefixes: list[int], certain: bool) -> list[set[int]]:
    """The copies of each leading block that can be hit; `certain`: only as long as no manager may have lost them."""
    size, chain = state.world.block_size, []
    full_hit = state.declaration.full_hit
    keep = 1 if full_hit is FullHit.LAST_BLOCK or (full_hit is FullHit.LAST_TOKEN and size == 1) else 0
    for end in range(size, len(prefixes) - keep + 1, size):
        copies = state.copies.get(prefixes[end - 1])
        if not copies or (certain and (state.world.weak_hash or prefixes[end - 1] in state.twinned)):
            break
        chain.append(copies)
    return chain


def _lost_hit(state: State, sequence: SequenceState, hits: int, namespace: str) -> tuple[str, str] | None:
    chain = _chain(state, sequence.prefixes, certain=False)
    if len(chain) <= hits:
        return None
    because = f"{hits} blocks were hit, but the K/V of {len(chain)} leading blocks is intact"
    if sequence.prefixes[(hits + 1) * state.world.block_size - 1] in state.twinned:
        # TWIN: recycling one of two equal blocks does not lose the other
        return "TWIN", f"{because}; there were two copies of the missing one"
    if not any(state.ledger.used[block] for block in chain[hits]):
        # SURVIVES-RELEASE: a released block can be hit until it is recycled
        return "SURVIVES-RELEASE", f"{because}; the missing one is free and was not recycled"
    if namespace and state.declaration.namespace_axes:
        # AXES-AGREE: a prefix in use is shared with a sequence of the same namespace, whatever axes that has
        return "AXES-AGREE", f"{because}, in the same namespace {namespace}"
    # NO-LOST-HIT: the hit is the longest chain that is still intact
    return "NO-LOST-HIT", because


def _never_fits(state: State, operation: op.Admit | op.Reserve) -> bool:
    if isinstance(operation, op.Admit):
        return blocks_for(state, len(operation.tokens)) > state.world.blocks
    return _covered(state, operation) > state.world.blocks


def _covered(state: State, operation: op.Reserve) -> int:
    """How many blocks the table must have after a reservation."""
    sequence, known = state.sequences[operation.sequence], state.declaration.covers is Covers.KNOWN
    return blocks_for(state, len(sequence.tokens) if known else sequence.computed + operation.count)


def _needed(state: State, operation: op.Admit | op.Reserve) -> int:
    """The most free blocks that the request may need, whichever of the uncertain hits are found."""
    if isinstance(operation, op.Reserve):
        return _covered(state, operation) - len(state.sequences[operation.sequence].table)
    root = state.prefixes.child(EMPTY, operation.namespace)
    prefixes = state.prefixes.extend(root, operation.tokens)
    chain, certain = _chain(state, prefixes, certain=False), _chain(state, prefixes, certain=True)
    return max(_needed_after(state, operation, chain[:hits]) for hits in range(len(certain), len(chain) + 1))


def _needed_after(state: State, operation: op.Admit, hit: list[set[int]]) -> int:
    """How many free blocks an admission with these hits takes; which of several copies is hit is the manager's choice."""
    planned = min(len(operation.tokens), len(hit) * state.world.block_size + operation.limit)
    covered = planned if state.declaration.covers is Covers.RESERVED else len(operation.tokens)
    shared = sum(all(state.ledger.used[block] for block in copies) for copies in hit)
    return blocks_for(state, covered) - (shared if state.declaration.credits_shared else 0)


def _inspect(state: State, shown: Snapshot) -> None:
    if state.barred and not state.declaration.stale_index:
        _check_index(state, shown)
    settled = not any(sequence.unread for sequence in state.sequences.values())
    for slug, broken in STATE_INVARIANTS.items():
        if (settled or not slug.startswith("INDEX")) and (because := broken(state, shown)):
            breach(state, slug, because)


def _check_index(state: State, shown: Snapshot) -> None:
    """No index entry for a block that an extension hides."""
    for _, block in shown.index or ():
        if block in state.barred:
            clause, because = state.barred[block]
            breach(state, clause, f"an index entry names block {block}, but {because}", block=block)
