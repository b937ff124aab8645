"""Questions that lean on those before them."""

from __future__ import annotations

import pytest

from ragstone.language.follow_ups import FollowUp, resolve_follow_up

HARBOUR = "When does the harbour open in winter?"


@pytest.mark.parametrize(
    ("earlier", "question", "search", "answered"),
    [
        ([], "What does it cost?", "What does it cost?", "What does it cost?"),
        ([HARBOUR], "What does it cost?", "What does the harbour cost?", "What does the harbour cost?"),
        ([HARBOUR], "Who is its master?", "Who is the harbour's master?", "Who is the harbour's master?"),
        ([HARBOUR], "And on Sundays?", "When does the harbour open in winter And on Sundays?", "And on Sundays?"),
        # A short question that is one by itself needs nothing said before.
        ([HARBOUR], "What is granite?", "What is granite?", "What is granite?"),
        (
            [HARBOUR],
            "Which painters worked in northern quarries?",
            "Which painters worked in northern quarries?",
            "Which painters worked in northern quarries?",
        ),
        # Nothing to point to is found: the words before are better than none.
        (["Open daily?"], "What does it cost?", "Open daily What does it cost?", "Open daily What does it cost?"),
    ],
)
def test_a_question_by_itself(earlier: list[str], question: str, search: str, answered: str) -> None:
    found = resolve_follow_up(question, earlier, 1000)
    assert (found.search, found.question) == (search, answered)


def test_short_questions_in_a_row_lean_on_the_last_one_that_stands_by_itself() -> None:
    found = resolve_follow_up("And on Mondays?", [HARBOUR, "And on Sundays?"], 1000)
    assert found.search == "When does the harbour open in winter And on Mondays?"


def test_what_was_pointed_to_is_pointed_to_again() -> None:
    found = resolve_follow_up("Is it deep?", [HARBOUR, "What does it cost?"], 1000)
    assert found.search == "Is the harbour deep?"


def test_what_would_be_too_long_stays_alone() -> None:
    assert resolve_follow_up("And on Sundays?", [HARBOUR], 40) == FollowUp("And on Sundays?", "And on Sundays?")
