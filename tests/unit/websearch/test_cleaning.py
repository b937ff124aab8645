from __future__ import annotations

import pytest

from ragstone.websearch.engines import LONGEST_QUERY, LONGEST_SNIPPET, LONGEST_TITLE, MOST_WORDS, fit_query, make_result


@pytest.mark.parametrize(
    "url",
    [
        None,
        3,
        "",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "ftp://host.example/",
        "https://",
        "https://user:word@host.example/",
        "https://host.example/a b",
        "https://host.example/\x00",
        "https://[broken/",
        "https://host.example/" + "x" * 2000,
    ],
)
def test_what_is_no_web_address_is_left_out(url: object) -> None:
    assert make_result("engine", "A title", url, "Some words.") is None


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        ("  two\n words ", "two words"),
        ("a\x00b\x1bc", "a b c"),
        ("hid\u200bden \u202eback", "hidden back"),
        ("\ud800x", "x"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("a < b and c > d", "a < b and c > d"),
        (None, ""),
        (["x"], ""),
    ],
)
def test_text_is_made_plain(sent: object, seen: str) -> None:
    found = make_result("engine", sent, "https://host.example/", sent)
    assert found is not None
    assert (found.title, found.snippet) == (seen, seen)


def test_markup_goes_where_an_engine_sends_it() -> None:
    found = make_result("engine", "<b>A</b> &amp; B", "https://host.example/", "x<script>y</script>", markup=True)
    assert found is not None
    assert (found.title, found.snippet) == ("A & B", "xy")


def test_text_without_end_is_cut_between_words() -> None:
    found = make_result("engine", "word " * 100_000, "https://host.example/", "x" * 1_000_000)
    assert found is not None
    assert found.title == " ".join(["word"] * (LONGEST_TITLE // 5))
    assert found.snippet == "x" * LONGEST_SNIPPET


@pytest.mark.parametrize(
    ("sent", "day"),
    [
        ("2026-01-31", "2026-01-31"),
        ("2026-01-31T23:30:00-05:00", "2026-02-01"),
        ("Sat, 31 Jan 2026 10:00:00 GMT", "2026-01-31"),
        ("last week", ""),
        ("", ""),
        (None, ""),
        (1769853600, ""),
    ],
)
def test_dates_have_one_form(sent: object, day: str) -> None:
    found = make_result("engine", "A", "https://host.example/", "B", sent)
    assert found is not None
    assert found.date == day


def test_a_query_is_cut_to_what_every_engine_takes() -> None:
    assert fit_query("  a\n b ") == "a b"
    assert len(fit_query("word " * 1000).split()) == MOST_WORDS
    long = fit_query("incomprehensibilities " * 50)
    assert len(long) <= LONGEST_QUERY
    assert set(long.split()) == {"incomprehensibilities"}
    assert fit_query("x" * 8000) == "x" * LONGEST_QUERY


def test_a_site_is_a_host_without_www() -> None:
    found = make_result("engine", "A", "https://www.fragrance.example:8443/spice", "B")
    assert found is not None
    assert found.site == "fragrance.example"
