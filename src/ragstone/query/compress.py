"""Of each passage only the sentences that bear on the query, each run of them exactly where it stands.

A run is a hit of its own, so that `document.text[start:end]` is its text and a quote of it can be proved. Between
sentences that bear on the query up to two that do not are kept, and so is one that goes on with "It" or "They". Code
and tables are kept whole or not at all.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from ragstone.core.errors import ModelError, ModelUnavailable, RemoteError
from ragstone.core.protocols import LLM
from ragstone.language.sentences import sentence_spans
from ragstone.query.arms import EmbedderFor
from ragstone.query.bearing import STRONG, by_llm, by_meaning, by_words
from ragstone.query.search import Found, Search
from ragstone.settings.retrieval import Compress

logger = logging.getLogger(__name__)
BRIDGED = 2
"""Sentences in a row that are kept because those before and after them are."""
_WHOLE = frozenset({"code", "table"})
_GOES_ON = re.compile(r"(?:it|its|this|that|these|those|they|their|he|his|she|her|both)\b", re.I)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a passage: `passage.chunk.chunk.text[start:end]`."""

    passage: Found
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.passage.chunk.chunk.text[self.start : self.end]

    @property
    def contextual(self) -> str:
        """With what stands before every sentence of the passage."""
        return self.passage.chunk.chunk.context + self.text

    @property
    def headings(self) -> str:
        """The title and the headings above."""
        return "\n".join((self.passage.chunk.title, *self.passage.chunk.chunk.section))


class CompressStage:
    """Leaves out what does not bear on the query, as one of several ways tells it."""

    def __init__(
        self, way: Compress, embedder_for: EmbedderFor, llm: LLM | None = None, max_tokens: int = 800
    ) -> None:
        self._way = way
        self._embedder_for = embedder_for
        self._llm = llm
        self._max_tokens = max_tokens

    async def run(self, search: Search, found: Sequence[Found]) -> Sequence[Found]:
        """The runs of sentences that are left; what was found when there is no time or nobody to tell."""
        record = search.record
        if self._way == "off" or not found:
            return found
        if reason := self._reason_to_skip(search):
            record.skip("compress", len(found), reason)
            return found
        try:
            with record.stage("compress", len(found)) as span:
                span.left = len(found)
                async with asyncio.timeout(record.left_ms / 1000):
                    runs = await self._runs(search, found)
                span.left = len(runs)
            return runs
        except TimeoutError:
            record.degrade("compress: out of time")
        except (ModelError, RemoteError) as error:
            logger.info("passages are given whole: %s", error)
            record.degrade(f"compress: {error}")
        return found

    def _reason_to_skip(self, search: Search) -> str:
        if self._way == "llm" and search.request.mode != "thorough":
            return "an LLM is asked in thorough mode only"
        return "" if search.record.left_ms > 0 else "out of time"

    async def _runs(self, search: Search, found: Sequence[Found]) -> list[Found]:
        by_passage = [_sentences(item) for item in found]
        bearing = iter(await self._bearing(search, [one for own in by_passage for one in own]))
        runs = (
            _cut(item, own, list(islice(bearing, len(own))))
            for item, own in zip(found, by_passage, strict=True)
        )
        return [run for of_passage in runs for run in of_passage]

    async def _bearing(self, search: Search, sentences: Sequence[Sentence]) -> list[bool]:
        """Which sentences bear on the query. What shares most of its words does, whatever a model says."""
        query = search.request.query
        words = by_words(query, [(one.text, one.headings) for one in sentences])
        if self._way == "words":
            return [share.enough for share in words]
        if self._way == "llm":
            if self._llm is None:
                raise ModelUnavailable("no LLM", hint="set llm.model")
            told = await by_llm(
                query,
                [one.text for one in sentences],
                self._llm,
                max_tokens=self._max_tokens,
                seconds=search.record.left_ms / 1000,
            )
        elif search.kb.space is None:
            return [share.enough for share in words]
        else:
            embedder = await self._embedder_for(search.kb.space.model)
            told = await by_meaning(query, [one.contextual for one in sentences], embedder)
        return [said or share.own >= STRONG for said, share in zip(told, words, strict=True)]


def _sentences(item: Found) -> list[Sentence]:
    chunk = item.chunk.chunk
    spans = [(0, len(chunk.text))] if chunk.kind in _WHOLE else sentence_spans(chunk.text)
    return [Sentence(item, start, end) for start, end in spans]


def _cut(item: Found, sentences: Sequence[Sentence], bearing: Sequence[bool]) -> list[Found]:
    """The runs of a passage, in order; the passage as it is when all of it bears on the query."""
    kept = _bridged(sentences, bearing)
    if all(kept):
        return [item]
    runs: list[tuple[int, int]] = []
    for n, (one, keep) in enumerate(zip(sentences, kept, strict=True)):
        if keep:
            start = runs.pop()[0] if n and kept[n - 1] else one.start
            runs.append((start, one.end))
    return [_part(item, start, end) for start, end in runs]


def _bridged(sentences: Sequence[Sentence], bearing: Sequence[bool]) -> list[bool]:
    kept = list(bearing)
    for n, one in enumerate(sentences):
        if n and not kept[n] and kept[n - 1]:
            closes = any(bearing[n + 1 : n + 1 + BRIDGED])
            kept[n] = closes or _GOES_ON.match(one.text) is not None
    return kept


def _part(item: Found, start: int, end: int) -> Found:
    chunk = item.chunk.chunk
    part = replace(chunk, text=chunk.text[start:end], start=chunk.start + start, end=chunk.start + end)
    return Found(item.fused, replace(item.chunk, chunk=part))
