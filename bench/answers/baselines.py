"""Simple ways to say something to a question, on the same hits: none of them ever refuses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import numpy as np

from bench.answers import peer
from bench.answers.collection import AskedQuestion
from bench.answers.measure import Read
from ragstone.core.protocols import Embedder
from ragstone.core.search import SearchQuery
from ragstone.core.types import Hit
from ragstone.engine.components import Components
from ragstone.engine.engine import Engine
from ragstone.language.analyzer import analyze, analyze_query
from ragstone.language.sentences import sentence_spans

K1, B = 1.5, 0.75
Choose = Callable[[str, Sequence[Hit]], Awaitable[str]]


def build_baselines(components: Components) -> dict[str, Read]:
    """Return each baseline under its name."""
    workspace = Engine(components).workspace("default")
    passages = components.settings.answer.passages

    def over_hits(choose: Choose) -> Read:
        async def read(question: AskedQuestion) -> str:
            found = await workspace.search(SearchQuery(question.text, k=passages))
            return await choose(question.text, found.hits)

        return read

    baselines = {
        "first sentence of the first hit": over_hits(_first_sentence),
        "best sentence by cosine": over_hits(_by_cosine(components.embedder)),
        "best sentence by BM25": over_hits(_by_bm25),
    }
    if peer.is_installed():
        baselines[peer.NAME] = over_hits(peer.build_reader(components.embedder))
    return baselines


async def _first_sentence(question: str, hits: Sequence[Hit]) -> str:
    return next(iter(split_hits(hits)), "")


def _by_cosine(embedder: Embedder) -> Choose:
    async def choose(question: str, hits: Sequence[Hit]) -> str:
        if not (sentences := split_hits(hits)):
            return ""
        asked = (await embedder.embed([question], "query")).vectors[0]
        vectors = (await embedder.embed(sentences)).vectors
        return sentences[int(np.argmax(vectors @ asked))]

    return choose


async def _by_bm25(question: str, hits: Sequence[Hit]) -> str:
    sentences = split_hits(hits)
    terms = [Counter(analyze(sentence)) for sentence in sentences]
    length = sum(counts.total() for counts in terms) / max(1, len(terms))
    frequency = Counter(term for counts in terms for term in counts)

    def score(counts: Counter[str]) -> float:
        norm = K1 * (1 - B + B * counts.total() / max(length, 1))
        return sum(
            math.log(1 + (len(terms) - frequency[term] + 0.5) / (frequency[term] + 0.5))
            * (counts[term] * (K1 + 1) / (counts[term] + norm))
            for term in set(analyze_query(question))
        )

    scores = [score(counts) for counts in terms]
    return sentences[int(np.argmax(scores))] if sentences else ""


def split_hits(hits: Sequence[Hit]) -> list[str]:
    """Return the sentences of all hits, in their order."""
    return [hit.text[start:end] for hit in hits for start, end in sentence_spans(hit.text)]
