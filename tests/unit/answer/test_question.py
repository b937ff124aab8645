"""Questions within a question: told apart, asked by themselves, answered in their order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ragstone.answer.ask import Answerer
from ragstone.answer.parts import AnsweredParts, Part, drop_repeats, look_up
from ragstone.core.protocols import Embedder
from ragstone.core.search import SearchResult
from ragstone.core.types import Hit
from ragstone.settings.answers import AnswerSettings

MakeHit = Callable[..., Hit]
QUESTION = "When was Harbour Line founded and who runs it?"
FOUNDED = "Harbour Line was founded in 1974 by two fishermen."
RUN = "Maria Lind runs Harbour Line today."


async def test_each_question_has_its_own_passages_first(make_hit: MakeHit) -> None:
    founded, run = make_hit(FOUNDED, "a"), make_hit(RUN, "b")

    async def search(query: str) -> SearchResult:
        return SearchResult(query, query, "fast", (run,), (), (f"{query}: slow",), 0.0)

    all_of_it = SearchResult(QUESTION, QUESTION, "fast", (founded, run), (), (), 0.0)
    parts = await look_up(["who"], search, lambda found: found.hits, all_of_it)
    assert parts == (Part("who", (run, founded), ("who: slow",)),)


def test_a_sentence_said_before_answers_only_what_it_speaks_of() -> None:
    parts = [Part(text, ()) for text in ("When was Acme founded", "who founded Acme", "who runs Acme")]
    tally = AnsweredParts(parts)
    said = "Acme was founded in 1974 by two sailors."
    assert [tally.is_new(part, said) for part in parts] == [True, False, False]
    assert tally.open_questions == ("who runs Acme",)
    assert AnsweredParts(parts).open_questions == ()


def test_a_row_said_before_answers_who_by_a_column_of_people() -> None:
    parts = [Part(text, ()) for text in ("What is the port of the pump", "who owns the pump", "how heavy is the pump")]
    tally = AnsweredParts(parts)
    row = "Service: pump; Port: 9095; Owner: Platform"
    assert [tally.is_new(part, row) for part in parts] == [True, False, False]
    assert tally.open_questions == ("how heavy is the pump",)


async def test_parts_are_answered_in_their_order(embedder: Embedder, make_hit: MakeHit) -> None:
    hits = (make_hit(RUN, "b"), make_hit(FOUNDED, "a"))
    parts = [Part("When was Harbour Line founded", hits, ("dense: slow",)), Part("who runs Harbour Line", hits)]
    answer = await Answerer(embedder).answer(QUESTION, hits, degraded=["dense: slow"], parts=parts)
    assert answer.answer == f"{FOUNDED} [1] {RUN} [2]"
    assert (answer.unanswered, answer.degraded) == ((), ("dense: slow",))


async def test_the_answer_names_the_part_it_has_no_words_for(embedder: Embedder, make_hit: MakeHit) -> None:
    hits = (make_hit(FOUNDED, "a"),)
    parts = [Part("When was Harbour Line founded", hits), Part("what does a ticket to Sula cost", hits)]
    answer = await Answerer(embedder).answer("…", hits, parts=parts)
    assert (answer.status, answer.answer) == (
        "answered",
        f"{FOUNDED} [1]\nStill open: what does a ticket to Sula cost?\nNo passage mentions Sula.",
    )
    assert answer.unanswered == ("what does a ticket to Sula cost",)


async def test_a_part_gets_a_sentence_even_where_few_are_allowed(embedder: Embedder, make_hit: MakeHit) -> None:
    hits = (make_hit(RUN, "b"), make_hit(FOUNDED, "a"))
    parts = [Part("When was Harbour Line founded", hits), Part("who runs Harbour Line", hits)]
    answer = await Answerer(embedder, settings=AnswerSettings(max_sentences=1)).answer("…", hits, parts=parts)
    assert len(answer.sentences) == 2


BERGEN = "Fjellvind was founded in 1998 in Bergen."
LED = "It is run by Ingrid Solheim."


@pytest.mark.parametrize(
    ("questions", "said", "unanswered"),
    [
        (("When was Fjellvind founded", "who runs Fjellvind"), [BERGEN, LED], ()),
        (
            ("How many employees does Fjellvind have", "who runs Fjellvind"),
            [BERGEN, LED],
            ("How many employees does Fjellvind have",),
        ),
    ],
)
async def test_a_sentence_on_the_topic_alone_answers_no_part(
    embedder: Embedder, make_hit: MakeHit, questions: tuple[str, str], said: list[str], unanswered: tuple[str, ...]
) -> None:
    found = SearchResult("…", "…", "fast", (make_hit(f"{BERGEN} {LED}", "a"),), (), (), 0.0)

    async def search(query: str) -> SearchResult:
        return found

    parts = await look_up(questions, search, lambda one: one.hits, found)
    assert [part.shared for part in parts] == [frozenset({"fjellvind"})] * 2
    answer = await Answerer(embedder).answer("…", found.hits, parts=parts)
    assert ([one.text for one in answer.sentences], answer.unanswered) == (said, unanswered)


def test_of_the_runs_of_a_passage_those_are_left_out_that_stand_within_an_earlier_one(make_hit: MakeHit) -> None:
    text = f"{FOUNDED} {RUN}"
    whole = make_hit(text, chunk_id="a")
    first = make_hit(FOUNDED, chunk_id="a")
    second = make_hit(RUN, start=text.index(RUN), chunk_id="a")
    copy = make_hit(FOUNDED, chunk_id="b")
    assert drop_repeats([first, second, first, copy]) == (first, second, copy)
    assert drop_repeats([whole, second, first, whole]) == (whole,)
    assert drop_repeats([first, whole]) == (first, whole)
