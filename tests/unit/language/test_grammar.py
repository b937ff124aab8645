"""Words of a sentence by their form, and the verb of a clause."""

from __future__ import annotations

import pytest

from ragstone.language.grammar import Token, Verb, first_verb, is_known_verb, is_past_form, tokenize


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("can't", "auxiliary"),
        ("The", "determiner"),
        ("they", "pronoun"),
        ("them", "object"),
        ("with", "preposition"),
        ("because", "link"),
        ("quickly", "adverb"),
        ("12", "number"),
        ("went", "past"),
        ("opened", "participle"),
        ("boats", "s"),
        ("gas", "word"),
        ("glass", "word"),
        ("Sula", "name"),
        ("May", "name"),
    ],
)
def test_kinds_of_words(word: str, kind: str) -> None:
    assert tokenize(f"x {word}")[1].kind == kind


def test_the_first_word_is_no_name() -> None:
    assert tokenize("Sula sails.")[0] == Token("sula", 0, 4, "word")


@pytest.mark.parametrize(
    "word",
    [
        "carries",
        "carried",
        "stopped",
        "sails",
        "unifies",
        "produced",
        "includes",
        "overrides",
        "clarified",
        "initialize",
    ],
)
def test_verbs_are_known_in_all_their_forms(word: str) -> None:
    assert is_known_verb(word)


def test_a_noun_is_no_known_verb() -> None:
    assert not is_known_verb("harbour")


@pytest.mark.parametrize(
    ("clause", "verb", "form", "sure"),
    [
        ("The pump stops", "stops", "s", True),
        ("The master wasn't there", "wasn't", "auxiliary", True),
        ("The crew went home", "went", "past", True),
        ("They opened it", "opened", "participle", True),
        ("The slip opened", "opened", "participle", True),
        ("The boats sail", "sail", "base", True),
        ("The boats frob", "frob", "base", False),
        ("The office frobs ink", "frobs", "s", True),
        ("The office frobs quickly", "frobs", "s", False),
        ("It frobs the boat", "frobs", "s", True),
        ("They frob", "frob", "base", True),
        ("The harbour", None, None, None),
        ("To be open", None, None, None),
        ("The dues of boats are paid and rise", "are", "auxiliary", True),
        ("in boats", None, None, None),
    ],
)
def test_the_verb_of_a_clause(clause: str, verb: str | None, form: str | None, sure: bool | None) -> None:
    found = first_verb(tokenize(clause))
    assert (found and found.token.word, found and found.form, found and found.sure) == (verb, form, sure)


@pytest.mark.parametrize(
    ("clause", "verb", "sure"),
    [
        ("often stops", "stops", True),
        ("opened in May", "opened", True),
        ("opened doors", "opened", False),
        ("prints pages", "prints", True),
        ("frobs two offices", "frobs", True),
        ("sail home", "sail", True),
        ("sailing home", None, None),
        ("", None, None),
    ],
)
def test_a_verb_may_begin_a_clause_that_shares_a_subject(clause: str, verb: str | None, sure: bool | None) -> None:
    found = first_verb(tokenize(clause), shared=True)
    assert (found and found.token.word, found and found.sure) == (verb, sure)


def _verb(clause: str) -> Verb:
    found = first_verb(tokenize(clause))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("clause", "other", "agrees"),
    [
        ("It sails", "It stops", True),
        ("It sails", "It must wait", True),
        ("It sails", "They sail", False),
        ("It sails", "It sailed", True),
        ("It sailed", "It went", True),
        ("It sailed", "It was late", True),
        ("It sailed", "It stops", False),
        ("They sail", "They stop", True),
        ("They sail", "They must wait", True),
        ("They sail", "They are late", True),
        ("They sail", "It stops", False),
        ("It must sail", "It stops", True),
    ],
)
def test_verbs_that_can_share_a_subject(clause: str, other: str, agrees: bool) -> None:
    assert _verb(clause).agrees_with(_verb(other)) is agrees


def test_verbs_speak_of_the_past_or_not() -> None:
    assert _verb("It sailed").same_time(_verb("It was late"))
    assert not _verb("It sailed").same_time(_verb("It sails"))


@pytest.mark.parametrize(
    ("word", "past"), [("opened", True), ("written", True), ("took", True), ("need", False), ("red", False)]
)
def test_forms_of_the_past_are_known(word: str, past: bool) -> None:
    assert is_past_form(word) is past
