"""One run: all engines over one implementation, each at most once, results kept until the report is made.

The pytest suite and the command line both drive this class, so that they cannot differ.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random

from kvspec.conformance.campaign import CampaignResult, run_campaign
from kvspec.conformance.contexts import CONTEXTS, Context
from kvspec.conformance.contracts import NO_PATH_LIMIT, Budget, ContractRun, Refuting
from kvspec.conformance.effort import EFFORTS, Effort
from kvspec.conformance.explorer import Exploration, NotFaithful, SmallWorld
from kvspec.conformance.explorer import Progress as WorldProgress
from kvspec.conformance.explorer.defaults import default_worlds
from kvspec.conformance.explorer.parallel import explore_all
from kvspec.conformance.extension_calls import not_offered
from kvspec.conformance.generator import Generator
from kvspec.conformance.hash_check import check_hash
from kvspec.conformance.known_failures import KnownFailures, KnownResult
from kvspec.conformance.lockstep import CannotCreate, Lockstep
from kvspec.conformance.program import Counterexample, Program, in_parts, run
from kvspec.conformance.proof_of_length import with_proof_of_length
from kvspec.conformance.render import trace_path_of
from kvspec.conformance.render.explain import broken_profile
from kvspec.conformance.robustness import check_robust
from kvspec.conformance.shrink import shrink, shrink_shortest
from kvspec.conformance.snapshots import unseen
from kvspec.conformance.state_machine import run_machine
from kvspec.conformance.time_limit import alarm_installed
from kvspec.conformance.trace import NotRepeatable, write_trace
from kvspec.conformance.verdict import ClauseResult, ConformanceReport
from kvspec.impl.adapter import Implementation
from kvspec.impl.known_bad import KNOWN_BAD
from kvspec.spec.clauses import BORROWED, CLAUSES, EXTENSIONS, PROFILES, clauses_of
from kvspec.spec.judge import Violation
from kvspec.spec.state import World

Progress = Callable[[str, int, int], None]  # what, done, of how many

# Where a clause is decided: profiles not named here are decided in the context of their own name.
CONTEXT_OF = {"pool": "steps", "prefix": "steps", "reuse": "steps", "order": "steps"}

CANARY = "stale-index-entry"
CANARY_PROGRAMS = 400

# A manager whose hidden state always grows (a clock, a counter of calls) has no end of states: a world is given up then.
MOST_STATES = {"smoke": 4_000, "default": 40_000, "deep": 4_000_000}

# What must have happened in a context, or its result proves nothing.
MUST_HAPPEN = ("operations", "hits", "recycles", "refusals", "preemptions")
MUST_HAPPEN_HERE = {
    "several": ("extensions",),
    "truncate": ("drafts", "rejections", "confirmations"),
    "reset": ("resets", "resets in use"),
    "probe": ("probes", "probes kept"),
    "owners": ("retained", "outlived", "dropped"),
    "axes": ("hits in a namespace",),
}


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for; an empty `profiles` means all.  `traces`: where the trace of each failure goes.

    `contracts`: seconds of processor time for CrossHair, instead of what the effort gives.
    """

    effort: str = "default"
    seed: int = 0
    profiles: tuple[str, ...] = ()
    command: str = ""
    traces: Path = Path("kvspec-traces")
    contracts: float | None = None


def decided_clauses(profile: str) -> tuple[str, ...]:
    """The slugs of the clauses of `profile`."""
    return tuple(clause.slug for clause in clauses_of(profile))


def cannot_create(implementation: Implementation) -> str | None:
    """Why no manager can be made in an ordinary world, or None."""
    try:
        _ordinary(implementation)
    except CannotCreate as error:
        return str(error)
    return None


def _ordinary(implementation: Implementation, blocks: int = 4) -> Lockstep:
    """A fresh manager of so many blocks, of the smallest size from two on that it declares.  Raises CannotCreate."""
    declaration = implementation.declaration
    size = min(max(2, declaration.smallest_block_size), declaration.largest_block_size)
    return Lockstep(implementation, World(blocks, size))


class Examination:
    """Everything there is to know of one implementation, found out when first asked for."""

    def __init__(
        self,
        implementation: Implementation,
        options: Options,
        progress: Progress | None = None,
        known: KnownFailures | None = None,
    ) -> None:
        self.implementation, self.options, self.known = implementation, options, known
        self.effort: Effort = EFFORTS[options.effort]
        self.progress = progress or (lambda what, done, total: None)
        self.started = time.monotonic()
        self._contexts: dict[str, CampaignResult] = {}
        self._shrunk: dict[tuple[str, str], Counterexample] = {}
        self._results: dict[tuple[str, str], ClauseResult] = {}
        self._unfaithful = ""
        self.notes: list[str] = []
        self._unrepeatable: dict[str, str] = {}
        self._refuting: Refuting | None = None

    @property
    def profiles(self) -> tuple[str, ...]:
        """The profiles that were asked for."""
        return tuple(name for name in PROFILES if not self.options.profiles or name in self.options.profiles)

    def untried(self, profile: str) -> str | None:
        """Why a profile cannot be tried, or None."""
        if profile in EXTENSIONS and (reason := self._not_offered[profile]):
            return reason
        context = CONTEXTS.get(CONTEXT_OF.get(profile, profile))
        if context and (reason := context.possible(self.implementation.declaration)):
            return reason
        if profile == "hash" and self.implementation.chain_hash is None and profile not in self._declared:
            return "the adapter shows no chain hash"
        return self._refused_size if profile == "one" else None

    @property
    def _declared(self) -> frozenset[str]:
        return self.implementation.declaration.profiles

    @cached_property
    def _not_offered(self) -> dict[str, str | None]:
        """Why each extension cannot be tried, or None."""
        declaration = self.implementation.declaration
        if not declaration.profiles.intersection(EXTENSIONS):
            return dict.fromkeys(EXTENSIONS, "not offered")
        adapter = _ordinary(self.implementation).adapter
        return {profile: not_offered(profile, declaration, adapter) for profile in EXTENSIONS}

    @cached_property
    def _refused_size(self) -> str | None:
        """Why no manager can be made with block size 1, or None."""
        try:
            Lockstep(self.implementation, World(2, 1))
        except CannotCreate as error:
            return str(error)
        return None

    # Engines ------------------------------------------------------------------------------------------------------

    def campaign(self, name: str) -> CampaignResult:
        """The random programs and the Hypothesis machine of one context."""
        if name not in self._contexts:
            self._contexts[name] = self._run_context(CONTEXTS[name])
        return self._contexts[name]

    def _run_context(self, context: Context) -> CampaignResult:
        programs, done = self.effort.programs[context.name], 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            self.progress(context.name, done, programs)

        result = run_campaign(self.implementation, context, self.options.seed, programs, advance)
        self._run_machine(result)
        self.progress(context.name, programs, programs)
        return result

    def _run_machine(self, result: CampaignResult) -> None:
        """Hypothesis goes on where the random programs found no clause that ends a program."""
        decided = frozenset(result.context.clauses())
        if any(not CLAUSES[slug].survivable for slug in result.found):
            return
        muted = frozenset(s for s, c in CLAUSES.items() if c.survivable) - (decided - result.found.keys())
        found = run_machine(self.implementation, result.context, self.options.seed, self.effort.examples, muted)
        if found:
            result.found.setdefault(found.violation.clause, found)

    @cached_property
    def explorations(self) -> list[Exploration]:
        """The small worlds of this effort, exhausted if they end within `MOST_STATES`.

        None if the manager cannot be copied and replayed faithfully: the run then proves nothing, and says why.
        """
        worlds = default_worlds(self.implementation.declaration, self.options.effort)

        def show(world: SmallWorld, where: WorldProgress) -> None:
            self.progress(f"world {world.label}: {where.states:,} states", 0, 1)

        most = MOST_STATES[self.options.effort]
        try:
            return explore_all(self.implementation, worlds, self._undecided_here, limit_states=most, progress=show)
        except NotFaithful as error:
            self._unfaithful = str(error)
            return []
        finally:
            self.progress("worlds", 1, 1)

    @property
    def _undecided_here(self) -> frozenset[str]:
        """Survivable clauses of profiles that are not declared: a small world goes on after a breach of them."""
        declared = {c.slug for c in CLAUSES.values() if c.profile in self.implementation.declaration.profiles}
        return frozenset(slug for slug, clause in CLAUSES.items() if clause.survivable) - declared

    def world_violations(self) -> list[Counterexample]:
        """The shortest counterexamples of the small worlds, and nothing if they hold."""
        found = [each.counterexample for each in self.explorations if each.counterexample]
        contexts = ["chunked" if in_parts(self.implementation, each) else "steps" for each in found]
        return [replace(each, context=context) for each, context in zip(found, contexts, strict=True)]

    def start_contracts(self) -> None:
        """Start CrossHair, if this effort has a budget for it: it goes on by itself, while the other engines work."""
        budget = self.effort.contracts
        if self.options.contracts is not None:
            budget = Budget(NO_PATH_LIMIT, self.options.contracts)
        if budget and budget.seconds > 0 and self._refuting is None:
            self._refuting = Refuting(self.implementation, budget)

    @cached_property
    def contracts(self) -> ContractRun | None:
        """What CrossHair found, or None if this effort has no budget for it."""
        self.start_contracts()
        self.progress("contracts", 0, 1)
        run = self._refuting.result() if self._refuting else None
        self.progress("contracts", 1, 1)
        return run

    @cached_property
    def robust(self) -> dict[str, Violation | None]:
        """The scenarios of bad requests."""
        return check_robust(self.implementation)

    @cached_property
    def hash_bytes(self) -> Violation | None:
        """The comparison of the chain hash with nano-vllm's."""
        return check_hash(self.implementation)

    # Results ------------------------------------------------------------------------------------------------------

    def counterexample(self, profile: str, clause: str) -> Counterexample | None:
        """The shrunk counterexample to a clause in a profile, or None if it held."""
        counts = profile in self.implementation.declaration.profiles
        if profile == "robust":
            return _bare(self.robust[clause], profile)
        if profile == "hash":
            return _bare(self.hash_bytes, profile)
        if clause == "NANO-ORDER":
            if CONTEXTS["model"].possible(self.implementation.declaration):
                return None
            return self._found("model", clause, counts)
        return self._found(CONTEXT_OF.get(profile, profile), clause, counts)

    def _found(self, context: str, clause: str, counts: bool) -> Counterexample | None:
        """The shrunk counterexample; what does not count, because it is only probed, is shrunk less thoroughly."""
        found = self.campaign(context).found.get(clause)
        if found is None:
            return None
        if (context, clause) not in self._shrunk:
            self.progress(f"shrink {clause}", 0, 1)
            several = self.campaign(context).others.get(clause) if self.effort.thorough and counts else None
            short = shrink_shortest(self.implementation, several or [found])
            if self.effort.thorough and counts:
                short = with_proof_of_length(self.implementation, short)
            self._shrunk[context, clause] = short
            self.progress(f"shrink {clause}", 1, 1)
        return self._shrunk[context, clause]

    def vacuous(self, profile: str) -> list[str]:
        """What never happened in the context of a profile although it must."""
        context = CONTEXT_OF.get(profile, profile)
        if context not in CONTEXTS:
            return []
        result = self.campaign(context)
        if any(not CLAUSES[slug].survivable for slug in result.found):
            return []  # programs ended early, and the violation is what the run shows
        caches = "prefix" in self.implementation.declaration.profiles
        must = (*MUST_HAPPEN, *MUST_HAPPEN_HERE.get(context, ()))
        needed = [what for what in must if caches or what != "hits"]
        return [f"no {what} in context {context}" for what in needed if not result.counts[what]]

    @cached_property
    def first_difference(self) -> str | None:
        """Does the implementation answer the same when asked the same?  The first difference, or None."""
        program = self._sample()
        first, _ = run(self.implementation, program)
        second, _ = run(self.implementation, program)
        pairs = zip(first.operations, first.outcomes, second.outcomes, first.snapshots, second.snapshots, strict=False)
        for number, (operation, one, two, seen, again) in enumerate(pairs, 1):
            if one != two:
                return f"operation {number}, {operation}: first {one}, then {two}"
            if seen != again:
                return f"operation {number}, {operation}: the manager's state was {seen}, then {again}"
        return None

    def _sample(self) -> Program:
        context, lockstep = CONTEXTS["steps"], _ordinary(self.implementation, 6)
        lockstep.state.muted = frozenset(slug for slug, clause in CLAUSES.items() if clause.survivable)
        generator = Generator(Random(f"{self.options.seed}/replay"), context, lockstep.state)
        with alarm_installed():
            for _ in range(200):
                if lockstep.step(generator.next()):
                    break
        return Program(lockstep.world, tuple(lockstep.operations))

    def decide(self, profile: str, clause: str) -> ClauseResult:
        """The result of a clause in a profile that can be tried; it becomes part of the report."""
        if (profile, clause) not in self._results:
            found = self._repeatable(self.counterexample(profile, clause))
            known = bool(found and self.known and self.known.covers(clause, found.context))
            self._results[profile, clause] = ClauseResult(profile, clause, found, known)
        return self._results[profile, clause]

    def _repeatable(self, found: Counterexample | None) -> Counterexample | None:
        """A counterexample that shows when it is run again; one that does not makes the run prove nothing."""
        if found is None or not found.program.operations:
            return found
        clause = found.violation.clause
        _, again = run(self.implementation, found.program, found.muted, clause == "NANO-ORDER")
        if again and again.clause == clause:
            return found
        self._unrepeatable[clause] = f"{clause} was broken once, and not when the same program ran again"
        return None

    def trace_of(self, found: Counterexample) -> Path | None:
        """Store a counterexample as a trace; where it is, or None if it does not show again."""
        path = trace_path_of(found, self.options.traces)
        try:
            return write_trace(path, self.implementation, found, self.options.seed)
        except (NotRepeatable, CannotCreate):
            return None
        except OSError as error:
            self.notes.append(f"the trace of {found.violation.clause} is not stored: {path}: {error.strerror}")
            return None

    @property
    def decided_something(self) -> bool:
        """Has anything been tried in this run?"""
        return bool(self._results) or self._contract_run is not None

    @property
    def _contract_run(self) -> ContractRun | None:
        """What CrossHair found, if it was asked."""
        run: ContractRun | None = self.__dict__.get("contracts")
        return run

    def home_of(self, found: Counterexample) -> str:
        """The profile in which a violation of a small world counts: `chunked` only if the program plans a step in parts.

        Where only one of the two was asked for, it is that one.
        """
        profile = CLAUSES[found.violation.clause].profile
        in_parts = profile in BORROWED["chunked"] and found.context == "chunked" and "chunked" in self.profiles
        return "chunked" if in_parts or profile not in self.profiles else profile

    def decide_worlds(self) -> None:
        """Explore, and enter what the small worlds broke where nothing shorter is known for the clause."""
        for found in self.world_violations():
            self._enter(self.home_of(found), found)

    def decide_contracts(self) -> ClauseResult | None:
        """Enter what CrossHair found where nothing shorter is known for the clause; the result of that clause."""
        if self.contracts is None or self.contracts.own.refutation is None:
            return None
        found = shrink(self.implementation, self.contracts.own.refutation.counterexample)
        return self._enter(broken_profile(found.violation.clause, found.context), found)

    def _enter(self, home: str, found: Counterexample) -> ClauseResult:
        clause = found.violation.clause
        known = self._results.get((home, clause))
        if known and known.counterexample and not _longer(known.counterexample, found):
            return known
        listed = bool(self.known and self.known.covers(clause, found.context))
        self._results[home, clause] = ClauseResult(home, clause, found, listed)
        return self._results[home, clause]

    def decide_all(self) -> None:
        """Decide every clause of every profile that was asked for and can be tried, by all engines."""
        self.start_contracts()
        for profile in self.profiles:
            for clause in decided_clauses(profile) if not self.untried(profile) else ():
                self.decide(profile, clause)
        self.decide_worlds()
        self.decide_contracts()

    @cached_property
    def _known_results(self) -> list[KnownResult]:
        return self.known.check(self.implementation) if self.known else []

    def fixed_known_failures(self) -> list[str]:
        """Known failures that are gone, as sentences; their entries must be deleted."""
        return [result.sentence for result in self._known_results if not result.still_fails]

    @cached_property
    def canary_missed(self) -> str | None:
        """Plant a known-bad manager and look for its clause: the reason why this run cannot be trusted, or None."""
        planted = KNOWN_BAD[CANARY]
        bad, seed = planted.implementation(), self.options.seed
        result = run_campaign(bad, CONTEXTS["steps"], seed, CANARY_PROGRAMS, until=planted.clause)
        if planted.clause in result.found:
            return None
        return f"the planted known-bad manager {CANARY} was not caught for {planted.clause}"

    def report(self) -> ConformanceReport:
        """What has been decided so far."""
        implementation, options = self.implementation, self.options
        report = ConformanceReport(
            implementation.name,
            implementation.target,
            implementation.source,
            implementation.shape,
            tuple(name for name in PROFILES if name in implementation.declaration.profiles),
            options.effort,
            options.seed,
            options.command,
            results=list(self._results.values()),
        )
        report.untried = {profile: reason for profile in self.profiles if (reason := self.untried(profile))}
        report.counts = {name: result.counts for name, result in self._contexts.items()}
        if "explorations" in self.__dict__:
            report.certificates = [each.certificate.as_data() for each in self.explorations]
        report.notes = [*self.notes, *self._unseen]
        if self._contract_run:
            report.notes.append(f"contracts: {self._contract_run.own.sentence}")
        decided = Counter(result.profile for result in report.results)
        report.incomplete = frozenset(name for name in decided if decided[name] < len(decided_clauses(name)))
        report.proves_nothing = self._proves_nothing(report)
        report.seconds = time.monotonic() - self.started
        return report

    @cached_property
    def _unseen(self) -> list[str]:
        """A note on the clauses of declared profiles for which the manager shows too little of itself."""
        try:
            lockstep = _ordinary(self.implementation)
        except CannotCreate:
            return []
        slugs = unseen(lockstep.state.shown, lockstep.state.key_of is not None)
        slugs = [slug for slug in slugs if CLAUSES[slug].profile in self._declared]
        return [f"not seen from outside, judged by answers alone: {' '.join(slugs)}"] if slugs else []

    def _proves_nothing(self, report: ConformanceReport) -> list[str]:
        decided = {result.profile for result in report.results} & set(report.declared)
        reasons = [note for profile in PROFILES if profile in decided for note in self.vacuous(profile)]
        reasons += [
            f"{name} is declared, but cannot be tried: {why}"
            for name, why in report.untried.items()
            if name in report.declared
        ]
        contracts = self._contract_run
        if not decided and (contracts is None or contracts.own.untried):
            reasons.append("no clause of a declared profile was tried")
        reasons += contracts.missed() if contracts else []
        reasons += self._unrepeatable.values()
        if self._unfaithful:
            reasons.append(f"small worlds cannot be explored: {self._unfaithful}")
        if self.canary_missed:
            reasons.append(self.canary_missed)
        if self.first_difference:
            reasons.append(f"the implementation is not deterministic: {self.first_difference}")
        return list(dict.fromkeys(reasons))


def _longer(one: Counterexample, other: Counterexample) -> bool:
    return len(one.program.operations) > len(other.program.operations)


def _bare(violation: Violation | None, profile: str) -> Counterexample | None:
    """A violation that no program shows."""
    return Counterexample(Program(World(0, 0), ()), violation, profile) if violation else None
