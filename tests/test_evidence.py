"""The stored evidence: every known-bad manager is caught under ten seeds, by short programs, the shortest where all can be tried.

``tests/test_known_bad.py`` runs two of the ten seeds again and compares.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from kvspec.conformance import evidence
from kvspec.conformance.evidence import SEEDS, Evidence, gather, lengths, load, missing, shortest, store
from kvspec.conformance.known_bad_run import SCENARIOS, shrunk_one
from kvspec.conformance.proof_of_length import CONTEXTS, with_proof_of_length
from kvspec.impl.known_bad import KNOWN_BAD


@pytest.fixture(scope="module")
def stored() -> dict[str, Evidence]:
    return load()


def test_nothing_is_missing(stored: dict[str, Evidence]) -> None:
    assert not missing(stored), "\n" + "\n".join(missing(stored))


def test_every_seed_catches_and_every_program_has_a_length(stored: dict[str, Evidence]) -> None:
    for slug, each in stored.items():
        programs = 0 if KNOWN_BAD[slug].context in SCENARIOS else SEEDS
        assert (each.caught, len(each.operations)) == (SEEDS, programs), slug


def test_counterexamples_are_short(stored: dict[str, Evidence]) -> None:
    middle, most = lengths(stored)
    assert middle <= 4
    assert most <= 8


def test_most_worlds_are_searched_for_something_shorter(stored: dict[str, Evidence]) -> None:
    with_worlds = [each for slug, each in stored.items() if KNOWN_BAD[slug].context in CONTEXTS]
    searched = [each for each in with_worlds if each.shortest is not None]
    assert len(searched) >= 0.8 * len(with_worlds)


@pytest.mark.parametrize("slug", ["negative-hit", "half-block-under-full-key", "empty-pool-made"])
def test_evidence_is_what_a_new_run_gives(slug: str, stored: dict[str, Evidence]) -> None:
    assert gather(slug) == stored[slug]


def test_what_is_reported_is_the_shortest(stored: dict[str, Evidence]) -> None:
    """Shrinking alone may end one operation too late; what ``kvspec check`` reports has been compared with all shorter ones."""
    for slug in [slug for slug, each in stored.items() if each.shortest is not None][::12]:
        found = shrunk_one(slug, 0)
        assert found is not None
        reported = with_proof_of_length(KNOWN_BAD[slug].implementation(), found)
        assert len(reported.program.operations) == stored[slug].shortest <= len(found.program.operations)


def test_what_is_missing_is_said(stored: dict[str, Evidence]) -> None:
    first = next(iter(KNOWN_BAD))
    uncaught = {**stored, first: replace(stored[first], caught=9)}
    assert missing(uncaught) == [f"{first} was caught for {KNOWN_BAD[first].clause} under 9 of 10 seeds"]
    without = {slug: each for slug, each in stored.items() if slug != first}
    assert missing({**without, "gone": Evidence(10, [])}) == [
        f"{first} has no evidence",
        "gone is no known-bad manager",
    ]


def test_what_has_no_program_is_not_searched() -> None:
    assert shortest("empty-pool-made") is None


def test_evidence_is_stored_in_the_order_of_the_registry(stored: dict[str, Evidence], tmp_path: Path) -> None:
    assert list(stored) == list(KNOWN_BAD)
    store(dict(reversed(stored.items())), tmp_path / "evidence.json")
    assert (tmp_path / "evidence.json").read_text() == evidence.REPORT.read_text()
