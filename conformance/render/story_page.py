"""A counterexample as a stand-alone web page: the table, the picture, the reasons, the commands."""

from dataclasses import dataclass

from kvspec.conformance.render.moments import Story
from kvspec.conformance.render.page import fill
from kvspec.conformance.render.picture import svg_of
from kvspec.conformance.render.table import COLUMNS, accept_line, facts, headline, origin, replay_line, rows


@dataclass(frozen=True, slots=True)
class PageRow:
    """A row of the table; `kind` is ``broken``, ``required`` or empty."""

    mark: str
    kind: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToldStory:
    """What the template shows of a story."""

    anchor: str
    slug: str
    sentence: str
    profile: str
    origin: str
    columns: tuple[str, ...]
    rows: tuple[PageRow, ...]
    svg: str
    facts: list[tuple[str, list[str]]]
    commands: list[tuple[str, str]]
    snippet: str


def told_story(story: Story, trace: str = "TRACE", snippet: str = "") -> ToldStory:
    """A story in the words of the page."""
    slug, sentence, profile = headline(story)
    columns, table = _table(story)
    commands = [("replay", replay_line(story, trace)), ("accept", accept_line(trace))]
    svg = svg_of(story) if story.moments else ""
    told = (slug, sentence, profile, origin(story), columns, table, svg, facts(story), commands, snippet)
    return ToldStory(story.header.slug, *told)


def _table(story: Story) -> tuple[tuple[str, ...], tuple[PageRow, ...]]:
    if not story.moments:
        return (), ()
    told = rows(story)
    columns = tuple(name for name in COLUMNS if any(row.cells.get(name) for row in told))
    page = []
    for row in told:
        broken = row.number == str(len(story.moments))
        kind = "broken" if broken else ("" if row.number else "required")
        cells = tuple(row.cells.get(name, "") for name in columns)
        page.append(PageRow(f"▶ {row.number}" if broken else row.number, kind, cells))
    return columns, tuple(page)


def html_of(story: Story, trace: str = "TRACE", snippet: str = "") -> str:
    """The whole page."""
    return fill("counterexample.html.j2", told=told_story(story, trace, snippet))
