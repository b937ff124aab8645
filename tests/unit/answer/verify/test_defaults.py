from __future__ import annotations

import pytest

from ragstone.answer.verify.defaults import compare_defaults, find_default
from ragstone.answer.verify.objections import Rival


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("The default is five minutes (5min).", "five minutes"),
        ("The default of max_wait is ten minutes.", "ten minutes"),
        ("max_wait is 3 by default.", "3"),
        ("Number of seconds to wait (default: 900).", "900"),
        ("This argument defaults to 300.", "300"),
        ("Sets the stratum, from 0 to 15, with default 5.", "5"),
        ("SSL is enabled by default.", "enabled"),
        ("It can be auto (the default, which is fast), max or off.", "auto"),
        ("Set to ``0`` (default) to disable it.", "0"),
        ("Use sed (the default on macOS) for that.", ""),
        ("Waits 5 seconds for a host, 9 for a pump, by default.", ""),
        ("The pump waits.", ""),
    ],
)
def test_the_default_that_a_text_states(text: str, value: str) -> None:
    assert find_default(text) == value


@pytest.mark.parametrize(
    ("claim", "sentence", "expected"),
    [
        ("max_wait is 3 by default.", "The default is 6.", Rival("3", "6")),
        ("max_wait is 3 by default.", "The default is three.", True),
        ("It waits 600 seconds by default.", "Seconds to wait (default: 900).", Rival("600 seconds", "900")),
        ("The default is 2 minutes.", "The default is 120 seconds.", True),
        ("The default is 2 minutes.", "The default is 120 minutes.", Rival("2 minutes", "120 minutes")),
        ("The default is one hour.", "The default value is 3600 (1 hour).", True),
        ("The default is two hours.", "The default value is 3600 (1 hour).", Rival("two hours", "3600")),
        ("SSL is enabled by default.", "The default is off.", Rival("enabled", "off")),
        ("The default of --pack is max.", "It may be auto (the default) or max.", Rival("max", "auto")),
        ("SSL is enabled by default.", "The default is on.", True),
        ("The default of root_login is yes.", "The default is ask.", Rival("yes", "ask")),
        ("The default is 5.", "The default is to wait for the pump.", None),
        ("The default is 5 May.", "The default is 6 May.", None),
        ("The pump waits.", "The default is 6.", None),
    ],
)
def test_defaults_are_compared_by_what_they_tell(claim: str, sentence: str, expected: Rival | bool | None) -> None:
    assert compare_defaults(claim, sentence) == expected
