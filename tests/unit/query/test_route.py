from __future__ import annotations

import pytest

from ragstone.query.routing.analyse import Route, route


@pytest.mark.req("R-MOD-10", "R-MOD-12")
@pytest.mark.parametrize(
    "query",
    [
        "hello",
        "Hi there!",
        "Good morning, how are you today?",
        "thanks a lot",
        "ok, thank you",
        "Who are you?",
        "tell me a joke",
        "bye",
        "why?",
        "tell me more",
        "Explain that.",
        "what do you mean?",
        "2 + 2",
        "2+2=",
        "what is 17 * (3 + 4)?",
        "What's 10/4",
        "how much is 15 % 4",
    ],
)
def test_what_needs_no_search(query: str) -> None:
    assert route(query, web=True).kind == "none"


@pytest.mark.parametrize(
    "query",
    [
        "hello world program in Rust",
        "thanks to whom was the bridge built",
        "why does the pump fail",
        "more than one warehouse",
        "ok button colour",
        "yes bank account opening",
        "2024-01-15",
        "2024 - 2025",
        "555-1234",
        "+49 30 1234",
        "SKU-12345",
        "C++",
        "1.2.3",
        "5/8",
        "what is 42",
        "section 2",
        "x" * 200,
        "?",
    ],
)
def test_what_looks_like_it_but_is_a_search(query: str) -> None:
    assert route(query).kind == "retrieve"


TIMELY = [
    "latest release of the driver",
    "weather in Lisbon",
    "What is the price now?",
    "news about the harbour",
    "exchange rate euro dollar",
    "who plays tonight",
    "current price of copper",
    "What’s happening this week",
]


@pytest.mark.req("R-MOD-10")
@pytest.mark.parametrize("query", TIMELY)
def test_what_changes_from_day_to_day_is_asked_of_the_web_too(query: str) -> None:
    assert route(query, web=True).kind == "web"
    assert route(query, web=False).kind == "retrieve"


@pytest.mark.parametrize(
    "query", ["electric current in a wire", "is it known how cells divide", "newsletter archive", "price list of 2019"]
)
def test_what_does_not(query: str) -> None:
    assert route(query, web=True).kind == "retrieve"


@pytest.mark.req("R-MOD-12")
@pytest.mark.parametrize(
    ("query", "mode"),
    [
        ("opening hours", "fast"),
        ("how do I reset my password", "fast"),
        ("which valve controls the flow of cooling water to the second turbine", None),
        ("compare the Basic and the Pro plan", "thorough"),
        ("Where do I park? And where is the entrance?", "thorough"),
        ("how is the pump started and what must be checked before", "thorough"),
        (" ".join(["word"] * 30), "thorough"),
    ],
)
def test_how_deep(query: str, mode: str | None) -> None:
    found = route(query)
    assert (found.kind, found.mode) == ("retrieve", mode)


@pytest.mark.parametrize(
    "text", ["1" * 8000, "1+" * 4000, "hi " * 2600, "(" * 8000, "what is " + "1 " * 3900, "current " * 1000]
)
def test_hostile_queries_are_routed_like_others(text: str) -> None:
    assert isinstance(route(text, web=True), Route)
