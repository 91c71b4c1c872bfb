"""The course of a recording as a picture: hit rate, blocks in use and refusals over its operations (SVG, no library)."""

from html import escape

from kvspec.conformance.trace.statistics import Interval
from kvspec.conformance.trace.validating import Validation

WIDTH, HEIGHT, LEFT, GAP = 720, 90, 60, 44


def course_of(found: Validation) -> str:
    """The picture."""
    course = [interval for interval in found.statistics.course if interval.operations]
    blocks = found.header.world.blocks
    panels: tuple[tuple[str, list[float | None], float, str], ...] = (
        ("prompt tokens found in the cache", [_share(each.cached, each.asked) for each in course], 1.0, "100 %"),
        ("blocks in use", [float(each.used) for each in course], float(blocks), f"{blocks:,}"),
        ("refusals a 1,000 operations", *_refusals(course)),
    )
    drawn = "".join(_panel(index, *panel) for index, panel in enumerate(panels))
    operations = sum(each.operations for each in course)
    below = GAP + len(panels) * (HEIGHT + GAP)
    title = escape(f"{found.header.implementation}: {operations:,} operations")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 2 * LEFT} {below + 10}" role="img" '
        f'aria-label="{title}" font-family="sans-serif" font-size="12" fill="#444">'
        f'<rect width="100%" height="100%" fill="#fff"/><text x="{LEFT}" y="20" font-size="14">{title}</text>'
        f'{drawn}<text x="{LEFT + WIDTH}" y="{below - 26}" text-anchor="end">operation {operations:,}</text></svg>\n'
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _refusals(course: list[Interval]) -> tuple[list[float | None], float, str]:
    rates = [_share(1000 * each.refused, each.operations) for each in course]
    most = max([rate for rate in rates if rate], default=1.0)
    return rates, most, f"{most:.3g}"


def _panel(index: int, title: str, values: list[float | None], most: float, label: str) -> str:
    top = GAP + index * (HEIGHT + GAP)
    bottom = top + HEIGHT
    points = " ".join(
        f"{LEFT + WIDTH * (place + 0.5) / len(values):.1f},{bottom - HEIGHT * min(1.0, value / most):.1f}"
        for place, value in enumerate(values)
        if value is not None
    )
    return (
        f'<text x="{LEFT}" y="{top - 6}">{escape(title)}</text>'
        f'<path d="M{LEFT} {top}V{bottom}H{LEFT + WIDTH}" fill="none" stroke="#bbb"/>'
        f'<text x="{LEFT - 6}" y="{top + 9}" text-anchor="end">{escape(label)}</text>'
        f'<text x="{LEFT - 6}" y="{bottom}" text-anchor="end">0</text>'
        f'<polyline points="{points}" fill="none" stroke="#1f6f8b" stroke-width="1.5"/>'
    )
