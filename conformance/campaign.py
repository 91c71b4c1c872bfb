"""The workhorse: many seeded random programs in one context, one counterexample for each clause that breaks.

The budget is a number of programs, never a time, so that a seed decides the result on every machine.  Once a clause that
the judge can survive is broken, it is muted for the programs that follow, so that it does not hide other faults.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from kvspec.conformance.contexts import Context
from kvspec.conformance.generator import Generator
from kvspec.conformance.lockstep import Lockstep
from kvspec.conformance.program import Counterexample, Program, others_muted
from kvspec.conformance.time_limit import NO_ANSWER, alarm_installed
from kvspec.impl.adapter import Implementation
from kvspec.spec.clauses import CLAUSES
from kvspec.spec.judge import Violation
from kvspec.spec.state import Prefixes

Progress = Callable[[int], None]

MOST_OTHERS = 6
ENOUGH_FATAL = 40  # programs that end in a known fatal clause before a context is given up early
ENOUGH_HANGS = 1  # each costs the whole time limit of a call


@dataclass(slots=True)
class CampaignResult:
    """What one context showed: a counterexample a broken clause, and what really happened (see ``Lockstep.counts``).

    `others`: a few more short counterexamples a clause, because shrinking leads from different ones to different ends.
    """

    context: Context
    programs: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    found: dict[str, Counterexample] = field(default_factory=dict)
    others: dict[str, list[Counterexample]] = field(default_factory=dict)


def run_campaign(
    implementation: Implementation,
    context: Context,
    seed: int,
    programs: int,
    progress: Progress | None = None,
    until: str = "",
) -> CampaignResult:
    """Run `programs` random programs, or fewer: as soon as the clause `until` is broken.

    Raises lockstep.CannotCreate if no manager can be made.
    """
    result = CampaignResult(context)
    decided = frozenset(context.clauses())
    with alarm_installed():
        for number in range(programs):
            random = Random(f"{seed}/{context.name}/{number}")
            _run_program(implementation, random, number, programs, result, decided)
            if progress:
                progress(1)
            if _hopeless(result) or until in result.found:
                break
    return result


def _hopeless(result: CampaignResult) -> bool:
    """The manager hangs, or every program so far ended in a fatal clause: more of them tell nothing new."""
    if result.counts["hangs"] >= ENOUGH_HANGS:
        return True
    return result.counts["ended_early"] == result.programs >= ENOUGH_FATAL


def _run_program(
    implementation: Implementation,
    random: Random,
    number: int,
    programs: int,
    result: CampaignResult,
    decided: frozenset[str],
) -> None:
    small = number < programs // 4
    world = result.context.world(random, implementation.declaration, small)
    muted = _undecided(decided) | {slug for slug in result.found if CLAUSES[slug].survivable}
    lockstep = Lockstep(implementation, world, muted, Prefixes(), result.context.model)
    generator = Generator(random, result.context, lockstep.state)
    for _ in range(random.randint(3, 12) if small else random.randint(10, 60)):
        before = len(lockstep.state.noted)
        violation = lockstep.step(generator.next())
        for noted in lockstep.state.noted[before:]:
            if noted.clause in decided:
                _record(result, lockstep, noted, others_muted(noted.clause))
        if violation:
            result.counts["ended_early"] += 1
            result.counts["hangs"] += NO_ANSWER in violation.because
            _record(result, lockstep, violation, muted)
            break
    result.programs += 1
    result.counts.update(lockstep.counts)


def _undecided(decided: frozenset[str]) -> frozenset[str]:
    return frozenset(slug for slug, clause in CLAUSES.items() if clause.survivable) - decided


def _record(result: CampaignResult, lockstep: Lockstep, violation: Violation, muted: frozenset[str]) -> None:
    """Keep a breach: the first one of a clause, and a few short ones."""
    others = result.others.setdefault(violation.clause, [])
    length = len(lockstep.operations)
    if len(others) == MOST_OTHERS and length >= len(others[-1].program.operations):
        return
    program = Program(lockstep.world, tuple(lockstep.operations))
    others.append(Counterexample(program, violation, result.context.name, muted))
    others.sort(key=lambda each: len(each.program.operations))
    del others[MOST_OTHERS:]
    result.found[violation.clause] = others[0]
