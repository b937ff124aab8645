"""An answer without an LLM: the sentences that answer the question, word for word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from ragstone.answer.cite import Quote, Statement
from ragstone.answer.evidence import UNRELATED, Evidence, closeness, coverage
from ragstone.answer.plain import has_address, has_image, has_link
from ragstone.core.analyzer import analyze
from ragstone.core.errors import ModelError, RemoteError
from ragstone.core.protocols import Embedder
from ragstone.core.sentences import sentence_spans
from ragstone.core.types import Hit, Matrix

KEEP = 0.85
"""Share of the best sentence's score that a further one needs to be said too."""
_HIT_WEIGHT = 0.25
_SAME = 0.8
"""Share of common terms from which two sentences say the same."""
_MIN_WORDS, _MAX_CHARS = 4, 1000
_MIN_WORD_SHARE = 0.75

_WORD = re.compile(r"[^\W_]+")
_INLINE_CODE = re.compile(r"`[^`\n]*`")
_CODE = re.compile(r"[{}]|=>|==|\\n|\);|</")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.M)
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class Extraction:
    """Sentences to say, none when nothing supports an answer, and what could not be done."""

    statements: tuple[Statement, ...]
    degraded: tuple[str, ...] = ()


class Extractor:
    """Picks sentences by meaning and by words; keeps what its model says of unrelated ones."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._unrelated: Matrix | None = None

    async def extract(
        self, question: str, hits: Sequence[Hit], *, max_sentences: int, addresses: bool = True
    ) -> Extraction:
        """Quote the sentences that answer the question, or none; `addresses` lets them hold addresses."""
        quotes = candidates(hits, addresses=addresses)
        if not quotes:
            return Extraction(())
        degraded: tuple[str, ...] = ()
        near: Sequence[float | None]
        try:
            near = await self._closeness(question, quotes)
        except (ModelError, RemoteError) as error:
            near = [None] * len(quotes)
            degraded = (f"answer: sentences chosen by words only: {error}",)
        covered = coverage(question, quotes)
        evidence = [Evidence(*parts) for parts in zip(quotes, near, covered, strict=True)]
        chosen = choose(evidence, max_sentences)
        return Extraction(tuple(Statement(quote.text, "quoted", (quote,)) for quote in chosen), degraded)

    async def _closeness(self, question: str, quotes: Sequence[Quote]) -> list[float]:
        asked = await self._embedder.embed([question], "query")
        if self._unrelated is None:
            self._unrelated = (await self._embedder.embed(UNRELATED)).vectors
        sentences = await self._embedder.embed([quote.text for quote in quotes])
        return closeness(asked.vectors[0], sentences.vectors, self._unrelated)


def candidates(hits: Sequence[Hit], *, addresses: bool) -> list[Quote]:
    """The sentences of the hits that could be said, each place once, in order of hit and text."""
    quotes: dict[tuple[str, int, int], Quote] = {}
    for hit in hits:
        for quote in _sentences(hit):
            if addresses or not (has_address(quote.text) or has_link(quote.text)):
                quotes.setdefault(quote.place, quote)
    return list(quotes.values())


def _sentences(hit: Hit) -> Iterator[Quote]:
    fences = [match.start() for match in _FENCE.finditer(hit.text)]
    for start, end in sentence_spans(hit.text):
        fenced = sum(fence <= start for fence in fences) % 2 == 1
        quote = Quote(hit, start, end)
        heading = _line_before(quote).lstrip().startswith("#")
        if not fenced and not heading and is_sentence(quote.text):
            yield quote


def is_sentence(text: str) -> bool:
    """Whether a span states something: not a question, a crumb of a table, code or an image."""
    if len(text) > _MAX_CHARS or text.endswith(("?", "？")) or text.startswith("|") or has_image(text):
        return False
    words = len(_WORD.findall(text)) + len(_CJK.findall(text)) // 2
    prose = _INLINE_CODE.sub("", text)
    visible = sum(not char.isspace() for char in text)
    share = sum(char.isalnum() for char in text) / visible
    return words >= _MIN_WORDS and share >= _MIN_WORD_SHARE and _CODE.search(prose) is None


def choose(evidence: Sequence[Evidence], max_sentences: int) -> list[Quote]:
    """The best sentences that say different things, passage by passage in reading order; none without evidence."""
    if not any(item.enough for item in evidence):
        return []
    ranked = sorted(evidence, key=_score, reverse=True)
    least = KEEP * _score(ranked[0])
    chosen: list[Quote] = []
    for item in ranked:
        if len(chosen) == max_sentences or _score(item) < least:
            break
        if item.enough and not any(_same(item.quote, other) for other in chosen):
            chosen.append(item.quote)
    return _in_reading_order(_with_items(chosen, evidence, max_sentences))


def _score(item: Evidence) -> float:
    return item.strength + _HIT_WEIGHT * item.quote.hit.score


def _same(one: Quote, other: Quote) -> bool:
    first, second = set(analyze(one.text)), set(analyze(other.text))
    return len(first & second) >= _SAME * len(first | second)


def _with_items(chosen: list[Quote], evidence: Sequence[Evidence], max_sentences: int) -> list[Quote]:
    """A sentence that announces a list ("in two ways:") brings the items behind it along."""
    quotes = [item.quote for item in evidence]
    complete = list(chosen)
    for lead in (quote for quote in chosen if quote.text.endswith(":")):
        following = quotes[quotes.index(lead) + 1 :]
        items = takewhile(lambda quote: quote.hit is lead.hit and _ITEM.match(_line_before(quote)), following)
        complete.extend([item for item in items if item not in complete][: max_sentences - len(complete)])
    return complete


def _line_before(quote: Quote) -> str:
    text = quote.hit.text
    return text[text.rfind("\n", 0, quote.start) + 1 : quote.start]


def _in_reading_order(quotes: Sequence[Quote]) -> list[Quote]:
    """Documents in order of their best sentence, sentences in order of the document."""
    documents = list(dict.fromkeys(quote.hit.document_id for quote in quotes))
    return sorted(quotes, key=lambda quote: (documents.index(quote.hit.document_id), quote.place))
