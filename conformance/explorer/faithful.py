"""Samples that tell whether a search can be trusted: copies against replays, and equal states against each other."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from kvspec.conformance.explorer.copies import NotFaithful
from kvspec.conformance.explorer.node import Node
from kvspec.impl.adapter import Adapter
from kvspec.spec.judge import Violation

HIDES = "depends on more than it shows (then give it, or its adapter, a method fingerprint())"

if TYPE_CHECKING:
    from kvspec.conformance.explorer.search import Search


def check_replay(search: "Search", node: Node) -> int:
    """A manager that was copied along the way shows what a fresh one shows after the same program; 1 if compared."""
    if node.adapter is None:
        return 0
    fresh = search.look(search.replay(node.number))
    if fresh != node.shown:
        after = search.spell(node.number)
        raise NotFaithful(
            f"a copied manager shows {node.shown}, a fresh one {fresh}, after {after}: the copy is not faithful, the "
            f"manager is not deterministic, or it {HIDES}"
        )
    return 1


def check_equal(search: "Search", node: Node, key: bytes, parent: int, cause: int) -> int:
    """A state that was reached in two ways must go on in the same way; each sampled state is compared once."""
    first = search.samples.pop(key, None)
    if first is None:
        return 0
    one = _futures(search, first, lambda: search.replay(first.number))
    if search.copier.way == "replay":
        two = _futures(search, node, lambda: _after(search, parent, cause))
    else:
        two = _futures(search, node, lambda: search.manager_in(node))
    if sorted(one) != sorted(two):
        raise NotFaithful(
            f"one state, reached in two ways, leads to different things: the manager {HIDES}. "
            f"The state is that after {search.spell(first.number)}"
        )
    return 1


def _after(search: "Search", parent: int, cause: int) -> Adapter:
    adapter = search.replay(parent)
    search.ask(adapter, search.alphabet.operations[cause])
    return adapter


def _futures(search: "Search", node: Node, manager: Callable[[], Adapter]) -> list[str]:
    """What each possible operation leads to: the key of a state, or a violated clause."""
    back = search.alphabet.renamed[search.alphabet.inverse[node.renaming]]
    found = []
    for operation in node.judged.possible:
        outcome, shown = search.ask(manager(), search.alphabet.operations[back[operation]])
        answer = search.names.rename_outcome(outcome, node.blocks)
        ruling = search.judging.rule(node.judged, operation, answer, search.pools(node, shown))
        if isinstance(ruling, Violation):
            found.append(ruling.clause)
        else:
            found.append(search.arrive(node, None, ruling, shown).key.hex())
    return found
