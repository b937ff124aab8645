"""Time for leases on one host: it never jumps, and a boot id tells times of another boot apart."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

from ragstone.core.ids import opaque_id


def lease_now() -> float:
    """Seconds on a clock that all processes of this host share and nobody can set."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@cache
def boot_id() -> str:
    """Which boot `lease_now` counts from; where the system does not say, each process is its own."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return opaque_id()
