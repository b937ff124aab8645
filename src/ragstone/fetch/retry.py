"""When to try again, and how long to wait before."""

from __future__ import annotations

import math
from datetime import UTC
from email.utils import parsedate_to_datetime

from ragstone.core.clock import now

LONGEST_WAIT = 60.0
FIRST_WAIT = 0.5


def passes(status: int) -> bool:
    """Whether a status may be another one soon."""
    return status in (408, 425, 429) or status >= 500


def pause(attempt: int, retry_after: str | None) -> float:
    """What the server asked for, or twice as long each time; never longer than a minute."""
    asked = _seconds(retry_after) if retry_after else None
    return min(asked if asked is not None else FIRST_WAIT * 2**attempt, LONGEST_WAIT)


def _seconds(retry_after: str) -> float | None:
    try:
        seconds = float(retry_after)
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(retry_after)
    except (TypeError, ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max((moment - now()).total_seconds(), 0.0)
