"""Reports on engines: stored as data without a path of the machine, read back, and put into one table."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kvspec.conformance.engines_report import FOLDER, EngineReport, examine, store, stored
from kvspec.conformance.engines_table import engines_table
from kvspec.spec.clauses import CLAUSES, PROFILES


@pytest.fixture(scope="module")
def report() -> EngineReport:
    return examine("known-bad:early-stale-entry", "smoke", 0, engine="somebody/engine", version="1.2")


def test_a_report_says_what_broke(report: EngineReport) -> None:
    assert report.verdict == "violates"
    assert report.profiles["prefix"]["standing"] == "violates"
    assert "CONTENT" in report.profiles["prefix"]["broken"]
    assert report.shortest["CONTENT"] <= 7
    assert report.operations > 1000


def test_a_report_is_read_back(report: EngineReport, tmp_path: Path) -> None:
    path = store(report, tmp_path)
    assert path.name == "somebody+engine-1.2.json"
    assert stored(tmp_path) == [report]


def test_versions_are_in_the_order_in_which_people_count(report: EngineReport, tmp_path: Path) -> None:
    for version in ("1.10.0", "1.9.1", "9fa256a"):
        store(replace(report, version=version), tmp_path)
    assert [each.version for each in stored(tmp_path)] == ["9fa256a", "1.9.1", "1.10.0"]


def test_a_version_must_be_known() -> None:
    with pytest.raises(ValueError, match="does not tell its version: give --version"):
        examine("known-bad:early-stale-entry", "smoke", 0)


def test_stored_reports_name_what_exists_and_no_place_of_a_machine() -> None:
    for file in FOLDER.glob("*.json"):
        report = EngineReport(**json.loads(file.read_text(encoding="utf-8")))
        assert file.name == report.file_name
        assert report.profiles.keys() <= PROFILES.keys()
        assert {clause for found in report.profiles.values() for clause in found["broken"]} <= CLAUSES.keys()
        assert "/tmp" not in file.read_text(encoding="utf-8")
        assert report.operations > 0


def test_what_builds_on_a_broken_profile_is_not_listed(report: EngineReport) -> None:
    broken_pool = {"standing": "violates", "broken": ["REFCOUNT"]}
    holds = {"standing": "conforms", "broken": []}
    shaken = replace(report, profiles={"pool": broken_pool, "prefix": holds, "hash": holds}, shortest={"REFCOUNT": 1})
    assert "| hash | pool: REFCOUNT (1) | none |" in engines_table([shaken])


def test_the_table_has_every_report() -> None:
    table = engines_table()
    assert len({line.split(" | ")[0] for line in table.splitlines()[2:]}) == len({each.engine for each in stored()})
    assert all(f"`{each.version}`" in table for each in stored())
