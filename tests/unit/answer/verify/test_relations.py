"""Verbs with the words in their roles, and statements that exchange them."""

from __future__ import annotations

import pytest

from ragstone.answer.verify.additions import adds_certainty
from ragstone.answer.verify.relations import read_relations
from ragstone.answer.verify.roles import (
    is_cause_changed,
    is_compared_otherwise,
    is_converse,
    is_order_reversed,
    is_role_changed,
    turns_degree,
)


def roles(text: str, verb: str) -> dict[str, set[str]]:
    (relation,) = [relation for relation in read_relations(text) if relation.verb == verb]
    return {role: {word.text for word in words} for role, words in relation.roles.items()}


@pytest.mark.parametrize(
    ("text", "verb", "found"),
    [
        ("Holt built the bridge.", "built", {"subject": {"Holt"}, "object": {"bridge"}}),
        ("The bridge was built by Maria Holt.", "built", {"subject": {"Maria", "Holt"}, "object": {"bridge"}}),
        ("The bridge, built by Holt, fell.", "built", {"subject": {"Holt"}, "object": {"bridge"}}),
        ("Holt, who lived in Oslo, built it.", "built", {"subject": {"Holt"}}),
        ("Holt (later mayor of Oslo) repaired the bridge.", "repaired", {"subject": {"Holt"}, "object": {"bridge"}}),
        ("The man holding the rope was injured by a stone.", "injured", {"subject": {"stone"}, "object": {"man"}}),
        ("Code that stores data was written by Holt.", "written", {"subject": {"Holt"}, "object": {"Code"}}),
        ("They moved the site from Oslo to Bergen.", "moved", {"object": {"site"}, "from": {"Oslo"}, "to": {"Bergen"}}),
        ("Holt wrote the book and sold it to Lind.", "sold", {"subject": {"Holt"}, "to": {"Lind"}}),
        ("In May the crew of the boat paid Holt.", "paid", {"subject": {"crew", "boat"}, "object": {"Holt"}}),
        ("When Holt left Oslo, Lind and Moe painted it.", "painted", {"subject": {"Lind", "Moe"}}),
        ("Two boats sank, and Holt phoned the port.", "phoned", {"subject": {"Holt"}, "object": {"port"}}),
    ],
)
def test_words_have_their_roles(text: str, verb: str, found: dict[str, set[str]]) -> None:
    assert roles(text, verb) == found


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("Holt did not build it.", True),
        ("No boat was built there.", True),
        ("Holt refused to build it.", True),
        ("Holt built nothing.", True),
        ("Holt built it, not Lind.", False),
    ],
)
def test_a_verb_is_denied_by_the_words_around_it(text: str, denied: bool) -> None:
    assert [relation.denied for relation in read_relations(text) if relation.verb.startswith("buil")] == [denied]


SOURCES = [
    "Clock synchronization was needed for the routing protocol.",
    "Illustra (later merged into Informix, which is owned by IBM) picked up the code.",
    "A bomb was thrown into the police ranks, who opened fire on the crowd.",
    "The pump, led by no valve, is not opened by the guard.",
    "Local settings override global settings, and global settings extend the defaults.",
]


@pytest.mark.parametrize(
    ("statement", "changed"),
    [
        ("The routing protocol was needed for clock synchronization.", True),
        ("Informix later merged into Illustra.", True),
        ("Informix picked up the code.", True),
        ("The crowd opened fire on the police.", True),
        ("The guard opened the pump.", True),
        ("Global settings override local settings.", True),
        ("Local settings override global settings.", False),
        ("The code was picked up by Illustra.", False),
        ("The police opened fire on the crowd.", False),
        ("The routing protocol needed clock synchronization.", False),
        ("Illustra merged into Informix.", False),
    ],
)
def test_exchanged_roles_are_found(statement: str, changed: bool) -> None:
    assert is_role_changed(statement, SOURCES) is changed


@pytest.mark.parametrize(
    ("statement", "source"),
    [
        ("Multics was a tool written for runoff.", "A tool called runoff was written for Multics by Holt."),
        (
            "Anna Berg teamed with Bob Moe to begin the works.",
            "Project Dawn teamed with Eva Falk and Anna Berg to begin the works. Bob Moe wrote a tool.",
        ),
        ("The runoff tool was written for Unix.", "The runoff tool was written for Multics; Unix has many tools."),
    ],
)
def test_what_something_is_done_for_and_with_whom_is_a_role(statement: str, source: str) -> None:
    sources = source.replace(". ", ".\n").split("\n")
    assert is_role_changed(statement, sources)
    assert not is_role_changed(sources[0], sources)


def test_a_deal_is_told_from_both_sides() -> None:
    assert is_converse("Lind bought the boat.", "Holt sold the boat to Lind.")
    assert not is_converse("Lind bought the boat.", "Lind sold the boat to Holt.")


@pytest.mark.parametrize(
    ("statement", "source", "changed"),
    [
        ("Stars have collapsed because they are hot.", "Stars are hot because they have collapsed.", True),
        ("Stars are hot because they have collapsed.", "Stars are hot because they have collapsed.", False),
        ("The issues arose because it had been delayed.", "It was delayed by a week when a few issues arose.", True),
        ("The firm paid him because logging was added.", "The firm paid him. This enabled logging.", True),
    ],
)
def test_cause_and_effect_may_not_be_exchanged(statement: str, source: str, changed: bool) -> None:
    assert is_cause_changed(statement, source.replace(". ", ".\n").split("\n")) is changed


@pytest.mark.parametrize(
    ("statement", "reversed_"),
    [
        ("The guard spoke before the bell rang.", True),
        ("The bell rang before the guard spoke.", False),
        ("A week before the vote, letters were sent.", False),
        ("A week before letters were sent, the vote was held.", True),
    ],
)
def test_order_may_not_be_reversed(statement: str, reversed_: bool) -> None:
    sentences = ["The bell rang.", "Then the guard spoke.", "One week before the vote, we send letters."]
    assert is_order_reversed(statement, sentences) is reversed_


def test_what_is_done_before_is_told_from_what_it_is_done_to() -> None:
    source = "Files must be added with the tool before they are modified."
    assert is_order_reversed("With the tool, files may be modified before they are added to the patch.", [source])
    assert not is_order_reversed("With the tool, files are added to the patch before they are modified.", [source])


@pytest.mark.parametrize(
    ("claim", "source", "added"),
    [
        ("It must be cleaned.", "It is cleaned.", True),
        ("It must be cleaned.", "It should be cleaned.", False),
        ("It is certainly old.", "It is probably old.", True),
        ("Exactly one was hurt.", "At least one was hurt.", True),
        ("It is old.", "It is probably old.", False),
    ],
)
def test_certainty_may_not_be_added(claim: str, source: str, added: bool) -> None:
    assert adds_certainty(claim, source) is added


@pytest.mark.parametrize(
    ("claim", "source", "turned"),
    [
        ("Less massive stars burn more rapidly.", "More massive stars burn more rapidly.", True),
        ("Groups with many households and few houses.", "Groups with few households and many houses.", True),
        ("More massive stars burn.", "The most massive stars burn.", False),
        ("Less massive stars burn.", "Stars burn.", False),
    ],
)
def test_more_of_something_is_not_less_of_it(claim: str, source: str, turned: bool) -> None:
    assert turns_degree(claim, source) is turned


@pytest.mark.parametrize(
    ("claim", "otherwise"),
    [
        ("The ferry is slower than the tram.", True),
        ("The ferry is faster than the bus.", True),
        ("The ferry is much faster than the tram.", False),
        ("The ferry is slower than the bus.", False),
        ("The ferry is slower than the train.", False),
        ("The ferry is other than the tram.", False),
    ],
)
def test_each_of_several_comparisons_has_its_own_direction(claim: str, otherwise: bool) -> None:
    assert is_compared_otherwise(claim, "It is a little slower than the bus, but faster than the tram.") is otherwise
