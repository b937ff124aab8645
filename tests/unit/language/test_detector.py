from __future__ import annotations

import pytest
from tests.unit.ingest.enrich.texts import document

from ragstone.language.detector import MIN_LETTERS, detect_language, language_of, language_of_query

SENTENCES = {
    "en": "The last ferry of the day leaves the harbour shortly before midnight.",
    "de": "Die letzte Fähre des Tages verlässt den Hafen kurz vor Mitternacht.",
    "fr": "Le dernier bateau de la journée quitte le port peu avant minuit.",
    "es": "El último barco del día sale del puerto poco antes de la medianoche.",
    "it": "L'ultimo traghetto della giornata lascia il porto poco prima di mezzanotte.",
    "nl": "De laatste veerboot van de dag verlaat de haven kort voor middernacht.",
    "sv": "Dagens sista färja lämnar hamnen strax före midnatt.",
    "pl": "Ostatni prom tego dnia opuszcza port tuż przed północą.",
    "ru": "Последний паром в этот день покидает гавань незадолго до полуночи.",
    "zh": "当天最后一班渡轮在午夜前不久离开港口，乘客必须提前一个小时到达码头。",
    "ja": "その日の最後のフェリーは、真夜中の少し前に港を出発します。",
}


@pytest.mark.req("R-NRM-01")
@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_is_enough(language: str) -> None:
    assert detect_language(document(SENTENCES[language])) == language


@pytest.mark.parametrize(
    "text",
    [
        "nineteen letters h",
        "12345 67890 12345 67890 12345 67890",
        "Kubernetes Docker nginx redis",
        "asdf qwer zxcv uiop hjkl bnmm tyui",
        "SELECT * FROM sailings WHERE port = 1 AND seats > 2",
        "a" * 5000,
    ],
)
def test_what_cannot_be_told_has_no_language(text: str) -> None:
    assert language_of(text) is None


def test_letters_are_counted_not_characters() -> None:
    short = "Die Fähre, sie fährt."
    assert sum(character.isalpha() for character in short) < MIN_LETTERS < len(short)
    assert language_of(short) is None


def test_prose_decides_not_the_code_around_it() -> None:
    code = "    for line in open(name):\n        print(line.strip() if line else None)\n" * 40
    assert detect_language(document(code, SENTENCES["de"], code)) == "de"


def test_a_long_document_is_judged_by_more_than_its_first_page() -> None:
    foreword = " ".join([SENTENCES["en"]] * 4)
    rest = " ".join([SENTENCES["fr"]] * 400)
    assert detect_language(document(foreword, rest)) == "fr"


def test_addresses_and_markup_do_not_count() -> None:
    links = "https://example.org/the/quick/brown/fox/and/the/lazy/dog " * 3
    assert detect_language(document(f"{links} {SENTENCES['de']}")) == "de"


def test_lone_surrogates_do_no_harm() -> None:
    assert language_of("\ud800 " + SENTENCES["en"]) == "en"


def test_a_short_query_is_in_the_likeliest_language_of_the_kb() -> None:
    assert language_of_query("Verträge kündigen", ()) == ""
    assert language_of_query("Verträge kündigen", ("de", "ru")) == "de"
    assert language_of_query("договор", ("de", "ru")) == "ru"
    assert language_of_query("what does the contract say", ("de", "ru")) == ""
    assert language_of_query("anything", ("xx",)) == ""
