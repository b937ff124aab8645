from __future__ import annotations

import json

import pytest
from tests.unit.ingest.enrich.texts import reading

from ragstone.ingest.enrich.describe import MAX_BYTES, find_keywords

POOL = (
    "The connection pool keeps a few database connections open.",
    "When the connection pool is empty a request waits; a larger connection pool costs memory.",
    "Memory is limited, and every database connection takes memory.",
)


@pytest.mark.req("R-NRM-08")
def test_phrases_and_words_that_matter_come_first() -> None:
    assert find_keywords(reading(*POOL), 4) == ["connection pool", "memory", "database connections", "request waits"]


def test_a_phrase_stands_for_its_words() -> None:
    assert "pool" not in find_keywords(reading(*POOL), 50)


def test_no_two_keywords_are_of_one_stem() -> None:
    found = find_keywords(reading("Pumping. The pump pumps. Pumps were pumped. Valves."), 10)
    assert found == ["Pumping", "Valves"]


def test_what_stands_in_headings_counts_more() -> None:
    text = "Seals and valves wear. Seals leak and valves stick."
    assert find_keywords(reading(text), 1) == ["Seals"]
    assert find_keywords(reading("# Valves", text), 1) == ["valves"]
    assert find_keywords(reading(text, title="Valves"), 1) == ["valves"]


GERMAN = "Die Wartung der Pumpe ist wichtig. Ohne Wartung wird die Pumpe laut, und eine Wartung kostet wenig."
FRENCH = "L'entretien de la pompe est utile. Sans entretien la pompe casse, et l'entretien coûte peu."
SPANISH = "El mantenimiento de la bomba es útil. Sin mantenimiento la bomba falla; el mantenimiento es barato."


@pytest.mark.parametrize(
    ("language", "text", "keyword"),
    [("de", GERMAN, "Wartung"), ("fr", FRENCH, "entretien"), ("es", SPANISH, "mantenimiento")],
)
def test_function_words_of_four_languages_are_left_out(language: str, text: str, keyword: str) -> None:
    found = find_keywords(reading(text, language=language), 10)
    assert found[0] == keyword
    assert not {"die", "der", "und", "la", "le", "et", "el", "sin", "l'"} & {word.lower() for word in found}


def test_a_text_in_an_unknown_language_loses_the_function_words_of_all_lists() -> None:
    assert find_keywords(reading("und the pompe mais pump", language=""), 5) == ["pompe", "pump"]


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_the_limit_is_kept(limit: int) -> None:
    assert len(find_keywords(reading(*POOL), limit)) == limit


@pytest.mark.parametrize("text", ["the of and", "12 34.5", "?!", "当天最后一班渡轮在午夜前不久离开港口"])
def test_a_text_without_words_has_no_keywords(text: str) -> None:
    assert find_keywords(reading(text), 5) == []


def test_a_word_of_any_length_is_no_trouble() -> None:
    assert find_keywords(reading("pump " + "x" * 100_000), 5) == ["pump"]


def test_keywords_cannot_fill_the_metadata() -> None:
    letters = [chr(0x1D400 + n) for n in range(26)]
    text = ". ".join("".join(letters[(n + step) % 26] for step in range(38)) + str(n) for n in range(60))
    found = find_keywords(reading(text), 50)
    assert 0 < len(found) < 50
    assert len(json.dumps(found)) <= MAX_BYTES
