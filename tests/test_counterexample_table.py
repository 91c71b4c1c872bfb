"""What a reader sees of a failure: the table, the picture, the page, and the script that needs no kvspec."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from kvspec.conformance.campaign import run_campaign
from kvspec.conformance.contexts import CONTEXTS
from kvspec.conformance.program import Counterexample, Program, others_muted, run
from kvspec.conformance.render import (
    Story,
    plain_counterexample,
    plain_story,
    render_counterexample,
    standalone_snippet,
    story_of,
    trace_path_of,
)
from kvspec.conformance.render.explain import BUILT_ON, weakest
from kvspec.conformance.render.picture import svg_of
from kvspec.conformance.render.similar import SIMILAR
from kvspec.conformance.render.story_page import html_of
from kvspec.conformance.shrink import shrink
from kvspec.conformance.trace import judge_trace
from kvspec.impl.known_bad import KNOWN_BAD, KnownBad
from kvspec.impl.loader import load
from kvspec.spec import operations as op
from kvspec.spec.clauses import CLAUSES, PROFILES
from kvspec.spec.state import World

from .sample_managers import BlindFreesShared, FreesShared, ModelManager, StaleIndex, implementation

LIMIT = 1 << 20
ROOT = Path(__file__).parent.parent
SVG = "{http://www.w3.org/2000/svg}"

FREED_TOO_SOON = Program(
    World(2, 2),
    (op.Admit("A", (7, 7), LIMIT), op.Commit(("A",)), op.Admit("B", (7, 7, 9), LIMIT), op.Release("A")),
)
RECYCLED = Program(
    World(2, 2),
    (
        op.Admit("A", (7, 7), LIMIT),
        op.Commit(("A",)),
        op.Release("A"),
        op.Admit("B", (5, 5, 6), LIMIT),
        op.Commit(("B",)),
        op.Release("B"),
        op.Admit("A", (7, 7, 8), LIMIT),
    ),
)

TABLE_80 = """\
VIOLATES  RELEASE  a release drops exactly the sequence's own references, once
(pool, since 0.1)

  FreesShared: 4 operations; blocks=2 block size=2; context steps; seed 7

      operation            returned                free   references   index
 ───────────────────────────────────────────────────────────────────────────
  1   admit A [7 7]        table [0]               1      1 0          empty
  2   commit A             table [0]               1      1 0          7.7→0
  3   admit B [7 7 9]      table [0 1], 2 cached   none   2 1          7.7→0
 >4   release A finished   done                    0      0 1          7.7→0
      required                                     none   1 1

  because  block 0 is left with 0 references; 1 are live
           operation 1: A was given block 0 as new
           operation 3: B was given block 0 as cached
           operation 4: A gave block 0 back
           operation 4: block 0 is in the free list, but B still holds it
  weakest  pool is broken; prefix, reuse, order, chunked, one, collision,
           namespace build on it and are not claimed
  similar  MinivLLM PR 84: a count that started at 0 went to -1 on release
           SGLang PR 18694: preemption freed a sequence that had freed itself

  replay   kvspec replay TRACE tests/sample_managers.py:FreesShared
  accept   kvspec accept TRACE --known known.toml --reason "…" --link "…"
"""


def counterexample(program: Program, manager: type, clause: str) -> Counterexample:
    muted = others_muted(clause)
    _, violation = run(implementation(manager), program, muted)
    assert violation is not None
    assert violation.clause == clause
    return Counterexample(program, violation, "steps", muted)


@pytest.fixture(scope="module")
def freed() -> Story:
    return story_of(counterexample(FREED_TOO_SOON, FreesShared, "RELEASE"), implementation(FreesShared), 7)


@pytest.fixture(scope="module")
def recycled() -> Story:
    return story_of(counterexample(RECYCLED, StaleIndex, "CONTENT"), implementation(StaleIndex))


@pytest.fixture(scope="module")
def stories() -> list[Story]:
    """Whatever campaigns find in three bad managers, in several contexts."""
    told = []
    for manager in (FreesShared, BlindFreesShared, StaleIndex):
        bad = implementation(manager)
        for context in ("steps", "chunked", "collision", "one"):
            told += [story_of(found, bad) for found in run_campaign(bad, CONTEXTS[context], 1, 50).found.values()]
    assert len({story.clause for story in told}) >= 5
    return told


# The table ----------------------------------------------------------------------------------------------------------


def test_the_table_says_what_was_asked_answered_required_and_why(freed: Story) -> None:
    assert plain_story(freed, width=80) == TABLE_80


def test_a_wrong_hit_names_what_was_needed_and_how_the_block_came_to_hold_something_else(recycled: Story) -> None:
    text = plain_story(recycled, "wrong.ndjson", 120)
    assert ">7   admit A [7 7 8]" in text
    assert re.search(r"required +K/V of \[7\] at position 0", text)
    assert "position 0 of A needs the K/V of [7]; its slot holds" in text
    assert "operation 1: A was given block 0 as new" in text
    assert "operation 4: B was given block 0 as new" in text
    assert "operation 7: A was given block 0 as cached" in text
    assert "nano-vllm #163" in text
    assert "kvspec replay wrong.ndjson tests/sample_managers.py:StaleIndex" in text


def test_a_manager_that_shows_nothing_has_no_empty_columns(recycled: Story) -> None:
    header = next(line for line in plain_story(recycled).splitlines() if "operation" in line and "returned" in line)
    assert header.split() == ["operation", "returned"]


@pytest.mark.parametrize("width", [80, 120])
def test_nothing_is_wider_than_the_terminal_or_coloured_where_there_is_no_colour(
    stories: list[Story], width: int
) -> None:
    for story in stories:
        text = plain_story(story, "trace.ndjson", width)
        assert max(map(len, text.splitlines())) <= width
        assert "\x1b" not in text
        assert "…" not in text.replace('"…"', "").replace("] …", "").replace("…" + "0", "").split("because")[-1]


def test_every_operation_is_a_row_and_the_last_one_is_marked(stories: list[Story]) -> None:
    for story in stories:
        text = plain_story(story, width=120)
        for number in range(1, len(story.moments)):
            assert re.search(rf"^ +{number} ", text, re.M)
        assert re.search(rf"^ *>{len(story.moments)} ", text, re.M)


def test_colour_is_used_on_a_terminal_and_never_alone(freed: Story) -> None:
    console = Console(force_terminal=True, width=100, color_system="standard", record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    with console.file:
        console.print(render_counterexample(*_freed_arguments()))
    coloured = console.export_text(styles=True)
    assert "\x1b[" in coloured
    assert ">4" in coloured


def _freed_arguments() -> tuple[Counterexample, object]:
    return counterexample(FREED_TOO_SOON, FreesShared, "RELEASE"), implementation(FreesShared)


@pytest.mark.parametrize("folder", ["", "deep/" * 9, "deep/" * 12, "deep/" * 60])
def test_commands_can_be_copied_even_where_they_wrap(freed: Story, folder: str) -> None:
    text = plain_story(freed, f"{folder}trace.ndjson", 80)
    assert max(map(len, text.splitlines())) <= 80
    replay = text[text.index("replay ") + 7 : text.index("accept ")]
    asked = subprocess.run(
        ["bash", "-c", f"kvspec() {{ printf '%s|' \"$@\"; }}; {replay}"], capture_output=True, text=True
    )
    assert asked.stdout == f"replay|{folder}trace.ndjson|tests/sample_managers.py:FreesShared|"


@pytest.mark.parametrize(
    "target", ["cmd:./manager --fault=tail", "cmd:run \"a file\" --cost '$5'", "cmd:" + "word " * 40]
)
def test_a_target_of_several_words_is_one_word_of_the_command(freed: Story, target: str) -> None:
    text = plain_story(replace(freed, header=replace(freed.header, target=target)), "trace.ndjson", 80)
    replay = text[text.index("replay ") + 7 : text.index("accept ")]
    asked = subprocess.run(
        ["bash", "-c", f"kvspec() {{ printf '%s|' \"$@\"; }}; {replay}"], capture_output=True, text=True
    )
    assert asked.stdout == f"replay|trace.ndjson|{target}|"


def test_a_refusal_names_the_declaration_that_may_be_wrong() -> None:
    bad = KNOWN_BAD["shared-blocks-not-credited"]
    found = found_in(bad)
    assert found
    assert found.violation.clause == "NO-MEANS-NO"
    text = plain_counterexample(found, bad.implementation(), width=200)
    assert "where that is not so, declare credits_shared false" in text


def test_the_trace_that_the_commands_name_is_written(tmp_path: Path) -> None:
    found, bad = _freed_arguments()
    path = trace_path_of(found, tmp_path)
    assert str(path.name) in plain_counterexample(found, bad, path, width=200)  # type: ignore[arg-type]
    assert judge_trace(path).violation is not None


def test_a_counterexample_that_does_not_repeat_is_still_told() -> None:
    text = plain_counterexample(counterexample(FREED_TOO_SOON, FreesShared, "RELEASE"), implementation(ModelManager))
    assert "RELEASE" in text
    assert "breaks nothing when it runs again" in text


def test_reports_are_of_clauses_that_exist_and_are_told_in_one_line() -> None:
    assert SIMILAR.keys() <= CLAUSES.keys()
    for reports in SIMILAR.values():
        for where, what in reports:
            assert re.search(r"(#|PR )\d+$", where)
            assert len(what) < 100


def test_the_weakest_profile_names_what_builds_on_it() -> None:
    assert {*BUILT_ON, *sum(BUILT_ON.values(), ())} <= PROFILES.keys()
    assert weakest("CONTENT", "steps") == (
        "prefix is broken; reuse, chunked, one, collision, namespace build on it and are not claimed"
    )
    assert weakest("CONTENT", "collision") == "collision is broken; no other profile builds on it"


# Pictures -----------------------------------------------------------------------------------------------------------


def struck_cells(svg: str) -> list[ElementTree.Element]:
    tree = ElementTree.fromstring(svg)
    return [cell for cell in tree.iter(f"{SVG}rect") if cell.get("stroke-width") == "3"]


def test_the_picture_has_a_row_a_moment_and_marks_the_violated_cell(recycled: Story) -> None:
    svg = svg_of(recycled)
    tree = ElementTree.fromstring(svg)
    titles = [title.text or "" for title in tree.iter(f"{SVG}title")]
    assert len(titles) == 1 + 7 * 2 * 2  # the picture, and moments x blocks x slots
    assert len(struck_cells(svg)) == 1
    assert "block 0, slot 0, held by A: K/V of [5 5 6]" in titles


def test_a_block_without_a_position_is_marked_as_a_whole(freed: Story) -> None:
    assert len(struck_cells(svg_of(freed))) == 2
    assert "✗0 B free" in svg_of(freed)


def test_every_story_can_be_drawn_and_told_as_a_page(stories: list[Story]) -> None:
    for story in stories:
        tree = ElementTree.fromstring(svg_of(story))
        width = float(tree.get("width") or 0)
        assert all(float(cell.get("x") or 0) + float(cell.get("width") or 0) <= width for cell in cells(tree))
        page = html_of(story, "trace.ndjson")
        assert page.startswith("<!doctype html>")
        assert story.clause in page


def cells(tree: ElementTree.Element) -> list[ElementTree.Element]:
    return [cell for cell in tree.iter(f"{SVG}rect") if (cell.get("width") or "%")[-1] != "%"]


def test_a_page_loads_nothing_and_escapes_what_a_manager_says(freed: Story) -> None:
    page = html_of(freed, "<script>alert(1)</script>.ndjson")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not re.findall(r'(?:src|href)="(?!#)', page)
    assert "url(" not in page


# Scripts ------------------------------------------------------------------------------------------------------------


def executed(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = folder / "reproduce.py"
    path.write_text(script)
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False, cwd=folder)


def found_in(bad: KnownBad) -> Counterexample | None:
    """The counterexample to its own clause, not shrunk: longer programs try the script harder."""
    context = CONTEXTS["model" if bad.clause == "NANO-ORDER" else bad.context]
    return run_campaign(bad.implementation(), context, 3, 300).found.get(bad.clause)


NANO_SHAPED = [bad for bad in KNOWN_BAD.values() if bad.shape.startswith(("late", "early")) and bad.context in CONTEXTS]


@pytest.mark.parametrize("bad", NANO_SHAPED, ids=lambda bad: bad.slug)
def test_a_script_fails_on_the_bad_manager_and_names_the_fault(bad: KnownBad, tmp_path: Path) -> None:
    found = found_in(bad)
    if found is None:
        pytest.skip("takes more programs to find")
    script = standalone_snippet(found, bad.implementation())
    asked = found.program.operations  # extensions and namespaces go through the adapter
    if not any(isinstance(each, op.Extension) or getattr(each, "namespace", "") for each in asked):
        assert "kvspec" not in re.sub(r"from kvspec\.impl\.known_bad.*", "", script)
    ended = executed(script, tmp_path)
    assert ended.returncode == 1
    assert f"AssertionError: {bad.clause}: {CLAUSES[bad.clause].sentence}" in ended.stderr


def test_a_script_passes_once_the_manager_is_mended(tmp_path: Path) -> None:
    good = (ROOT / "impl" / "block_manager.py").read_text()
    manager = tmp_path / "my_manager.py"
    manager.write_text(good.replace("block.ref_count -= 1", "block.ref_count = 0"))
    bad = load(f"{manager}:BlockManager")
    found = shrink(bad, run_campaign(bad, CONTEXTS["steps"], 1, 200).found["RELEASE"])
    script = standalone_snippet(found, bad)
    assert f"sys.path.insert(0, {str(tmp_path)!r})" in script
    assert "AssertionError: RELEASE" in executed(script, tmp_path).stderr
    manager.write_text(good)
    ended = executed(script, tmp_path)
    assert ended.returncode == 0, ended.stderr


def test_other_shapes_get_the_five_operations(tmp_path: Path) -> None:
    target = f"{ROOT / 'tests' / 'sample_managers.py'}:FreesShared"
    bad = load(target)
    found = counterexample(FREED_TOO_SOON, FreesShared, "RELEASE")
    script = standalone_snippet(found, bad)
    assert f"load({target!r})" in script
    assert "ask(manager, op.Release('A', op.Cause.FINISHED))" in script
    assert "AssertionError: RELEASE" in executed(script, tmp_path).stderr
