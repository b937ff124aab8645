"""What a customer's message asks for, and which sources can know."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

import pytest

from ragstone.agents.service.analysis import analyze_message, find_days
from ragstone.agents.service.settings import AgentConfiguration

WEDNESDAY = date(2026, 11, 18)
NOON = datetime.combine(WEDNESDAY, time(12), UTC)
CALIFORNIA, AUCKLAND = "America/Los_Angeles", "Pacific/Auckland"
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
    found = analyze_message(message, AgentConfiguration(), NOON)
    assert (found.type, found.intent, found.sources) == (type_, intent, sources)


@pytest.mark.req("R-CSA-29")
def test_a_source_that_is_switched_off_is_not_asked() -> None:
    asked = "Tell me about the Oriental Spice perfume"
    without = AgentConfiguration(enable_document_retrieval=False)
    assert analyze_message(asked, without, NOON).sources == ("database",)
    without = AgentConfiguration(enable_database_retrieval=False)
    assert analyze_message(asked, without, NOON).sources == ("documents",)


@pytest.mark.req("R-QRY-15")
def test_names_and_days_are_found() -> None:
    found = analyze_message("Is Oriental Spice there on Friday?", AgentConfiguration(), NOON)
    assert (found.entities, found.dates) == (("Oriental Spice",), ("on Friday",))
    assert found.days_in("UTC") == (date(2026, 11, 20), date(2026, 11, 20))


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


@pytest.mark.parametrize(
    ("message", "asked_at", "zone", "first", "last"),
    [
        # The evening of Monday in California is Tuesday in UTC, and the morning of Tuesday in Auckland is Monday.
        ("today", "2030-01-08T02:00Z", CALIFORNIA, "2030-01-07", "2030-01-07"),
        ("tomorrow", "2030-01-08T02:00Z", CALIFORNIA, "2030-01-08", "2030-01-08"),
        ("today", "2030-01-07T21:00Z", AUCKLAND, "2030-01-08", "2030-01-08"),
        ("tomorrow", "2030-01-07T21:00Z", AUCKLAND, "2030-01-09", "2030-01-09"),
        ("When can I come?", "2030-01-07T21:00Z", AUCKLAND, "2030-01-08", "2030-01-14"),
        # Half an hour before midnight in winter, and half an hour after it in summer.
        ("today", "2030-01-08T07:30Z", CALIFORNIA, "2030-01-07", "2030-01-07"),
        ("today", "2030-07-09T07:30Z", CALIFORNIA, "2030-07-09", "2030-07-09"),
        ("today", "2030-01-07T11:30Z", AUCKLAND, "2030-01-08", "2030-01-08"),
        ("today", "2030-07-08T11:30Z", AUCKLAND, "2030-07-08", "2030-07-08"),
        ("today", "2030-01-07T18:29Z", "Asia/Kolkata", "2030-01-07", "2030-01-07"),
        ("today", "2030-01-07T18:30Z", "Asia/Kolkata", "2030-01-08", "2030-01-08"),
        # The evening of Sunday in California, and the morning of Monday in Auckland.
        ("this week", "2030-01-14T02:00Z", CALIFORNIA, "2030-01-13", "2030-01-13"),
        ("next week", "2030-01-14T02:00Z", CALIFORNIA, "2030-01-14", "2030-01-20"),
        ("this weekend", "2030-01-14T02:00Z", CALIFORNIA, "2030-01-13", "2030-01-13"),
        ("next Monday", "2030-01-14T02:00Z", CALIFORNIA, "2030-01-14", "2030-01-14"),
        ("on Sunday", "2030-01-14T02:00Z", CALIFORNIA, "2030-01-13", "2030-01-13"),
        ("this week", "2030-01-13T21:00Z", AUCKLAND, "2030-01-14", "2030-01-20"),
        ("on Sunday", "2030-01-13T21:00Z", AUCKLAND, "2030-01-20", "2030-01-20"),
        # The last evening of 2029 in California, and the first morning of 2030 in Auckland.
        ("on December 31", "2030-01-01T02:00Z", CALIFORNIA, "2029-12-31", "2029-12-31"),
        ("on January 1", "2030-01-01T02:00Z", CALIFORNIA, "2030-01-01", "2030-01-01"),
        ("on December 31", "2029-12-31T21:00Z", AUCKLAND, "2030-12-31", "2030-12-31"),
        ("on January 1", "2029-12-31T21:00Z", AUCKLAND, "2030-01-01", "2030-01-01"),
        # A date that is written out is the same everywhere.
        ("on 2030-01-09", "2030-01-08T02:00Z", CALIFORNIA, "2030-01-09", "2030-01-09"),
        ("on 2030-01-09", "2030-01-08T02:00Z", AUCKLAND, "2030-01-09", "2030-01-09"),
        ("on 2030-01-07", "2030-01-08T02:00Z", CALIFORNIA, "2030-01-07", "2030-01-07"),
    ],
)
def test_days_are_those_of_the_zone_at_the_moment_of_the_question(
    message: str, asked_at: str, zone: str, first: str, last: str
) -> None:
    found = analyze_message(message, AgentConfiguration(), datetime.fromisoformat(asked_at))
    assert found.days_in(zone) == (date.fromisoformat(first), date.fromisoformat(last))
