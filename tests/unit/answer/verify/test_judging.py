from __future__ import annotations

import pytest

from ragstone.answer.quotes import Quote
from ragstone.answer.verify.checks import check
from ragstone.answer.verify.judging import against_features, bearing_features
from ragstone.answer.verify.objections import Objection, ObjectionKind
from ragstone.answer.verify.reading import SentenceReading
from ragstone.core.types import Hit


def read(claim: str, sentence: str, passage: str = "") -> SentenceReading:
    hit = Hit("c", "d", "", "d.md", "", None, sentence, 1.0, {}, {}, 0, len(sentence))
    return SentenceReading(Quote(hit, 0, len(sentence)), 0.5, 0.5, 0.0, check(claim, sentence, "", passage))


@pytest.mark.parametrize("name", ["Update", "Mandate", "Candidate", "Phonenumber"])
def test_a_name_that_holds_a_word_of_a_message_is_only_a_missing_name(name: str) -> None:
    reading = read(f"The {name} service restarts the pump.", "The service restarts the pump.")
    assert reading.findings.reasons == (f"it does not name {name}",)
    assert bearing_features(reading) == [1.0, 0.5, 0.5, 1.0, 0.0]
    assert against_features(reading) == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("claim", "sentence", "passage", "expected"),
    [
        ("The lift stops.", "The lift stops.", "", [0.0, 0.0]),
        ("The lift to Sula stops.", "The lift stops.", "", [1.0, 0.0]),
        ("The fare is 6 crowns.", "The fare is high.", "The fare is 6 crowns.", [0.0, 1.0]),
        ("It opened on 3 May 1974.", "It opened late.", "It opened on 3 May 1974.", [0.0, 1.0]),
    ],
)
def test_what_the_claim_says_beyond_the_sentence_is_a_feature(
    claim: str, sentence: str, passage: str, expected: list[float]
) -> None:
    assert bearing_features(read(claim, sentence, passage))[3:] == expected


@pytest.mark.parametrize(
    ("claim", "sentence", "expected"),
    [
        ("The slip is not open.", "The slip is open.", [1.0, 0.0, 0.0, 0.0]),
        ("Room 4 is heated.", "Every room is heated except Room 4.", [1.0, 0.0, 0.0, 0.0]),
        ("The slip is open.", "The slip is closed.", [0.0, 1.0, 0.0, 0.0]),
        ("Gold is heavier than lead.", "Lead is heavier than gold.", [0.0, 1.0, 0.0, 0.0]),
        ("The fare is 6 crowns.", "The fare is 5 crowns.", [0.0, 0.0, 1.0, 0.0]),
        ("It opened on 3 May 1974.", "It opened on 4 May 1974.", [0.0, 0.0, 1.0, 0.0]),
    ],
)
def test_each_kind_of_conflict_is_a_feature(claim: str, sentence: str, expected: list[float]) -> None:
    assert against_features(read(claim, sentence))[2:] == expected


@pytest.mark.parametrize("kind", ObjectionKind)
def test_every_objection_has_words_of_its_own(kind: ObjectionKind) -> None:
    text = Objection(kind, "Sula").text
    assert text.startswith(("it ", "the source ", "one says "))
    assert text not in {Objection(other, "Sula").text for other in ObjectionKind if other is not kind}
    assert "{" not in text
