from __future__ import annotations

import pytest
from tests.unit.answer.verify.test_pipeline import Saying, hit, verified

from ragstone.answer.verify.language import differs_in_figures, is_foreign
from ragstone.answer.verify.pipeline import NOT_ENGLISH
from ragstone.core.errors import ModelError
from ragstone.core.model_types import Entailment

DENIALS = {
    "de": [
        ("Die Fähre fährt am Sonntag.", "Die Fähre fährt am Sonntag nicht."),
        ("Hunde sind erlaubt.", "Hunde sind nicht erlaubt."),
        ("Züge fahren.", "Züge fahren nicht."),
        ("Kinder zahlen Eintritt.", "Kinder zahlen keinen Eintritt."),
        ("Der Aufzug trägt 1500 kg.", "Der Aufzug trägt keine 1500 kg."),
        ("Der Server ist online.", "Der Server ist nicht online."),
        ("Das Museum ist geöffnet.", "Das Museum ist geschlossen."),
        ("„The Lord of the Rings“ ist verfügbar.", "„The Lord of the Rings“ ist nicht verfügbar."),
    ],
    "fr": [
        ("Le musée est ouvert le dimanche.", "Le musée n'est pas ouvert le dimanche."),
        ("Les chiens sont admis.", "Les chiens ne sont pas admis."),
        ("Le serveur répond.", "Le serveur ne répond pas."),
        ("Le contrat est renouvelé.", "Le contrat n'est jamais renouvelé."),
        ("Porte ouverte.", "Porte fermée."),
    ],
    "es": [
        ("El museo abre los domingos.", "El museo no abre los domingos."),
        ("Se admiten perros.", "No se admiten perros."),
        ("El servidor responde.", "El servidor no responde."),
        ("El contrato se renueva automáticamente.", "El contrato nunca se renueva automáticamente."),
    ],
    "it": [
        ("Il museo è aperto la domenica.", "Il museo non è aperto la domenica."),
        ("I cani sono ammessi.", "I cani non sono ammessi."),
        ("Il server risponde.", "Il server non risponde."),
    ],
    "nl": [
        ("Het museum is op zondag open.", "Het museum is op zondag niet open."),
        ("Honden zijn toegestaan.", "Honden zijn niet toegestaan."),
        ("De lift is open.", "De lift is niet open."),
        ("Kinderen betalen entree.", "Kinderen betalen geen entree."),
    ],
    "pt": [
        ("O museu abre aos domingos.", "O museu não abre aos domingos."),
        ("Cães são permitidos.", "Cães não são permitidos."),
        ("O contrato é renovado automaticamente.", "O contrato nunca é renovado automaticamente."),
    ],
    "pl": [
        ("Muzeum jest otwarte w niedziele.", "Muzeum nie jest otwarte w niedziele."),
        ("Psy są dozwolone.", "Psy nie są dozwolone."),
        ("Serwer odpowiada.", "Serwer nie odpowiada."),
    ],
    "others": [
        ("Hundar är tillåtna.", "Hundar är inte tillåtna."),
        ("Butikken er åpen.", "Butikken er ikke åpen."),
        ("Psi jsou povoleni.", "Psi nejsou povoleni."),
        ("Müze pazar günleri açıktır.", "Müze pazar günleri açık değildir."),
        ("Музей открыт по воскресеньям.", "Музей не открыт по воскресеньям."),
        ("博物馆星期天开放。", "博物馆星期天不开放。"),
    ],
}
PAIRS = [pair for pairs in DENIALS.values() for pair in pairs]


@pytest.mark.parametrize(("sentence", "denial"), PAIRS)
async def test_a_denial_in_another_language_is_neither_supported_nor_refuted(sentence: str, denial: str) -> None:
    for claim, source in ((sentence, denial), (denial, sentence)):
        verdict = await verified(claim, hit(source))
        assert (verdict.status, verdict.stance, verdict.support) == ("UNVERIFIED", "unknown", 0.0)
        assert verdict.degraded == (NOT_ENGLISH,)


async def test_evidence_in_another_language_supports_nothing() -> None:
    verdict = await verified("Ikea Örebro: 24 h.", hit("Ikea i Örebro är inte öppet 24 h om dygnet."))
    assert (verdict.status, verdict.stance, verdict.degraded) == ("UNVERIFIED", "unknown", (NOT_ENGLISH,))


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Der Eintritt kostet 6 Euro.", "Der Eintritt kostet 9 Euro."),
        ("Le musée a été ouvert en 1974.", "Le musée a été ouvert en 1981."),
        ("El tren sale a las 9:00.", "El tren sale a las 10:00."),
        ("Il biglietto costa 250 euro.", "Il biglietto costa 350 euro."),
    ],
)
async def test_other_figures_refute_in_any_language(claim: str, source: str) -> None:
    verdict = await verified(claim, hit(source))
    assert (verdict.status, verdict.stance, verdict.support) == ("UNVERIFIED", "refuted", 0.0)


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("Der Kran hebt 1.500 kg.", "Der Kran hebt 1500 kg."),
        ("Il prezzo è di 1.200 euro.", "Il prezzo è di 1200 euro."),
        ("De prijs is 2,50 euro.", "De prijs is 2.50 euro."),
        ("Der Kran hebt nicht 1500 kg.", "Der Kran hebt 900 kg."),
        ("La grúa no levanta 1500 kg.", "La grúa levanta 900 kg."),
    ],
)
async def test_figures_that_may_be_the_same_refute_nothing(claim: str, source: str) -> None:
    assert not differs_in_figures(claim, source)
    assert (await verified(claim, hit(source))).stance == "unknown"


async def test_a_model_judges_any_language() -> None:
    claim, source = "Hunde sind erlaubt.", "Hunde sind nicht erlaubt."
    verdict = await verified(claim, hit(source), entailer=Saying(Entailment("contradicts", 0.95)))
    assert (verdict.stance, verdict.degraded) == ("refuted", ())
    verdict = await verified(claim, hit(claim), entailer=Saying(Entailment("entails", 0.95)))
    assert (verdict.status, verdict.degraded) == ("VERIFIED", ())
    verdict = await verified(claim, hit(source), entailer=Saying(ModelError("no weights")))
    assert (verdict.stance, verdict.degraded) == ("unknown", ("entailment: no weights", NOT_ENGLISH))


@pytest.mark.parametrize(
    "text",
    [
        "Dogs sleep.",
        "The lift stops.",
        "Wolfsburg produces Golf.",
        "Giuseppe Verdi composed Aida.",
        "Emmanuel Macron met Olaf Scholz.",
        "Der Spiegel is a magazine.",
        "Die Hard stars Bruce Willis.",
        "Montréal is in Québec.",
        "Universidad de la República awarded degrees.",
        "Bundesministerium für Wirtschaft und Klimaschutz funds the project.",
        "Gabriel García Márquez wrote Cien años de soledad.",
        "Société Générale acquired Rosbank.",
        "Pizza Margherita contains mozzarella.",
        "Crème brûlée contains sugar.",
        "Escherichia coli produces colicins.",
        "IL-6 activates STAT3.",
        "p53 binds MDM2.",
        "5'-nucleotidase metabolizes 6MP.",
        "M8x20 DIN 933 bolts fit.",
        "The part number is AX-4711-B.",
        "parse_config returns None.",
        "get_user() raises KeyError.",
        "npm install fails",
        "Total cost: 45 EUR",
        "| Port Arden – Sula | 8.40 | 14.20 |",
        "minecraft:550e8400-e29b-41d4-a716-446655440000",
        "1",
        "",
    ],
)
def test_english_with_names_and_identifiers_is_english(text: str) -> None:
    assert not is_foreign(text, text, text)


async def test_an_english_claim_is_judged_as_before() -> None:
    claim = "Giuseppe Verdi composed Aida."
    verdict = await verified(claim, hit(claim))
    assert (verdict.status, verdict.degraded) == ("VERIFIED", ())
