from __future__ import annotations

import pytest
from bench.kinds import load_queries

from ragstone.query.kind import NAME_WEIGHT, NAME_WEIGHT_OF_RANKS, Kind, asks_for_names, dense_weight, query_kind

NAMES = [
    "moduleControllerCreate",
    "`moduleControllerCreate`",
    "hook.player.connected",
    "SKU-12345",
    "snake_case_name",
    "UPPER_CASE",
    "ModuleController",
    "HTTPServer",
    "@takaro/helpers",
    "Type::method",
    "v2 iso9001",
    "getPlayer, banPlayer?",
]
QUESTIONS = [
    "",
    "how do cronjobs work",
    "ferry",
    "well-known follow-up",
    "moduleControllerCreate example",
    "2026",
    "What does hook.player.connected do?",
    "Kestrel Sound",
    "NATO",
    "e-mail",
]
KINDS: list[tuple[str, Kind]] = [
    ("SKU-12345", "names"),
    ("iPhone 15 Pro", "product"),
    ("Galaxy S24 Ultra", "product"),
    ("Kestrel Sound", "title"),
    ('"return policy"', "phrase"),
    ("“return policy”", "phrase"),
    ('what does "return policy" mean', "mixed"),
    ("What does hook.player.connected do?", "mixed"),
    ("how do I book?", "question"),
    ("how do cronjobs work", "question"),
    ("Which Plan Includes Backups", "question"),
    ("opening hours on Sunday?", "question"),
    ("return policy", "term"),
    ("the cancellation fee", "term"),
    ("terms of service", "term"),
    ("health and safety", "term"),
    ("two-factor authentication", "term"),
    ("return policy?", "question"),
    ("Statins decrease blood cholesterol.", "description"),
    ("policy for the return of", "description"),
    ("x-admin-token", "names"),
    ("state-of-the-art", "statement"),
    ("romantic perfume", "description"),
    ("nearest doctor", "description"),
    ("quickly dried fruit", "description"),
    ("something for dinner", "description"),
    ("ban player with reason", "description"),
    ("Lack of sleep raises the risk of diabetes in adults", "statement"),
    ("ferry", "statement"),
    ("", "statement"),
    ("?!", "statement"),
    ("\x00 \ud800", "description"),
]


@pytest.mark.parametrize("query", NAMES)
def test_a_query_of_names_is_recognised(query: str) -> None:
    assert asks_for_names(query)


@pytest.mark.parametrize("query", QUESTIONS)
def test_a_question_is_not_a_name(query: str) -> None:
    assert not asks_for_names(query)


@pytest.mark.parametrize(("query", "kind"), KINDS)
def test_the_kind_of_a_query_shows_in_its_form(query: str, kind: Kind) -> None:
    assert query_kind(query) == kind


@pytest.mark.req("R-HYB-18")
@pytest.mark.parametrize("query", ["romantic perfume", "how do I book?", "something for dinner"])
@pytest.mark.parametrize("configured", [0.1, 0.5, 0.7, 0.95])
def test_what_is_asked_or_described_leans_on_meaning(query: str, configured: float) -> None:
    assert configured < dense_weight(query, configured) < 1


@pytest.mark.req("R-HYB-19")
@pytest.mark.parametrize("query", ["SKU-12345", "iPhone 15 Pro", "return policy", '"return policy"'])
@pytest.mark.parametrize("configured", [0.5, 0.7, 0.95])
def test_a_specific_term_leans_on_its_spelling(query: str, configured: float) -> None:
    assert 0 < dense_weight(query, configured) < 0.5 < 1 - dense_weight(query, configured)


@pytest.mark.parametrize("query", ["SKU-12345", "how do I book?", "romantic perfume", '"a b"'])
@pytest.mark.parametrize("configured", [0.0, 1.0])
def test_one_arm_alone_stays_alone(query: str, configured: float) -> None:
    assert dense_weight(query, configured) == configured


def test_a_say_that_is_small_already_is_not_raised_for_a_name() -> None:
    assert dense_weight("SKU-12345", 0.1) == 0.1
    assert dense_weight("SKU-12345", 0.7) == NAME_WEIGHT


@pytest.mark.req("R-HYB-18", "R-HYB-19")
def test_labelled_queries_lean_on_what_their_label_says() -> None:
    wrong = [text for text, label in load_queries() if (dense_weight(text, 0.7) <= 0.5) != (label == "words")]
    assert wrong == ["protect children online"]


def test_fused_ranks_need_less_of_the_other_arm_for_a_name() -> None:
    assert dense_weight("SKU-12345", 0.9, fusion="weighted_rrf") == NAME_WEIGHT_OF_RANKS


@pytest.mark.parametrize(
    ("query", "language", "kind"),
    [
        ("Kündigungsfrist Mietvertrag", "de", "title"),
        ("fristlose Kündigung", "de", "term"),
        ("was man im Winter trägt", "de", "description"),
        ("politique de remboursement", "fr", "description"),
        ("délai préavis", "fr", "term"),
        ("will kaufen ein Haus", "de", "description"),
    ],
)
def test_english_words_say_nothing_about_queries_in_other_languages(query: str, language: str, kind: Kind) -> None:
    assert query_kind(query, language) == kind


def test_a_long_statement_is_weighed_as_configured() -> None:
    assert dense_weight("Lack of sleep raises the risk of diabetes in adults", 0.7) == 0.7


@pytest.mark.parametrize("piece", ["a", '"', "A.", "a1-", "_", "A a ", "? ", "“a"])
def test_a_huge_query_is_read_in_no_time(piece: str) -> None:
    # A pattern that went back over what it has read would not end within the life of this test run.
    assert query_kind(piece * (8000 // len(piece)))


@pytest.mark.parametrize("query", ["a" + "A" * 97 + "%", "AA" + "a" * 90 + "%", "a" * 45 + "_" * 45 + "%"])
def test_a_word_that_is_nearly_a_name_is_read_in_no_time(query: str) -> None:
    assert query_kind(query) == "statement"
