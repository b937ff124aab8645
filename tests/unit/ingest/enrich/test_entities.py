from __future__ import annotations

import pytest
from tests.unit.ingest.enrich.texts import reading

from ragstone.ingest.enrich.describe import MAX_BYTES
from ragstone.ingest.enrich.entities import find_entities

NOBODY: dict[str, list[str]] = {}


def names(kind: str, *parts: str, language: str = "en") -> list[str]:
    return find_entities(reading(*parts, language=language), 20).get(kind, [])


@pytest.mark.req("R-NRM-07")
def test_people_organizations_and_technologies() -> None:
    text = (
        "The timetable was drawn up by Dr. Ingrid Solberg of Kestrel Sound Ferries. "
        "It is kept in PostgreSQL and served by a small program that Tomás Arden wrote at the University of Oslo."
    )
    assert find_entities(reading(text), 20) == {
        "people": ["Ingrid Solberg", "Tomás Arden"],
        "organizations": ["Kestrel Sound Ferries", "University of Oslo"],
        "technologies": ["PostgreSQL"],
    }


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("We asked Mr. Hartley about it.", ["Hartley"]),
        ("We asked Professor Anna Lindqvist about it.", ["Anna Lindqvist"]),
        ("Maria Silva joined the board.", ["Maria Silva"]),
        ("Yesterday Maria Silva joined the board.", ["Maria Silva"]),
        ("The sonata by Ludwig van Beethoven is long.", ["Ludwig van Beethoven"]),
        ("It was signed by Ursula von der Heide.", ["Ursula von der Heide"]),
        ("In the end Quentin Farrow said no.", ["Quentin Farrow"]),
        ("The letter is from Grace Lund.", ["Grace Lund"]),
    ],
)
def test_who_is_a_person(text: str, people: list[str]) -> None:
    assert names("people", text) == people


@pytest.mark.parametrize(
    "text",
    [
        "Will Smart Pumps stop at night?",
        "The office is in Robert Street.",
        "The John Arden Prize went to nobody.",
        "New Haven said the harbour is closed.",
        "However Nobody Said Anything About It Today",
        "The Annual General Meeting is in May.",
        "Ada wrote it.",
        "She won the Dr. Solberg Prize.",
        "METHODS We asked everybody.",
    ],
)
def test_who_is_not(text: str) -> None:
    assert names("people", text) == []


@pytest.mark.parametrize(
    ("text", "organizations"),
    [
        ("The hull was built by Nordlicht GmbH in spring.", ["Nordlicht GmbH"]),
        ("The hull was built by Smith & Sons Ltd.", ["Smith & Sons Ltd"]),
        ("The Ministry of the Interior agreed.", ["Ministry of the Interior"]),
        ("A study by the World Health Organization says so.", ["World Health Organization"]),
        ("Both NASA and the Bank of Arden agreed.", ["NASA", "Bank of Arden"]),
        ("Ask the Company or the Institute.", []),
        ("It is a bank, a university and an institute.", []),
    ],
)
def test_what_is_an_organization(text: str, organizations: list[str]) -> None:
    assert names("organizations", text) == organizations


@pytest.mark.parametrize(
    ("text", "technologies"),
    [
        ("It runs on Kubernetes and Redis, with C++ inside.", ["Kubernetes", "Redis", "C++"]),
        ("Since Tidewater 2.4 the log is smaller.", ["Tidewater"]),
        ("The bus speaks the XMPP protocol.", ["XMPP"]),
        ("Call `sailingSearch` or list_sailings by HTTP.", ["sailingSearch", "list_sailings", "HTTP"]),
        ("It is written in Go and stored in SQLite.", ["Go", "SQLite"]),
        ("They go by Rust and by Spark.", []),
        ("Go to the server and open SQLite.", ["SQLite"]),
        ("See Section 3.2, Table 4.1 and May 2.5.", []),
        ("The odds ratio was OR 1.5 with CI 0.95 and EUR 2.50.", []),
        ("General MacArthur and Mrs. DeVries met fromGossypium.", []),
    ],
)
def test_what_is_a_technology(text: str, technologies: list[str]) -> None:
    assert names("technologies", text) == technologies


def test_german_nouns_are_no_names() -> None:
    text = "Frau Weber sprach mit Anna Schmidt Verträge der Nordlicht GmbH durch. Die Große Freiheit sagte nichts."
    found = find_entities(reading(text, language="de"), 20)
    assert found == {"people": ["Weber", "Anna Schmidt"], "organizations": ["Nordlicht GmbH"], "technologies": []}


def test_the_most_named_come_first_and_the_limit_holds_for_each_kind() -> None:
    text = "Redis is quick. Kafka and Redis and Docker are there. Docker and Redis run."
    assert find_entities(reading(text), 2)["technologies"] == ["Redis", "Docker"]


@pytest.mark.parametrize(("text", "limit"), [("nothing to see here", 20), ("Redis is quick.", 0)])
def test_nothing_found_is_nothing(text: str, limit: int) -> None:
    assert find_entities(reading(text), limit) == NOBODY


def test_names_cannot_fill_the_metadata() -> None:
    people = " ".join(f"We met Dr. Ü{'ü' * 40}{chr(0x430 + n % 30)}{n} there." for n in range(200))
    found = names("people", people)
    assert len(found) == 20
    many = find_entities(reading(people), 200)["people"]
    assert 0 < len(many) < 200
    assert sum(len(name) for name in many) < MAX_BYTES
