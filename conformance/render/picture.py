"""The pool over time: a row a moment, a box a block, a cell a slot, coloured by the sequence that holds it."""

import textwrap
from dataclasses import dataclass

from kvspec.conformance.render.explain import blamed_block, holders, missed_block
from kvspec.conformance.render.moments import Moment, Story, slot_prefix
from kvspec.conformance.render.page import fill
from kvspec.conformance.render.words import answered, numbers, plural, spoken
from kvspec.spec import operations as op
from kvspec.spec.state import State

# Told apart by readers with any colour vision; a name stands in each block as well.
PALETTE = ("#8ecae6", "#ffb703", "#90be6d", "#f4978e", "#cdb4db", "#e9d8a6", "#76c7c0", "#d0b49f")
CELL, GAP, LINE, HEAD = 24, 10, 15, 14
CHARACTER = 7.3  # width of one character of the captions
NARROWEST = 340
LABEL = 62


@dataclass(frozen=True, slots=True)
class Cell:
    """One slot: the last token of the prefix whose K/V it holds, or in brackets the token that is planned there."""

    x: int
    text: str
    title: str
    colours: tuple[str, ...]
    violated: bool


@dataclass(frozen=True, slots=True)
class Box:
    """One block with its slots."""

    x: int
    width: int
    label: str
    cells: tuple[Cell, ...]
    violated: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One moment: what was asked and answered, and the blocks afterwards."""

    y: int
    caption: tuple[str, ...]
    boxes: tuple[Box, ...]
    violated: bool

    @property
    def top(self) -> int:
        """Where the blocks begin, below the caption."""
        return self.y + LINE * len(self.caption) + 4


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that the template draws."""

    title: str
    width: int
    height: int
    rows: tuple[Row, ...]
    note: tuple[str, ...]
    legend: tuple[tuple[str, str], ...]


def picture_of(story: Story) -> Picture:
    """Lay out a story.  A story without operations has no rows."""
    world = story.header.world
    colours = _colours(story)
    width = max(NARROWEST, len(_blocks(story)) * _pitch(world.block_size) + 3 * GAP)
    characters = int((width - 2 * GAP) / CHARACTER)
    rows: list[Row] = []
    y = GAP
    for moment in story.moments:
        row = _row(story, moment, colours, y, characters)
        rows.append(row)
        y = row.top + CELL + HEAD + 2 * GAP
    title = f"{story.clause}: the pool over {plural(len(rows), 'operation')}"
    note = tuple(textwrap.wrap(story.violation.because, characters))
    height = y + LINE * (len(note) + len(colours) + 5)
    return Picture(title, width, height, tuple(rows), note, tuple(colours.items()))


def svg_of(story: Story) -> str:
    """The picture as a stand-alone SVG file."""
    return fill("pool.svg.j2", picture=picture_of(story), cell=CELL, gap=GAP, line=LINE, head=HEAD)


def _pitch(block_size: int) -> int:
    """From one block to the next: room for the slots, and for the label below them."""
    return max(block_size * CELL, LABEL) + GAP


def _blocks(story: Story) -> list[int]:
    return sorted(story.moments[-1].state.blocks) if story.moments else []


def _colours(story: Story) -> dict[str, str]:
    names: dict[str, str] = {}
    for moment in story.moments:
        for name in op.sequences_of(moment.request):
            names.setdefault(name, PALETTE[len(names) % len(PALETTE)])
    return names


def _row(story: Story, moment: Moment, colours: dict[str, str], y: int, characters: int) -> Row:
    last = moment is story.moments[-1]
    text = f"{moment.number}  {spoken(moment.request)}: {answered(moment.answer)}"
    caption = textwrap.wrap(text, characters, subsequent_indent="   ")
    spot = _spot(story) if last else None
    boxes = tuple(_box(moment, block, place, colours, spot) for place, block in enumerate(_blocks(story)))
    return Row(y, tuple(caption), boxes, last)


def _spot(story: Story) -> tuple[int, int | None] | None:
    """The violated block, and the slot in it where one is known."""
    block, position = blamed_block(story), story.violation.position
    if block is None:
        return None
    whole = position is None or missed_block(story) is not None
    return block, None if whole else position % story.header.world.block_size  # type: ignore[operator]


def _box(moment: Moment, block: int, place: int, colours: dict[str, str], spot: tuple[int, int | None] | None) -> Box:
    size = moment.state.world.block_size
    x = 2 * GAP + place * _pitch(size)
    held = sorted(holders(moment, block))
    struck = spot is not None and spot[0] == block
    cells = []
    for offset in range(size):
        text, title = _content(moment, block, offset, held)
        violated = struck and spot is not None and spot[1] in (None, offset)
        paint = tuple(colours[name] for name in held) or (("#d9d9d9",) if text else ("#ffffff",))
        cells.append(Cell(x + offset * CELL, text, title, paint, violated))
    label = f"{'✗' if struck else ''}{block} {_standing(moment, block, held)}"
    return Box(x, size * CELL, label, tuple(cells), struck)


def _standing(moment: Moment, block: int, held: list[str]) -> str:
    """Who holds a block, and what the manager says of it where that differs: free although held, or lost."""
    free = moment.shown.free if moment.shown else None
    if not held:
        return "free" if free is None or block in free else "lost"
    return "+".join(held) + (" free" if free is not None and block in free else "")


def _content(moment: Moment, block: int, offset: int, held: list[str]) -> tuple[str, str]:
    """What is written into the cell, and its full description."""
    prefix = slot_prefix(moment.state, block, offset)
    where = f"block {block}, slot {offset}, {'held by ' if held else ''}{_standing(moment, block, held)}"
    planned = _planned(moment.state, block, offset)
    if planned is not None:
        return f"({planned})", f"{where}: token {planned} is planned, its K/V does not exist yet"
    if prefix is None:
        return "", f"{where}: nothing"
    return str(prefix[-1]), f"{where}: K/V of {numbers(prefix)}"


def _planned(state: State, block: int, offset: int) -> int | None:
    """The token that a sequence has for this slot and has not computed yet, or None."""
    for sequence in state.sequences.values():
        if block in sequence.table:
            position = sequence.table.index(block) * state.world.block_size + offset
            if sequence.computed <= position < len(sequence.tokens):
                return sequence.tokens[position]
    return None
