"""Reports: what they say is what the run found, in every form, and no form loads anything from elsewhere."""

import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest

from kvspec.conformance.hash_check import check_hash
from kvspec.conformance.outputs import stored_matrix
from kvspec.conformance.program import Counterexample, Program, run
from kvspec.conformance.render.report_data import ReportView, as_json, badge, view_of
from kvspec.conformance.render.report_files import html, json_text, markdown, write_report_files
from kvspec.conformance.robustness import check_robust
from kvspec.conformance.trace import judge_trace, read_trace
from kvspec.conformance.trace.commands import replay_command
from kvspec.conformance.verdict import ClauseResult, ConformanceReport
from kvspec.spec import operations as op
from kvspec.spec.clauses import PROFILES
from kvspec.spec.state import World

from .sample_managers import FreesShared, ModelManager, implementation

LIMIT = 1 << 20
SCHEMA = json.loads((Path(__file__).parent.parent / "conformance" / "schemas" / "report.schema.json").read_text())
BAD = implementation(FreesShared)
PROGRAM = Program(
    World(2, 2),
    (op.Admit("A", (7, 7), LIMIT), op.Commit(("A",)), op.Admit("B", (7, 7, 9), LIMIT), op.Release("A")),
)


def counterexample(context: str = "steps") -> Counterexample:
    _, violation = run(BAD, PROGRAM)
    assert violation is not None
    return Counterexample(PROGRAM, violation, context)


def report_of(*results: ClauseResult, declared: tuple[str, ...] = ("pool", "prefix")) -> ConformanceReport:
    report = ConformanceReport(
        "FreesShared", "file.py:FreesShared", "/home/somebody/file.py", "five operations", declared, "smoke", 7,
        "kvspec check file.py:FreesShared --effort smoke --seed 7",
    )  # fmt: skip
    report.results = list(results)
    report.counts = {"steps": Counter(operations=12345, hits=99)}
    report.certificates = [{"world": "3x2", "states": 342918, "exhausted": True}]
    report.seconds = 1.25
    return report


HELD = ClauseResult("prefix", "CONTENT")


@pytest.fixture(scope="module")
def green() -> ReportView:
    return view_of(report_of(ClauseResult("pool", "RELEASE"), HELD), BAD)


@pytest.fixture(scope="module")
def red() -> ReportView:
    return view_of(report_of(ClauseResult("pool", "RELEASE", counterexample()), HELD), BAD)


@pytest.fixture(scope="module")
def partial() -> ReportView:
    return view_of(report_of(ClauseResult("pool", "RELEASE", counterexample(), known=True), HELD), BAD)


@pytest.fixture(scope="module")
def probed() -> ReportView:
    results = (HELD, ClauseResult("chunked", "RELEASE", counterexample("chunked")))
    return view_of(report_of(*results, declared=("prefix",)), BAD)


@pytest.fixture(scope="module")
def vacuous() -> ReportView:
    report = report_of(HELD)
    report.proves_nothing = ["no hits in context steps"]
    return view_of(report, BAD)


@pytest.fixture(scope="module")
def fixed() -> ReportView:
    return view_of(report_of(HELD), BAD, fixed=("release.ndjson: it passes now; delete the entry",))


ALL = ("green", "red", "partial", "probed", "vacuous", "fixed")


@pytest.mark.parametrize("name", ALL)
def test_json_is_valid_under_its_schema(name: str, request: pytest.FixtureRequest) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    validator.validate(json.loads(json_text(request.getfixturevalue(name))))


def test_the_schema_is_strict(green: ReportView) -> None:
    validator, whole = jsonschema.Draft202012Validator(SCHEMA), as_json(green)
    assert not validator.is_valid(whole | {"mood": "good"})
    for field in whole:
        assert not validator.is_valid({name: value for name, value in whole.items() if name != field})


@pytest.mark.parametrize(
    ("name", "verdict", "code", "message", "colour"),
    [
        ("green", "conforms", 0, "pool prefix", "brightgreen"),
        ("red", "violates", 1, "violates RELEASE", "red"),
        ("partial", "conforms", 0, "prefix | partial: pool", "yellow"),
        ("probed", "conforms", 0, "prefix", "brightgreen"),
        ("vacuous", "proves nothing", 3, "proves nothing", "lightgrey"),
        ("fixed", "violates", 1, "a known failure is fixed", "red"),
    ],
)
def test_every_form_has_the_same_verdict(
    name: str, verdict: str, code: int, message: str, colour: str, request: pytest.FixtureRequest
) -> None:
    view = request.getfixturevalue(name)
    data = as_json(view)
    assert (data["verdict"], data["exit_code"]) == (verdict, code)
    assert badge(view) == {"schemaVersion": 1, "label": "kvspec", "message": message, "color": colour}
    assert markdown(view).startswith(f"# kvspec: FreesShared {verdict}\n")
    assert f"<title>kvspec: FreesShared {verdict}</title>" in html(view)


def test_json_names_what_broke_and_where_its_trace_is(red: ReportView) -> None:
    (broken,) = [result for result in as_json(red)["results"] if not result["holds"]]
    assert broken["clause"] == "RELEASE"
    assert broken["because"] == "block 0 is left with 0 references; 1 are live"
    assert broken["operations"] == 4
    assert re.fullmatch(r"traces/release-[0-9a-f]{4}\.ndjson", broken["trace"])


def test_no_form_tells_where_the_file_lies_on_this_machine(red: ReportView) -> None:
    assert not any("/home/somebody" in text for text in (json_text(red), markdown(red), html(red)))


def test_markdown_has_a_row_a_profile_and_the_counterexample(red: ReportView) -> None:
    text = markdown(red)
    assert "| pool | **violates** | 0/1 | RELEASE |" in text
    assert "| prefix | conforms | 1/1 |  |" in text
    assert "Small worlds: 1 of 1 exhausted, 342,918 states." in text
    assert "<details open><summary>pool: RELEASE</summary>" in text
    assert ">4   release A finished" in text
    assert "The same run: `kvspec check file.py:FreesShared --effort smoke --seed 7`" in text


def test_markdown_tables_have_no_gaps(red: ReportView) -> None:
    table = re.search(r"(?:^\|.*\n)+", markdown(red), re.M)
    assert table is not None
    assert len({row.count("|") for row in table[0].splitlines()}) == 1


def test_what_does_not_count_is_folded_and_says_so(partial: ReportView, probed: ReportView) -> None:
    assert "<details><summary>pool: RELEASE (known failure)</summary>" in markdown(partial)
    assert "<details><summary>chunked: RELEASE (probed, not declared)</summary>" in markdown(probed)
    assert "known failure" in html(partial)
    assert "is not declared, so this is not counted" in html(probed)


def test_reasons_why_a_run_proves_nothing_are_in_every_form(vacuous: ReportView) -> None:
    for text in (json_text(vacuous), markdown(vacuous), html(vacuous)):
        assert "no hits in context steps" in text


def test_a_fixed_failure_asks_to_be_deleted_in_every_form(fixed: ReportView) -> None:
    for text in (json_text(fixed), markdown(fixed), html(fixed)):
        assert "it passes now; delete the entry" in text


class Page(HTMLParser):
    """Notes links, targets, and whether all tags are closed."""

    VOID = frozenset({"meta", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.tags: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.tags[tag] += 1
        self.links += [value for name in ("href", "src") if (value := named.get(name))]
        if named.get("id"):
            self.anchors.add(named["id"] or "")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", ALL)
def test_a_page_is_whole_and_loads_nothing(name: str, request: pytest.FixtureRequest) -> None:
    page = Page()
    page.feed(html(request.getfixturevalue(name)))
    assert page.open == []
    assert not page.tags.keys() & {"script", "link", "img", "iframe"}
    assert all(link.startswith("#") and link[1:] in page.anchors for link in page.links)


def test_a_page_shows_picture_script_counts_and_certificates(red: ReportView) -> None:
    text = html(red)
    assert text.count("<svg") == 1
    assert "the same without kvspec, as a script" in text
    assert "12,345" in text
    assert "342,918" in text
    assert '<a href="#clause-RELEASE">' in text


def test_a_page_shows_the_matrix_where_there_is_one(green: ReportView) -> None:
    matrix = {"released-twice": ("RELEASE", ("RELEASE", "REFCOUNT")), "sly": ("CONTENT", ())}
    text = html(view_of(green.report, BAD, matrix))
    assert "RELEASE REFCOUNT" in text
    assert "not caught" in text
    jsonschema.validate(as_json(view_of(green.report, BAD, matrix)), SCHEMA)


def test_the_folder_has_all_forms_and_traces_that_show_the_failure(red: ReportView, tmp_path: Path) -> None:
    written = write_report_files(tmp_path / "report", red, BAD)
    names = [path.relative_to(tmp_path / "report").as_posix() for path in written]
    assert names[:4] == ["report.json", "report.md", "report.html", "badge.json"]
    assert len(names) == 5
    judgement = judge_trace(written[4])
    assert judgement.violation is not None
    assert judgement.violation.clause == "RELEASE"
    assert replay_command(written[4], BAD) == 1


def test_scenarios_without_a_program_are_reported_too(tmp_path: Path) -> None:
    good = implementation(ModelManager)
    clause, violation = next((clause, found) for clause, found in check_robust(good).items() if found)
    bare = Counterexample(Program(World(0, 0), ()), violation, "robust")
    view = view_of(report_of(ClauseResult("robust", clause, bare), declared=("robust",)), good)
    assert f"violates {clause}" in badge(view)["message"]
    assert violation.because in html(view).replace("&#39;", "'").replace("&gt;", ">")
    (trace,) = write_report_files(tmp_path, view, good)[4:]
    assert read_trace(trace).footer.verdict == clause
    assert check_hash(good) is None


def test_profiles_come_in_the_order_of_the_registry(green: ReportView) -> None:
    assert [entry["profile"] for entry in as_json(green)["profiles"]] == list(PROFILES)


def test_the_stored_matrix_goes_into_the_report() -> None:
    matrix = stored_matrix()
    assert len(matrix) >= 60
    assert all(clause in broken for clause, broken in matrix.values())


def test_the_page_holds_what_gpu_tests_left_in_the_folder(green: ReportView, tmp_path: Path) -> None:
    write_report_files(tmp_path, green, BAD)
    assert "Attention" not in (tmp_path / "report.html").read_text()
    for name in ("attention.svg", "attention.txt"):
        kept = Path(__file__).parent.parent / "gpu_tests" / "results" / name
        (tmp_path / name).write_bytes(kept.read_bytes())
    write_report_files(tmp_path, green, BAD)
    page = (tmp_path / "report.html").read_text()
    assert "Attention: which lane sees which planted fault" in page
    assert 'src="data:image/svg+xml;base64,' in page
    assert "fingerprint" in page
