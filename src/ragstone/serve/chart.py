"""The analytics of a tenant as a chart: searches and their time by day, sources, and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from xml.sax.saxutils import escape

from ragstone.engine.monitoring.analytics import AnalyticsSummary, DayFigures

WIDTH, HEIGHT, LEFT, TOP = 720, 140, 60, 40
ROW, NAME = 22, 110
"""The height of a bar that lies, and the width of its name."""
MOST_DAYS = 90
"""The last days that are drawn."""
OK, BAD, TIME = "#2b6cb0", "#c53030", "#c05621"


def draw_analytics(summary: AnalyticsSummary, days: Sequence[DayFigures], today: date) -> str:
    """Return an SVG of what a tenant's agents and people have asked since the beginning of the summary."""
    shown = max(1, min(MOST_DAYS, (today - summary.since.date()).days + 1))
    first = today - timedelta(days=shown - 1)
    found = [day for day in days if day.day >= first]
    parts = [
        *_draw_days("Retrievals a day", {day.day: (day.searches, day.failed) for day in found}, first, shown, TOP),
        *_draw_times(found, first, shown, TOP + HEIGHT + 60),
        *_draw_bars("Sources: asked and helpful", _list_sources(summary), TOP + 2 * (HEIGHT + 60)),
    ]
    below = TOP + 2 * (HEIGHT + 60) + 4 * ROW + 30
    parts += _draw_bars(f"Costs this month: ${summary.cost_month:.4f}", _list_costs(summary), below)
    height = below + (1 + max(1, len(summary.cost_by_kind))) * ROW + 20
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 40} {height}"'
    body = "\n".join([f'{head} font-family="sans-serif" font-size="12">', *parts, "</svg>"])
    return body.replace(">\n", '>\n<rect width="100%" height="100%" fill="white"/>\n', 1) + "\n"


def _draw_days(title: str, counts: Mapping[date, tuple[int, int]], first: date, days: int, top: int) -> list[str]:
    """Return bars of searches by day, those that failed in red on top."""
    most = max((searches for searches, _ in counts.values()), default=0) or 1
    width = WIDTH / days
    parts = _draw_frame(title, f"{most:,}", first, days, top)
    for day, (searches, failed) in counts.items():
        x, scale = LEFT + (day - first).days * width, HEIGHT / most
        for count, below, colour in ((searches - failed, 0, OK), (failed, searches - failed, BAD)):
            if count:
                y = top + HEIGHT - (below + count) * scale
                parts.append(
                    f'<rect x="{x + 1:.1f}" y="{y:.1f}" width="{max(1, width - 2):.1f}" height="{count * scale:.1f}" '
                    f'fill="{colour}"/>'
                )
    return parts


def _draw_times(found: Sequence[DayFigures], first: date, days: int, top: int) -> list[str]:
    """Return the 95th percentile of each day as a line with points."""
    times = [(day.day, day.latency.p95) for day in found if day.latency.p95 is not None]
    most = max((ms for _, ms in times), default=0.0) or 1.0
    width = WIDTH / days
    places = [(LEFT + ((day - first).days + 0.5) * width, top + HEIGHT * (1 - ms / most)) for day, ms in times]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return [
        *_draw_frame("Retrieval time, p95 in ms", f"{most:,.0f}", first, days, top),
        f'<polyline points="{line}" fill="none" stroke="{TIME}" stroke-width="1.5"/>',
        *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{TIME}"/>' for x, y in places),
    ]


def _draw_frame(title: str, most: str, first: date, days: int, top: int) -> list[str]:
    last = first + timedelta(days=days - 1)
    return [
        f'<text x="{LEFT}" y="{top - 12}" font-weight="bold">{escape(title)}</text>',
        f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{top + HEIGHT}" y2="{top + HEIGHT}" stroke="#999"/>',
        f'<text x="{LEFT - 6}" y="{top + 10}" text-anchor="end">{most}</text>',
        f'<text x="{LEFT - 6}" y="{top + HEIGHT}" text-anchor="end">0</text>',
        f'<text x="{LEFT}" y="{top + HEIGHT + 18}">{first.isoformat()}</text>',
        f'<text x="{LEFT + WIDTH}" y="{top + HEIGHT + 18}" text-anchor="end">{last.isoformat()}</text>',
    ]


def _list_sources(summary: AnalyticsSummary) -> list[tuple[str, float, str]]:
    return [
        (source, figures.asked, f"{figures.asked:,} asked, {figures.helpful:,} helpful, {figures.failed:,} failed")
        for source, figures in summary.sources.items()
    ]


def _list_costs(summary: AnalyticsSummary) -> list[tuple[str, float, str]]:
    return [(kind, usd, f"${usd:.4f}") for kind, usd in sorted(summary.cost_by_kind.items())]


def _draw_bars(title: str, bars: Sequence[tuple[str, float, str]], top: int) -> list[str]:
    """Return bars that lie, each with its name and what it says."""
    most = max((value for _, value, _ in bars), default=0) or 1
    room = WIDTH - NAME - 260
    parts = [f'<text x="{LEFT}" y="{top}" font-weight="bold">{escape(title)}</text>']
    for number, (name, value, words) in enumerate(bars, start=1):
        y, length = top + number * ROW, room * value / most
        parts.append(
            f'<text x="{LEFT}" y="{y}">{escape(name)}</text>'
            f'<rect x="{LEFT + NAME}" y="{y - 10}" width="{length:.1f}" height="12" fill="{OK}"/>'
            f'<text x="{LEFT + NAME + length + 8:.1f}" y="{y}">{escape(words)}</text>'
        )
    return parts
