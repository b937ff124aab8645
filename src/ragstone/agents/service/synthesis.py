"""One context from several sources: the shop's own data win over the web, and what disagrees is kept and shown."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from ragstone.agents.service.analysis import speaks_of_rules
from ragstone.agents.service.retrieval import RetrievalResult, is_named
from ragstone.agents.service.rows import SYMBOLS, say_sentences
from ragstone.answer.ask import Judge
from ragstone.answer.budget import cut_passages
from ragstone.answer.contradict import build_contradiction, find_contradictions
from ragstone.answer.pack import pack
from ragstone.answer.parts import drop_repeats
from ragstone.answer.quotes import Quote, Statement
from ragstone.answer.sanitize import has_link
from ragstone.answer.score import leans
from ragstone.core.answers import Contradiction
from ragstone.core.model_types import WordTokenizer
from ragstone.core.search import Exchange
from ragstone.core.shop import Product
from ragstone.core.types import Hit
from ragstone.engine.dialogue import Dialogue
from ragstone.language.analyzer import analyze
from ragstone.language.questions import split_question
from ragstone.language.relevance import ASKING
from ragstone.language.sentences import sentence_spans
from ragstone.query.routing.federation import source_kind

ROW_SENTENCES = 3
"""Sentences of a row that describe one product or service."""
MOST_LISTED = 5
MOST_WEB = 2
MOST_COMPARED = 8
"""Sentences of a passage that web pages are compared with."""
BESIDE = 1
"""Sentences of documents beside those of rows."""
OTHER_PRICE = "it gives another price"
CONTEXT_TOKENS = 4000
_MONEY = re.compile(
    r"(?P<symbol>[$€£¥])\s?(?P<after>\d[\d,]*(?:\.\d+)?)|(?P<before>\d[\d,]*(?:\.\d+)?)\s?(?P<code>USD|EUR|GBP|JPY)\b"
)
_CODES = {symbol: code for code, symbol in SYMBOLS.items()}


@dataclass(frozen=True, slots=True)
class SynthesizedContext:
    """The passages of a reply, the shop's own first, and what disagrees."""

    question: str
    retrieved: RetrievalResult
    """Without what the web says against the shop's own data."""
    hits: tuple[Hit, ...]
    conflicts: tuple[Contradiction, ...] = ()
    earlier: tuple[Exchange, ...] = ()


class ContextSynthesizer:
    """Puts what the sources have into one context."""

    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue = dialogue

    async def synthesize(
        self, retrieval_result: RetrievalResult, query: str, conversation_context: Sequence[Exchange] = ()
    ) -> SynthesizedContext:
        """Return the context of a reply to a question."""
        sources, conflicts = await self.resolve_conflicts(retrieval_result.hits, retrieval_result.database.products)
        by_id = {hit.chunk_id: hit for hit in sources}
        pages = tuple(by_id[hit.chunk_id] for hit in retrieval_result.internet.hits if hit.chunk_id in by_id)
        kept = replace(retrieval_result, internet=replace(retrieval_result.internet, hits=pages))
        return SynthesizedContext(query, kept, tuple(sources), tuple(conflicts), tuple(conversation_context))

    async def resolve_conflicts(
        self, sources: Sequence[Hit], products: Sequence[Product] = ()
    ) -> tuple[list[Hit], list[Contradiction]]:
        """Return the sources without what the web says against the shop's own data, and all that disagrees."""
        read, _ = cut_passages(drop_repeats(sources))
        rows = [hit for hit in read if source_kind(hit) == "database"]
        others = [hit for hit in read if source_kind(hit) != "database"]
        own = [hit for hit in others if source_kind(hit) == "documents"]
        pages = [hit for hit in others if source_kind(hit) == "internet"]
        # Texts may be made to take long: they are not read on the event loop.
        found = await asyncio.to_thread(lambda: list(find_price_conflicts(products, others)))
        judge = Judge()
        # Descriptions praise, and free times change: of a row only the sentence with its figures can be spoken against.
        figures = [say_sentences(hit, 1) for hit in rows if hit.metadata.get("record") in ("product", "service")]
        passages = [say_sentences(hit, MOST_COMPARED) for hit in own]
        for said, doubted in ((figures, others), (passages, pages)):
            statements = [statement for sentences in said for statement in sentences]
            if statements and doubted:
                found += await find_contradictions(statements, doubted, judge.relations, judge.budget)
        conflicts = list({(one.chunk_id, one.start, one.end): one for one in reversed(found)}.values())[::-1]
        kept = [_drop_sentences(hit, conflicts) for hit in pages]
        return [*rows, *own, *(hit for hit in kept if hit.text.strip())], conflicts

    def format_for_llm(self, context: SynthesizedContext) -> str:
        """Return the passages as a language model gets them: numbered, with their sources, and harmless."""
        return "\n".join(passage.rendered for passage in pack(context.hits, CONTEXT_TOKENS, WordTokenizer()))

    async def draft(self, context: SynthesizedContext) -> tuple[list[Statement], tuple[str, ...]]:
        """Return what the sources say to a message without a language model, and what could not be done."""
        result = context.retrieved
        rows, web = _say_rows(result), _say_pages(result)
        is_for_rows = result.analysis.intent in ("availability", "services", "products", "price") and bool(rows)
        if is_for_rows and not result.analysis.asks_for_rules:
            return rows, ()
        if result.analysis.intent == "overview" and rows:
            return [*rows, *web], ()
        if not result.documents:
            return [*rows, *web], ()
        parts = split_question(context.question) if is_for_rows else ()
        asked = next((part for part in parts if speaks_of_rules(part)), context.question)
        extraction = await self._dialogue.quote(asked, result.documents)
        if is_for_rows:
            rules = [one for one in extraction.statements if speaks_of_rules(one.text)]
            return [*rows, *rules], extraction.degraded
        if result.database.named and result.analysis.is_foreign:
            return [*rows, *extraction.statements], extraction.degraded
        if result.analysis.intent == "recommendation" and rows:
            beside = (extraction.statements or extraction.nearest)[:BESIDE]
            return [*rows, *beside, *web], extraction.degraded
        if extraction.statements:
            return [*extraction.statements, *(web if result.database.named else [])], extraction.degraded
        return [*(rows if result.database.named else []), *web], extraction.degraded


def _say_rows(result: RetrievalResult) -> list[Statement]:
    """Return the sentences of rows that fit what is asked for."""
    rows, intent = result.rows, result.analysis.intent
    if intent == "availability":
        times = [hit for hit in rows if hit.metadata.get("record") == "slots"]
        return [statement for hit in times or rows for statement in say_sentences(hit, MOST_LISTED)]
    if intent in ("services", "products", "price") or (intent == "overview" and not result.database.named):
        return [statement for hit in rows[: MOST_LISTED + 1] for statement in say_sentences(hit, 1)]
    if intent == "recommendation" or (result.database.named and len(rows) > 1):
        return [statement for hit in rows[:ROW_SENTENCES] for statement in say_sentences(hit, 2)]
    return [statement for hit in rows[:1] for statement in say_sentences(hit, ROW_SENTENCES)]


def _say_pages(result: RetrievalResult) -> list[Statement]:
    """Return sentences of web pages that say something about the product that its row does not."""
    known = frozenset(analyze(" ".join(hit.text for hit in result.rows)))
    asked = result.analysis.terms - ASKING
    found: list[tuple[int, Statement]] = []
    for hit in result.internet.hits:
        for start, end in sentence_spans(hit.text):
            text = hit.text[start:end]
            terms = frozenset(analyze(text))
            if terms - known and not has_link(text) and not text.endswith("?") and not leans(text):
                found.append((len(terms & asked), Statement(text, "quoted", (Quote(hit, start, end),))))
    found.sort(key=lambda item: -item[0])
    return [statement for _, statement in found[:MOST_WEB]]


def find_price_conflicts(products: Sequence[Product], hits: Iterable[Hit]) -> Iterator[Contradiction]:
    """Yield the sentences that name a product and another price than the catalogue has."""
    priced = [product for product in products if product.price is not None]
    for hit in hits:
        for start, end in sentence_spans(hit.text):
            text = hit.text[start:end]
            terms = frozenset(analyze(text))
            for product in priced:
                told = [amount for code, amount in _find_money(text) if code == product.currency.upper()]
                if is_named(product.name, terms) and told and product.price not in told:
                    price = f"{product.name} costs {product.price} {product.currency}."
                    yield build_contradiction(price, Quote(hit, start, end), OTHER_PRICE)


def _find_money(text: str) -> list[tuple[str, Decimal]]:
    found = []
    for match in _MONEY.finditer(text):
        code = _CODES[match["symbol"]] if match["symbol"] else match["code"].upper()
        try:
            found.append((code, Decimal((match["after"] or match["before"]).replace(",", ""))))
        except InvalidOperation:
            continue
    return found


def _drop_sentences(hit: Hit, conflicts: Sequence[Contradiction]) -> Hit:
    """Return a web page without the sentences that disagree with the shop's own data."""
    text = hit.text
    spans = {(one.start - hit.start, one.end - hit.start) for one in conflicts if one.chunk_id == hit.chunk_id}
    for start, end in sorted(spans, reverse=True):
        text = f"{text[:start]}{text[end:]}"
    return replace(hit, text=text, end=hit.start + len(text)) if spans else hit
