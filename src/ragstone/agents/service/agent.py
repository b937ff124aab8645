"""The customer-service agent: message, analysis, retrieval, synthesis, prompt, answer, attribution, delivery."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import uuid4

from ragstone.agents.service.analysis import is_small_talk
from ragstone.agents.service.retrieval import SECONDS, RetrievalResult, ServiceRetriever
from ragstone.agents.service.rules import find_broken_rule, read_rules
from ragstone.agents.service.settings import AGENT, AgentConfiguration, read_configuration
from ragstone.agents.service.synthesis import ContextSynthesizer, SynthesizedContext
from ragstone.answer.quotes import Statement
from ragstone.answer.styles import Writer
from ragstone.core.agents.replies import CustomerReply, ReplyEvent, ReplyReady, ReplyStatus
from ragstone.core.clock import now
from ragstone.core.errors import AccessDenied, ModelError, RagstoneError, RemoteError
from ragstone.core.search import SourceKind
from ragstone.core.types import Hit
from ragstone.engine.answers import stream_events
from ragstone.engine.search import Talk
from ragstone.engine.workspace import Workspace
from ragstone.language.analyzer import analyze
from ragstone.query.context import checked_query
from ragstone.query.routing.federation import source_kind
from ragstone.settings.flags import SERVICE_AGENT

logger = logging.getLogger(__name__)
GREETING = "Hello! Ask me about our products, services, appointments or policies."
THANKS = "You are welcome. Is there anything else that I can look up for you?"
DECLINED = "I am sorry, I cannot help with that."
NOT_KNOWN = "I do not have an answer to that."
NOT_REACHED = "Not all of our information can be reached right now."
PASSED_ON = "I have passed your question on to our team."
ASK_US = "Please contact our team."
_THANKFUL = ("thank", "thx", "cheers", "bye", "great", "perfect")
_PERSONA = """\
You answer a customer of a shop. A passage whose source is "database" is the shop's live data and is right where \
another passage says otherwise; documents of the shop are right where the internet says otherwise."""


Send = Callable[[ReplyEvent], None]


async def read_agent(workspace: Workspace) -> AgentConfiguration:
    """Return the configuration of a tenant's agent."""
    return read_configuration(await workspace.dialogue.read_settings(AGENT))


async def change_agent(workspace: Workspace, values: Mapping[str, object]) -> AgentConfiguration:
    """Change some values of the configuration of a tenant's agent, and return all of it."""
    changed = (await read_agent(workspace)).change(values)
    await workspace.dialogue.write_settings(AGENT, changed.model_dump(mode="json"))
    return changed


@dataclass(slots=True)
class ServiceAgent:
    """Answers the customers of one tenant."""

    workspace: Workspace
    configuration: AgentConfiguration | None = None
    """None for that of the tenant."""
    kb: str | None = None
    seconds: Mapping[SourceKind, float] = field(default_factory=lambda: SECONDS)
    clock: Callable[[], datetime] = now

    async def reply(self, message: str, conversation: str | None = None) -> CustomerReply:
        """Return the reply that `stream` ends with."""
        events: list[ReplyEvent] = []
        await self._produce(message, conversation, events.append, streaming=False)
        assert isinstance(events[-1], ReplyReady)
        return events[-1].reply

    async def stream(self, message: str, conversation: str | None = None) -> AsyncGenerator[ReplyEvent]:
        """Yield each sentence once it is checked, then the reply."""

        async def produce(send: Send) -> None:
            await self._produce(message, conversation, send, streaming=True)

        async with aclosing(stream_events(produce)) as events:
            async for event in events:
                yield event

    async def _produce(self, message: str, conversation: str | None, send: Send, *, streaming: bool) -> None:
        if not await self.workspace.is_on(SERVICE_AGENT):
            raise AccessDenied("the customer-service agent is not switched on for this tenant")
        text = checked_query(message, self.workspace.settings.limits.query_chars, "question")
        configuration = self.configuration or await read_agent(self.workspace)
        name = conversation or uuid4().hex
        dialogue = self.workspace.dialogue
        async with dialogue.turn(text, kb=self.kb):
            talk = await dialogue.begin(text, name, turns=configuration.history_turns, kb=self.kb)
            retriever = ServiceRetriever(
                self.workspace, configuration, kb=self.kb, seconds=self.seconds, clock=self.clock
            )
            found = await retriever.retrieve(text, () if is_small_talk(text) else talk.earlier)
            await dialogue.log(talk, found.as_search(), kb=self.kb)
            making = _Reply(self.workspace, configuration, self.kb, talk, found, send, streaming)
            send(ReplyReady(await making.make()))


@dataclass(slots=True)
class _Reply:
    """The making of one reply, from what was retrieved for it."""

    workspace: Workspace
    configuration: AgentConfiguration
    kb: str | None
    talk: Talk
    found: RetrievalResult
    send: Send
    streaming: bool
    notes: list[str] = field(default_factory=list)

    async def make(self) -> CustomerReply:
        self.notes += [note for note in (self.talk.note, *self.found.degraded) if note]
        if self.found.analysis.intent == "small talk":
            return await self._say("small_talk", _answer_talk(self.talk.query))
        if self._breaks_rule():
            return await self._hand_over("declined", DECLINED, "A customer asked for what the agent must not do.")
        synthesizer = ContextSynthesizer(self.workspace.dialogue)
        context = await synthesizer.synthesize(self.found, self.talk.question, self.talk.earlier)
        writer = Writer(self.configuration.style, by_source=True)
        refused = await self._write(synthesizer, context, writer)
        if refused:
            return await self._hand_over("declined", DECLINED, "A customer asked for what the agent must not do.")
        if not writer.citations:
            said = f"{NOT_KNOWN} {NOT_REACHED}" if self.found.degraded else NOT_KNOWN
            return await self._hand_over("handed_over", said, "The agent could not answer a customer.")
        answer = writer.finish(self.talk.query)
        reply = self._build("answered", answer.answer)
        cited = {citation.document_id for citation in answer.citations}
        used = {citation.chunk_id for citation in answer.citations}
        hits = [hit for hit in context.hits if hit.chunk_id in used]
        reply = replace(
            reply,
            sentences=answer.sentences,
            citations=answer.citations,
            sources=_list_sources(hits),
            conflicts=tuple(one for one in context.conflicts if one.document_id in cited or _has_row(hits)),
            enrichment=self.found.internet.details,
        )
        return await self._keep(reply, hits)

    def _breaks_rule(self) -> bool:
        known = frozenset(analyze(" ".join(hit.text for hit in self.found.rows)))
        return find_broken_rule(self.talk.search, read_rules(self.configuration), known) is not None

    async def _write(self, synthesizer: ContextSynthesizer, context: SynthesizedContext, writer: Writer) -> bool:
        """Write the sentences of the reply; True when a model refuses to."""
        composition = await self.workspace.dialogue.compose(context.hits, context.earlier, self._instructions())
        if composition is not None and context.hits:
            try:
                async with aclosing(composition.statements(context.question, streaming=self.streaming)) as said:
                    async for statement in said:
                        self._add(writer, statement)
            except (RemoteError, ModelError) as error:
                logger.warning("answering without the LLM: %s", error)
                self.notes.append(f"llm: {error}")
            self.notes += [f"llm: {reason}" for reason in composition.omissions]
            if composition.refused or composition.declined or writer.citations:
                return composition.refused
        statements, problems = await synthesizer.draft(context)
        self.notes += problems
        for statement in statements:
            self._add(writer, statement)
        return False

    def _add(self, writer: Writer, statement: Statement) -> None:
        self.send(writer.add(statement))

    def _instructions(self) -> str:
        """Return what a language model is told beside the passages: who it is, what it is for, what it must not do."""
        can, cannot = self.configuration.agent_can_do.strip(), self.configuration.agent_cannot_do.strip()
        parts = [_PERSONA]
        if can:
            parts.append(f"What you are there for:\n{can}")
        if cannot:
            parts.append(
                f"What you must not do:\n{cannot}\nIf the customer asks for any of it, write only: NOT ALLOWED"
            )
        return "\n\n".join(parts)

    async def _hand_over(self, status: ReplyStatus, said: str, reason: str) -> CustomerReply:
        """Return a reply that leaves the customer to a person, who is told."""
        try:
            await self.workspace.dialogue.tell_shop(self.talk.name, reason)
            told = PASSED_ON
        except RagstoneError as error:
            logger.warning("cannot tell the shop of a customer who waits: %s", error)
            self.notes.append(f"handover: {error}")
            told = ASK_US
        return await self._say(status, f"{said} {self.configuration.handover_message.strip() or told}")

    async def _say(self, status: ReplyStatus, text: str) -> CustomerReply:
        return await self._keep(self._build(status, text), ())

    def _build(self, status: ReplyStatus, text: str) -> CustomerReply:
        analysis = self.found.analysis
        return CustomerReply(
            message=self.talk.query,
            conversation=self.talk.name,
            reply=text,
            status=status,
            type=analysis.type,
            intent=analysis.intent,
            retrieval_ms=self.found.took_ms,
        )

    async def _keep(self, reply: CustomerReply, hits: Sequence[Hit]) -> CustomerReply:
        read = [hit for hit in hits if source_kind(hit) == "documents"]
        self.notes += await self.workspace.dialogue.keep(self.talk, reply.reply, read, kb=self.kb)
        return replace(reply, degraded=tuple(dict.fromkeys(self.notes)))


def _answer_talk(message: str) -> str:
    said = message.casefold()
    return THANKS if any(word in said for word in _THANKFUL) else GREETING


def _has_row(hits: Sequence[Hit]) -> bool:
    """Return whether a reply says something of the shop's data, which other passages may speak against."""
    return any(source_kind(hit) == "database" for hit in hits)


def _list_sources(hits: Sequence[Hit]) -> tuple[SourceKind, ...]:
    kinds = {source_kind(hit) for hit in hits}
    order: tuple[SourceKind, ...] = ("documents", "database", "internet")
    return tuple(kind for kind in order if kind in kinds)
