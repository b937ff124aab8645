"""Budgets of MCP sessions.

The protocol does not say where one invocation of an agent ends and the next begins, so a pause says it: who
was quiet for a minute starts with a full budget. A loop that an instruction in a passage sets off does not pause.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ragstone.agents.toolbox import Toolbox

if TYPE_CHECKING:
    from mcp.server import ServerRequestContext

QUIET_SECONDS = 60.0
MOST_SESSIONS = 1000
ONLY = "stdio"


class Sessions:
    """A toolbox for each session; one per client address where the protocol has no sessions."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._boxes: OrderedDict[str, tuple[Toolbox, float]] = OrderedDict()

    def of(self, key: str, make_box: Callable[[], Toolbox]) -> Toolbox:
        """Return the toolbox of a session, which is made if there is none or it was quiet."""
        now = self._clock()
        box, last = self._boxes.pop(key, (None, now))
        if box is None or now - last >= QUIET_SECONDS:
            box = make_box()
        self._boxes[key] = box, now
        while len(self._boxes) > MOST_SESSIONS:
            self._boxes.popitem(last=False)
        return box


def session_key(context: ServerRequestContext[Any]) -> str:
    """Return what tells one client from another: its session's id, its address, or nothing on stdio."""
    request = context.request
    if request is None:
        return ONLY
    session = request.headers.get("mcp-session-id")
    return f"session {session}" if session else f"host {request.client.host if request.client else ''}"
