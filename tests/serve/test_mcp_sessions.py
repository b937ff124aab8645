from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ragstone.agents.toolbox import Toolbox
from ragstone.serve.mcp.sessions import MOST_SESSIONS, QUIET_SECONDS, Sessions, session_key


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def new_box() -> Toolbox:
    return cast("Toolbox", object())


def test_a_session_keeps_its_budget_until_it_was_quiet() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    first = sessions.of("a", new_box)
    clock.now = QUIET_SECONDS - 1
    assert sessions.of("a", new_box) is first
    clock.now += QUIET_SECONDS - 1
    assert sessions.of("a", new_box) is first  # a loop that calls now and then does not get a new budget
    clock.now += QUIET_SECONDS
    assert sessions.of("a", new_box) is not first


def test_sessions_do_not_share_and_the_oldest_is_forgotten() -> None:
    sessions = Sessions(Clock())
    first, other = sessions.of("a", new_box), sessions.of("b", new_box)
    assert first is not other
    assert sessions.of("a", new_box) is first
    for n in range(MOST_SESSIONS - 1):
        sessions.of(f"more {n}", new_box)
    assert sessions.of("a", new_box) is first
    assert sessions.of("b", new_box) is not other


@pytest.mark.parametrize(
    ("request_", "key"),
    [
        (None, "stdio"),
        (SimpleNamespace(headers={"mcp-session-id": "s1"}, client=None), "session s1"),
        (SimpleNamespace(headers={}, client=SimpleNamespace(host="127.0.0.1")), "host 127.0.0.1"),
        (SimpleNamespace(headers={}, client=None), "host "),
    ],
)
def test_what_tells_clients_apart(request_: Any, key: str) -> None:
    assert session_key(cast("Any", SimpleNamespace(request=request_))) == key
