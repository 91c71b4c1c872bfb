"""A base with three pools (empty, cached in order of last use, in use) and a trie of whole blocks as its index.

Admission is a plan that is made, asked about and carried out.  Tables grow only as far as tokens are reserved.  A
prompt that is cached as a whole keeps all its blocks and computes its last token again in place.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from kvspec.impl.known_bad.bases.live import Live, check_world
from kvspec.spec import operations as op
from kvspec.spec.declaration import Covers, Declaration, FullHit
from kvspec.spec.state import Snapshot, World

DECLARATION = Declaration(
    "pooled",
    frozenset({"pool", "prefix", "reuse", "chunked", "one", "collision", "namespace"}),
    full_hit=FullHit.LAST_TOKEN,
    covers=Covers.RESERVED,
    release_in_flight=True,
    namespaces=True,
)


@dataclass(slots=True, eq=False)
class Node:
    """One block of tokens after the prefix that `parent` stands for, and the physical blocks that hold its K/V."""

    parent: "Node | None"
    label: object
    children: "dict[object, Node]" = field(default_factory=dict)
    blocks: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Plan:
    """What an admission would do: the hits, the tokens they cache, and how many new blocks it takes."""

    hit: list[int]
    cached: int
    reserved: int
    new: int


class Pooled:
    """Direct implementation of the five operations, by plans."""

    base, shape = "pooled", "plan"
    declaration = DECLARATION
    chain_hash = None

    def __init__(self, world: World) -> None:
        check_world(world)
        self.world, self.size = world, world.block_size
        self.empty = deque(range(world.blocks))
        self.cached: OrderedDict[int, None] = OrderedDict()
        self.references = [0] * world.blocks
        self.nodes: list[Node | None] = [None] * world.blocks
        self.root = Node(None, None)
        self.live: dict[str, Live] = {}
        self.gone: set[str] = set()

    # The five operations

    def admit(self, sequence: str, tokens: tuple[int, ...], limit: int, namespace: str) -> op.Outcome:
        if not tokens or sequence in self.live:
            raise ValueError(f"sequence {sequence} has no tokens or is live already")
        if self.blocks_for(len(tokens)) > self.world.blocks:
            return op.Refused(op.Reason.TOO_LARGE)
        plan = self.plan(tokens, limit, namespace)
        if not self.fits(plan):
            return op.Refused()
        live = Live(list(tokens), namespace)
        try:
            self.carry_out(plan, live)
        except Exception as error:
            return op.Failed(f"{type(error).__name__}: {error}", promised=True)
        self.live[sequence] = live
        return op.Admitted(live.computed, live.reserved, tuple(live.table))

    def reserve(self, sequence: str, count: int) -> op.Outcome:
        live = self.known(sequence)
        new = self.blocks_for(live.computed + count) - len(live.table)
        if new > self.available():
            return op.Refused()
        try:
            self.grow(live, new)
        except Exception as error:
            return op.Failed(f"{type(error).__name__}: {error}", promised=True)
        live.reserved = count
        return op.Reserved(tuple(live.table))

    def commit(self, sequences: tuple[str, ...]) -> op.Outcome:
        for sequence in sequences:
            self.advance(self.known(sequence))
        return op.Committed(tuple(tuple(self.known(sequence).table) for sequence in sequences))

    def append(self, sequence: str, token: int) -> op.Outcome:
        self.known(sequence).tokens.append(token)
        return op.Appended()

    def release(self, sequence: str, cause: str) -> op.Outcome:
        if sequence in self.live or sequence not in self.gone:
            self.give_back(self.known(sequence))
            del self.live[sequence]
            self.gone.add(sequence)
        return op.Released()

    def snapshot(self) -> Snapshot:
        return Snapshot(free=tuple(self.empty), owned=tuple(self.cached), references=tuple(self.references))

    def known(self, sequence: str) -> Live:
        if sequence not in self.live:
            raise ValueError(f"sequence {sequence} was never admitted")
        return self.live[sequence]

    # Plans

    def blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.size)

    def plan(self, tokens: tuple[int, ...], limit: int, namespace: str) -> Plan:
        hit = self.find(tokens, namespace)
        cached = min(len(hit) * self.size, len(tokens) - 1)
        reserved = min(limit, len(tokens) - cached)
        return Plan(hit, cached, reserved, self.blocks_for(cached + reserved) - len(hit))

    def fits(self, plan: Plan) -> bool:
        """Room for the new blocks, without the cached blocks that the plan itself uses."""
        return plan.new <= self.available() - sum(block in self.cached for block in plan.hit)

    def carry_out(self, plan: Plan, live: Live) -> None:
        for block in plan.hit:
            self.claim(live, block)
        self.grow(live, plan.new)
        live.computed, live.reserved = plan.cached, plan.reserved

    # The trie

    def find(self, tokens: tuple[int, ...], namespace: str) -> list[int]:
        """A block of each node along the path of the prompt; with blocks of one token the last is left out."""
        node, hit = self.root.children.get(namespace), []
        for start in range(0, len(tokens) - self.size + (self.size > 1), self.size):
            node = node and node.children.get(tokens[start : start + self.size])
            if node is None or not node.blocks:
                break
            hit.append(node.blocks[0])
        return hit

    def child(self, node: Node, label: object) -> Node:
        return node.children.setdefault(label, Node(node, label))

    def publish(self, live: Live, entry: int) -> None:
        node = self.child(self.root, live.namespace)
        for start in range(0, (entry + 1) * self.size, self.size):
            node = self.child(node, tuple(live.tokens[start : start + self.size]))
        block = live.table[entry]
        if self.nodes[block] is None:
            self.nodes[block] = node
            node.blocks.append(block)

    def forget(self, block: int) -> None:
        """The block is taken for new content: its node loses it, and goes if nothing hangs on it."""
        node, self.nodes[block] = self.nodes[block], None
        if node:
            node.blocks.remove(block)
        while node and node.parent and not node.blocks and not node.children:
            del node.parent.children[node.label]
            node = node.parent

    # Blocks

    def available(self) -> int:
        return len(self.empty) + len(self.cached)

    def claim(self, live: Live, block: int) -> None:
        self.cached.pop(block, None)
        self.references[block] += 1
        live.table.append(block)

    def grow(self, live: Live, new: int) -> None:
        for _ in range(new):
            live.table.append(self.take())

    def take(self) -> int:
        """An empty block, or else the cached one that was used least recently."""
        block = self.empty.popleft() if self.empty else self.evict()
        self.references[block] = 1
        return block

    def evict(self) -> int:
        block, _ = self.cached.popitem(last=False)
        self.forget(block)
        return block

    def advance(self, live: Live) -> None:
        first, live.computed, live.reserved = live.computed // self.size, live.computed + live.reserved, 0
        for entry in range(first, live.computed // self.size):
            self.publish(live, entry)

    def give_back(self, live: Live) -> None:
        for block in reversed(live.table):
            self.drop(block)

    def drop(self, block: int) -> None:
        self.references[block] -= 1
        if not self.references[block]:
            self.retire(block)

    def retire(self, block: int) -> None:
        """Nobody holds the block now: it is cached if it can be found again, else empty."""
        if self.nodes[block] is None:
            self.empty.append(block)
        else:
            self.cached[block] = None
