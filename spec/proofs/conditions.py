"""The proof conditions: every step keeps every invariant, the first state has them, and what a step ensures then holds.

A condition is *premises entail goal*; it is proved when a solver finds premises and denied goal contradictory.  The
step conditions are generated from the text (``steps``), so a new step or invariant has its conditions at once; only its
trigger has to be named here, and a missing one is reported, never passed over.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import z3

from .. import steps
from ..steps import NONE, Invariant, Step
from .terms import (
    HASHING,
    INJECTIVE,
    INT,
    OWNERS,
    PREFIX,
    Ledger,
    Map,
    Terms,
    any_ledger,
    constantly,
    first_ledger,
    for_all,
    prompt,
    unrolled,
    well_formed,
)

StepText = Callable[..., Step]


@dataclass(frozen=True)
class Text:
    """The text that is proved: steps with the letters of their arguments, and invariants."""

    steps: dict[str, tuple[StepText, str]]
    invariants: dict[str, Invariant]


TEXT = Text(steps.STEPS, steps.INVARIANTS)


@dataclass(frozen=True)
class Condition:
    """*Premises entail goal*.  `goal` is None where the text lacks what the condition is about.

    `clause`: the clause or invariant it is about.  `subject`: what it says it of.
    """

    name: str
    subject: str
    clause: str
    premises: tuple[Any, ...]
    goal: Any

    def script(self, injective: bool) -> str:
        """Premises and the denied goal as SMT-LIB text, with or without the assumption on the chain hash."""
        solver = z3.Solver()
        solver.add(*self.premises, *([INJECTIVE] if injective else []), z3.Not(self.goal))
        return f"; {self.name}\n(set-logic ALL)\n{solver.to_smt2()}"


# At which terms an invariant is used as a premise.  It must be named for each: what is not here counts as missing.
TRIGGERS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "BOUNDS": lambda z, s: (z.length[s], z.computed[s]),
    "RANGE": lambda z, s, t: (z.table[s][t],),
    "PARTITION": lambda z, b: (z.references[b], z.used[b]),
    "REFCOUNT": lambda z, b: (z.references[b], z.owners[b].term),
    "OWNER-HOLDS": lambda z, s, t, b: (z.owners[b][s, t],),
    "HOLDER-OWNS": lambda z, s, t: (z.table[s][t],),
    "INDEX-MATCH": lambda z, h: (z.index[h],),
    "INDEX-CHAIN": lambda z, b: (z.hash[b],),
    "COMPUTED-KEYED": lambda z, s, t: (z.table[s][t],),
    "CONTENT": lambda z, s, t: (z.table[s][t],),
    "UNCOMPUTED-KEYLESS": lambda z, s, t: (z.table[s][t],),
    "UNCOMPUTED-PRIVATE": lambda z, s, t: (z.table[s][t],),
}

# What the steps must ensure: right hits, no write to a shared block, and the rest.  A text without one is incomplete.
ENSURED = (
    ("take", "FRESH"),
    ("claim", "CONTENT"),
    ("register", "NO-CLOBBER"),
    ("register", "INDEX-CHAIN"),
    ("pop", "RELEASE"),
)

ARGUMENTS = {"o": z3.Int("o"), "b": z3.Int("b")}
BASIS = (*OWNERS.facts.values(), *HASHING.values())


def everywhere(text: Text, slug: str, z: Ledger, logic: Terms, triggered: bool) -> Any:
    """The invariant for all values of its variables, as a premise (`triggered`) or as a goal."""
    invariant = text.invariants[slug]
    variables = [z3.Int(f"any_{letter}") for letter in invariant.variables]
    triggers = TRIGGERS[slug](z, *variables) if triggered and slug in TRIGGERS else ()
    return for_all(variables, invariant.holds(logic, z, *variables), *triggers)


def all_invariants(text: Text, z: Ledger, logic: Terms) -> tuple[Any, ...]:
    """All invariants as premises."""
    return tuple(everywhere(text, slug, z, logic, triggered=True) for slug in text.invariants)


def slugs(text: Text) -> list[str]:
    """The invariants that must be kept: those of the text, and those whose loss must be noticed."""
    return list(text.invariants) + [slug for slug in TRIGGERS if slug not in text.invariants]


@dataclass(frozen=True)
class Performed:
    """A step of the text in an arbitrary ledger that has the invariants."""

    before: Ledger
    step: Step
    after: Ledger
    premises: tuple[Any, ...]


def perform(text: Text, name: str, logic: Terms) -> Performed:
    """Apply step `name` to an arbitrary ledger, for arbitrary arguments that meet its requirements."""
    z, o = any_ledger(), ARGUMENTS["o"]
    step_text, letters = text.steps[name]
    step = step_text(logic, z, *(ARGUMENTS[letter] for letter in letters))
    ghosts = (unrolled(o, z.length[o]), unrolled(o, z.computed[o]))
    premises = (*BASIS, *ghosts, *all_invariants(text, z, logic), *step.requires.values())
    return Performed(z, step, z.after(step), premises)


def step_conditions(text: Text) -> Iterator[Condition]:
    """Each step keeps each invariant, and what it ensures is certain."""
    for name in text.steps:
        done = perform(text, name, Terms())
        for slug in slugs(text):
            yield step_condition(text, done, f"{name} keeps {slug}")
        for slug in dict.fromkeys([*done.step.ensures, *(slug for step, slug in ENSURED if step == name)]):
            yield step_condition(text, done, f"{name} ensures {slug}")


def step_condition(text: Text, done: Performed, name: str) -> Condition:
    """The condition of a step with this name: `<step> keeps <slug>` or `<step> ensures <slug>`."""
    subject, kind, slug = name.split()
    if kind == "ensures":
        return Condition(name, subject, slug, done.premises, done.step.ensures.get(slug))
    return _kept(text, name, subject, slug, done.premises, done.after, Terms())


def _kept(
    text: Text, name: str, subject: str, slug: str, premises: tuple[Any, ...], z: Ledger, logic: Terms
) -> Condition:
    known = slug in text.invariants and slug in TRIGGERS
    return Condition(name, subject, slug, premises, everywhere(text, slug, z, logic, False) if known else None)


def base_conditions(text: Text) -> Iterator[Condition]:
    """The state before the first operation has every invariant."""
    z, empty = first_ledger()
    for slug in slugs(text):
        yield _kept(text, f"the first state has {slug}", "first state", slug, (*BASIS, *empty), z, Terms())


def prompt_conditions(text: Text) -> Iterator[Condition]:
    """A sequence may get another prompt (append, or admission after a preemption) as long as computed entries agree."""
    longer, z = z3.Function("longer", INT, INT, PREFIX), any_ledger()
    s, t = z3.Ints("any_s any_t")
    agree = z3.Implies(z3.And(t >= 0, t < z.computed[s]), longer(s, t) == prompt(s, t))
    agreement = (for_all([s, t], agree, longer(s, t)), well_formed(longer))
    premises = (*BASIS, *agreement, *all_invariants(text, z, Terms()))
    for slug in slugs(text):
        yield _kept(text, f"append keeps {slug}", "append", slug, premises, z, Terms(longer))


def forget_conditions(text: Text) -> Iterator[Condition]:
    """What is left of a sequence whose table is empty may be dropped (``ledger.Ledger.forget``)."""
    z, o = any_ledger(), ARGUMENTS["o"]
    row, row_is_empty = constantly("empty_row", z3.IntVal(NONE))
    after = z.but(
        table=Map(z3.Store(z.table.term, o, row)),
        length=z.length.set((o,), z3.IntVal(0)),
        computed=z.computed.set((o,), z3.IntVal(0)),
    )
    premises = (*BASIS, row_is_empty, *all_invariants(text, z, Terms()), z.length[o] == 0)
    for slug in slugs(text):
        yield _kept(text, f"forget keeps {slug}", "forget", slug, premises, after, Terms())


def inductive_conditions(text: Text = TEXT) -> Iterable[Condition]:
    """All conditions that together say: every reachable state has every invariant, for all sizes."""
    yield from base_conditions(text)
    yield from step_conditions(text)
    yield from prompt_conditions(text)
    yield from forget_conditions(text)
