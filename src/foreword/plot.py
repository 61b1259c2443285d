"""Charts of lines or bars -> one SVG that any browser shows. Pure, and no library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 400  # of one chart; several stand below each other
LEFT, RIGHT, TOP = 64, 24, 48
COLOURS = ("#1b6ca8", "#c8553d", "#6b7280", "#2f855a", "#8a5fbf")  # told apart in grey and by the colour-blind too
INK, FAINT, PAPER = "#1f2933", "#d9dee5", "#ffffff"
LETTER = 6.7  # pixels of an average letter at 12 px; what is too wide by this is turned or cut
NAMED = 22  # letters of a bar's name
STEPS = 5  # on an axis, about


@dataclass(frozen=True)
class Line:
    """Points in the order of x; `mark` names one that matters, by its place."""

    name: str
    points: tuple[tuple[float, float], ...]
    mark: int | None = None
    mark_name: str = ""


@dataclass(frozen=True)
class Lines:
    """A chart of lines over a measured x."""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Bars:
    """A chart with a bunch of bars for each name."""

    title: str
    y: str
    names: tuple[str, ...]
    series: tuple[tuple[str, tuple[float, ...]], ...]  # each with a value for every name


def svg(charts: Sequence[Lines | Bars]) -> str:
    """All *charts*, one below the other, on a light ground."""
    height = HEIGHT * len(charts)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
        f' font-family="system-ui, DejaVu Sans, sans-serif" font-size="12" fill="{INK}">',
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
    ]
    for place, chart in enumerate(charts):
        drawn = _bars(chart) if isinstance(chart, Bars) else _lines(chart)
        parts += [f'<g transform="translate(0 {HEIGHT * place})">', *drawn, "</g>"]
    return "\n".join([*parts, "</svg>", ""])


class _Frame:
    """Where things lie in one chart: data in, pixels out."""

    def __init__(self, *, x: Sequence[float], y: Sequence[float], bottom: int) -> None:
        self.x_ticks, self.y_ticks = _ticks(x), _ticks((0.0, *y))
        self.low = HEIGHT - bottom

    def at_x(self, x: float) -> float:
        first, last = self.x_ticks[0], self.x_ticks[-1]
        return LEFT + (x - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def at_y(self, y: float) -> float:
        first, last = self.y_ticks[0], self.y_ticks[-1]
        return self.low - (y - first) / (last - first) * (self.low - TOP)

    def drawn(self, *, title: str, y: str) -> list[str]:
        middle = (TOP + self.low) / 2
        parts = [
            _text(LEFT, 26, title, more=' font-size="15" font-weight="600"'),
            _text(16, middle, y, anchor="middle", more=f' transform="rotate(-90 16 {middle:.1f})"'),
        ]
        for tick in self.y_ticks:
            at = self.at_y(tick)
            parts.append(_rule(LEFT, at, WIDTH - RIGHT, at, FAINT))
            parts.append(_text(LEFT - 8, at + 4, _told(tick, self.y_ticks), anchor="end"))
        return parts


def _lines(chart: Lines) -> list[str]:
    points = [point for line in chart.lines for point in line.points]
    frame = _Frame(x=[x for x, _ in points], y=[y for _, y in points], bottom=86)
    parts = frame.drawn(title=chart.title, y=chart.y)
    for tick in frame.x_ticks:
        parts.append(_rule(frame.at_x(tick), frame.low, frame.at_x(tick), frame.low + 5, INK))
        parts.append(_text(frame.at_x(tick), frame.low + 19, _told(tick, frame.x_ticks), anchor="middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, frame.low + 40, chart.x, anchor="middle"))
    parts.append(_rule(LEFT, frame.low, WIDTH - RIGHT, frame.low, INK))
    for place, line in enumerate(chart.lines):
        colour = COLOURS[place % len(COLOURS)]
        path = " ".join(f"{frame.at_x(x):.1f},{frame.at_y(y):.1f}" for x, y in line.points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [_dot(frame.at_x(x), frame.at_y(y), 2.5, colour) for x, y in line.points]
        if line.mark is not None:
            parts += _marked(frame, line, colour)
    return [*parts, *_legend([line.name for line in chart.lines])]


def _marked(frame: _Frame, line: Line, colour: str) -> list[str]:
    """A ring around one point, its name below it, on the left, where a falling curve leaves room."""
    assert line.mark is not None
    x, y = (frame.at_x(line.points[line.mark][0]), frame.at_y(line.points[line.mark][1]))
    left = x - 10 - len(line.mark_name) * LETTER > LEFT
    return [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{PAPER}" stroke="{colour}" stroke-width="2.5"/>',
        _text(
            x - 10 if left else x + 10,
            min(y + 20, frame.low - 6),
            line.mark_name,
            anchor="end" if left else "start",
            more=f' stroke="{PAPER}" stroke-width="4" paint-order="stroke"',
        ),
    ]


def _bars(chart: Bars) -> list[str]:
    room = (WIDTH - LEFT - RIGHT) / max(1, len(chart.names))
    names = [name if len(name) <= NAMED else f"{name[: NAMED - 1]}…" for name in chart.names]
    turned = any(len(name) * LETTER > room - 6 for name in names)
    frame = _Frame(x=(0, 1), y=[y for _, values in chart.series for y in values], bottom=140 if turned else 70)
    parts = frame.drawn(title=chart.title, y=chart.y)
    each = room * 0.76 / max(1, len(chart.series))
    for number, name in enumerate(names):
        left = LEFT + room * (number + 0.12)
        for place, (_, values) in enumerate(chart.series):
            top = frame.at_y(values[number])
            parts.append(
                f'<rect x="{left + place * each:.1f}" y="{top:.1f}" width="{max(1.0, each - 1):.1f}"'
                f' height="{frame.low - top:.1f}" fill="{COLOURS[place % len(COLOURS)]}"/>'
            )
        middle = LEFT + room * (number + 0.5)
        if turned:
            at = f' transform="rotate(-40 {middle:.1f} {frame.low + 16})"'
            parts.append(_text(middle, frame.low + 16, name, anchor="end", more=at))
        else:
            parts.append(_text(middle, frame.low + 19, name, anchor="middle"))
    parts.append(_rule(LEFT, frame.low, WIDTH - RIGHT, frame.low, INK))
    return [*parts, *_legend([name for name, _ in chart.series])]


def _legend(names: Sequence[str]) -> list[str]:
    parts = []
    at = float(LEFT)
    for place, name in enumerate(names):
        parts.append(
            f'<rect x="{at:.1f}" y="{HEIGHT - 26}" width="14" height="10" fill="{COLOURS[place % len(COLOURS)]}"/>'
        )
        parts.append(_text(at + 20, HEIGHT - 17, name))
        at += 20 + len(name) * LETTER + 24
    return parts


def _ticks(values: Sequence[float]) -> list[float]:
    """Round numbers, evenly apart, from below the least to above the greatest."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    span = high - low if high - low > 1e-6 * max(1.0, abs(high)) else 1.0  # what is all the same gets an axis too
    size = 10 ** floor(log10(span / STEPS))
    step = next((factor * size for factor in (1, 2, 2.5, 5) if span / (factor * size) <= STEPS), 10 * size)
    first, last = floor(low / step + 1e-9), max(ceil(high / step - 1e-9), floor(low / step + 1e-9) + 1)
    return [round(number * step, 10) for number in range(first, last + 1)]


def _told(tick: float, ticks: Sequence[float]) -> str:
    step = ticks[1] - ticks[0]
    digits = next((digits for digits in range(6) if abs(round(step, digits) - step) < 1e-9), 6)
    return f"{tick:,.{digits}f}"


def _text(x: float, y: float, words: str, *, anchor: str = "start", more: str = "") -> str:
    seen = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in words)
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(seen)}</text>'


def _rule(x: float, y: float, to_x: float, to_y: float, colour: str) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}"/>'


def _dot(x: float, y: float, radius: float, colour: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"/>'
