"""The engine: everything Ragstone does, as async methods over one set of stores and models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any

from ragstone.answer.cache import AnswerCache, Asked
from ragstone.answer.question import Part, drop_repeats, look_up, split_question
from ragstone.core.answers import (
    DEPTHS,
    MOST_ITERATIONS,
    Answer,
    AnswerEvent,
    AnswerReady,
    Depth,
    ReceiptReport,
    Research,
    Verdict,
)
from ragstone.core.types import Hit, Json, Mode, SearchResult
from ragstone.parts import Parts
from ragstone.query.request import (
    checked_choice,
    checked_count,
    checked_query,
)
from ragstone.query.routing.federation import RoutingOverrides, passages_of, source_kind
from ragstone.query.transform.decompose import decompose
from ragstone.searching import SearchableLibrary, Talk
from ragstone.settings.tree import Settings


class Engine(SearchableLibrary):
    """A library that can be asked: it searches, answers, checks and explains.

    Use it as `async with open_engine(settings) as engine`. In every method `tenant` and `kb`
    default to those of the settings.
    """

    def __init__(self, settings: Settings, parts: Parts) -> None:
        super().__init__(settings, parts)
        self._answers = AnswerCache(parts.ledger, settings.cache.answer_similarity)

    async def ask(
        self,
        question: str,
        *,
        k: int | None = None,
        mode: Mode | None = None,
        where: Mapping[str, Any] | None = None,
        web: bool | None = None,
        conversation: str | None = None,
        tenant: str | None = None,
        kb: str | None = None,
    ) -> Answer:
        """An answer in which every sentence carries the passage it stands on.

        `web` and `conversation` are as in `search`; an LLM is told of the conversation's last turns.
        """
        question = checked_query(question, None, "question")
        passages = self.settings.answer.passages if k is None else k
        talk = await self._talk(question, conversation, tenant, kb)
        way = repr((passages, mode, where, web))
        asked = None if talk.name else await self._asked(question, way, tenant, kb)
        if asked and (again := await self._answers.find(asked)):
            await self._parts.gate.query(asked.tenant)
            await self._saw_answer(again, tenant, kb)
            return again
        if not web and (own := await self._recalled(talk.question, where, tenant)):
            await self._saw_answer(own, tenant, kb)
            return await self._said(talk, own, (), tenant, kb)
        options = {"k": passages, "mode": mode, "where": where, "web": web, "tenant": tenant, "kb": kb}
        found, parts = await self._looked_up(talk, options)
        hits = drop_repeats((*passages_of(found), *(hit for part in parts for hit in part.hits)))
        async with self._parts.gate.paying(self._tenant(tenant)):
            answer = await self._parts.answerer().answer(
                talk.question if talk.name else found.query,
                hits,
                degraded=found.degraded,
                parts=parts,
                earlier=talk.earlier,
            )
        if asked and not found.records:  # rows may be others in a moment
            await self._answers.keep(asked, hits, answer)
        return await self._said(talk, answer, hits, tenant, kb)

    async def _looked_up(
        self, talk: Talk, options: Mapping[str, Any]
    ) -> tuple[SearchResult, tuple[Part, ...]]:
        """What is found for a question, and for each of the questions it is made of."""
        overrides = RoutingOverrides(options["mode"] is not None, options["web"])
        how = (options["k"], options["mode"], options["where"])
        found = await self._remembered("ask", talk, overrides, how, options["tenant"], options["kb"])
        question = talk.question if talk.name else found.query
        parts = split_question(question, decompose(question))
        return found, await look_up(parts, partial(self._step, **options), passages_of, found)

    async def _said(
        self, talk: Talk, answer: Answer, hits: Sequence[Hit], tenant: str | None, kb: str | None
    ) -> Answer:
        """The answer to what was asked, remembered in its conversation."""
        if not talk.name:
            return answer
        read = [hit for hit in hits if source_kind(hit) == "documents"]
        text = answer.answer if answer.status != "no_evidence" else ""
        notes = await self._kept(talk, text, read, tenant, kb)
        return replace(answer, question=talk.query, degraded=(*answer.degraded, *notes))

    async def _saw_answer(self, answer: Answer, tenant: str | None, kb: str | None) -> None:
        """Have it recorded that an answer was given for which nothing was searched."""
        named = [citation.document_id for citation in answer.citations if not citation.site]
        audit, owner = self._parts.gate.audit, self._tenant(tenant)
        await audit.saw(owner, "ask", kb=self._name(kb), count=len(named), document_ids=named)

    @asynccontextmanager
    async def _recorded(self, action: str, tenant: str | None, kb: str | None) -> AsyncIterator[list[str]]:
        """Have recorded what the block does, with the documents that it adds to the list, or that it failed."""
        named: list[str] = []
        owner, audit, name = self._tenant(tenant), self._parts.gate.audit, self._name(kb)
        try:
            yield named
        except Exception as error:
            await audit.saw(owner, action, kb=name, error=error)
            raise
        await audit.saw(owner, action, kb=name, count=len(named), document_ids=named)

    async def _recalled(
        self, question: str, where: Mapping[str, Any] | None, tenant: str | None
    ) -> Answer | None:
        """An answer for which nothing is looked up, where the settings let an LLM give one."""
        if self.settings.answer.confident is None or self._parts.llm is None or where is not None:
            return None
        owner, gate = self._tenant(tenant), self._parts.gate
        words = checked_query(question, self.settings.limits.query_chars, "question")
        await gate.query(owner)
        async with gate.paying(owner):
            return await self._parts.answerer().recall(words)

    async def _asked(self, question: str, options: str, tenant: str | None, kb: str | None) -> Asked | None:
        """A question as the cache of answers tells it from others; None where none are kept."""
        if not self.settings.cache.answers:
            return None
        owner, scope = self._tenant(tenant), await self._kb(tenant, kb)
        embedder = await self._embedder_of(scope)
        if embedder is None:
            return None
        way = options + repr((await self._parts.gate.settings_for(owner)).retrieval)
        return Asked(owner, scope, way, checked_query(question, self.settings.limits.query_chars), embedder)

    async def stream(
        self,
        question: str,
        *,
        k: int | None = None,
        mode: Mode | None = None,
        where: Mapping[str, Any] | None = None,
        web: bool | None = None,
        conversation: str | None = None,
        tenant: str | None = None,
        kb: str | None = None,
    ) -> AsyncIterator[AnswerEvent]:
        """`ask` while it goes on: each sentence once its support is checked, then the citations, then the answer."""
        from ragstone.answer.model_knowledge import stream_unsourced
        from ragstone.answer.stream import stream_events

        question = checked_query(question, None, "question")
        passages = self.settings.answer.passages if k is None else k

        async def produce(send: Callable[[AnswerEvent], None]) -> None:
            talk = await self._talk(question, conversation, tenant, kb)
            if not web and (own := await self._recalled(talk.question, where, tenant)):
                await self._saw_answer(own, tenant, kb)
                for event in stream_unsourced(await self._said(talk, own, (), tenant, kb)):
                    send(event)
                return
            options = {"k": passages, "mode": mode, "where": where, "web": web, "tenant": tenant, "kb": kb}
            found, parts = await self._looked_up(talk, options)
            hits = passages_of(found)
            making = self._parts.answerer().events(
                talk.question if talk.name else found.query,
                hits,
                degraded=found.degraded,
                parts=parts,
                earlier=talk.earlier,
            )
            async with self._parts.gate.paying(self._tenant(tenant)), aclosing(making):
                async for event in making:
                    if isinstance(event, AnswerReady):
                        read = (*hits, *(hit for part in parts for hit in part.hits))
                        event = AnswerReady(await self._said(talk, event.answer, read, tenant, kb))
                    send(event)

        async with aclosing(stream_events(produce)) as events:
            async for event in events:
                yield event

    async def receipt(
        self, answer: Answer, *, tenant: str | None = None, kb: str | None = None
    ) -> dict[str, Json]:
        """What an answer said and stood on, and by which models, as JSON that `check_receipt` takes later."""
        from ragstone.proving import receipt_of

        scope = await self._kb(tenant, kb)
        return receipt_of(answer, self.settings, self._parts, self._tenant(tenant), scope)

    async def check_receipt(self, receipt: Mapping[str, Any], *, tenant: str | None = None) -> ReceiptReport:
        """Whether a receipt is as it was made, and which of its sentences the live documents still bear out."""
        from ragstone.proving import recheck

        text, chunks = partial(self.text, tenant=tenant), partial(self.chunks, tenant=tenant)
        return await recheck(receipt, self.settings, text, chunks)

    async def research(
        self,
        topic: str,
        *,
        depth: Depth = "medium",
        iterations: int = 1,
        where: Mapping[str, Any] | None = None,
        tenant: str | None = None,
        kb: str | None = None,
    ) -> Research:
        """What there is about a topic, from several sides; further iterations look for what is still missing."""
        from ragstone.answer.research.pipeline import ResearchTask

        k = DEPTHS[checked_choice("depth", depth, tuple(DEPTHS))]
        checked_count("iterations", iterations, most=MOST_ITERATIONS)
        subject = checked_query(topic, self.settings.limits.query_chars, "topic")
        search = partial(self._step, k=k, mode="thorough", where=where, tenant=tenant, kb=kb)
        embedder = await self._embedder_of(await self._kb(tenant, kb))
        task, gate = ResearchTask(subject, k, iterations, search, embedder), self._parts.gate
        async with gate.paying(self._tenant(tenant)), self._recorded("research", tenant, kb) as named:
            found = await self._parts.researcher().research(task)
            named += [finding.hit.document_id for finding in found.findings]
        return found

    async def verify(
        self,
        claim: str,
        *,
        k: int = 10,
        mode: Mode | None = None,
        where: Mapping[str, Any] | None = None,
        tenant: str | None = None,
        kb: str | None = None,
    ) -> Verdict:
        """Whether the knowledge base supports or refutes a claim, with the sentences that say so."""
        said = checked_query(claim, None, "claim")
        search = partial(self._step, k=k, mode=mode, where=where, tenant=tenant, kb=kb)
        async with (
            self._parts.gate.paying(self._tenant(tenant)),
            self._recorded("verify", tenant, kb) as named,
        ):
            verdict = await self._parts.verifier().verify(said, search)
            named += [one.document_id for one in verdict.evidence]
        return verdict

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
