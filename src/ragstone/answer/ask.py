"""Question and hits in, cited answer out: composed by an LLM where there is one, quoted where not."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from ragstone.answer.check import Checker, Judge
from ragstone.answer.cite import Statement, check_format
from ragstone.answer.compose import Composition, Limits
from ragstone.answer.contradict import contradictions
from ragstone.answer.extract import Extractor
from ragstone.answer.pack import pack
from ragstone.answer.write import Writer
from ragstone.core.answer_settings import AnswerSettings
from ragstone.core.answers import Answer, AnswerEvent, AnswerReady, CitationsReady
from ragstone.core.errors import ModelError, RemoteError
from ragstone.core.protocols import LLM, Embedder, Entailer, Tokenizer
from ragstone.core.settings import LLMSettings
from ragstone.core.tokens import WordTokenizer
from ragstone.core.types import Hit

logger = logging.getLogger(__name__)


class Answerer:
    """Answers questions from the hits of a search, and says so when they hold no answer."""

    def __init__(
        self,
        embedder: Embedder,
        llm: LLM | None = None,
        settings: AnswerSettings | None = None,
        llm_settings: LLMSettings | None = None,
        tokenizer: Tokenizer | None = None,
        entailer: Entailer | None = None,
    ) -> None:
        self._llm = llm
        self._settings = settings or AnswerSettings()
        self._llm_settings = llm_settings or LLMSettings()
        self._tokenizer = tokenizer or WordTokenizer()
        self._entailer = entailer
        self._extractor = Extractor(embedder)
        check_format(self._settings.citation_format)

    async def answer(self, question: str, hits: Sequence[Hit], *, degraded: Sequence[str] = ()) -> Answer:
        """Sentences that answer the question, each with the words of a hit it stands on."""
        async for event in self.events(question, hits, degraded=degraded, streaming=False):
            if isinstance(event, AnswerReady):
                return event.answer
        raise AssertionError("the last event is the answer")

    async def events(
        self, question: str, hits: Sequence[Hit], *, degraded: Sequence[str] = (), streaming: bool = True
    ) -> AsyncGenerator[AnswerEvent]:
        """The answer while it is made: each sentence once it is checked, then the citations, then all of it."""
        notes, said = list(degraded), list[Statement]()
        writer = Writer(self._settings.citation_style, self._settings.citation_format)
        judge = Judge(self._entailer, self._llm_settings.timeout)
        async with aclosing(self._statements(question, list(hits), notes, judge, streaming)) as statements:
            async for statement in statements:
                said.append(statement)
                yield writer.add(statement)
        yield CitationsReady(writer.citations)
        against = await contradictions(said, hits, judge)
        yield AnswerReady(writer.finish(question, [*notes, *judge.notes], against))

    async def _statements(
        self, question: str, hits: list[Hit], notes: list[str], judge: Judge, streaming: bool
    ) -> AsyncGenerator[Statement]:
        """What a model says and its passages support; where that is nothing, the words of the passages."""
        if self._llm and hits:
            count = 0
            composition = self._composition(self._llm, hits, judge)
            async with aclosing(self._composed(composition, question, notes, streaming)) as composed:
                async for statement in composed:
                    count += 1
                    yield statement
            if count or composition.declined:
                return
        for statement in await self._quoted(question, hits, notes):
            yield statement

    def _composition(self, llm: LLM, hits: Sequence[Hit], judge: Judge) -> Composition:
        passages = pack(hits, self._settings.max_context_tokens, self._tokenizer)
        given = {passage.number: passage.hit for passage in passages}
        checker = Checker(given, judge, flag=self._settings.unsupported == "flag")
        limits = Limits(
            self._settings.max_sentences, self._llm_settings.max_tokens, self._llm_settings.timeout
        )
        return Composition(llm, passages, checker, limits)

    async def _composed(
        self, composition: Composition, question: str, notes: list[str], streaming: bool
    ) -> AsyncGenerator[Statement]:
        if not composition.passages:
            notes.append("llm: no passage fits answer.max_context_tokens")
            return
        count = 0
        try:
            async with aclosing(composition.statements(question, streaming=streaming)) as statements:
                async for statement in statements:
                    count += 1
                    yield statement
        except (RemoteError, ModelError) as error:
            # What it said before that has been checked, and stands.
            logger.warning("answering without the LLM: %s", error)
            notes.append(f"llm: {error}")
            return
        if composition.declined:
            return
        notes.extend(f"llm: {reason}" for reason in composition.dropped)
        if not count:
            notes.append("llm: nothing in its reply is supported by a passage")

    async def _quoted(self, question: str, hits: list[Hit], notes: list[str]) -> Sequence[Statement]:
        # When an LLM read the passages, a planted address may be what it was led to: none is passed on.
        extraction = await self._extractor.extract(
            question, hits, max_sentences=self._settings.max_sentences, addresses=self._llm is None
        )
        notes.extend(extraction.degraded)
        return extraction.statements
