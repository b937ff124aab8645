"""Questions, passages and replies that are made to take long: read beside the event loop, and only so far."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ragstone.answer import ask, budget, check, contradict, extract
from ragstone.answer.ask import Answerer
from ragstone.answer.budget import StepBudget, count_steps, cut_passages
from ragstone.core.answers import Answer
from ragstone.core.types import Hit
from ragstone.language.negation import find_figures
from ragstone.settings.answers import AnswerSettings
from ragstone.testing.fakes import FakeEmbedder, FakeLLM

MakeHit = Callable[..., Hit]
FERRY = "The ferry to the island leaves at nine."
QUESTION = "When does the ferry to the island leave?"
WAIT = 30.0
"""Seconds: a loop that is held could not set the event."""


async def answer(hits: Sequence[Hit], *replies: str, question: str = QUESTION, **settings: Any) -> Answer:
    llm = FakeLLM(replies) if replies else None
    return await Answerer(FakeEmbedder(), llm, AnswerSettings(**settings)).answer(question, hits)


@pytest.mark.parametrize(
    ("module", "function", "reply"),
    [
        (extract, "find_units", ""),
        (extract, "choose", ""),
        (ask, "pack", f"{FERRY[:-1]} [1]."),
        (check, "find_grounds", f"{FERRY[:-1]} [1]."),
        (check, "check_explicitly", f"{FERRY[:-1]} [1]."),
        (contradict, "_find_others", ""),
        (contradict, "_find_near", ""),
        (contradict, "_find_disagreement", ""),
    ],
)
async def test_the_event_loop_goes_on_while_texts_are_compared(
    make_hit: MakeHit, monkeypatch: pytest.MonkeyPatch, module: Any, function: str, reply: str
) -> None:
    original, loop = getattr(module, function), asyncio.get_running_loop()
    seen: list[bool] = []

    def wait_for_the_loop(*arguments: Any, **named: Any) -> Any:
        turned = threading.Event()
        loop.call_soon_threadsafe(turned.set)
        seen.append(turned.wait(WAIT))
        return original(*arguments, **named)

    monkeypatch.setattr(module, function, wait_for_the_loop)
    hits = [make_hit(FERRY), make_hit("The ferry to the island never leaves at nine.", document="d2")]
    made = await answer(hits, *([reply] if reply else []))
    assert made.status == "answered"
    assert seen != []
    assert all(seen)


async def test_passages_are_read_up_to_a_number_of_characters(make_hit: MakeHit) -> None:
    long = make_hit(f"{FERRY} " + "Nothing else is known about it at all. " * 5_000)
    made = await answer([long, make_hit("Another ferry leaves at ten.", document="d2")])
    assert made.answer.startswith(FERRY)
    assert made.degraded == (
        "answer: 2 passages were not read to the end: together they have more than 60,000 characters",
    )


def test_the_passages_that_come_first_are_kept_whole(make_hit: MakeHit) -> None:
    hits = [make_hit("a" * 40, document=name) for name in ("d1", "d2", "d3")]
    kept, lost = cut_passages(hits, 60)
    assert [hit.text for hit in kept] == ["a" * 40, "a" * 20]
    assert lost == 2
    assert cut_passages(hits, 120) == (hits, 0)


MADE_TO_HURT = {
    "numbers": " and ".join(f"{number} euros" for number in range(1_000)),
    "dates": ", ".join(f"{1 + day % 28} May {1900 + day}" for day in range(700)),
    "names": " ".join(f"Anna Bert{number} Carla" for number in range(600)),
    "clauses": "that leaves, but not then, " * 400,
}


@pytest.mark.parametrize("kind", MADE_TO_HURT)
async def test_sentences_made_to_hurt_cost_a_limited_number_of_steps(
    make_hit: MakeHit, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    steps = 0

    def count(sentence: str, words: frozenset[str], other: Any) -> str:
        nonlocal steps
        steps += budget.count_words(sentence) * budget.count_words(other.quote.text)
        return ""

    monkeypatch.setattr(contradict, "_find_disagreement", count)
    text = f"The ferry to the island leaves {MADE_TO_HURT[kind]}"
    hits = [make_hit(f"{text} {number}.", document=f"d{number}") for number in range(6)]
    reply = " ".join(f"{text[:9_000]} {number} [{number}]." for number in range(1, 4))
    made = await answer(hits, reply, unsupported="flag")
    assert steps <= budget.MOST_STEPS
    assert any("too many words" in note for note in made.degraded)


FIGURES = {
    "numbers": ", ".join(str(7 * number) for number in range(60)),
    "groups": ", ".join(f"{number} red boats" for number in range(60)),
    "dates": ", ".join(f"{1 + day % 28} May {1900 + day}" for day in range(60)),
    "words": " and ".join(f"{ten} {unit}" for ten in ("twenty", "thirty", "forty") for unit in ("two", "six", "ten")),
}


@pytest.mark.parametrize("kind", FIGURES)
async def test_figures_of_all_sentences_that_are_compared_are_counted(
    make_hit: MakeHit, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    compared = 0

    def count(sentence: str, near: Sequence[str], evidence: str) -> list[Any]:
        nonlocal compared
        compared += sum(len(find_figures(sentence)) * len(find_figures(one)) for one in near)
        return []

    monkeypatch.setattr(check, "find_unsupported", count)
    text = f"The ferry to the island leaves {FIGURES[kind]}"
    hit = make_hit(" ".join(f"{text} {number}." for number in range(24)))
    made = await answer([hit], " ".join(f"{text} {number} [1]." for number in range(20)), unsupported="flag")
    assert budget.FIGURE_STEPS * compared <= budget.MOST_STEPS
    assert any("too many words" in note for note in made.degraded)


def test_figures_cost_more_steps_than_words() -> None:
    words = count_steps("red blue", "green white black")
    assert count_steps("red 12", "green 13 fourteen") == words + 2 * budget.FIGURE_STEPS


def test_steps_are_taken_until_none_are_left() -> None:
    left = StepBudget(10)
    assert left.spend("a b", "c d e")
    assert not left.spend("a b", "c d e")
    assert left.spend_reading("abcd")
    assert not left.spend_reading("a")


@pytest.mark.parametrize("passages", [6, 20])
async def test_an_ordinary_answer_is_compared_to_the_end(make_hit: MakeHit, passages: int) -> None:
    text = f"{FERRY} " + "Tickets for adults cost twelve euros in summer and nine in winter. " * 30
    hits = [make_hit(text, document=f"d{number}") for number in range(passages)]
    reply = " ".join(f"{FERRY[:-1]} [{number}]." for number in range(1, 5))
    assert (await answer(hits, reply)).degraded == ()
