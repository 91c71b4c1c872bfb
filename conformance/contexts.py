"""The conditions under which profiles are tried: which worlds, and how freely operations interleave."""

from dataclasses import dataclass
from random import Random

from kvspec.spec.clauses import CLAUSES, clauses_of
from kvspec.spec.declaration import Declaration
from kvspec.spec.state import World


@dataclass(frozen=True, slots=True)
class Context:
    """`profiles` get their verdict here.

    `free`: only a part of what is uncomputed may be planned, and, where the declaration allows that, operations interleave
    freely; else a step plans all of it and is committed as a whole.  `model`: the manager runs beside ``spec.model`` and
    must do the same, block for block.  `draws`: operations of the extensions that are asked as well (see
    ``extension_generator``); programs then interleave freely, or go by steps, as far as the declaration allows.
    """

    name: str
    profiles: tuple[str, ...]
    free: bool = False
    one: bool = False
    weak_hash: bool = False
    namespaces: bool = False
    model: bool = False
    draws: tuple[str, ...] = ()
    axes: bool = False

    def clauses(self) -> tuple[str, ...]:
        """The slugs of the clauses that are decided here, in the order of the registry."""
        decided = {clause.slug for profile in self.profiles for clause in clauses_of(profile)} - {"NANO-ORDER"}
        if self.model:
            decided = {"NANO-ORDER"}
        return tuple(slug for slug in CLAUSES if slug in decided)

    def world(self, random: Random, declaration: Declaration, small: bool) -> World:
        """A world for one program; `small` worlds give short counterexamples, larger ones find what needs long tables."""
        blocks = random.choice((2, 2, 3, 3, 4)) if small else random.choice((2, 3, 4, 5, 6, 7, 8, 12))
        sizes = (2,) if small else (2, 2, 3, 4)
        size = 1 if self.one else max(random.choice(sizes), declaration.smallest_block_size)
        return World(blocks, min(size, declaration.largest_block_size), self.weak_hash)

    def possible(self, declaration: Declaration) -> str | None:
        """Why nothing can be tried here for this declaration, or None."""
        if self.namespaces and not declaration.namespaces:
            return "the adapter has no namespaces"
        if self.axes and not declaration.namespace_axes:
            return "the adapter has no axes of a namespace"
        if self.model and not declaration.nano_vllm_order:
            return "the order of nano-vllm is not declared"
        if self.model and declaration.same_step_hit:
            return "hits inside a step: a step is committed as a whole"
        return None

    def by_steps(self, declaration: Declaration) -> bool:
        """Is a step planned, then committed as a whole?"""
        return not self.free or declaration.same_step_hit


CONTEXTS: dict[str, Context] = {
    context.name: context
    for context in (
        Context("steps", ("pool", "prefix", "reuse", "order")),
        Context("model", ("order",), free=True, model=True),
        Context("chunked", ("chunked",), free=True),
        Context("one", ("one",), one=True),
        Context("collision", ("collision",), weak_hash=True),
        Context("namespace", ("namespace",), namespaces=True),
        Context("several", ("several",), draws=("extend",)),
        Context("truncate", ("truncate",), draws=("draft", "truncate")),
        Context("reset", ("reset",), draws=("reset",)),
        Context("probe", ("probe",), draws=("probe",)),
        Context("owners", ("owners",), draws=("retain", "drop")),
        Context("axes", ("axes",), axes=True),
    )
}
