"""Questions that lean on those before them."""

from __future__ import annotations

import pytest

from ragstone.core.search import Exchange
from ragstone.core.types import Hit
from ragstone.language.follow_ups import FollowUp, changes_subject, resolve_follow_up

HARBOUR = "When does the harbour open in winter?"


@pytest.mark.parametrize(
    ("earlier", "question", "search", "answered"),
    [
        ([], "What does it cost?", "What does it cost?", "What does it cost?"),
        ([HARBOUR], "What does it cost?", "What does the harbour cost?", "What does the harbour cost?"),
        ([HARBOUR], "Who is its master?", "Who is the harbour's master?", "Who is the harbour's master?"),
        ([HARBOUR], "And on Sundays?", "When does the harbour open in winter and on Sundays?", "And on Sundays?"),
        ([HARBOUR, " ", "\r"], "What does it cost?", "What does the harbour cost?", "What does the harbour cost?"),
        # A short question that is one by itself needs nothing said before.
        ([HARBOUR], "What is granite?", "What is granite?", "What is granite?"),
        (
            [HARBOUR],
            "Which painters worked in northern quarries?",
            "Which painters worked in northern quarries?",
            "Which painters worked in northern quarries?",
        ),
        # Nothing to point to is found: the words before are better than none.
        (["Open daily?"], "What does it cost?", "Open daily what does it cost?", "Open daily what does it cost?"),
    ],
)
def test_a_question_by_itself(earlier: list[str], question: str, search: str, answered: str) -> None:
    found = resolve_follow_up(question, [Exchange(asked) for asked in earlier], 1000)
    assert (found.search, found.question) == (search, answered)


def test_short_questions_in_a_row_lean_on_the_last_one_that_stands_by_itself() -> None:
    found = resolve_follow_up("And on Mondays?", [Exchange(HARBOUR), Exchange("And on Sundays?")], 1000)
    assert found.search == "When does the harbour open in winter and on Mondays?"


def test_what_was_pointed_to_is_pointed_to_again() -> None:
    found = resolve_follow_up("Is it deep?", [Exchange(HARBOUR), Exchange("What does it cost?")], 1000)
    assert found.search == "Is the harbour deep?"


def test_what_would_be_too_long_stays_alone() -> None:
    assert resolve_follow_up("And on Sundays?", [Exchange(HARBOUR)], 40) == FollowUp(
        "And on Sundays?", "And on Sundays?"
    )


CACHE = "How do I store a value in Django's cache?"


@pytest.mark.parametrize(
    ("earlier", "question", "leaning", "answered"),
    [
        ([CACHE], "How do I get rid of one entry?", "maybe", "How do I get rid of one entry?"),
        ([CACHE], "And all of them at once?", "yes", f"{CACHE[:-1]} and all of them at once?"),
        (
            [CACHE, "How do I get rid of one entry?"],
            "And all of them?",
            "yes",
            "How do I get rid of one entry (Django's cache) and all of them?",
        ),
        ([CACHE], "What is the default?", "yes", "What is the default?"),
        ([CACHE], "What is a savepoint?", "no", "What is a savepoint?"),
        ([CACHE], "How do I drop a table in Postgres?", "no", "How do I drop a table in Postgres?"),
        ([CACHE], "What is the default of max_connections?", "no", "What is the default of max_connections?"),
        (["How do I install rg on Linux?"], "What about Windows?", "yes", "How do I install rg on Windows"),
        (["How do I delete my crontab?"], "What about listing it?", "yes", "What about listing my crontab?"),
        (["What does the Mini cost?"], "And the Maxi 8?", "yes", "What does the Maxi 8 cost"),
        (["Which port does tw-ingest use?"], "And tw-rollup?", "yes", "Which port does tw-rollup use"),
        (["What does the Mini cost?", "And the Maxi 8?"], "What is its weight?", "yes", "What is the Maxi 8's weight?"),
        (["What does the Mini cost?", "And the Maxi 8?"], "And its weight?", "yes", "What is the Maxi 8's weight?"),
        (["What does the Mini cost?", "And its weight?"], "And its sizes?", "yes", "What are the Mini's sizes?"),
        (["Which port does tw-ingest use?"], "Who owns it?", "yes", "Who owns tw-ingest?"),
        (["When was Debian founded?"], "Why?", "yes", "Why was Debian founded?"),
        (["When was Debian founded?"], "And by whom?", "yes", "By whom was Debian founded?"),
        (["When was Debian founded?"], "Since when?", "yes", "Since when was Debian founded?"),
        (["Who approves refunds?"], "Since when?", "yes", "Who approves refunds since when?"),
        (["Who approves refunds?"], "How old?", "yes", "Who approves refunds how old?"),
        *((["Who approves refunds?"], bare, "yes", f"Who approves refunds {bare}") for bare in ("Why?", "How?")),
        (["Who approves refunds?"], "By whom?", "yes", "Who approves refunds by whom?"),
        (["Who approves refunds?"], "How much?", "yes", "Who approves refunds how much?"),
        (["How long does autovacuum wait?"], "And how often does it run?", "yes", "And how often does autovacuum run?"),
    ],
)
def test_what_a_question_leaves_out(earlier: list[str], question: str, leaning: str, answered: str) -> None:
    found = resolve_follow_up(question, [Exchange(asked) for asked in earlier], 1000)
    assert (found.leaning, found.question) == (leaning, answered)


def test_a_topic_is_left_with_the_answer_that_left_it() -> None:
    left = Exchange("Who wrote the scheduler?", "Paul Vixie is the author of cron.")
    assert resolve_follow_up("And when?", [Exchange(CACHE), left], 1000).basis == left.question
    stayed = Exchange("Who wrote the backend?", "The cache was written in 2005.")
    assert resolve_follow_up("And when?", [Exchange(CACHE), stayed], 1000).basis == (
        "Who wrote the backend (Django's cache)?"
    )


def _hit(text: str, title: str = "") -> Hit:
    return Hit(title, title, title, title, "", None, text, 0.5, {}, {}, 0, len(text))


ON_CACHES = [_hit("Each entry of the cache has a key. delete() removes it, and files are never touched.", "Cache")]


@pytest.mark.parametrize(
    ("question", "found", "changes"),
    [
        ("How do I get rid of one entry?", _hit("An entry of the blog is removed by its owner.", "Blog"), False),
        ("How are old entries listed?", _hit("Old entries are listed first.", "Stock"), False),
        ("Does that happen soon?", _hit("It will happen soon.", "Cache"), False),
        ("How fast must we touch it?", _hit("We touch it.", "Stock"), False),
        ("Who runs the museum?", _hit("Ada runs the museum.", "Town"), True),
        ("Who runs the museum?", _hit("Fares are paid on board.", "Fares"), True),
        ("How are files copied?", _hit("Files are copied by rsync.", "rsync"), False),
        ("How are files copied with rsync?", _hit("Files are copied by rsync.", "Copies"), True),
        ("How are entries of crontab listed?", _hit("Its entries are listed by -l.", "crontab"), True),
    ],
)
def test_a_change_of_subject_shows_in_what_is_found(question: str, found: Hit, changes: bool) -> None:
    assert changes_subject(question, [found], ON_CACHES) is changes
