"""Facts that people and files say of documents, and moments that mail and hosts give."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ragstone.core.clock import ReadTime, current_read_time, parse_mail_date
from ragstone.core.documents import checked_facts, file_type_of, filename_of, tags_of, text_of
from ragstone.core.errors import InputError


@pytest.mark.parametrize(
    ("title", "metadata", "message"),
    [
        ("t" * 100_000, {}, "the title has 100,000 characters"),
        ("", {"source_type": "gmail"}, "the 'source_type' of what is uploaded is 'upload'"),
        ("", {"description": 7}, "'description' is int, and has to be text"),
        ("", {"category": "c" * 100_000}, "'category' has 100,000 characters"),
        ("", {"tags": "fares"}, "'tags' has to be a list of texts"),
        ("", {"tags": [1]}, "'tags' has to be a list of texts"),
    ],
)
def test_facts_that_cannot_be_kept_are_refused(title: str, metadata: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        checked_facts(title, metadata)


def test_facts_that_fit_are_taken() -> None:
    checked_facts("Fares", {"description": "All fares", "category": "travel", "tags": ["fares"]})


def test_a_file_is_named_by_its_metadata_or_the_end_of_its_address() -> None:
    assert filename_of({"filename": "a.pdf"}, "x/b.txt") == "a.pdf"
    assert filename_of({"filename": 3}, "x/b.txt") == "b.txt"


def test_a_file_s_type_is_its_suffix_or_what_its_content_is() -> None:
    assert file_type_of("a.PDF", "text/plain") == "pdf"
    assert file_type_of("README", "application/x-unheard-of") == "x-unheard-of"


def test_text_and_tags_are_read_from_whatever_a_file_says() -> None:
    assert (text_of({"a": "words"}, "a", 3), text_of({"a": 1}, "a")) == ("wor", "")
    assert tags_of({"tags": "one"}) == ("one",)
    assert tags_of({"tags": ["one", 2, "three"]}) == ("one", "three")
    assert (tags_of({"tags": ""}), tags_of({"tags": 5})) == ((), ())


def test_dates_of_mail_are_in_utc_or_none() -> None:
    assert parse_mail_date("Tue, 03 Feb 2026 10:00:00 +0200") == datetime(2026, 2, 3, 8, tzinfo=UTC)
    assert parse_mail_date("Tue, 03 Feb 2026 10:00:00 -0000") == datetime(2026, 2, 3, 10, tzinfo=UTC)
    assert parse_mail_date("soon") is None


def test_readings_of_one_boot_are_in_order_and_those_of_two_are_not() -> None:
    first, second = current_read_time(), ReadTime(current_read_time().boot, float("inf"))
    assert first.precedes(second)
    assert not second.precedes(first)
    assert not first.precedes(ReadTime("another boot", float("inf")))
