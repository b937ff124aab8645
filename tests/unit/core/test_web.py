"""Results of a web search as data and as passages."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from ragstone.core.search import WebResult, is_web, no_web_search, web_hits
from ragstone.settings.web import WebSettings

PAGE = WebResult("Ferries", "https://www.harbour.example/fares?x=1", "A dog pays half.", "2026-01-31", "searxng")


def test_a_page_names_its_site_without_www() -> None:
    assert PAGE.site == "harbour.example"
    assert WebResult("", "not an address", "").site == ""


def test_pages_become_passages_in_their_order_and_say_where_they_are_from() -> None:
    wordless = WebResult("Empty", "https://b.example", "")
    untitled = WebResult("", "https://c.example/x", "Sails at nine.")
    first, second = web_hits([PAGE, wordless, untitled])
    assert (first.title, first.uri, first.text) == ("Ferries", PAGE.url, PAGE.snippet)
    assert (first.metadata["source"], first.metadata["date"]) == ("internet", "2026-01-31")
    assert first.text[first.start : first.end] == PAGE.snippet
    assert second.title == "c.example"
    assert first.score > second.score
    assert (first.scores, second.scores) == ({"web": 1.0}, {"web": 3.0})


def test_a_passage_of_the_web_is_told_from_one_of_a_kb() -> None:
    (hit,) = web_hits([PAGE])
    assert is_web(hit.chunk_id)
    assert not is_web("0123abcd")


def test_the_same_page_saying_something_else_is_another_passage() -> None:
    (before,), (after,) = web_hits([PAGE]), web_hits([WebResult(PAGE.title, PAGE.url, "A dog pays nothing.")])
    assert before.chunk_id != after.chunk_id


def test_without_a_web_search_the_error_says_what_to_set() -> None:
    hint = no_web_search().hint
    assert "set web.kind (searxng, brave, tavily, google, fixture) in ragstone.yaml" in hint
    assert "RAGSTONE_WEB__KIND=searxng RAGSTONE_WEB__URL=" in hint


@pytest.mark.parametrize(
    ("kind", "lacking"),
    [("searxng", "url"), ("brave", "api_key"), ("tavily", "api_key"), ("google", "api_key"), ("fixture", "path")],
)
def test_a_web_search_that_lacks_something_names_it(kind: str, lacking: str) -> None:
    with pytest.raises(ValidationError, match=f"web search with {kind} needs web.{lacking}"):
        WebSettings.model_validate({"kind": kind})
