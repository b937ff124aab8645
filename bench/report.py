"""Rows of a measurement, and the machine they were taken on."""

from __future__ import annotations

import platform
import subprocess
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, its value, and what it should be."""

    part: str
    what: str
    value: str
    target: str = ""
    met: bool | None = None

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def ratio_row(part: str, what: str, value: float, *, at_least: float = 0.0, at_most: float = 0.0) -> Row:
    """A ratio with its bound."""
    target = f"≥ {at_least:g}×" if at_least else f"≤ {at_most:g}×"
    met = value >= at_least if at_least else value <= at_most
    return Row(part, what, f"{value:.2f}×", target, met)


def percentiles(seconds: Sequence[float]) -> tuple[float, float]:
    """p50 and p95 in milliseconds."""
    low, high = np.percentile(np.asarray(seconds) * 1000, [50, 95])
    return float(low), float(high)


async def timed(work: Callable[[int], Awaitable[object]], rounds: int, warm: int = 3) -> list[float]:
    """Seconds of each round, after a few that do not count."""
    for n in range(warm):
        await work(n)
    spent = []
    for n in range(rounds):
        started = time.perf_counter()
        await work(n)
        spent.append(time.perf_counter() - started)
    return spent


def resident_mb() -> float:
    """Memory of this process right now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1024 / 1024


def folder_mb(folder: Path) -> float:
    """Size of all files under a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1024 / 1024


def machine() -> str:
    """Processor, cores and memory, in one line."""
    # /proc/cpuinfo names no model on ARM.
    told = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout.splitlines()
    model = next((line.split(":")[1].strip() for line in told if line.startswith("Model name")), platform.machine())
    total = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    cores = sum(line.startswith("processor") for line in Path("/proc/cpuinfo").read_text().splitlines())
    return f"{model}, {cores} cores, {int(total.split()[1]) / 1024 / 1024:.0f} GiB, Python {platform.python_version()}"
