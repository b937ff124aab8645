"""What a customer's message asks for, and which sources can know."""

from __future__ import annotations

from datetime import date

import pytest

from ragstone.agents.service.analysis import analyze_message, find_days
from ragstone.agents.service.settings import AgentConfiguration

WEDNESDAY = date(2026, 11, 18)
BOTH = ("documents", "database")


@pytest.mark.req("R-CSA-05", "R-QRY-15")
@pytest.mark.parametrize(
    ("message", "type_", "intent", "sources"),
    [
        ("What is your return policy?", "general", "overview", ("documents",)),
        ("Tell me about the Oriental Spice perfume", "general", "overview", BOTH),
        ("What services do you offer?", "service", "services", BOTH),
        ("When can I book a massage?", "service", "availability", BOTH),
        ("I want a romantic perfume, what do you recommend?", "product", "recommendation", BOTH),
        ("How much is Oriental Spice?", "product", "price", BOTH),
        ("How do I book?", "service", "question", BOTH),
        ("When is the next free aroma facial?", "service", "availability", BOTH),
        ("When are returns free of charge?", "general", "question", ("documents",)),
        ("What books do you sell?", "product", "overview", BOTH),
        ("Which payment methods do you offer?", "general", "overview", ("documents",)),
        ("something warm for the winter", "product", "recommendation", BOTH),
        ("Do you have anything for a good night's sleep?", "product", "recommendation", BOTH),
        ("Do I have to bring anything for the massage?", "general", "question", BOTH),
        ("Hi there!", "general", "small talk", ()),
        ("Thanks a lot!", "general", "small talk", ()),
        ("Wann kann ich eine Massage buchen?", "general", "question", BOTH),
    ],
)
def test_what_is_asked_and_who_can_know(message: str, type_: str, intent: str, sources: tuple[str, ...]) -> None:
    found = analyze_message(message, AgentConfiguration(), WEDNESDAY)
    assert (found.type, found.intent, found.sources) == (type_, intent, sources)


@pytest.mark.req("R-CSA-29")
def test_a_source_that_is_switched_off_is_not_asked() -> None:
    asked = "Tell me about the Oriental Spice perfume"
    without = AgentConfiguration(enable_document_retrieval=False)
    assert analyze_message(asked, without, WEDNESDAY).sources == ("database",)
    without = AgentConfiguration(enable_database_retrieval=False)
    assert analyze_message(asked, without, WEDNESDAY).sources == ("documents",)


@pytest.mark.req("R-QRY-15")
def test_names_and_days_are_found() -> None:
    found = analyze_message("Is Oriental Spice there on Friday?", AgentConfiguration(), WEDNESDAY)
    assert (found.entities, found.dates) == (("Oriental Spice",), ("on Friday",))
    assert found.days == (date(2026, 11, 20), date(2026, 11, 20))


@pytest.mark.parametrize(
    ("message", "first", "last"),
    [
        ("When can I come?", date(2026, 11, 18), date(2026, 11, 24)),
        ("today", date(2026, 11, 18), date(2026, 11, 18)),
        ("tomorrow", date(2026, 11, 19), date(2026, 11, 19)),
        ("the day after tomorrow", date(2026, 11, 20), date(2026, 11, 20)),
        ("on Wednesday", date(2026, 11, 18), date(2026, 11, 18)),
        ("on Tuesday", date(2026, 11, 24), date(2026, 11, 24)),
        ("next week", date(2026, 11, 23), date(2026, 11, 29)),
        ("this weekend", date(2026, 11, 21), date(2026, 11, 22)),
        ("on 12 December", date(2026, 12, 12), date(2026, 12, 12)),
        ("on January 3", date(2027, 1, 3), date(2027, 1, 3)),
        ("on 2026-12-24", date(2026, 12, 24), date(2026, 12, 24)),
        ("it was on 2020-01-01", date(2026, 11, 18), date(2026, 11, 24)),
        ("on February 30", date(2026, 11, 18), date(2026, 11, 24)),
        ("from tomorrow to 2027-11-30", date(2026, 11, 19), date(2026, 12, 19)),
    ],
)
def test_the_days_that_are_asked_about(message: str, first: date, last: date) -> None:
    assert find_days(message, WEDNESDAY) == (first, last)
