"""Words that a passage says elsewhere are no support, however many of a statement's words it has."""

from __future__ import annotations

import pytest

from ragstone.answer.check import find_objection
from ragstone.answer.verify.fit import find_scattered

HARBOUR = (
    "The old lighthouse was built by Anna Berg in granite.",
    "It was painted white every spring.",
    "The pilots of the harbour live in the village.",
    "They keep a boat ready at the northern pier.",
    "A storm destroyed the southern pier.",
    "The mayor Paul Lind never visited the village.",
)
OF_SOMETHING_ELSE = "the source says this about something else"


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("The old lighthouse was built by Paul Lind in granite.", ["Paul", "Lind"]),
        ("In the storm the pilots keep a boat ready at the northern pier.", ["storm"]),
        ("The mayor painted the old lighthouse white every spring.", ["mayor"]),
        ("Anna Berg built the old lighthouse in granite.", []),
        ("The pilots keep a boat ready at the northern pier.", []),
        ("The old lighthouse was painted white every spring.", []),
        ("The lighthouse was erected by Anna Berg, and a storm destroyed the southern pier.", []),
    ],
)
def test_words_of_other_sentences_are_found(statement: str, words: list[str]) -> None:
    assert [word.text for word in find_scattered(statement, HARBOUR)] == words


def test_a_statement_put_together_from_sentences_that_do_not_belong_together_is_not_supported() -> None:
    passage = " ".join(HARBOUR)
    assert find_objection("In the storm the pilots keep a boat ready.", HARBOUR, passage) == OF_SOMETHING_ELSE
    assert find_objection("The pilots keep a boat ready.", HARBOUR, passage) == ""


def test_a_word_for_which_the_sources_only_have_another_is_not_from_elsewhere() -> None:
    assert find_scattered("The old lighthouse was wrecked in granite.", HARBOUR) == []
    assert [word.text for word in find_scattered("The old lighthouse was destroyed in granite.", HARBOUR)] == [
        "destroyed"
    ]


def test_pronouns_point_back_over_several_sentences() -> None:
    sentences = ["Anna Berg led the works.", "She drew the plans.", "She chose the stone.", "She paid the masons."]
    assert find_scattered("Anna Berg paid the masons.", sentences) == []
    apart = ["Anna Berg led the works.", "The plans were lost.", "The stone was grey.", "The town paid the masons."]
    assert [word.text for word in find_scattered("Anna Berg paid the masons.", apart)] == ["Anna", "Berg"]
