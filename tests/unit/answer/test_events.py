"""An answer while it is made, what a judge and the policy do to it, and who stops listening."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from ragstone.answer.ask import Answerer
from ragstone.core.answers import AnswerReady, CitationsReady, SentenceReady
from ragstone.core.errors import ModelError, RemoteError
from ragstone.core.model_types import Entailment, Message, Relation
from ragstone.core.protocols import Embedder
from ragstone.core.types import Hit
from ragstone.engine.answers import stream_events
from ragstone.settings.answers import AnswerSettings
from ragstone.testing.fakes import FakeLLM

MakeHit = Callable[..., Hit]
QUESTION = "At which temperature does the pump stop?"
PUMPS = "The pump stops at a temperature of 80 degrees. The pump is sold in blue."
LONG = " Here follow many more words that say nothing of the matter at hand and cite nothing."


class Judging:
    """An entailer that holds one opinion."""

    name = "judge"

    def __init__(self, relation: Relation | Exception) -> None:
        self.relation = relation

    async def label(self, premises: Sequence[str], hypothesis: str) -> Sequence[Entailment]:
        if isinstance(self.relation, Exception):
            raise self.relation
        return [Entailment(self.relation, 0.9) for _ in premises]

    async def close(self) -> None: ...


class Breaking(FakeLLM):
    """Writes one sentence, waits until it was heard, and breaks off."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = asyncio.Event()
        self.ended = False

    async def stream(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> AsyncIterator[str]:
        try:
            yield "The pump stops at 80 degrees [1]." + LONG
            await self.heard.wait()
            raise RemoteError("the line is dead")
        finally:
            self.ended = True


async def test_sentences_then_citations_then_the_answer(embedder: Embedder, make_hit: MakeHit) -> None:
    replies = ["The pump stops at 80 degrees [1]. The pump is blue [1]." + LONG] * 2
    answerer = Answerer(embedder, FakeLLM(replies))
    hits = [make_hit(PUMPS)]
    events = [event async for event in answerer.events(QUESTION, hits)]
    answer = await answerer.answer(QUESTION, hits)
    assert [type(event) for event in events] == [SentenceReady, SentenceReady, CitationsReady, AnswerReady]
    first, second, cited, last = events
    assert isinstance(first, SentenceReady)
    assert isinstance(second, SentenceReady)
    assert (first.text, second.text) == ("The pump stops at 80 degrees. [1]", "The pump is blue. [2]")
    assert answer.answer == f"{first.text} {second.text}"
    assert (cited, last) == (CitationsReady(answer.citations), AnswerReady(answer))


async def test_a_sentence_is_out_before_the_model_is_done_and_stays(embedder: Embedder, make_hit: MakeHit) -> None:
    llm = Breaking()
    events = Answerer(embedder, llm).events(QUESTION, [make_hit(PUMPS)])
    first = await anext(events)
    assert isinstance(first, SentenceReady)
    assert not llm.ended
    llm.heard.set()
    *_, last = [event async for event in events]
    assert isinstance(last, AnswerReady)
    assert last.answer.answer == "The pump stops at 80 degrees. [1]"
    assert last.answer.degraded == ("llm: the line is dead",)


async def test_the_model_is_let_go_when_nobody_listens(embedder: Embedder, make_hit: MakeHit) -> None:
    llm = Breaking()
    events = Answerer(embedder, llm).events(QUESTION, [make_hit(PUMPS)])
    await anext(events)
    await events.aclose()
    assert llm.ended


async def test_without_a_model_quotes_are_events_too(embedder: Embedder, make_hit: MakeHit) -> None:
    first, *_, last = [event async for event in Answerer(embedder).events(QUESTION, [make_hit(PUMPS)])]
    assert isinstance(first, SentenceReady)
    assert (first.sentence.support, isinstance(last, AnswerReady)) == ("quoted", True)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("drop", [("The pump is blue.", "supported")]),
        ("flag", [("The pump stops at 95 degrees.", "unsupported"), ("The pump is blue.", "supported")]),
    ],
)
async def test_what_is_not_supported_is_dropped_or_flagged(
    embedder: Embedder, make_hit: MakeHit, policy: str, said: list[tuple[str, str]]
) -> None:
    reply = "The pump stops at 95 degrees [1]. The pump is blue [1]. Uncited. The pump is blue [9]."
    settings = AnswerSettings.model_validate({"unsupported": policy})
    answer = await Answerer(embedder, FakeLLM([reply]), settings).answer(QUESTION, [make_hit(PUMPS)])
    assert [(sentence.text, sentence.support) for sentence in answer.sentences] == said
    assert all(sentence.citations for sentence in answer.sentences)
    assert ("(unsupported)" in answer.answer) == (policy == "flag")


@pytest.mark.parametrize(
    ("relation", "support", "note"),
    [
        ("entails", "supported", ()),
        ("neutral", "quoted", "llm: 1 left out: its source does not say it"),
        ("contradicts", "quoted", "llm: 1 left out: its source speaks against it"),
        (ModelError("no weights"), "supported", "entailment: no weights"),
    ],
)
async def test_a_judge_has_a_say(
    embedder: Embedder, make_hit: MakeHit, relation: Relation, support: str, note: str
) -> None:
    llm = FakeLLM(["The pump stops at 80 degrees [1]."])
    answer = await Answerer(embedder, llm, entailer=Judging(relation)).answer(QUESTION, [make_hit(PUMPS)])
    assert answer.sentences[0].support == support
    assert (note in answer.degraded) if note else answer.degraded == ()


async def test_a_judge_does_not_outvote_a_number(embedder: Embedder, make_hit: MakeHit) -> None:
    llm = FakeLLM(["The pump stops at 95 degrees [1]."])
    answer = await Answerer(embedder, llm, entailer=Judging("entails")).answer(QUESTION, [make_hit(PUMPS)])
    assert "95" not in answer.answer


async def test_contradicting_passages_are_shown(embedder: Embedder, make_hit: MakeHit) -> None:
    llm = FakeLLM(["The pump stops at 80 degrees [1]."])
    hits = [make_hit("The pump stops at 80 degrees.", "new"), make_hit("The pump stops at 90 degrees.", "old")]
    answer = await Answerer(embedder, llm).answer(QUESTION, hits)
    assert [(one.sentence, one.quote, one.document_id) for one in answer.contradictions] == [
        ("The pump stops at 80 degrees.", "The pump stops at 90 degrees.", "old")
    ]


async def test_a_relay_passes_on_and_raises_and_cancels() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def failing(send: Callable[[int], None]) -> None:
        send(1)
        raise RemoteError("gone")

    async def waiting(send: Callable[[int], None]) -> None:
        send(1)
        try:
            await started.wait()
        finally:
            cancelled.set()

    events = stream_events(failing)
    assert await anext(events) == 1
    with pytest.raises(RemoteError, match="gone"):
        await anext(events)
    more = stream_events(waiting)
    assert await anext(more) == 1
    await more.aclose()
    assert cancelled.is_set()
