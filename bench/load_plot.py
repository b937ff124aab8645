"""A plot of a load test, as an SVG file: latencies and memory over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from xml.sax.saxutils import escape

import numpy as np

WIDTH, HEIGHT, LEFT, TOP, GAP = 860, 200, 60, 30, 50
FONT = 'font-family="sans-serif" font-size="12"'
WINDOW = 10.0
"""Seconds that one point of a line sums up."""
COLOURS = {"p50": "#2b6cb0", "p95": "#c05621", "memory": "#2f855a"}
Points = Sequence[tuple[float, float]]


def draw_plot(requests: Sequence[tuple[float, str, float, int, bool]], memory: Points) -> str:
    """Return an SVG of the percentiles of each window, and of the memory below them."""
    last = max(due for due, *_ in requests)
    low, high = [], []
    for start in np.arange(0, last, WINDOW):
        times = [took * 1000 for due, _, took, status, _ in requests if start <= due < start + WINDOW and status == 200]
        if times:
            median, most = np.percentile(times, [50, 95])
            low.append((float(start), float(median)))
            high.append((float(start), float(most)))
    height = 2 * HEIGHT + 3 * GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + LEFT + 20} {height}" {FONT}>',
        '<rect width="100%" height="100%" fill="white"/>',
        *_panel("Latency of searches, ms", {"p50": low, "p95": high}, last, TOP),
        *_panel("Memory of the service, MB", {"memory": memory}, last, TOP + HEIGHT + GAP),
        f'<text x="{LEFT + WIDTH / 2}" y="{height - 10}" text-anchor="middle">seconds</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _panel(title: str, lines: Mapping[str, Points], last: float, top: int) -> list[str]:
    most = max((value for points in lines.values() for _, value in points), default=1.0) * 1.1

    def at_x(moment: float) -> float:
        return LEFT + WIDTH * moment / last

    def at_y(value: float) -> float:
        return top + HEIGHT * (1 - value / most)

    parts = [f'<text x="{LEFT}" y="{top - 10}" font-weight="bold">{escape(title)}</text>']
    for share in range(5):
        value = most * share / 4
        parts.append(
            f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{at_y(value):.1f}" y2="{at_y(value):.1f}" stroke="#ddd"/>'
            f'<text x="{LEFT - 6}" y="{at_y(value) + 4:.1f}" text-anchor="end">{value:.0f}</text>'
        )
    parts += [
        f'<text x="{at_x(moment):.1f}" y="{top + HEIGHT + 16}" text-anchor="middle">{moment:.0f}</text>'
        for moment in np.linspace(0, last, 6)
    ]
    for number, (name, points) in enumerate(lines.items()):
        parts.append(_line(points, at_x, at_y, COLOURS[name]))
        place = f'x="{LEFT + WIDTH - 60 * number}" y="{top - 10}"'
        parts.append(f'<text {place} text-anchor="end" fill="{COLOURS[name]}">{name}</text>')
    return parts


def _line(points: Points, at_x: Callable[[float], float], at_y: Callable[[float], float], colour: str) -> str:
    places = " ".join(f"{at_x(moment):.1f},{at_y(value):.1f}" for moment, value in points)
    return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
