"""Known-bad managers: the bases are sound, every fault is caught for its own clause, examples show what they say."""

import json

import pytest

from kvspec.conformance.campaign import run_campaign
from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.evidence import load as load_evidence
from kvspec.conformance.known_bad_run import SCENARIOS, counts, known_bad_command, run_known_bad, run_one
from kvspec.conformance.program import Program, others_muted, run
from kvspec.conformance.robustness import check_robust
from kvspec.impl.adapter import Implementation
from kvspec.impl.known_bad import KINDS, KNOWN_BAD, load_known_bad
from kvspec.impl.known_bad.bases import counted, deduplicating, eager, hard, named, pooled
from kvspec.impl.known_bad.notation import read, write
from kvspec.impl.known_bad.registry import direct
from kvspec.spec.clauses import CLAUSES, clauses_of

PROGRAMMED = [slug for slug, bad in KNOWN_BAD.items() if bad.context not in SCENARIOS]


class NamespacedCounted(counted.Counted):
    declaration = counted.NAMESPACED


BASES = {
    "counted": direct(counted.Counted),
    "counted with namespaces": direct(NamespacedCounted),
    "deduplicating": direct(deduplicating.Deduplicating),
    "eager": direct(eager.Eager),
    "pooled": direct(pooled.Pooled),
    "bundled": named.Late.implementation(),
    "early": named.Early.implementation(),
    "layout": named.Layout.implementation(),
    "hardened": hard.Hard.implementation(),
}


EVIDENCE = load_evidence()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Two seeds, or ten with --effort deep."""
    if "seed" in metafunc.fixturenames:
        deep = metafunc.config.getoption("--effort", "default") == "deep"
        metafunc.parametrize("seed", range(10 if deep else 2))


def claimed(name: str, context: str) -> frozenset[str]:
    """The profiles of a base that are decided in a context, none if it cannot be tried."""
    declaration = BASES[name].declaration
    possible = not CONTEXTS[context].possible(declaration)
    return declaration.profiles.intersection(CONTEXTS[context].profiles if possible else ())


@pytest.mark.parametrize(
    ("name", "context"), [(name, context) for name in BASES for context in CONTEXTS if claimed(name, context)]
)
def test_base_is_sound(name: str, context: str) -> None:
    base, profiles = BASES[name], claimed(name, context)
    declared = {clause.slug for profile in profiles for clause in clauses_of(profile)}
    found = run_campaign(base, CONTEXTS[context], 0, 400).found
    assert not declared.intersection(found), found


@pytest.mark.parametrize("name", [name for name, base in BASES.items() if "robust" in base.declaration.profiles])
def test_base_rejects_bad_input(name: str) -> None:
    assert not any(check_robust(BASES[name]).values())


@pytest.mark.parametrize("slug", KNOWN_BAD)
def test_caught_for_its_own_clause(slug: str, seed: int) -> None:
    row = run_one(slug, seed)
    assert row.caught, f"{slug} must be caught for {row.clause}; found: {row.caught_by}"
    assert slug in EVIDENCE, f"{slug} has no evidence; run: python -m kvspec.conformance.evidence {slug}"
    stored = EVIDENCE[slug].operations[seed : seed + 1] or [None]
    assert stored == [row.operations], f"out of date; run: python -m kvspec.conformance.evidence {slug}"


@pytest.mark.parametrize("slug", PROGRAMMED)
def test_example_breaks_its_clause_last(slug: str) -> None:
    bad = KNOWN_BAD[slug]
    assert bad.example is not None, f"{slug} has no example"
    program = Program(bad.example.world, bad.example.operations)
    lockstep, violation = run(bad.implementation(), program, others_muted(bad.clause), bad.context == "model")
    assert violation is not None
    assert (violation.clause, len(lockstep.operations)) == (bad.clause, len(program.operations))


# Where the fault is the base's own, under conditions that the base does not claim, the sentence says "as it is".
@pytest.mark.parametrize("slug", [slug for slug in PROGRAMMED if "as it is" not in KNOWN_BAD[slug].sentence])
def test_example_does_nothing_to_the_base(slug: str) -> None:
    bad = KNOWN_BAD[slug]
    assert bad.example is not None
    base = _base_of(bad.implementation(), bad.base)
    clauses = {clause.slug for profile in base.declaration.profiles for clause in clauses_of(profile)}
    program = Program(bad.example.world, bad.example.operations)
    _, violation = run(
        base, program, frozenset(slug for slug, clause in CLAUSES.items() if clause.survivable) - clauses
    )
    assert violation is None


def _base_of(implementation: Implementation, name: str) -> Implementation:
    spaces = implementation.declaration.namespaces and name == "counted"
    return BASES["counted with namespaces" if spaces else name]


def test_registry_is_complete() -> None:
    assert len(KNOWN_BAD) >= 60
    assert {bad.kind for bad in KNOWN_BAD.values()} == set(KINDS)
    assert {bad.clause for bad in KNOWN_BAD.values()} == set(CLAUSES), "each clause has a known-bad manager"
    assert len({bad.sentence for bad in KNOWN_BAD.values()}) == len(KNOWN_BAD)
    for bad in KNOWN_BAD.values():
        assert bad.reports, f"{bad.slug} names no public report"
        assert bad.sentence.endswith("."), f"{bad.slug}: the docstring begins with one sentence"


@pytest.mark.parametrize("slug", PROGRAMMED)
def test_notation_round_trip(slug: str) -> None:
    example = KNOWN_BAD[slug].example
    assert example is not None
    assert read(write(example.world, example.operations)) == example


def test_unknown_slug_names_the_nearest() -> None:
    with pytest.raises(KeyError, match="stale-index-entry"):
        load_known_bad("stale-index-entri")


def test_a_clause_that_another_one_implies_does_not_count() -> None:
    assert counts("INDEX-CHAIN", ("INDEX-CHAIN", "INDEX-MATCH"))
    assert not counts("INDEX-CHAIN", ("INDEX-MATCH", "INDEX-CHAIN"))
    assert counts("INDEX-MATCH", ("INDEX-CHAIN", "INDEX-MATCH"))
    assert not counts("INDEX-MATCH", ("INDEX-CHAIN",))


def test_rows_come_in_the_order_of_the_registry() -> None:
    rows = run_known_bad(("empty-pool-made", "fresh-block-uncounted"), seeds=(1, 0))
    assert sorted(row.seed for row in rows if row.slug == "empty-pool-made") == [0, 1]
    order = list(KNOWN_BAD)
    assert [order.index(row.slug) for row in rows] == sorted(order.index(row.slug) for row in rows)


def test_command_prints_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert known_bad_command(("fresh-block-uncounted",), json=True) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["slug"] == "fresh-block-uncounted"
    assert (row["caught"], row["caught_by"], row["operations"]) == (True, ["REFCOUNT"], 1)


def test_command_lists(capsys: pytest.CaptureFixture[str]) -> None:
    assert known_bad_command(only_list=True, json=True) == 0
    assert [json.loads(line)["slug"] for line in capsys.readouterr().out.splitlines()] == list(KNOWN_BAD)
    assert known_bad_command(("hash-without-parent",), only_list=True) == 0
    assert "HASH-BYTES" in capsys.readouterr().out


def test_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert known_bad_command(("fresh-block-uncounted", "hit-uncounted")) == 0
    assert "2 of 2 caught" in capsys.readouterr().out


def test_command_refuses_unknown_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert known_bad_command(("no-such-manager",)) == 2
    assert known_bad_command(effort="enormous") == 2
    assert "no such effort" in capsys.readouterr().err
