"""Question and hits in, cited answer out: composed by an LLM where there is one, quoted where not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace

from ragstone.answer.budget import MOST_CHARS, StepBudget, cut_passages
from ragstone.answer.check import Checker
from ragstone.answer.compose import Composition, ReplyLimits
from ragstone.answer.contradict import find_contradictions
from ragstone.answer.extract import Extraction, Extractor
from ragstone.answer.model_knowledge import ask_model
from ragstone.answer.pack import pack
from ragstone.answer.parts import AnsweredParts, KbState, Part, drop_repeats
from ragstone.answer.quotes import Statement
from ragstone.answer.reader import Reader
from ragstone.answer.styles import Writer, check_format, replay
from ragstone.core.answers import Answer, AnswerEvent, AnswerReady, CitationsReady
from ragstone.core.errors import ModelError, RagstoneError, RemoteError
from ragstone.core.model_types import Relation, WordTokenizer
from ragstone.core.protocols import LLM, Embedder, Entailer, Reranker, Tokenizer
from ragstone.core.search import Exchange
from ragstone.core.types import Hit
from ragstone.settings.answers import AnswerSettings
from ragstone.settings.tree import LLMSettings

logger = logging.getLogger(__name__)
CUT = "answer: {count} passages were not read to the end: together they have more than {most:,} characters"
UNREAD = "answer: {count} sentences were not compared with it: they have too many words"


class Judge:
    """An `Entailer` that may be missing, slow or broken: then there is no judgement, and one note that says so."""

    def __init__(self, entailer: Entailer | None = None, seconds: float = 30.0) -> None:
        self._entailer = entailer
        self._seconds = seconds
        self.notes: list[str] = []
        self.budget = StepBudget()
        """For what is compared without an entailer, over the whole answer."""

    async def relations(self, premises: Sequence[str], hypothesis: str) -> Sequence[Relation] | None:
        """Return the relation of each premise to the hypothesis, or None without a working entailer."""
        if self._entailer is None or not premises:
            return None
        try:
            async with asyncio.timeout(self._seconds):
                found = await self._entailer.label(premises, hypothesis)
        except (ModelError, RemoteError, TimeoutError) as error:
            reason = str(error) or f"no judgement within {self._seconds:g} s"
            logger.warning("support is checked without %s: %s", self._entailer.name, reason)
            self.notes.append(f"entailment: {reason}")
            self._entailer = None  # the rest of this answer does not wait for it again
            return None
        return [entailment.relation for entailment in found]


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
        reranker: Reranker | None = None,
        reader: Reader | None = None,
    ) -> None:
        self._llm = llm
        self._settings = settings or AnswerSettings()
        self._llm_settings = llm_settings or LLMSettings()
        self._tokenizer = tokenizer or WordTokenizer()
        self._entailer = entailer
        self._extractor = Extractor(embedder, reranker, reader)
        check_format(self._settings.citation_format)

    async def answer(
        self,
        question: str,
        hits: Sequence[Hit],
        *,
        degraded: Sequence[str] = (),
        parts: Sequence[Part] = (),
        earlier: Sequence[Exchange] = (),
    ) -> Answer:
        """Return sentences that answer the question, each with the words of a hit it stands on."""
        events = self.events(question, hits, degraded=degraded, parts=parts, earlier=earlier, streaming=False)
        async for event in events:
            if isinstance(event, AnswerReady):
                return event.answer
        raise AssertionError("the last event is the answer")

    async def recall(self, question: str) -> Answer | None:
        """Return an answer from the LLM's own knowledge if `answer.confident` allows it; it never has a source."""
        own, least = self._llm_settings, self._settings.confident
        if self._llm is None or least is None:
            return None
        try:
            return await ask_model(
                question,
                self._llm,
                least=least,
                sentences=self._settings.max_sentences,
                max_tokens=own.max_tokens,
                seconds=own.timeout,
            )
        except (RemoteError, ModelError) as error:
            logger.warning("looking for an answer, because the LLM gave none: %s", error)
            return None

    async def begin_composition(
        self, hits: Sequence[Hit], earlier: Sequence[Exchange] = (), instructions: str = ""
    ) -> Composition | None:
        """Return what an LLM writes from passages and its instructions, to be iterated over; None without an LLM."""
        if self._llm is None:
            return None
        judge = Judge(self._entailer, self._llm_settings.timeout)
        read, _ = cut_passages(hits)
        return await self._composition(self._llm, read, earlier, self._settings.max_sentences, judge, instructions)

    async def quote(self, question: str, hits: Sequence[Hit]) -> Extraction:
        """Return the parts of passages that answer a question, word for word."""
        read, _ = cut_passages(hits)
        return await self._quote(Part(question, tuple(read)), self._settings.max_sentences)

    def replay(self, answer: Answer) -> Iterator[AnswerEvent]:
        """Yield the events of an answer that was given before."""
        return replay(answer, self._settings.citation_style, self._settings.citation_format)

    async def events(
        self,
        question: str,
        hits: Sequence[Hit],
        *,
        degraded: Sequence[str] = (),
        parts: Sequence[Part] = (),
        earlier: Sequence[Exchange] = (),
        streaming: bool = True,
        state: KbState | None = None,
    ) -> AsyncGenerator[AnswerEvent]:
        """Yield each sentence once it is checked, then the citations, then the whole answer.

        Each of the `parts` of a compound question is answered by itself, in their order. An LLM gets the
        `earlier` turns of the conversation. Where no sentence answers, the reply quotes what comes near and tells of
        the `state` of the kb.
        """
        notes, said = [*degraded, *(note for part in parts for note in part.degraded)], list[Statement]()
        asked = self._cut_parts(parts or [Part(question, tuple(hits))], notes)
        tally = AnsweredParts(asked, notes)
        writer = Writer(self._settings.citation_style, self._settings.citation_format)
        judge = Judge(self._entailer, self._llm_settings.timeout)
        async with aclosing(self._answer_parts(asked, earlier, tally, judge, streaming)) as told:
            async for part, statement in told:
                if tally.is_new(part, statement.text):
                    said.append(statement)
                    yield writer.add(statement)
        for statement in tally.nearest:
            writer.add_nearest(statement)
        yield CitationsReady(writer.citations)
        read, _ = cut_passages(drop_repeats((*hits, *(hit for part in parts for hit in part.hits))))
        against = await find_contradictions(said, read, judge.relations, judge.budget) if said else []
        if judge.budget.unread:
            notes.append(UNREAD.format(count=judge.budget.unread))
        missing, waiting = await _look_around(state or KbState(), tally.missing, bool(said), notes)
        degraded = list(dict.fromkeys([*notes, *judge.notes]))
        yield AnswerReady(
            writer.finish(
                question, degraded, against, unanswered=tally.open_questions, missing=missing, waiting=waiting
            )
        )

    @staticmethod
    def _cut_parts(parts: Sequence[Part], notes: list[str]) -> list[Part]:
        """Return the parts with as much of their passages as is read, and note what is not."""
        cut = [(part, *cut_passages(part.hits, MOST_CHARS // len(parts))) for part in parts]
        if lost := sum(count for _, _, count in cut):
            notes.append(CUT.format(count=lost, most=MOST_CHARS))
        return [replace(part, hits=tuple(hits)) for part, hits, _ in cut]

    async def _answer_parts(
        self, parts: Sequence[Part], earlier: Sequence[Exchange], tally: AnsweredParts, judge: Judge, streaming: bool
    ) -> AsyncGenerator[tuple[Part, Statement]]:
        """Yield the statements on each part, at least one a part and together no more than the settings allow."""
        most = max(1, self._settings.max_sentences // len(parts))
        for part in parts:
            said = self._statements(part, earlier, most, tally, judge, streaming)
            async with aclosing(said) as statements:
                async for statement in statements:
                    yield part, statement

    async def _statements(
        self, part: Part, earlier: Sequence[Exchange], most: int, tally: AnsweredParts, judge: Judge, streaming: bool
    ) -> AsyncGenerator[Statement]:
        """Yield the model's sentences that their passages support, or else sentences of the passages."""
        declined = False
        if self._llm and part.hits:
            count = 0
            composition = await self._composition(self._llm, part.hits, earlier, most, judge)
            async with aclosing(self._compose(composition, part.question, tally.notes, streaming)) as composed:
                async for statement in composed:
                    count += 1
                    yield statement
            if count:
                return
            declined = composition.declined
        extraction = await self._quote(part, most)
        if declined:  # The model is believed: what would have been quoted as an answer only comes near.
            nearest = extraction.nearest or extraction.statements
            extraction = replace(extraction, statements=(), nearest=nearest)
        tally.keep(part, extraction)
        for statement in extraction.statements:
            yield statement

    async def _composition(
        self,
        llm: LLM,
        hits: Sequence[Hit],
        earlier: Sequence[Exchange],
        most: int,
        judge: Judge,
        instructions: str = "",
    ) -> Composition:
        passages = await asyncio.to_thread(pack, hits, self._settings.max_context_tokens, self._tokenizer)
        given = {passage.number: passage.hit for passage in passages}
        flag = self._settings.unsupported == "flag"
        checker = Checker(given, judge.relations, flag=flag, budget=judge.budget)
        limits = ReplyLimits(most, self._llm_settings.max_tokens, self._llm_settings.timeout)
        return Composition(llm, passages, checker, limits, earlier, instructions)

    async def _compose(
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
        notes.extend(f"llm: {reason}" for reason in composition.omissions)
        if not count:
            notes.append("llm: nothing in its reply is supported by a passage")

    async def _quote(self, part: Part, most: int) -> Extraction:
        # When an LLM read the passages, a planted address may be what it was led to: none is passed on.
        return await self._extractor.extract(
            part.question, part.hits, max_sentences=most, addresses=self._llm is None, shared=part.shared
        )


async def _look_around(
    state: KbState, names: Sequence[str], answered: bool, notes: list[str]
) -> tuple[tuple[str, ...], int]:
    """Return the names that no passage of the kb has, and how many documents wait where there is no answer."""
    try:
        missing = tuple([name for name in names if not await state.mentions(name)])
        return missing, 0 if answered else await state.count_waiting()
    except RagstoneError as error:
        logger.warning("cannot tell what the knowledge base lacks: %s", error)
        notes.append(f"answer: it is not known whether more is to come: {error}")
        return (), 0
