"""All conditions: what was shown of each, within which bounds, under which assumption, with how much work."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import z3

from . import contracts, second_solver
from .bounded import USUAL, Bounds, perform_bounded
from .collision import find_collision
from .conditions import TEXT, Condition, Text, inductive_conditions, perform, step_condition, step_conditions
from .faults import FAULTS, Fault
from .solver import Answer, Verdict, solve
from .terms import Terms
from .theorems import any_hash_conditions, any_hash_text, consequence_conditions, frame_conditions, theorems
from .witnesses import Witness, witnesses

ALL_SIZES = "all sizes"
INJECTIVE_HASH = "injective chain hash"


@dataclass(frozen=True)
class ConditionResult:
    """What was shown of one condition.

    `clause`: the clause or invariant it is about.  `holds`: the verdict is the one it must be.  `bound`: the sizes it
    is said for.  `assumption`: empty, or what this condition by itself needs besides the trusted base.  `work`: what
    the solver counts instead of time, the same on every machine.  `seconds`: processor time.  `detail`: what broke, or
    what else is worth knowing.
    """

    name: str
    section: str
    subject: str
    clause: str
    verdict: Verdict
    holds: bool
    bound: str = ALL_SIZES
    assumption: str = ""
    work: int = 0
    seconds: float = 0.0
    detail: str = ""


def prove(text: Text = TEXT, sections: Iterable[str] = (), use_second_solver: bool = True) -> list[ConditionResult]:
    """All results, in the order of ``SECTIONS``; `sections` picks some.

    Raises KeyError if a section is unknown.
    """
    chosen = list(sections) or [name for name in SECTIONS if use_second_solver or name != "second solver"]
    return [result for name in chosen for result in SECTIONS[name](text)]


def unproved(results: Iterable[ConditionResult]) -> list[ConditionResult]:
    """The results that are not what they must be."""
    return [result for result in results if not result.holds]


# For all sizes ------------------------------------------------------------------------------------------------------


def settle(condition: Condition, section: str, may_assume: bool = True) -> tuple[ConditionResult, str]:
    """Prove a condition, without assumption if possible; the second item is the SMT-LIB text that was solved."""
    if condition.goal is None:
        return _result(condition, section, Verdict.MISSING, "the text no longer says it, or it has no trigger"), ""
    answer, script, assumption = Answer("unknown", 0, 0.0), "", ""
    for injective in (False, True) if may_assume else (False,):
        script, assumption = condition.script(injective), INJECTIVE_HASH if injective else ""
        spent, answer = answer, solve(script)
        answer = replace(answer, seconds=answer.seconds + spent.seconds)
        if answer.said == "unsat":
            break
    proved = answer.said == "unsat"
    result = _result(
        condition, section, Verdict.PROVED if proved else Verdict.NOT_PROVED, "" if proved else "no proof found"
    )
    return replace(result, assumption=assumption, work=answer.work, seconds=answer.seconds), script


def kept_under_any_hash(text: Text = TEXT) -> Text:
    """The largest part of the invariants that the steps keep whatever the hash does; none of it needs the others."""
    while broken := {
        condition.clause
        for condition in inductive_conditions(text)
        if condition.clause in text.invariants
        and " keeps " in condition.name
        and solve(condition.script(injective=False)).said != "unsat"
    }:
        text = replace(text, invariants={slug: rule for slug, rule in text.invariants.items() if slug not in broken})
    return text


def proved_under_any_hash(text: Text = TEXT) -> set[str]:
    """The names of the conditions that hold in every reachable state without any assumption, induction included.

    A condition may need no assumption by itself and yet start from an invariant that a wrong hit destroys.
    """
    part = kept_under_any_hash(text)
    asked = [condition for condition in (*inductive_conditions(part), *theorems(part)) if condition.goal is not None]
    return {condition.name for condition in asked if solve(condition.script(injective=False)).said == "unsat"}


def _result(condition: Condition, section: str, verdict: Verdict, detail: str) -> ConditionResult:
    return ConditionResult(
        condition.name, section, condition.subject, condition.clause, verdict, verdict is Verdict.PROVED, detail=detail
    )


def _inductive(text: Text) -> Iterator[ConditionResult]:
    return (settle(condition, "steps and invariants")[0] for condition in inductive_conditions(text))


def _theorems(text: Text) -> Iterator[ConditionResult]:
    return (settle(condition, "theorems")[0] for condition in theorems(text))


def _any_hash(text: Text) -> Iterator[ConditionResult]:
    return (settle(condition, "any hash", may_assume=False)[0] for condition in any_hash_conditions(text))


# For fixed sizes ----------------------------------------------------------------------------------------------------


def bounded(text: Text, bounds: Bounds = USUAL) -> Iterator[ConditionResult]:
    """Every step condition again, with reference counts added up instead of facts about finite sets."""
    for condition in step_conditions(text):
        if condition.goal is None:
            yield _result(condition, "fixed sizes", Verdict.MISSING, "the text no longer says it")
            continue
        answer = _answer_bounded(condition.name, text, bounds)
        proved = answer.said == "unsat"
        verdict = Verdict.PROVED_BOUNDED if proved else Verdict.REFUTED if answer.said == "sat" else Verdict.NOT_PROVED
        yield ConditionResult(
            condition.name,
            "fixed sizes",
            condition.subject,
            condition.clause,
            verdict,
            proved,
            str(bounds),
            INJECTIVE_HASH,
            answer.work,
            answer.seconds,
            "" if proved else "a state was found in which it fails",
        )


def _answer_bounded(
    name: str, text: Text, bounds: Bounds = USUAL, injective: bool = True, goals: Text | None = None
) -> Answer:
    done = perform_bounded(name.split()[0], bounds, injective, text, goals)
    return solve(done.denial(name), quantified=False)


def _witnesses(text: Text) -> Iterator[ConditionResult]:
    """No condition is empty: each step can be done, in each of its interesting cases."""
    return (_found(witness, text) for witness in witnesses())


def _found(witness: Witness, text: Text) -> ConditionResult:
    done = perform_bounded(witness.step, USUAL, text=text)
    answer = solve(done.script(witness.case(done)), quantified=False)
    found = answer.said == "sat"
    verdict, detail = (Verdict.WITNESS, "") if found else (Verdict.NOT_PROVED, "no state satisfies the premises")
    return ConditionResult(
        witness.sentence,
        "witnesses",
        witness.step,
        "",
        verdict,
        found,
        str(USUAL),
        "",
        answer.work,
        answer.seconds,
        detail,
    )


def _collision(text: Text) -> Iterator[ConditionResult]:
    """Own tokens compared, hash not injective: refuted by a program.  Repaired rule, same schedule: nothing to find."""
    program, seconds = _timed(find_collision, text)
    shown = f"prompts {', '.join(str(list(tokens)) for tokens in program.prompts)}" if program else "no program found"
    verdict = Verdict.REFUTED if program else Verdict.NOT_PROVED
    tokens_suffice = "comparing a block's own tokens makes a hit right under any hash"
    yield _about_hits(tokens_suffice, verdict, program is not None, seconds, shown)
    program, seconds = _timed(find_collision, any_hash_text(text))
    verdict = Verdict.NOT_PROVED if program else Verdict.PROVED_BOUNDED
    yield _about_hits("the repaired hit rule refuses that program", verdict, program is None, seconds)


def _timed(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    begun = time.process_time()
    return function(*arguments), time.process_time() - begun


def _about_hits(name: str, verdict: Verdict, holds: bool, seconds: float, detail: str = "") -> ConditionResult:
    bound = "8 micro-steps"
    return ConditionResult(name, "collision", "claim", "CONTENT", verdict, holds, bound, seconds=seconds, detail=detail)


# What must not be provable ------------------------------------------------------------------------------------------


def _falsehoods(text: Text) -> Iterator[ConditionResult]:
    """The premises of no step entail a plain falsehood."""
    for name in text.steps:
        done = perform(text, name, Terms())
        claim = Condition(f"{name} is impossible", name, "", done.premises, z3.BoolVal(False))
        proved = solve(claim.script(injective=True))
        state = solve(perform_bounded(name, text=text).script(), quantified=False)
        refuted = proved.said != "unsat" and state.said == "sat"
        yield ConditionResult(
            claim.name,
            "planted falsehoods",
            name,
            "",
            Verdict.REFUTED if refuted else Verdict.NOT_PROVED,
            refuted,
            str(USUAL),
            INJECTIVE_HASH,
            proved.work + state.work,
            proved.seconds + state.seconds,
            "" if refuted else "the premises contradict each other",
        )


def _faults(text: Text) -> Iterator[ConditionResult]:
    return (_planted(fault) for fault in FAULTS)


def _planted(fault: Fault) -> ConditionResult:
    """The condition that the fault breaks has no proof; if it is one of a step, a state is found in which it fails."""
    step = fault.breaks.split()[0]
    settled, _ = settle(_condition_of(fault, step), "planted faults")
    answer = Answer("not asked", 0, 0.0)
    if step_level := len(fault.breaks.split()) == 3:
        answer = _answer_bounded(fault.breaks, fault.text)
    stopped, refuted = not settled.holds, answer.said == "sat"
    verdict = Verdict.PROVED if not stopped else Verdict.REFUTED if refuted else Verdict.NOT_PROVED
    return ConditionResult(
        f"{fault.slug}: {fault.sentence}",
        "planted faults",
        step,
        settled.clause,
        verdict,
        stopped and refuted == step_level,
        str(USUAL) if refuted else ALL_SIZES,
        INJECTIVE_HASH,
        settled.work + answer.work,
        settled.seconds + answer.seconds,
        f"breaks {fault.breaks}",
    )


def _condition_of(fault: Fault, step: str) -> Condition:
    if len(fault.breaks.split()) == 3:
        return step_condition(fault.text, perform(fault.text, step, Terms()), fault.breaks)
    return next(condition for condition in frame_conditions(fault.text) if condition.name == fault.breaks)


def _strengthenings(text: Text) -> Iterator[ConditionResult]:
    """Each invariant is needed by another condition, or is there because it is what we want to say."""
    return (without(slug, text) for slug in text.invariants)


def without(slug: str, text: Text = TEXT) -> ConditionResult:
    """Which conditions lose their proof without the invariant `slug`; where possible one is refuted by a state."""
    begun = time.process_time()
    less = replace(text, invariants={name: rule for name, rule in text.invariants.items() if name != slug})
    lost = _lost((*step_conditions(less), *consequence_conditions(less)), injective=True)
    lost = lost or _lost(any_hash_conditions(less), injective=False)
    refuted = _first_refuted(lost, less)
    verdict = Verdict.REFUTED if refuted else Verdict.NOT_PROVED
    detail = f"breaks {refuted or lost[0]}; no proof of {len(lost)}: {', '.join(lost)}" if lost else "nothing breaks"
    return ConditionResult(
        f"without {slug}",
        "strengthenings",
        slug,
        slug,
        verdict,
        bool(lost),
        str(USUAL),
        INJECTIVE_HASH,
        0,
        time.process_time() - begun,
        detail,
    )


def _first_refuted(lost: list[str], text: Text) -> str | None:
    """One of the conditions without proof that a state refutes."""
    for name in lost:
        repaired, _, plain = name.rpartition(": ")
        asked = any_hash_text(text) if repaired else text
        if plain.split()[0] in text.steps and _answer_bounded(plain, asked, injective=not repaired).said == "sat":
            return name
    return None


def _lost(conditions: Iterable[Condition], injective: bool) -> list[str]:
    asked = (condition for condition in conditions if condition.goal is not None)
    return [condition.name for condition in asked if solve(condition.script(injective)).said != "unsat"]


# CrossHair ----------------------------------------------------------------------------------------------------------

_SEEN = {"CONFIRMED": Verdict.PROVED_BOUNDED, "CANNOT_CONFIRM": Verdict.NO_COUNTEREXAMPLE, "POST_FAIL": Verdict.REFUTED}


def _contracts(text: Text) -> Iterator[ConditionResult]:
    """The pure functions that are executed, all paths; the falsehood among them must be refuted."""
    try:
        seen = {line["name"]: line for line in contracts.exhaust()}
    except ModuleNotFoundError:
        detail = "CrossHair is not installed; pip install crosshair-tool"
        yield ConditionResult("pure functions", "contracts", "", "", Verdict.NOT_RUN, True, detail=detail)
        return
    for contract in contracts.CONTRACTS:
        verdict = _seen(contract, seen)
        good = verdict in (Verdict.PROVED_BOUNDED, Verdict.NO_COUNTEREXAMPLE)
        yield _contract(contract, seen, "contracts", verdict, good)
    verdict = _seen(contracts.FALSEHOOD, seen)
    yield _contract(contracts.FALSEHOOD, seen, "planted falsehoods", verdict, verdict is Verdict.REFUTED)


def _seen(contract: contracts.Contract, seen: dict[str, Any]) -> Verdict:
    return _SEEN.get(seen.get(contract.check.__name__, {}).get("state", ""), Verdict.NOT_PROVED)


def _contract(
    contract: contracts.Contract, seen: dict[str, Any], section: str, verdict: Verdict, holds: bool
) -> ConditionResult:
    line = seen.get(contract.check.__name__, {"seconds": 0.0, "message": "CrossHair said nothing"})
    return ConditionResult(
        contract.sentence,
        section,
        "CrossHair",
        contract.clause,
        verdict,
        holds,
        bound=contract.bound,
        seconds=line["seconds"],
        detail=line["message"],
    )


# A second solver ----------------------------------------------------------------------------------------------------


def _second(text: Text) -> Iterator[ConditionResult]:
    """What z3 proved, asked again: the same SMT-LIB text, another solver."""
    ask = second_solver.find()
    if ask is None:
        detail = "cvc5 is not installed; pip install cvc5, or the distribution's package"
        yield ConditionResult("all conditions again", "second solver", "cvc5", "", Verdict.NOT_RUN, True, detail=detail)
        return
    for condition in all_conditions(text):
        yield asked_again(condition, ask)


def all_conditions(text: Text = TEXT) -> tuple[Condition, ...]:
    """Every condition that is proved for all sizes."""
    return (*inductive_conditions(text), *theorems(text), *any_hash_conditions(text))


def asked_again(condition: Condition, ask: Callable[[str], Answer]) -> ConditionResult:
    """Prove a condition with z3, and put the same SMT-LIB text to another solver; its answer counts."""
    may_assume = condition.subject != "repaired hit rule"
    first, script = settle(condition, "second solver", may_assume)
    if not first.holds:
        return first
    answer = ask(script)
    agreed = answer.said == "unsat"
    verdict, detail = (Verdict.PROVED, "") if agreed else (Verdict.NOT_PROVED, f"cvc5 said {answer.said}")
    return replace(first, verdict=verdict, holds=agreed, work=0, seconds=answer.seconds, detail=detail)


def export(text: Text = TEXT) -> Iterator[tuple[str, str]]:
    """File name and SMT-LIB text of every condition that is proved for all sizes."""
    for condition in all_conditions(text):
        result, script = settle(condition, "export", condition.subject != "repaired hit rule")
        if result.holds:
            safe = "".join(letter if letter.isalnum() else "_" for letter in condition.name)
            yield f"{safe}.smt2", script


SECTIONS: dict[str, Callable[[Text], Iterator[ConditionResult]]] = {
    "steps and invariants": _inductive,
    "theorems": _theorems,
    "any hash": _any_hash,
    "fixed sizes": bounded,
    "collision": _collision,
    "witnesses": _witnesses,
    "strengthenings": _strengthenings,
    "planted faults": _faults,
    "planted falsehoods": _falsehoods,
    "contracts": _contracts,
    "second solver": _second,
}
