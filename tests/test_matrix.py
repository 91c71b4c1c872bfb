"""The matrix of clauses and known-bad managers: what is missing is said in a sentence."""

from pathlib import Path

import pytest

from kvspec.conformance.explanation import enforcing_lines
from kvspec.conformance.matrix import Matrix, broken_by, load, markdown, store
from kvspec.impl.known_bad import KNOWN_BAD
from kvspec.spec.clauses import CLAUSES


@pytest.fixture(scope="module")
def stored() -> Matrix:
    return load()


def test_nothing_is_missing(stored: Matrix) -> None:
    assert not stored.missing(), "\n" + "\n".join(stored.missing())


@pytest.mark.parametrize("clause", CLAUSES)
def test_clause_has_its_enforcing_line(clause: str) -> None:
    sentence = CLAUSES[clause].sentence
    assert enforcing_lines(clause), f"no check stands below the comment `# {clause}: {sentence}`"


@pytest.mark.parametrize("clause", CLAUSES)
def test_only_this_clause_catches_its_killer(clause: str, stored: Matrix) -> None:
    """The test that each clause has: its clearest known-bad manager breaks it, and nothing that it does not imply."""
    killer = min(stored.killers(clause), key=lambda slug: len(stored.broken[slug]))
    broken = broken_by(killer, seed=1, programs=200)
    assert clause in broken, f"{killer} is not caught for {clause}"
    others = broken.keys() - {clause, *CLAUSES[clause].implies}
    assert not others, f"{killer} is caught for {sorted(others)}, too, which {clause} does not imply"


@pytest.mark.parametrize("clause", CLAUSES)
def test_implied_clauses_exist_and_do_not_imply_back(clause: str) -> None:
    for other in CLAUSES[clause].implies:
        assert clause not in CLAUSES[other].implies


def test_rendered_table_is_that_of_the_stored_matrix(stored: Matrix, tmp_path: Path) -> None:
    store(stored, tmp_path / "matrix.json")
    assert load(tmp_path / "matrix.json") == stored
    assert (tmp_path / "matrix.md").read_text(encoding="utf-8") == markdown(stored)


def test_what_is_missing_is_said(stored: Matrix) -> None:
    first = next(iter(KNOWN_BAD))
    without = Matrix({slug: broken for slug, broken in stored.broken.items() if slug != first})
    assert without.missing() == [f"known-bad manager {first} is not in the matrix: compute it again"]
    uncaught = Matrix({slug: {} for slug in KNOWN_BAD})
    assert "ANSWER has no known-bad manager that only it (and what it implies) catches" in uncaught.missing()
    unknown = Matrix({**stored.broken, "gone": {}})
    assert unknown.missing() == ["gone is in the matrix, but no known-bad manager has that name"]
