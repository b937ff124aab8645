"""Votes on passages: who says what, and what it comes to."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ragstone.core.activity import PassageVote, Vote, net_grades, same_query

MOMENT = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def _vote(query: str, document: str, vote: Vote, voter: str = "ann") -> PassageVote:
    return PassageVote(MOMENT, "demo", query, f"{document}:0", document, vote, voter)


@pytest.mark.parametrize("other", ["dog fares", "  Dog\tFARES ", "dog\nfares"])
def test_case_and_white_space_do_not_make_another_query(other: str) -> None:
    assert same_query(other) == same_query("Dog fares")


def test_other_words_make_another_query() -> None:
    assert same_query("dog fare") != same_query("dog fares")


def test_a_document_is_good_when_more_said_yes_than_no() -> None:
    votes = [
        _vote("Dog fares", "fares", "up", "ann"),
        _vote("dog fares", "fares", "down", "bob"),
        _vote("dog  fares", "fares", "used", "eve"),
        _vote("dog fares", "tides", "up", "ann"),
        _vote("dog fares", "tides", "down", "bob"),
        _vote("bicycles", "fares", "down", "ann"),
    ]
    assert net_grades(votes) == {"dog fares": {"fares": 1, "tides": 0}, "bicycles": {"fares": 0}}


def test_without_votes_nothing_is_judged() -> None:
    assert net_grades([]) == {}
