"""Counters, gauges and histograms, and their text for Prometheus (format 0.0.4).

Recording takes a microsecond and no memory once a series is there. The number of series of an instrument is bounded:
label values that come after that are counted together as `other`.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OTHER = "other"
MOST_SERIES = 500
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Upper ends of the buckets of a time; the limits of all profiles are among them."""
Labels = tuple[str, ...]


class _Series:
    """The values of an instrument by their labels."""

    def __init__(self, name: str, about: str, labels: Sequence[str], most: int) -> None:
        self.name = name
        self.about = about
        self.labels = tuple(labels)
        self._most = most
        self._lock = threading.Lock()

    def _bounded(self, key: Labels, known: Mapping[Labels, object]) -> Labels:
        return key if key in known or len(known) < self._most else (OTHER,) * len(key)

    def _sample(self, key: Labels, value: float, suffix: str = "", extra: str = "") -> str:
        pairs = [f'{name}="{escape(text)}"' for name, text in zip(self.labels, key, strict=True)]
        if extra:
            pairs.append(extra)
        inside = f"{{{','.join(pairs)}}}" if pairs else ""
        return f"{self.name}{suffix}{inside} {format_value(value)}"


class Counter(_Series):
    """A sum that only grows, or, as a gauge, a value that is set."""

    def __init__(
        self,
        name: str,
        about: str,
        labels: Sequence[str] = (),
        *,
        kind: Literal["counter", "gauge"] = "counter",
        most: int = MOST_SERIES,
    ) -> None:
        super().__init__(name, about, labels, most)
        self.kind: str = kind
        self._values: dict[Labels, float] = {}

    def add(self, *key: str, amount: float = 1.0) -> None:
        """Add to the value of some labels."""
        with self._lock:
            key = self._bounded(key, self._values)
            self._values[key] = self._values.get(key, 0.0) + amount

    def set(self, *key: str, value: float) -> None:
        """Set the value of some labels."""
        with self._lock:
            self._values[self._bounded(key, self._values)] = value

    def value(self, *key: str) -> float:
        """Return the value of some labels."""
        return self._values.get(key, 0.0)

    def samples(self) -> Iterator[str]:
        with self._lock:
            values = list(self._values.items())
        for key, value in values:
            yield self._sample(key, value)


class Histogram(_Series):
    """Times by bucket, with their number and sum."""

    kind = "histogram"

    def __init__(self, name: str, about: str, labels: Sequence[str] = (), *, most: int = MOST_SERIES) -> None:
        super().__init__(name, about, labels, most)
        self._values: dict[Labels, tuple[list[int], list[float]]] = {}

    def observe(self, *key: str, seconds: float) -> None:
        """Add a time to the values of some labels."""
        with self._lock:
            key = self._bounded(key, self._values)
            found = self._values.get(key)
            if found is None:
                found = self._values[key] = [0] * (len(SECONDS) + 1), [0.0]
            found[0][bisect_left(SECONDS, seconds)] += 1
            found[1][0] += seconds

    def count(self, *key: str) -> int:
        """Return the number of times that were observed for some labels."""
        found = self._values.get(key)
        return sum(found[0]) if found else 0

    def samples(self) -> Iterator[str]:
        with self._lock:
            values = [(key, list(buckets), total[0]) for key, (buckets, total) in self._values.items()]
        for key, buckets, total in values:
            reached = 0
            for end, inside in zip((*map(format_value, SECONDS), "+Inf"), buckets, strict=True):
                reached += inside
                yield self._sample(key, reached, "_bucket", f'le="{end}"')
            yield self._sample(key, total, "_sum")
            yield self._sample(key, reached, "_count")


def render(instruments: Iterable[Counter | Histogram]) -> str:
    """Return the text of instruments; those without a value are named all the same."""
    lines = []
    for instrument in instruments:
        lines.append(f"# HELP {instrument.name} {instrument.about}")
        lines.append(f"# TYPE {instrument.name} {instrument.kind}")
        lines += instrument.samples()
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Return a label's value as the format writes it."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def format_value(value: float) -> str:
    """Return a number as the format writes it."""
    return str(int(value)) if value == int(value) else repr(value)
