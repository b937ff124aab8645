from __future__ import annotations

from collections.abc import Callable

import pytest

from ragstone.answer.research.plan import find_facets, split_topic
from ragstone.core.types import Hit

MakeHit = Callable[..., Hit]


def test_headings_count_more_than_names_and_names_more_than_keywords(make_hit: MakeHit) -> None:
    hit = make_hit(
        "", section="Ferries > Lifeboats", metadata={"entities": {"people": ["Ingrid Sele"]}, "keywords": ["rope"]}
    )
    assert find_facets("ferry safety", [hit], [], 4) == [
        "ferry safety Lifeboats",
        "ferry safety Ingrid Sele",
        "ferry safety rope",
    ]


def test_a_phrase_that_several_passages_use_comes_before_one_of_a_single_passage(make_hit: MakeHit) -> None:
    hits = [
        make_hit("The bilge pump is loud. The anchor chain is long.", "a"),
        make_hit("A bilge pump is checked.", "b"),
    ]
    assert find_facets("ferries", hits, [], 1) == ["ferries bilge pump"]


def test_what_the_topic_or_an_earlier_query_says_is_not_asked_again(make_hit: MakeHit) -> None:
    hit = make_hit("", metadata={"keywords": ["Ferry", "ropes", "anchors"]})
    assert find_facets("ferries", [hit], ["ferries rope"], 4) == ["ferries anchors"]


@pytest.mark.parametrize("metadata", [{"keywords": "rope"}, {"keywords": [3, None]}, {"entities": ["x"]}])
def test_metadata_of_another_shape_is_passed_over(make_hit: MakeHit, metadata: dict[str, object]) -> None:
    assert find_facets("ferries", [make_hit("", metadata=metadata)], [], 4) == []


def test_a_huge_heading_and_a_huge_topic_make_a_short_query(make_hit: MakeHit) -> None:
    (query,) = find_facets("ferry " * 2000, [make_hit("", section="lifeboat " * 5000)], [], 1)
    assert len(query) <= 400


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("hooks and cronjobs", ["hooks", "cronjobs"]),
        ("hooks, commands; cronjobs", ["hooks", "commands", "cronjobs"]),
        ("kubernetes pod eviction", ["kubernetes pod", "pod eviction"]),
        ("pod eviction", ["pod", "eviction"]),
        ("eviction", []),
        ("", []),
    ],
)
def test_a_topic_of_which_nothing_was_found_is_asked_for_by_its_parts(topic: str, expected: list[str]) -> None:
    assert split_topic(topic, [], 4) == expected


def test_parts_are_asked_once() -> None:
    assert split_topic("hooks and cronjobs", ["the hooks"], 4) == ["cronjobs"]
