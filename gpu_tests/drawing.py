"""The drawing of the report: on one logarithmic axis, what rounding does and what the faults do."""

import math
from html import escape

from .faults import EQUIVALENT, FAULTS
from .sensitivity import CORRECT, Matrix

LOW, HIGH = -7.0, 2.0  # decimal exponents at the two ends of the axis
LEFT, RIGHT, ROW, TOP = 290, 880, 34, 74  # pixels
STYLE = (
    "text{font:13px sans-serif;fill:#222}.small{font-size:11px;fill:#555}.floor{fill:#9aa5b1}"
    ".limit{stroke:#222;stroke-width:2}.fault{fill:#c0392b;fill-opacity:.55}.grid{stroke:#e3e6ea}"
    ".unseen{fill:white;stroke:#c0392b;stroke-width:1.5}"
)


def draw(matrix: Matrix) -> str:
    """An SVG with one row a lane that compares logits; lanes that compare identities have no size to draw."""
    lanes = [lane for lane in matrix.tolerances if _sizes(matrix, lane)]
    others = [lane for lane in matrix.tolerances if lane not in lanes]
    height = TOP + ROW * len(lanes) + 60
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 {height}" role="img"><style>{STYLE}</style>']
    parts += [_text(12, 24, "Largest difference of the logits, warm against cold"), *_legend(), *_axis(len(lanes))]
    for number, lane in enumerate(lanes):
        parts += _row(matrix, lane, TOP + ROW * number + ROW // 2)
    exact = "; ".join(others)
    parts.append(_text(12, height - 12, f"Exact, without a size (they compare identities or bytes): {exact}", "small"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _sizes(matrix: Matrix, lane: str) -> list[tuple[str, float]]:
    """Per fault, the smallest and the largest difference that the lane did not accept."""
    sizes = []
    for cell in matrix.cells.values():
        if cell.lane == lane and cell.fault in FAULTS.keys() - EQUIVALENT and cell.smallest:
            sizes += [(cell.fault, cell.smallest), (cell.fault, cell.largest)]
    return sizes


def _unseen(matrix: Matrix, lane: str) -> list[tuple[str, float]]:
    """Faults that the lane never saw although they changed something, and how much."""
    largest: dict[str, float] = {}
    for cell in matrix.cells.values():
        if cell.lane == lane and cell.fault in FAULTS.keys() - EQUIVALENT and not matrix.detected(lane, cell.fault):
            largest[cell.fault] = max(cell.largest, largest.get(cell.fault, 0.0))
    return [(fault, size) for fault, size in largest.items() if size]


def _row(matrix: Matrix, lane: str, y: int) -> list[str]:
    limit = matrix.tolerances[lane]
    floor = max(cell.largest for cell in matrix.cells.values() if (cell.lane, cell.fault) == (lane, CORRECT))
    parts = [_text(12, y + 4, lane)]
    if floor:
        parts.append(f'<rect class="floor" x="{LEFT}" y="{y - 6}" width="{_x(floor) - LEFT:.1f}" height="12"/>')
    else:
        parts.append(_text(LEFT + 4, y + 4, "noise floor: 0, equal to the bit", "small"))
    if limit:
        parts.append(f'<line class="limit" x1="{_x(limit):.1f}" x2="{_x(limit):.1f}" y1="{y - 10}" y2="{y + 10}"/>')
    parts += [_circle("fault", fault, size, y) for fault, size in _sizes(matrix, lane)]
    return parts + [_circle("unseen", fault, size, y) for fault, size in _unseen(matrix, lane)]


def _circle(kind: str, fault: str, size: float, y: int) -> str:
    tip = f"<title>{escape(fault)}: {size:.3g}</title>"
    return f'<circle class="{kind}" cx="{_x(size):.1f}" cy="{y}" r="5">{tip}</circle>'


def _legend() -> list[str]:
    return [
        '<rect class="floor" x="12" y="38" width="22" height="12"/>',
        _text(40, 49, "noise floor: the correct manager", "small"),
        '<line class="limit" x1="240" x2="240" y1="34" y2="54"/>',
        _text(248, 49, "tolerance of the lane", "small"),
        '<circle class="fault" cx="390" cy="44" r="5"/>',
        _text(400, 49, "planted faults, smallest and largest of each", "small"),
        '<circle class="unseen" cx="660" cy="44" r="5"/>',
        _text(670, 49, "a fault that the lane never saw", "small"),
    ]


def _axis(rows: int) -> list[str]:
    bottom = TOP + ROW * rows
    parts = []
    for exponent in range(int(LOW), int(HIGH) + 1):
        x = _x(10.0**exponent)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>')
        parts.append(_text(x - 12, bottom + 16, f"1e{exponent}", "small"))
    return parts


def _x(size: float) -> float:
    exponent = min(max(math.log10(size), LOW), HIGH)
    return LEFT + (exponent - LOW) / (HIGH - LOW) * (RIGHT - LEFT)


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}">{escape(text)}</text>'
