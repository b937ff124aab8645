from __future__ import annotations

import pytest

from ragstone.query.context import Variants
from ragstone.query.transform.proposals import MOST_VARIANTS, MOST_WORDS, Proposal, combine


def test_without_a_proposal_the_query_stays_as_it_is() -> None:
    assert combine("Some Query?", []) == Variants.of("Some Query?")


def test_every_kind_of_proposal_has_its_place() -> None:
    made = combine(
        "query",
        [
            Proposal(instead="fuller query"),
            Proposal(also=("other",)),
            Proposal(meaning=("A passage.",)),
            Proposal(words=("word",)),
        ],
        ["hyde: out of time"],
    )
    assert made == Variants(
        query="query",
        rewritten="fuller query word | other | A passage.",
        dense=("fuller query", "other", "A passage."),
        lexical=("fuller query word", "other"),
        notes=("hyde: out of time",),
    )


def test_words_that_are_there_already_are_not_added_twice() -> None:
    made = combine("Role based access", [Proposal(words=("based ACCESS", "RBAC", "rbac"))])
    assert made.lexical == ("Role based access rbac",)
    assert made.dense == ("Role based access",)


def test_the_same_text_is_searched_for_once() -> None:
    made = combine("Query", [Proposal(also=("query", "other", "Other", " "))])
    assert made.dense == made.lexical == ("Query", "other")


def test_a_proposal_that_repeats_the_query_leaves_it_in_the_first_place() -> None:
    others = tuple(f"text {n}" for n in range(MOST_VARIANTS))
    made = combine("Query", [Proposal(also=(*others, "query"))], clean=str.lower)
    assert made.dense == ("query", *others[:-1])
    assert made.lexical == ("Query", *others[:-1])
    assert made.rewritten == " | ".join(made.lexical)


@pytest.mark.req("R-QRY-04")
def test_there_are_one_to_five_variants() -> None:
    many = tuple(f"text {n}" for n in range(50))
    made = combine("query", [Proposal(also=many, meaning=many, words=many)])
    assert len(made.dense) == len(made.lexical) == MOST_VARIANTS == 5
    assert made.dense[0] == "query"
    assert made.lexical[0] == " ".join(("query", *many[:MOST_WORDS]))


def test_what_is_embedded_is_cleaned_and_what_is_matched_by_word_is_not() -> None:
    made = combine("SOME Query", [Proposal(also=("OTHER",))], clean=str.lower)
    assert made.dense == ("some query", "other")
    assert made.lexical == ("SOME Query", "OTHER")
