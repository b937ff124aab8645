from __future__ import annotations

import pytest
from tests.unit.ingest.enrich.texts import document, reading

from ragstone.ingest.enrich.describe import HEAD, MIDDLE, read_excerpt


def test_words_marks_and_stems_stand_side_by_side() -> None:
    (sentence,) = reading("The pumps were running at 80 degrees.").sentences
    assert sentence.tokens == ("The", "pumps", "were", "running", "at", "80", "degrees", ".")
    assert sentence.stems == ("", "pump", "", "run", "", "", "degre", "")
    assert sentence.terms == {"pump", "run", "degre"}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("C++ and C# on Node.js", ("C++", "and", "C#", "on", "Node.js")),
        ("the harbour's well-known café", ("the", "harbour's", "well-known", "café")),
        ("see https://example.org/a_b(c now", ("see", "now")),
        ("snake_case_name, v2", ("snake_case_name", ",", "v2")),
        ("नमस्ते दुनिया", ("नमस्ते", "दुनिया")),
    ],
)
def test_tokens(text: str, tokens: tuple[str, ...]) -> None:
    assert reading(text).sentences[0].tokens == tokens


def test_french_articles_are_words_of_their_own() -> None:
    (sentence,) = reading("L'université d'Orran.", language="fr").sentences
    assert sentence.tokens == ("L'", "université", "d'", "Orran", ".")
    assert sentence.stems == ("", "univers", "", "orran", "")


def test_each_language_has_its_own_function_words() -> None:
    (german,) = reading("Die Pumpen waren heiß.", language="de").sentences
    assert german.terms == {"pump", "heiss"}


def test_prose_is_read_and_code_and_tables_are_not() -> None:
    parts = ("# Pumps", "Pumps are quiet.", "    stop()", "| a | b |", "- first item\n- second item")
    read_of = reading(*parts)
    assert [heading.text for heading in read_of.headings] == ["Pumps"]
    assert [sentence.text for sentence in read_of.sentences] == ["Pumps are quiet.", "first item", "second item"]
    assert read_of.has_prose


def test_without_prose_what_there_is_is_read() -> None:
    read_of = reading("# Pumps", "    stop_pump()")
    assert [sentence.text for sentence in read_of.sentences] == ["stop_pump()"]
    assert not read_of.has_prose


def test_of_a_long_document_head_and_middle_are_read_in_whole_sentences() -> None:
    numbered = [f"Sentence number {n:05} is here." for n in range(20_000)]
    sentences = read_excerpt(document(" ".join(numbered), language="en")).sentences
    texts = [sentence.text for sentence in sentences]
    assert set(texts) <= set(numbered)
    assert texts[0] == numbered[0]
    assert "Sentence number 10000 is here." in texts
    assert sum(map(len, texts)) <= HEAD + MIDDLE


def test_a_long_document_without_a_full_stop_is_read_nevertheless() -> None:
    assert read_excerpt(document("pump " * 50_000, language="en")).sentences[0].terms == {"pump"}
