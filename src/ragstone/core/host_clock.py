"""Time that all processes of one host agree on: it never jumps, and a boot id tells times of another boot apart."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ragstone.core.ids import opaque_id


class Reading(NamedTuple):
    """When something was read at its source: of two versions of a document, the one that was read later holds."""

    boot: str = ""
    """Of different boots nothing is known but that they differ."""
    seconds: float = 0.0

    def precedes(self, other: Reading) -> bool:
        """Whether this one is known to be the earlier."""
        return self.boot == other.boot and self.seconds < other.seconds


def reading_now() -> Reading:
    return Reading(boot_id(), host_seconds())


def host_seconds() -> float:
    """Seconds on a clock that all processes of this host share and nobody can set."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@cache
def boot_id() -> str:
    """Which boot `host_seconds` counts from; where the system does not say, each process is its own."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return opaque_id()
