"""The time that the stages of a run take: of each alone, and as shares of the time that passed."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ragstone.core.jobs import STAGES
from ragstone.core.search import Stage

OTHER = "other"
"""The time in which no stage was at work."""


class StageTimes:
    """Milliseconds, inputs and outputs of each stage. Stages overlap: of each moment every one at work has a share."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[float, int, int]] = {}
        self._at_work: Counter[str] = Counter()
        self._shares: dict[str, float] = {}
        self._shared_until = clock()

    @contextmanager
    def measure(self, stage: str, entered: int = 1) -> Iterator[list[int]]:
        """Time a block; the block appends its outputs to the list, or else they count as many as its inputs."""
        left: list[int] = []
        started = self._clock()
        self._note(stage, 1)
        ended = False
        try:
            yield left
            ended = True
        finally:
            self._note(stage, -1)
            spent = (self._clock() - started) * 1000
            with self._lock:
                ms, before_in, before_out = self._seen.get(stage, (0.0, 0, 0))
                out = (sum(left) if left else entered) if ended else 0
                self._seen[stage] = (ms + spent, before_in + entered, before_out + out)

    def _note(self, stage: str, change: int) -> None:
        with self._lock:
            self._share_out()
            self._at_work[stage] += change

    def _share_out(self) -> None:
        """Divide the time since the last change among the stages that were at work."""
        now = self._clock()
        running = [stage for stage, blocks in self._at_work.items() if blocks] or [OTHER]
        for stage in running:
            self._shares[stage] = self._shares.get(stage, 0.0) + (now - self._shared_until) * 1000 / len(running)
        self._shared_until = now

    def stages(self) -> tuple[Stage, ...]:
        """Return all stages that ran, in their order."""
        with self._lock:
            return tuple(
                Stage(name, round(self._seen[name][0], 1), *self._seen[name][1:])
                for name in STAGES
                if name in self._seen
            )

    def shares(self) -> dict[str, float]:
        """Return the milliseconds that passed because of each stage; together they are the time since the beginning."""
        with self._lock:
            self._share_out()
            return dict(self._shares)
