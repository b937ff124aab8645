from __future__ import annotations

import pytest

from ragstone.query.transform.transformer import build_cleaner, normalize, stem_words, without_stop_words


@pytest.mark.req("R-QRY-12")
@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("How Do I  BOOK?", "how do i book"),
        ("Café Zürich…", "cafe zurich"),
        ("ﬁle\tnames \n here.", "file names here"),
        ("?!", "?!"),
        ("ИЗМЕНИТЬ", "изменить"),
    ],
)
def test_normalizing_lowers_and_folds(text: str, normal: str) -> None:
    assert normalize(text) == normal


@pytest.mark.req("R-QRY-12")
def test_stop_words_go_only_when_asked_to_and_something_is_left() -> None:
    assert without_stop_words("how do I install the Module?") == "install Module?"
    assert without_stop_words("to be or not to be") == "to be or not to be"
    assert "the" in normalize("Install the module").split()


@pytest.mark.req("R-QRY-12")
def test_stems_stand_for_words_and_names_stay_whole() -> None:
    assert stem_words("installing modules of SKU-12345, please") == "instal modul of SKU-12345, pleas"


def test_cleanings_act_together() -> None:
    clean = build_cleaner(frozenset({"stem", "normalize", "stop_words", "hyde"}))
    assert clean("How are the Modules INSTALLED?") == "modul instal"
    assert build_cleaner(frozenset({"hyde"}))("How?") == "How?"


def test_words_of_another_language_are_cleaned_by_its_own_rules() -> None:
    assert without_stop_words("wie hoch sind die Kosten in der Not?", "de") == "hoch Kosten Not?"
    assert without_stop_words("le prix de l'or", "fr") == "prix l'or"
    assert stem_words("die Häuser, Verträge", "de") == "die haus, vertrag"
    assert build_cleaner(frozenset({"stop_words", "stem"}), "de")("für die Häuser") == "haus"
