"""Text in other languages is found by word, in a knowledge base of its own and in one with all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ragstone import Ragstone
from ragstone.testing.fakes import FakeEmbedder

TEXTS = {
    "da": "Lejeren kan opsige aftalen med tre måneders varsel. Vores by ligger på en bakke, og der er is på søen.",
    "de": "Der Mieter kann den Vertrag mit einer Frist von drei Monaten kündigen. Die Häuser sind in großer Not.",
    "en": "The tenant may end the contract with three months of notice. Many people die in a war for their son.",
    "es": "El inquilino puede cancelar el contrato con tres meses de antelación. Las canciones se oyen en la ciudad.",
    "fi": "Vuokralainen voi irtisanoa sopimuksen kolmen kuukauden kuluttua. Kirjat ovat hyllyssä ja koira nukkuu.",
    "fr": "Le locataire peut résilier le contrat avec trois mois de préavis. L'homme écoute le son et achète de l'or.",
    "it": "L'inquilino può disdire il contratto con tre mesi di preavviso. La storia dell'arte si studia in città.",
    "nl": "De huurder kan het contract opzeggen met drie maanden. De kat ligt op een gebroken been in de huizen.",
    "no": "Leietakeren kan si opp avtalen med tre måneders varsel. Vår by ligger ved sjøen, og det er is på vannet.",
    "pt": "O inquilino pode rescindir o contrato com três meses de aviso. As informações estão no portão do jardim.",
    "ru": "Арендатор может расторгнуть договор за три месяца. Новый ключ лежит в ящике, а книги стоят на полке.",
    "sv": "Hyresgästen kan säga upp avtalet med tre månaders varsel. En man läser böckerna, och det är is på sjön.",
}
INFLECTED = {
    "da": ("aftaler", "opsigelse af aftalerne", "AFTALE", "bakker"),
    "de": ("Verträge", "Fristen", "Haus", "Haeuser", "welche Vertraege", "HÄUSERN", "großes", "grosse"),
    "es": ("contratos", "canción", "cancion", "ciudades", "¿qué contratos se cancelan?"),
    "fi": ("sopimukset", "kirja", "koirat"),
    "fr": ("contrats", "préavis", "preavis", "les hommes", "d'homme", "résilié", "locataires"),
    "it": ("contratti", "inquilini", "un'arte", "storie", "citta"),
    "nl": ("contracten", "huis", "katten", "huurders"),
    "no": ("avtaler", "leietakere", "avtalene"),
    "pt": ("contratos", "informação", "informacao", "jardins", "portões"),
    "ru": ("договоры", "ключи", "книга", "новая", "арендаторы"),
    "sv": ("avtalen", "hyresgäster", "bockerna", "böcker"),
}
CONTENT_WORDS = {
    "da": ("is", "by"),
    "de": ("Not", "die", "war die Not"),
    "fr": ("or", "son"),
    "nl": ("been",),
    "no": ("is", "by"),
    "pt": ("no jardim",),
    "sv": ("man", "is"),
}
"""Function words of English, or of the language itself, that somebody looks for."""


@pytest.fixture(scope="module")
def languages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ragstone]:
    """A kb for each language, and the default one with all of them."""
    folder = tmp_path_factory.mktemp("texts")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
        with Ragstone(data_dir=tmp_path_factory.mktemp("languages")) as stone:
            for language, text in TEXTS.items():
                path = folder / f"{language}.txt"
                path.write_text(text, encoding="utf-8")
                stone.ingest(path, kb=language)
            stone.ingest(folder)
            yield stone


def find(stone: Ragstone, query: str, kb: str = "default") -> list[str]:
    """Return the languages of the documents that are found by word alone, the best first."""
    result = stone.search(query, arms="lexical", kb=kb)
    assert not result.degraded
    return [Path(hit.uri).stem for hit in result.hits]


@pytest.mark.parametrize("language", INFLECTED)
def test_an_inflected_word_finds_the_document(languages: Ragstone, language: str) -> None:
    for query in INFLECTED[language]:
        assert find(languages, query, language) == [language], query
        assert language in find(languages, query)[:3], query


@pytest.mark.parametrize("language", CONTENT_WORDS)
def test_a_function_word_of_english_is_a_word_like_others(languages: Ragstone, language: str) -> None:
    for query in CONTENT_WORDS[language]:
        assert find(languages, query, language) == [language], query
        assert language in find(languages, query), query


def test_english_is_analysed_as_english_beside_other_languages(languages: Ragstone) -> None:
    for query in ("contract", "wars", "sons", "dying or to die", "tenants", "the son of a tenant"):
        assert find(languages, query)[0] == "en", query
        assert find(languages, query, "en") == ["en"], query
    assert find(languages, "of the and for", "en") == []


def test_a_question_is_answered_in_its_own_language(stone: Ragstone, tmp_path: Path) -> None:
    """The model knows English only, so the words decide."""
    (tmp_path / "de.txt").write_text(f"{TEXTS['de']} Die Kaution beträgt zwei Monatsmieten.", encoding="utf-8")
    (tmp_path / "fr.txt").write_text(f"{TEXTS['fr']} L'école ouvre ses portes à huit heures.", encoding="utf-8")
    stone.ingest(tmp_path, kb="questions")
    assert stone.ask("Was ist die Kaution?", kb="questions").answer.startswith("Die Kaution beträgt zwei Monatsmieten.")
    assert stone.ask("À quelle heure ouvre l'école ?", kb="questions").answer.startswith("L'école ouvre ses portes")
    assert stone.ask("Wer ist der Papst?", kb="questions").status == "no_evidence"
