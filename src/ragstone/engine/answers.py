"""Answering questions, checking claims and researching topics for a tenant."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ragstone.answer.cache import Asked
from ragstone.answer.missing import mentions
from ragstone.answer.parts import KbState, Part, drop_repeats, interleave, look_up
from ragstone.core.answers import (
    DEPTHS,
    MOST_ITERATIONS,
    Answer,
    AnswerEvent,
    AnswerReady,
    CheckedClaim,
    CheckedText,
    Depth,
    Research,
    Verdict,
)
from ragstone.core.search import Question, SearchQuery, SearchResult, web_hits
from ragstone.core.types import Block, Hit, Parsed
from ragstone.engine.access import TenantScope, WorkspacePart
from ragstone.engine.search import Search, Talk
from ragstone.language.detector import language_of_query
from ragstone.language.follow_ups import changes_subject, join_questions
from ragstone.language.questions import split_question, telling_terms
from ragstone.language.terms import reading
from ragstone.query.context import checked_choice, checked_count, checked_query
from ragstone.query.rollout import use_phase
from ragstone.query.routing.federation import passages_of, source_kind

Send = Callable[[AnswerEvent], None]
OnChecked = Callable[[int, int], None]
"""Hears how many sentences of a text are checked, and of how many."""
MOST_CLAIMS = 500
"""Sentences of one text that can be checked in one call."""
MOST_TEXT = 1_000_000
"""Characters of a text."""
PROSE = ("paragraph", "list", "quote")
"""Blocks of a document whose sentences may claim something."""
MOST_SAID = 200
"""Characters of the last answer that a search for what was talked about has."""
MOST_TIMES = 2
"""The passages of a follow-up, as a multiple of what one search finds."""
RESEARCH_DEPTH = 3
"""Passages that are looked at for each one that a research keeps."""
NAMED_PASSAGES = 5
"""Passages that are looked at for a name which the passages of a question do not have."""


class Answers(WorkspacePart):
    """Answers in which every sentence carries the passage it stands on."""

    def __init__(self, scope: TenantScope, search: Search) -> None:
        super().__init__(scope)
        self._search = search

    async def ask(self, question: Question) -> Answer:
        """Return the answer that `stream` ends with."""
        events: list[AnswerEvent] = []
        await self._produce(_check_question(question), events.append, streaming=False)
        assert isinstance(events[-1], AnswerReady)
        return events[-1].answer

    async def stream(self, question: Question) -> AsyncGenerator[AnswerEvent]:
        """Yield each sentence once its support is checked, then the citations, then the answer."""

        checked = _check_question(question)

        async def produce(send: Send) -> None:
            with self._scope.acting():
                await self._produce(checked, send, streaming=True)

        async with aclosing(stream_events(produce)) as events:
            async for event in events:
                yield event

    async def _produce(self, question: Question, send: Send, *, streaming: bool) -> None:
        """Send the events of an answer; `streaming` has an LLM give its reply bit by bit."""
        async with self._turn():
            with self._components.metrics.time_answer("ask"):
                await self._answer(question, send, streaming=streaming)

    async def _answer(self, question: Question, send: Send, *, streaming: bool) -> None:
        talk = await self._search.talk(question)
        asked = None if talk.goes_on else await self._cache_key(question)
        again = await self._components.answer_cache.find(asked) if asked else None
        if asked:
            self._components.metrics.cache_lookups.add("answer", "hit" if again else "miss")
        if asked and again:
            await self._access.query(asked.tenant)
            await self._replay(again, talk, question.kb, send)
            return
        if not question.web and (own := await self._recall(talk.question, question)):
            await self._replay(own, talk, question.kb, send)
            return
        found, parts = await self._look_up(talk, question)
        hits = drop_repeats((*passages_of(found), *(hit for part in parts for hit in part.hits)))
        making = self._components.answerer.events(
            talk.question if talk.goes_on else found.query,
            hits,
            degraded=found.degraded,
            parts=parts,
            earlier=talk.earlier,
            streaming=streaming,
            state=KbState(partial(self._mentions, question), partial(self._count_waiting, question.kb)),
        )
        language = language_of_query(question.text, (await self._search.kb(question.kb)).languages)
        with reading(language):
            async with self._access.asking(self._scope.tenant), aclosing(making):
                async for event in making:
                    if isinstance(event, AnswerReady):
                        if asked and not found.records:  # rows may be others in a moment
                            await self._components.answer_cache.keep(asked, hits, event.answer)
                        event = AnswerReady(await self._keep_turn(talk, event.answer, hits, question.kb))
                    send(event)

    async def _mentions(self, question: Question, name: str) -> bool:
        """Return whether a passage of the kb has a name, or its last word."""
        query = SearchQuery(
            name, k=NAMED_PASSAGES, mode="fast", where=question.where, web=False, kb=question.kb, arms="lexical"
        )
        found = await self._search.step(query)
        return any(mentions(hit, name) for hit in found.hits)

    async def _count_waiting(self, kb: str | None) -> int:
        scope = await self._search.kb(kb)
        return await self._components.ledger.of(self._scope.tenant).count_waiting(scope)

    def _turn(self) -> AbstractAsyncContextManager[float]:
        return self._components.answer_turns.take(self._scope.tenant)

    async def _replay(self, answer: Answer, talk: Talk, kb: str | None, send: Send) -> None:
        """Send an answer for which nothing was searched, and record that it was given."""
        named = [citation.document_id for citation in answer.citations if not citation.site]
        audit, tenant, name = self._access.audit, self._scope.tenant, self._scope.kb_name(kb)
        await audit.record_read(tenant, "ask", kb=name, count=len(named), document_ids=named)
        for event in self._components.answerer.replay(await self._keep_turn(talk, answer, (), kb)):
            send(event)

    async def _look_up(self, talk: Talk, question: Question) -> tuple[SearchResult, tuple[Part, ...]]:
        """Return what is found for a question, and for each of the questions it is made of."""
        query = SearchQuery(
            question.text,
            k=self._scope.settings.answer.passages if question.k is None else question.k,
            mode=question.mode,
            where=question.where,
            web=question.web,
            kb=question.kb,
        )

        async def step(text: str) -> SearchResult:
            return await self._search.step(replace(query, text=text))

        found = await self._search.search_and_log("ask", talk, query)
        whole = talk.question if talk.goes_on else found.query
        parts = await look_up(split_question(whole), step, passages_of, found)
        return found, parts if talk.leaning == "no" else await self._add_topic(talk, parts, query, found)

    async def _add_topic(
        self, talk: Talk, parts: Sequence[Part], query: SearchQuery, found: SearchResult
    ) -> tuple[Part, ...]:
        """Return the parts of a follow-up with passages on what was talked about; as they are if it leaves that."""
        on_topic = await self._search_topic(talk, query)
        own, others = passages_of(found), [passages_of(result) for result in on_topic]
        if talk.leaning == "maybe" and await asyncio.to_thread(changes_subject, talk.query, own, others[-1]):
            return tuple(parts)
        shared = frozenset(telling_terms(talk.whole) - telling_terms(talk.query))
        most = MOST_TIMES * max(len(own), *map(len, others))
        degraded = [note for result in on_topic for note in result.degraded]
        return tuple(
            replace(
                part,
                hits=drop_repeats(interleave(part.hits or own, *others))[:most],
                degraded=(*part.degraded, *degraded),
            )
            for part in parts or [Part(talk.whole, (), shared=shared)]
        )

    async def _search_topic(self, talk: Talk, query: SearchQuery) -> list[SearchResult]:
        """Search for a follow-up with the question before it, and in the document that answered that one."""

        async def step(text: str, where: Mapping[str, Any] | None = query.where) -> SearchResult:
            return await self._search.step(replace(query, text=text, where=where))

        said = talk.earlier[-1].answer[:MOST_SAID]
        joined, before = await asyncio.gather(
            step(join_questions(talk.basis, talk.query)), step(f"{talk.basis} {said}".strip())
        )
        if query.where or not before.hits:
            return [joined, before]
        return [joined, await step(talk.question, {"document_id": before.hits[0].document_id})]

    async def _keep_turn(self, talk: Talk, answer: Answer, hits: Sequence[Hit], kb: str | None) -> Answer:
        """Return the answer to what was asked, and keep it in its conversation."""
        if not talk.goes_on:
            return answer
        answer = replace(answer, question=talk.query, whole=talk.whole)
        if not talk.name:
            return answer
        read = [hit for hit in hits if source_kind(hit) == "documents"]
        text = answer.answer if answer.status != "no_evidence" else ""
        notes = await self._search.keep_turn(talk, text, read, kb)
        return replace(answer, degraded=(*answer.degraded, *notes))

    async def _recall(self, words: str, question: Question) -> Answer | None:
        """Return an answer for which nothing is looked up, where the settings let an LLM give one."""
        settings = self._scope.settings
        if settings.answer.confident is None or self._components.llm is None or question.where is not None:
            return None
        tenant = self._scope.tenant
        checked = checked_query(words, settings.limits.query_chars, "question")
        await self._access.query(tenant)
        async with self._access.asking(tenant):
            return await self._components.answerer.recall(checked)

    async def _cache_key(self, question: Question) -> Asked | None:
        """Return a question as the cache of answers tells it from others; None where none are kept."""
        settings = self._scope.settings
        if not settings.cache.answers:
            return None
        tenant, scope = self._scope.tenant, await self._scope.kb(question.kb)
        embedder = await self._scope.embedder_of(scope)
        if embedder is None:
            return None
        passages = settings.answer.passages if question.k is None else question.k
        # A limited caller's answer is made without rows of databases, so that it may lack what others are told.
        way = repr((passages, question.mode, question.where, question.web, self._scope.is_limited))
        way += repr((await self._access.settings_for(tenant)).retrieval)
        return Asked(tenant, scope, way, checked_query(question.text, settings.limits.query_chars), embedder)

    async def research(self, query: SearchQuery, depth: Depth, iterations: int) -> Research:
        """Return what there is about a topic, from several sides."""
        from ragstone.answer.research.pipeline import ResearchTask

        k = DEPTHS[checked_choice("depth", depth, tuple(DEPTHS))]
        checked_count("iterations", iterations, most=MOST_ITERATIONS)
        subject = checked_query(query.text, self._scope.settings.limits.query_chars, "topic")

        async def step(text: str) -> SearchResult:
            # One long document must not be all that is found about the topic.
            depth_of_search = RESEARCH_DEPTH * k if text == subject else k
            return await self._search.step(replace(query, text=text, k=depth_of_search, mode="thorough"))

        embedder = await self._scope.embedder_of(await self._scope.kb(query.kb))
        if "agentic" in await self._access.phases_off(self._scope.tenant):
            iterations = 0  # the topic alone is searched for
        task = ResearchTask(subject, k, iterations, step, embedder)
        tenant = self._scope.tenant
        async with self._turn(), self._access.asking(tenant), self._record("research", query.kb) as named:
            with use_phase("agentic"):
                found = await self._components.researcher.research(task)
            named += [finding.hit.document_id for finding in found.findings]
        return found

    async def verify(self, query: SearchQuery) -> Verdict:
        """Return whether the kb supports or refutes a claim, with the sentences that say so."""
        claim = checked_query(query.text, None, "claim")

        async def step(text: str) -> SearchResult:
            return await self._search.step(replace(query, text=text))

        tenant = self._scope.tenant
        async with self._turn(), self._access.asking(tenant), self._record("verify", query.kb) as named:
            verdict = await self._components.verifier.verify(claim, step)
            named += [evidence.document_id for evidence in verdict.evidence]
        return verdict

    async def verify_web(self, claim: str, k: int | None) -> Verdict:
        """Return whether the pages that a web search finds support or refute a claim."""
        words = checked_query(claim, None, "claim")
        found = await self._search.web(words[: self._scope.settings.limits.query_chars], k)
        notes = (f"web: {found.problem}",) if found.problem else ()

        async def step(text: str) -> SearchResult:
            return SearchResult(text, text, "fast", web_hits(found.results), (), notes, 0.0)

        tenant = self._scope.tenant
        async with self._turn(), self._access.asking(tenant):
            return await self._components.verifier.verify(words, step)

    async def verify_text(self, query: SearchQuery, most: int, on_progress: OnChecked | None = None) -> CheckedText:
        """Return the verdict on each of the first `most` sentences of a text that claim something."""
        await self._scope.admit()
        checked_query(query.text, MOST_TEXT, "claim")
        return await self._verify_parsed(Parsed(query.text, ()), query, most, on_progress)

    async def verify_file(
        self, path: Path, query: SearchQuery, most: int, on_progress: OnChecked | None = None
    ) -> CheckedText:
        """Return the verdicts on the sentences of a file of any format that can be ingested."""
        from ragstone.ingest.dry_run import read_file

        await self._scope.admit()
        parsed = await read_file(self._components.preparer, path, self._scope.settings.limits)
        return await self._verify_parsed(parsed, query, most, on_progress)

    async def _verify_parsed(
        self, parsed: Parsed, query: SearchQuery, most: int, on_progress: OnChecked | None
    ) -> CheckedText:
        from ragstone.answer.verify.split import MAX_CHARS
        from ragstone.answer.verify.statements import find_statements

        checked_count("most", most, MOST_CLAIMS)
        other = [(block.start, block.end) for block in parsed.blocks if block.kind not in PROSE]
        stated = await asyncio.to_thread(find_statements, parsed.text, other)
        chosen = [sentence for sentence in stated.found if sentence.end - sentence.start <= MAX_CHARS][:most]
        verdicts: dict[str, Verdict] = {}
        checked: list[CheckedClaim] = []
        for sentence in chosen:
            text = parsed.text[sentence.start : sentence.end]
            if text not in verdicts:
                verdicts[text] = await self.verify(replace(query, text=text))
            page = page_at(parsed.blocks, sentence.start)
            checked.append(CheckedClaim(sentence.start, sentence.end, sentence.line, page, verdicts[text]))
            if on_progress:
                on_progress(len(checked), len(chosen))
        return CheckedText(tuple(checked), stated.skipped, len(stated.found) - len(checked))

    @asynccontextmanager
    async def _record(self, action: str, kb: str | None) -> AsyncIterator[list[str]]:
        """Record what the block does, with the documents that it adds to the list, or that it failed."""
        named: list[str] = []
        tenant, audit, name = self._scope.tenant, self._access.audit, self._scope.kb_name(kb)
        try:
            with self._components.metrics.time_answer(action):
                yield named
        except Exception as error:
            await audit.record_read(tenant, action, kb=name, error=error)
            raise
        await audit.record_read(tenant, action, kb=name, count=len(named), document_ids=named)


def page_at(blocks: Sequence[Block], place: int) -> int | None:
    """Return the page of the block that holds a place of a text."""
    index = bisect_right(blocks, place, key=lambda block: block.start) - 1
    return blocks[index].page if index >= 0 else None


def _check_question(question: Question) -> Question:
    return replace(question, text=checked_query(question.text, None, "question"))


T = TypeVar("T")


async def stream_events(produce: Callable[[Callable[[T], None]], Awaitable[None]]) -> AsyncGenerator[T]:
    """Yield what `produce` sends, as it sends it; it is cancelled when the consumer stops.

    A generator runs in the context of the caller that asks for the next item. Context variables that `produce` sets,
    such as who pays, would leak there and could not be undone; in a task they stay where they belong.
    """
    queue: asyncio.Queue[T | None] = asyncio.Queue()

    async def work() -> None:
        try:
            await produce(queue.put_nowait)
        finally:
            queue.put_nowait(None)

    task = asyncio.create_task(work())
    try:
        while (item := await queue.get()) is not None:
            yield item
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
