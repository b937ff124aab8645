"""Terms of texts in other languages than English."""

from __future__ import annotations

import pytest

from ragstone.language.analyzer import analyze, analyze_query
from ragstone.language.function_words import FUNCTION_WORDS
from ragstone.language.terms import analyze_chunks, choose_language, languages_of, reading, terms_asked, terms_of

PAIRS = {
    "da": "husene hus, bøgerne bøger, børnene børn, nøgler nøgle, boeger bøger, regninger regning",
    "de": "Häuser Haus, Haeuser Haus, Straßen Strasse, Verträge Vertrag, Städte Stadt, Ueberweisung Überweisungen",
    "es": "canciones cancion, ciudades ciudad, luces luz, niños nino, devoluciones devolución, enviaron enviar",
    "fi": "talossa talo, sopimukset sopimus, kaupungissa kaupunki, kirjoja kirja, työntekijät tyontekija",
    "fr": "chevaux cheval, mangées manger, actives actif, écoles ecole, développé développer, remboursés rembourser",
    "it": "contratti contratto, alberghi albergo, città citta, pagato pagare, spedizioni spedizione",
    "nl": "huizen huis, fietsen fiets, brieven brief, facturen factuur, betalingen betaling",
    "no": "husene hus, bøkene bøker, fakturaer faktura, avtaler avtale, regninger regning",
    "pt": "nações nacao, animais animal, jardins jardim, informações informar, homens homem, móveis móvel",
    "ru": "договоры договор, новый новая, книгами книга, платежей платёж, городах город",
    "sv": "husen hus, fakturor faktura, leveranser leverans, flickorna flicka, räkningar rakning",
}
"""Two forms of a word, by language."""


@pytest.mark.parametrize("language", PAIRS)
def test_forms_of_a_word_have_the_same_term(language: str) -> None:
    for pair in PAIRS[language].split(", "):
        first, second = pair.split()
        assert terms_of(first, language) == terms_of(second, language), pair
        assert terms_of(first, language)[0].endswith(f"~{language}"), pair


def test_elided_articles_come_off() -> None:
    assert terms_of("l’homme", "fr")[-1] == terms_of("hommes", "fr")[0]
    assert terms_of("dell'arte", "it")[-1] == terms_of("arti", "it")[0]
    assert terms_of("auto's", "nl")[0] == terms_of("auto", "nl")[0]


def test_names_and_numbers_have_no_language() -> None:
    assert terms_of("SKU-12345 kostet 1,000", "de") == ["sku-12345", "sku~de", "12345", "kost~de", "1000"]
    assert terms_of("Сервер Docker containers", "ru") == ["сервер~ru", "docker", "contain"]
    assert terms_of("服务器", "de") == analyze("服务器")


def test_a_query_asks_for_a_word_in_the_languages_of_the_kb() -> None:
    assert terms_asked("Häuser") == [("hauser",)]
    assert terms_asked("Häuser", ("de", "fr")) == [("hauser", "haus~de", "haus~fr")]
    assert terms_asked("SKU-12345", ("de",)) == [("sku-12345",), ("sku", "sku~de"), ("12345",)]


def test_a_query_asks_for_a_word_with_and_without_its_hyphen() -> None:
    assert terms_asked("the emails") == [("email", "e-mail")]
    assert terms_asked("E-Mail") == [("e-mail", "email"), ("e",), ("mail",)]
    assert terms_asked("wifi") == [("wifi", "wi-fi")]
    assert terms_asked("Wi-Fi") == [("wi-fi", "wifi"), ("wi",), ("fi",)]
    assert terms_asked("login") == [("login", "log-in")]
    assert terms_asked("station for pumps") == [("station",), ("pump",)]


def test_function_words_are_asked_for_only_when_there_is_nothing_else() -> None:
    assert terms_asked("die Häuser", ("de",)) == [("die",), ("hauser", "haus~de")]
    assert terms_asked("war die", ("de",)) == [("war", "war~de"), ("die", "die~de")]
    assert terms_asked("the Not of a son", ("de", "fr")) == [
        ("son", "son~de", "son~fr"),
        ("the~de", "the~fr"),
        ("not~de", "not~fr"),
        ("of~de", "of~fr"),
        ("a~de",),
    ]


def test_an_english_kb_is_asked_as_ever() -> None:
    for query in ("the return policy", "Who is it?", "hook.player.connected", "and or not"):
        assert terms_asked(query) == [(term,) for term in analyze_query(query)]


def test_words_that_mean_something_are_no_function_words() -> None:
    for language, word in (("fr", "son"), ("fr", "or"), ("fr", "été"), ("sv", "man"), ("de", "Not"), ("nl", "been")):
        assert word not in FUNCTION_WORDS[language]


@pytest.mark.parametrize(
    ("detected", "text", "chosen"),
    [
        ("en", "The house", ""),
        ("", "Das Haus", ""),
        ("", "Договор аренды", "ru"),
        ("", "Το σπίτι", "el"),
        ("", "契约 договор 的条款和其他内容", ""),
        ("zh", "契约", ""),
        ("nb", "Huset er på en bakke", "no"),
        ("de", "Das Haus ist in Not", "de"),
        ("de", "The house is in the wood of the king", ""),
        ("pl", "Umowa jest w domu", "pl"),
        ("pl", "The house is in the wood of the king", ""),
        ("uk", "Договір оренди", "uk"),
    ],
)
def test_the_language_of_analysis(detected: str, text: str, chosen: str) -> None:
    assert choose_language(detected, text) == chosen


def test_chunks_tell_their_language() -> None:
    german = analyze_chunks(["Das Haus ist alt.", "1234"], "de")
    assert german == ("das~de haus~de ist~de alt~de", "1234")
    assert languages_of((*german, "hous old", *analyze_chunks(["Книга"], "ru"))) == {"de", "ru"}


def test_hostile_text_takes_no_time_to_analyse() -> None:
    for text in ("é" * 100_000, "l'" * 50_000, "ß-" * 50_000, "\N{COMBINING ACUTE ACCENT}" * 100_000):
        assert all(len(term) <= 200 for term in terms_of(text, "fr"))


def test_texts_are_read_in_the_language_of_a_question() -> None:
    with reading("de"):
        assert analyze("Was ist die Kaution für Häuser?") == ["kaution~de", "haus~de"]
        assert analyze_query("war die") == ["war~de", "die~de"]
        assert terms_asked("Häuser", ("de",)) == [("hauser", "haus~de")]
        with reading(""):
            assert analyze("houses") == ["hous"]
    assert analyze("houses") == ["hous"]
