from __future__ import annotations

from ragstone.query.transform.feedback import FEEDBACK_PASSAGES, FEEDBACK_WORDS, feedback

PASSAGES = [
    "The ferry leaves the harbour at noon; ferries sail daily.",
    "A ferry timetable: the harbour office sails through the day.",
    "The harbour master keeps a log.",
    "A museum of clocks.",
]


def test_words_that_the_first_passages_share_are_added() -> None:
    found = feedback("ferry", PASSAGES).words
    assert found[0] == "harbour"
    assert "sail" in found
    assert not {"ferry", "ferries", "the", "museum", "log"} & set(found)


def test_a_few_words_are_enough() -> None:
    text = " ".join(f"word{chr(97 + n)}" for n in range(20))
    assert len(feedback("query", [text, text]).words) == FEEDBACK_WORDS


def test_only_the_first_passages_count() -> None:
    assert feedback("query", ["ponds"] * FEEDBACK_PASSAGES + ["gardens", "gardens"]).words == ("ponds",)


def test_without_passages_there_are_no_words() -> None:
    assert feedback("query", []).words == ()
    assert feedback("query", ["", "\x00", "12 34"]).words == ()


def test_words_of_another_language_are_told_apart_by_its_own_rules() -> None:
    passages = ["Die Fähre und die Häfen sind alt.", "Die Fähren und der Hafen sind neu."]
    assert feedback("Fähre", passages, "de").words == ("häfen",)
