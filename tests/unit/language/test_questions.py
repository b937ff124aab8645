from __future__ import annotations

import pytest

from ragstone.language.questions import decompose, split_question

COMPOUND = {
    "What is a hook? How do cronjobs work?": ("What is a hook", "How do cronjobs work"),
    "how do I install modules and how do I write a command": ("how do I install modules", "how do I write a command"),
    "What is a role, and who can assign it?": ("What is a role", "who can assign it"),
    "opening hours; parking nearby": ("opening hours", "parking nearby"),
    "What is the difference between filters and searches in the API?": ("filters", "searches in the API"),
    "compare hooks with cronjobs": ("hooks", "cronjobs"),
    "Chroma vs. Qdrant": ("Chroma", "Qdrant"),
    "BM25 compared to vector search": ("BM25", "vector search"),
}
SIMPLE = [
    "",
    "how do cronjobs work",
    "salt and pepper",
    "terms and conditions of sale",
    "difference between",
    "What is a hook?",
    "What? Why?",
    "research and development spending",
]


@pytest.mark.req("R-QRY-11")
@pytest.mark.parametrize("query", COMPOUND)
def test_a_compound_question_falls_apart(query: str) -> None:
    assert decompose(query) == COMPOUND[query]


@pytest.mark.parametrize("query", SIMPLE)
def test_one_question_stays_whole(query: str) -> None:
    assert decompose(query) == ()


def test_there_are_at_most_four_parts() -> None:
    assert decompose(" ".join(f"What is number {n}?" for n in range(9))) == tuple(
        f"What is number {n}" for n in range(4)
    )


@pytest.mark.parametrize("piece", ["? ", " and ", ", and ", "; ", " vs ", "difference between a "])
def test_a_huge_query_is_left_alone(piece: str) -> None:
    assert decompose(piece * 2000) == ()


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        (("When was Harbour Line founded", "who runs it"), "who runs Harbour Line"),
        (("When does the museum open", "what does it cost"), "what does the museum cost"),
        (("Where is the east slip", "is it open on Sundays"), "is the east slip open on Sundays"),
        (("How do I reset the pump", "what happens when it fails"), "what happens when the pump fails"),
        (("What does the council do", "who are its members"), "who are the council's members"),
        (("When did the Eider enter service", "who built her"), "who built Eider"),
        (("In which year was the slip built", "who owns it"), "who owns the slip"),
        (("What is the fare to Sula", "how long does the crossing take"), "how long does the crossing take"),
        (("Why does that happen", "who decides it"), "who decides it"),
    ],
)
def test_what_a_word_points_to_is_said(parts: tuple[str, str], whole: str) -> None:
    assert split_question(" and ".join(parts)) == (parts[0], whole)


@pytest.mark.parametrize("question", ["Acme versus Borealis", "Is it open or is it closed?", "When does it open?"])
def test_sides_of_one_question_are_not_questions(question: str) -> None:
    assert split_question(question) == ()
