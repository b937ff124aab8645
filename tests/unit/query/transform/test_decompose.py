from __future__ import annotations

import pytest

from ragstone.query.transform.decompose import decompose

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
