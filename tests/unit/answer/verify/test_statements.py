from __future__ import annotations

import time

import pytest

from ragstone.answer.verify.statements import find_statements

PAGE = """\
---
title: Gates that open late.
---

# The gate opens at nine every day

How gates work
==============

The gate opens at nine. Who opens it? It closes at ten.

- the warden keeps the key
- keys and spare parts
- Ada?

| Gate | Opens |
|---|---|
| Tide gate is open. | nine |

```sh
The gate is not code. Run it.
```

$ gate --open is a command.

> The gate was built in 1931.
"""


def stated(text: str) -> list[str]:
    return [text[sentence.start : sentence.end] for sentence in find_statements(text).found]


def test_only_what_states_something_is_found() -> None:
    assert stated(PAGE) == [
        "The gate opens at nine.",
        "It closes at ten.",
        "the warden keeps the key",
        "The gate was built in 1931.",
    ]


def test_each_sentence_has_its_line_and_the_others_are_counted() -> None:
    found = find_statements(PAGE)
    lines = PAGE.splitlines()
    for sentence in found.found:
        assert PAGE[sentence.start : sentence.end] in lines[sentence.line - 1]
    assert found.skipped > 5


def test_parts_that_are_known_to_be_no_prose_are_left_out() -> None:
    text = "The gate opens at nine. The gate closes at ten. The key is lost."
    assert find_statements(text, [(0, 10), (5, 30)]).found == find_statements(text).found[2:]


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("Das Tor öffnet um neun Uhr.", True),
        ("水闸在上午九点打开。", True),
        ("水闸几点打开？", False),
        ("Öffnungszeiten und Preise im Winter", False),
        ("12 34 56", False),
        ("“Who goes there?”", False),
        ("He said “no.”", True),
        ("What the gate does", False),
        ("```\nThe gate opens at nine.", False),
    ],
)
def test_in_other_languages_and_quotes(text: str, states: bool) -> None:
    assert bool(stated(text)) == states


@pytest.mark.parametrize("text", ["a b c. " * 100_000, "> " * 300_000, "```\n" * 100_000, "# " * 300_000])
def test_hostile_texts_take_no_longer_than_their_length(text: str) -> None:
    started = time.process_time()
    find_statements(text)
    assert time.process_time() - started < 5
