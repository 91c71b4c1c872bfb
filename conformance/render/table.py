"""The counterexample table: one row an operation, then what was required and why.

It is read in terminals of 80 columns, in logs without colour and in job summaries, so nothing is said by colour alone.
"""

import io
import re
import shlex
import textwrap
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kvspec.conformance.render.explain import because, broken_profile, required, weakest
from kvspec.conformance.render.moments import Moment, Story
from kvspec.conformance.render.similar import similar_reports
from kvspec.conformance.render.words import answered, plural, spoken
from kvspec.spec.clauses import CLAUSES
from kvspec.spec.state import Snapshot, State

COLUMNS = ("operation", "returned", "free", "references", "index")
MOST_ENTRIES = 6  # index entries in one cell
QUOTED_LETTERS, ESCAPED = r'(["\\$`])', r"\\\1"  # between double quotes a shell reads these in its own way
INSIDE = "\0"  # stands for a blank at which a line must not end
QUOTED_WORD = re.compile(r'"(?:\\.|[^"\\])*"')


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; `number` is empty in the row that says what was required."""

    number: str
    cells: dict[str, str]


def rows(story: Story) -> list[Row]:
    """An operation a row, and the row of what was required where it can be said."""
    told = [Row(str(moment.number), _cells(story, moment)) for moment in story.moments]
    wanted = required(story)
    return [*told, Row("", {"operation": "required", **wanted})] if wanted else told


def _cells(story: Story, moment: Moment) -> dict[str, str]:
    shown = moment.shown or Snapshot()
    return {
        "operation": spoken(moment.request),
        "returned": answered(moment.answer),
        "free": _list(shown.free),
        "references": _list(shown.references),
        "index": index_text(story, shown, moment.state),
    }


def _list(values: tuple[int, ...] | None) -> str:
    return "" if values is None else " ".join(map(str, values)) or "none"


def index_text(story: Story, shown: Snapshot, state: State) -> str:
    """``7.7→0``: the tokens that a key stands for, and the block that it names."""
    if shown.index is None:
        return ""
    entries = [f"{_key_text(story, key, block, shown)}→{block}" for key, block in shown.index[:MOST_ENTRIES]]
    more = len(shown.index) - len(entries)
    return " ".join(entries + [f"+{more}"] * bool(more)) or "empty"


def _key_text(story: Story, key: int, block: int, shown: Snapshot) -> str:
    if key in story.keys:
        return ".".join(map(str, story.keys[key]))
    if shown.contents is not None and 0 <= block < len(shown.contents) and shown.contents[block]:
        return "…" + ".".join(map(str, shown.contents[block]))
    return f"#{key % (1 << 16):04x}"


# The parts above and below the table ------------------------------------------------------------------------------


def headline(story: Story) -> tuple[str, str, str]:
    """Clause, its sentence, and its profile with the version since which it stands."""
    clause = CLAUSES[story.clause]
    profile = broken_profile(story.clause, story.header.context)
    return clause.slug, clause.sentence, f"{profile}, since {clause.since}"


def origin(story: Story) -> str:
    """How long it is, in which world, and from which seed."""
    header = story.header
    if not story.moments:
        return f"{header.implementation}: a scenario without a program"
    length = plural(len(story.moments), "operation")
    shortest = ", proved to be the shortest in its world" if header.shortest else ""
    world = f"blocks={header.world.blocks} block size={header.world.block_size}"
    weak = ", colliding hash" if header.world.weak_hash else ""
    return f"{header.implementation}: {length}{shortest}; {world}{weak}; context {header.context}; seed {header.seed}"


def facts(story: Story) -> list[tuple[str, list[str]]]:
    """The labelled lines under the table."""
    found = [("because", because(story)), ("weakest", [weakest(story.clause, story.header.context)])]
    if reports := similar_reports(story.clause):
        found.append(("similar", [f"{where}: {what}" for where, what in reports]))
    return found


def replay_line(story: Story, trace: str) -> str:
    """The command that shows the counterexample again."""
    return f"kvspec replay {trace} {quoted(story.header.target or 'IMPL')}"


def quoted(target: str) -> str:
    """A target as one word of a shell: in quotes where it needs them, as a command with arguments does."""
    return target if shlex.quote(target) == target else f'"{re.sub(QUOTED_LETTERS, ESCAPED, target)}"'


def accept_line(trace: str) -> str:
    """The command that lists it as a known failure."""
    return f'kvspec accept {trace} --known known.toml --reason "…" --link "…"'


# Rendering --------------------------------------------------------------------------------------------------------


def render_story(story: Story, trace: str = "TRACE", again: str = "") -> RenderableType:
    """The whole counterexample as a rich renderable; `trace` is the file that the commands name.

    `again`: a command that takes their place.
    """
    slug, sentence, profile = headline(story)
    title = Text.assemble(("VIOLATES  ", "bold red"), (slug, "bold"), "  ", sentence, "  ", (f"({profile})", "dim"))
    parts: list[RenderableType] = [title, Padding(Text(origin(story), style="dim"), (1, 0, 1, 2))]
    if story.moments:
        parts.append(_table(story))
    commands = [Command("replay", replay_line(story, trace)), Command("accept", accept_line(trace))]
    return Group(*parts, _labelled(facts(story)), *([Command("again", again)] if again else commands))


@dataclass(frozen=True, slots=True)
class Command:
    """A labelled shell command that can still be copied where it takes several lines."""

    label: str
    text: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        indent = 4 + max(len(self.label), 7)
        lines = shell_lines(self.text, indent, options.max_width)
        first = Text.assemble(("  " + self.label.ljust(indent - 2), "bold"), lines[0][indent:])
        for line in (first, *map(Text, lines[1:])):
            line.no_wrap, line.overflow = True, "ignore"
            yield line


def shell_lines(command: str, indent: int, width: int) -> list[str]:
    """A command over several lines which a shell reads as one: a backslash ends each line but the last.

    Where a single word is too long it goes on at the left margin, because blanks would end it.
    """
    room = max(20, width - indent - 2)
    lines: list[str] = []
    whole = QUOTED_WORD.sub(lambda word: word[0].replace(" ", INSIDE), command)
    for line in textwrap.wrap(whole, room, break_long_words=False, break_on_hyphens=False):
        lines.append(" " * indent + line[:room])
        lines += [line[start : start + width - 2] for start in range(room, len(line), width - 2)]
        lines[-1] += " "
    joined = [line.removesuffix(" ") + (" \\" if line.endswith(" ") else "\\") for line in lines]
    return [line.replace(INSIDE, " ") for line in (*joined[:-1], joined[-1].removesuffix(" \\"))]


def _table(story: Story) -> RenderableType:
    told = rows(story)
    columns = [name for name in COLUMNS if any(row.cells.get(name) for row in told)]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", justify="right", no_wrap=True)
    for name in columns:
        table.add_column(name, overflow="fold", ratio=None)
    for row in told:
        last = row.number == str(len(story.moments))
        style = "bold red" if last else ("green" if not row.number else None)
        mark = f">{row.number}" if last else row.number
        table.add_row(mark, *(Text(row.cells.get(name, "")) for name in columns), style=style)
    return Padding(table, (0, 0, 1, 1))


def _labelled(entries: list[tuple[str, list[str]]]) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for label, lines in entries:
        for place, line in enumerate(lines):
            grid.add_row(Text("" if place else label, style="bold"), Text(line))
    return Padding(grid, (0, 0, 1, 2))


def plain(renderable: RenderableType, width: int = 100) -> str:
    """A renderable as text without colour; lines have no trailing blanks."""
    console = Console(file=io.StringIO(), width=width, no_color=True, force_terminal=False, highlight=False)
    console.print(renderable)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"


def plain_story(story: Story, trace: str = "TRACE", width: int = 100) -> str:
    """The whole counterexample as plain text."""
    return plain(render_story(story, trace), width)
