"""Numbers of rounds: few in the test suite, many in `make faults`, which sets them by environment variables."""

from __future__ import annotations

import os


def take_rounds(variable: str, usual: int) -> int:
    """Return what a variable says, or the usual number, and remove it: settings refuse a variable they do not know."""
    return int(os.environ.pop(variable, usual))
