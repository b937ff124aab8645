"""Question and hits in, cited answer out: composed by an LLM where there is one, quoted where not."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from ragstone.answer.cite import Statement, assemble, check_format
from ragstone.answer.compose import compose
from ragstone.answer.extract import Extractor
from ragstone.answer.pack import pack
from ragstone.core.answer_settings import AnswerSettings
from ragstone.core.answers import Answer
from ragstone.core.errors import ModelError, RemoteError
from ragstone.core.protocols import LLM, Embedder, Tokenizer
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
    ) -> None:
        self._llm = llm
        self._settings = settings or AnswerSettings()
        self._llm_settings = llm_settings or LLMSettings()
        self._tokenizer = tokenizer or WordTokenizer()
        self._extractor = Extractor(embedder)
        check_format(self._settings.citation_format)

    async def answer(self, question: str, hits: Sequence[Hit], *, degraded: Sequence[str] = ()) -> Answer:
        """Sentences that answer the question, each with the words of a hit it stands on."""
        notes = list(degraded)
        best = list(hits)
        statements = await self._composed(question, best, notes) if self._llm and best else None
        if statements is None:
            statements = await self._quoted(question, best, notes)
        return assemble(
            question, statements, citation_format=self._settings.citation_format, degraded=tuple(notes)
        )

    async def _composed(self, question: str, hits: list[Hit], notes: list[str]) -> Sequence[Statement] | None:
        """What the LLM says and the passages support; None when it is of no use and quoting has to do."""
        assert self._llm is not None
        passages = pack(hits, self._settings.max_context_tokens, self._tokenizer)
        if not passages:
            notes.append("llm: no passage fits answer.max_context_tokens")
            return None
        try:
            composition = await compose(
                question,
                passages,
                self._llm,
                max_sentences=self._settings.max_sentences,
                max_tokens=self._llm_settings.max_tokens,
                seconds=self._llm_settings.timeout,
            )
        except (RemoteError, ModelError) as error:
            logger.warning("answering without the LLM: %s", error)
            notes.append(f"llm: {error}")
            return None
        if composition.declined:
            return ()
        notes.extend(f"llm: {reason}" for reason in composition.dropped)
        if not composition.statements:
            notes.append("llm: nothing in its reply is supported by a passage")
            return None
        return composition.statements

    async def _quoted(self, question: str, hits: list[Hit], notes: list[str]) -> Sequence[Statement]:
        # When an LLM read the passages, a planted address may be what it was led to: none is passed on.
        extraction = await self._extractor.extract(
            question, hits, max_sentences=self._settings.max_sentences, addresses=self._llm is None
        )
        notes.extend(extraction.degraded)
        return extraction.statements
