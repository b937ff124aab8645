"""ENRICH: describe a document by its keywords, its kind, and two sentences of its own.

Keywords: candidates are the runs between function words and marks, as in RAKE, and the one to three words inside
them. A phrase counts by how often it is used and by how often its words are; a phrase in a heading counts more. A
word that is hardly used outside one phrase gives way to the phrase. Scripts without spaces give no keywords.

Kind: each cue adds its weight to one kind; the kind with the highest sum wins if it reaches `ENOUGH`, else the
document is plain documentation. A kind that the source or the file states is never overruled.

Summary: the two sentences that have most in common with all others, where rare words and the beginning count more,
and where the second must not repeat the first. They are quoted as they stand, line breaks aside.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Literal, NamedTuple

from ragstone.core.types import Json, Parsed
from ragstone.ingest.enrich.entities import find_entities
from ragstone.ingest.enrich.excerpt import Excerpt, StemmedSentence, read_excerpt, take_fitting
from ragstone.settings.tree import EnrichSettings

FINGERPRINT = "enrich-1"
"""Changes whenever the same document would be described differently."""


def enrich(parsed: Parsed, settings: EnrichSettings) -> dict[str, Json]:
    """Return the metadata found in a normalized document, without keys for what was not found or is known already.

    A summary by an LLM is not made here, since it waits for a service: see `summarize`.
    """
    excerpt = read_excerpt(parsed)
    found: dict[str, Json] = {
        "keywords": find_keywords(excerpt, settings.keywords),
        "entities": find_entities(excerpt, settings.entities),
    }
    if settings.content_type and not parsed.metadata.get("content_type"):
        found["content_type"] = classify(parsed, excerpt)
    if settings.summary == "extractive":
        found["summary"] = extract_summary(excerpt)
    return {key: value for key, value in found.items() if value}


MAX_WORDS = 3
IN_HEADING = 2.0
"""How much more a candidate counts whose words all stand in headings."""
MIN_SHARE = 0.5
"""A word goes when one phrase holds at least this share of its uses."""
_ROOTS = [math.sqrt(words) for words in range(MAX_WORDS + 1)]
Words = tuple[str, ...]
"""The stems of a candidate, or the words they are of."""


def find_keywords(excerpt: Excerpt, limit: int) -> list[str]:
    """Return the words and phrases that matter most, best first, no two of one stem."""
    if not limit:
        return []
    uses: dict[Words, int] = {}
    spelt: dict[Words, Words] = {}
    whole_runs: set[Words] = set()
    for sentence in (*excerpt.sentences, *excerpt.headings, excerpt.title):
        for stems, words in _keyword_runs(sentence):
            if 1 < len(stems) <= MAX_WORDS:
                whole_runs.add(stems)
            for first, last in _spans(len(stems)):
                key = stems[first:last]
                uses[key] = uses.get(key, 0) + 1
                spelt.setdefault(key, words[first:last])
    best = _take_distinct(_rank(uses, whole_runs, _heading_terms(excerpt)), limit)
    usual = _usual_spelling(excerpt, {key[0] for key in best if len(key) == 1})
    return take_fitting(" ".join(spelt[key]) if len(key) > 1 else usual[key[0]] for key in best)


def _keyword_runs(sentence: StemmedSentence) -> Iterator[tuple[Words, Words]]:
    """Yield stems and words of each stretch without a function word or a mark."""
    start = 0
    for position, stem in enumerate((*sentence.stems, "")):
        if not stem:
            if position > start:
                yield sentence.stems[start:position], sentence.tokens[start:position]
            start = position + 1


@lru_cache(maxsize=64)
def _spans(length: int) -> tuple[tuple[int, int], ...]:
    """Return the spans of one to three neighbouring words in a run of this length."""
    return tuple(
        (first, last) for first in range(length) for last in range(first + 1, min(first + MAX_WORDS, length) + 1)
    )


def _heading_terms(excerpt: Excerpt) -> set[str]:
    """Return the stems of the title and the headings."""
    return {stem for heading in (excerpt.title, *excerpt.headings) for stem in heading.terms}


def _rank(uses: dict[Words, int], whole_runs: set[Words], in_headings: set[str]) -> list[Words]:
    # A phrase that is used once and is part of a longer run was put together by chance.
    candidates = {key: count for key, count in uses.items() if len(key) == 1 or count > 1 or key in whole_runs}
    for key in set(_find_absorbed(candidates)):
        del candidates[key]
    weight = {key[0]: math.log1p(count) for key, count in uses.items() if len(key) == 1}
    scores = {}
    for key, count in candidates.items():
        of_words = sum([weight[word] for word in key]) / _ROOTS[len(key)]
        scores[key] = count * of_words * (IN_HEADING if in_headings.issuperset(key) else 1)
    # Sorting is stable: of equals, the one that is used first.
    return sorted(scores, key=scores.__getitem__, reverse=True)


def _find_absorbed(candidates: dict[Words, int]) -> Iterator[Words]:
    """Yield candidates that are mostly used as a part of a longer one."""
    for key, count in candidates.items():
        if count > 1 and len(key) > 1:
            for first, last in _spans(len(key)):
                part = key[first:last]
                if len(part) < len(key) and count >= MIN_SHARE * candidates.get(part, math.inf):
                    yield part


def _take_distinct(ranked: Iterable[Words], limit: int) -> list[Words]:
    """Return the first candidates that say something which none before them said."""
    chosen: list[set[str]] = []
    distinct = []
    for key in ranked:
        stems = set(key)
        if not any(stems <= other or len(stems & other) > 1 for other in chosen):
            chosen.append(stems)
            distinct.append(key)
            if len(distinct) == limit:
                break
    return distinct


def _usual_spelling(excerpt: Excerpt, stems: set[str]) -> dict[str, str]:
    """Return the most usual word of each stem; of equals, the first in the text."""
    counts = Counter(
        (stem, word)
        for sentence in (*excerpt.sentences, *excerpt.headings, excerpt.title)
        for stem, word in zip(sentence.stems, sentence.tokens, strict=True)
        if stem in stems
    )
    usual: dict[str, str] = {}
    for (stem, word), _ in counts.most_common():
        usual.setdefault(stem, word)
    return usual


ContentType = Literal["tutorial", "news", "doc", "email", "paper", "code", "reference"]

ENOUGH = 3.0
MOSTLY = 0.8
"""From this share of its text on, a document is made of code or of tables."""
SOME = 0.05
CUE_SENTENCES = 60
CUE_CHARS = 300
MAX_REPEATS = 4
"""How often one cue counts: a word that is used on every line says it once."""


class Cue(NamedTuple):
    """A pattern that speaks for a kind, and its weight; it matches at the start of a word."""

    kind: ContentType
    weight: float
    pattern: str


_NUMBER = r"^(?:[\divx]{1,4}\.? )?"
HEADING_CUES = (
    Cue("tutorial", 3, r"(?:tutorial|walk-?through|quick ?start|getting started|how to|step[- ]by[- ]step)\b"),
    Cue("tutorial", 3, r"(?:anleitung|erste schritte|tutoriel|premiers pas|primeros pasos|paso a paso)\b"),
    Cue("tutorial", 1.5, r"(?:^(?:step|schritt|étape|paso) \d|prerequisites|before you begin|next steps)\b"),
    Cue("paper", 2, rf"{_NUMBER}(?:abstract|references|bibliography|related work|acknowledge?ments)$"),
    Cue("paper", 2, r"^(?:zusammenfassung|literatur|literaturverzeichnis|résumé|resumen|bibliografía)$"),
    Cue("paper", 1, rf"{_NUMBER}(?:introduction|methods?|methodology|results|discussion|conclusions?)$"),
    Cue("reference", 3, r"(?:reference|^glossary|^glossar|^glossaire|^glosario)$"),
    Cue("reference", 1.5, r"^(?:parameters?|arguments|returns?|options|syntax|fields|properties|endpoints)$"),
    Cue("reference", 1, r"^(?:[\w.]{2,60}\([^)]{0,80}\)|(?:get|post|put|patch|delete) /\S{0,80})$"),
)
SENTENCE_CUES = (
    Cue("tutorial", 1, r"(?:you will (?:learn|need|build)|let's|in this (?:tutorial|guide|lesson))\b"),
    Cue("tutorial", 0.5, r"^(?:first|next|then|now|finally),? (?:we|you|open|click|run|create|install|add)\b"),
    Cue("tutorial", 0.5, r"^(?:open|click|run|install|create|type|press|choose|select|download|copy) "),
    Cue("news", 2, r"^[\w .]{1,30}(?:, [a-z]{3,9}\.? \d{1,2})?(?: \([a-z]{2,8}\))? [—–] "),
    Cue("news", 1, r"(?:reported|announced|according to|told reporters|spokes(?:wo)?man|press release)\b"),
    Cue("news", 1, r"(?:teilte mit|a annoncé|selon|según|anunció)\b"),
    Cue("news", 1, r"(?:on (?:mon|tues|wednes|thurs|fri|satur|sun)day|yesterday|last (?:week|night|month))\b"),
    Cue("news", 1, r"(?:am (?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)|gestern|ayer)\b"),
    Cue("news", 0.5, r"(?:said|says|sagte|a déclaré|dijo)\b"),
    Cue("paper", 1, r"(?:et al\b|doi\s?:|arxiv\b|p ?[<=] ?0?\.\d)"),
    Cue("paper", 1, r"we (?:propose|show that|present|evaluated?|investigated?|demonstrate|conclude)\b"),
    Cue("paper", 1, r"(?:in this (?:paper|study|work)|(?:our|these) (?:results|findings|data))\b"),
    Cue("paper", 1, r"^(?:background|objectives?|methods|results|conclusions?)(?:\b[:.]| and | we | the )"),
    Cue("paper", 0.5, r"(?:(?<=\[)\d{1,3}(?:, ?\d{1,3}){0,9}\]|(?<=\()(?:19|20)\d\d\))"),
    Cue("reference", 0.5, r"(?:defaults? to|must be one of|returns (?:an?|the|true|none|null)|is required)\b"),
)


def _join_cues(cues: Sequence[Cue]) -> re.Pattern[str]:
    """Join all cues into one pattern, so that a text is searched once; the group that matched names the cue."""
    groups = "|".join(f"(?P<cue{number}>{cue.pattern})" for number, cue in enumerate(cues))
    return re.compile(rf"\b(?:{groups})")


_IN_HEADINGS = _join_cues(HEADING_CUES)
_IN_SENTENCES = _join_cues(SENTENCE_CUES)


def classify(parsed: Parsed, excerpt: Excerpt) -> ContentType:
    """Return the kind of a document whose source does not state it."""
    if parsed.media_type == "message/rfc822":
        return "email"
    shares = _text_shares(parsed)
    if parsed.media_type.startswith("text/x-") or shares["code"] >= MOSTLY:
        return "code"
    scores = weigh_cues(parsed, excerpt)
    if shares["table"] >= MOSTLY:
        scores["reference"] = scores.get("reference", 0) + ENOUGH
    # Of equals, the one whose cue comes first.
    nothing: tuple[ContentType, float] = ("doc", 0.0)
    best, score = max(scores.items(), key=itemgetter(1), default=nothing)
    return best if score >= ENOUGH else "doc"


def weigh_cues(parsed: Parsed, excerpt: Excerpt) -> dict[ContentType, float]:
    """Return the sum of the cues for each kind."""
    headings = [excerpt.title, *excerpt.headings]
    found = [
        *_find_cues(HEADING_CUES, _IN_HEADINGS, headings),
        *_find_cues(SENTENCE_CUES, _IN_SENTENCES, excerpt.sentences[:CUE_SENTENCES]),
    ]
    if parsed.metadata.get("source_type") == "rss":
        found.append(("news", 1))
    if _text_shares(parsed)["code"] > SOME and any(kind == "tutorial" for kind, _ in found):
        found.append(("tutorial", 1))
    weights: dict[ContentType, float] = {}
    for kind, weight in found:
        weights[kind] = weights.get(kind, 0) + weight
    return weights


def _find_cues(
    cues: Sequence[Cue], together: re.Pattern[str], sentences: Iterable[StemmedSentence]
) -> Iterator[tuple[ContentType, float]]:
    """Yield kind and weight of each cue in the sentences; each sentence gives a cue once."""
    given = Counter(
        name
        for sentence in sentences
        for name in {match.lastgroup for match in together.finditer(sentence.text[:CUE_CHARS].lower())}
    )
    for number, cue in enumerate(cues):
        if times := given[f"cue{number}"]:
            yield cue.kind, cue.weight * min(times, MAX_REPEATS)


def _text_shares(parsed: Parsed) -> dict[str, float]:
    """Return the shares of a document's text that are code and tables."""
    sizes: Counter[str] = Counter()
    for block in parsed.blocks:
        sizes[block.kind] += block.end - block.start
    total = sum(sizes.values()) or 1
    return {kind: sizes[kind] / total for kind in ("code", "table")}


MIN_CHARS = 30
MAX_CHARS = 400
MAX_SENTENCES = 150
LEAD = 0.6
"""How much more the first sentence counts than one far down."""
REPEATED = 0.6
"""Two sentences with this share of their terms in common say the same."""
_ENDS = re.compile(r"[.!?…。！？؟।][\"'”’»)\]]{0,2}$")


def extract_summary(excerpt: Excerpt) -> str:
    """Return the two sentences that stand best for the whole document, in reading order; empty without prose."""
    if not excerpt.has_prose:
        return ""
    candidates = _summary_candidates(excerpt.sentences)
    weights = _term_weights(candidates)
    ranked = sorted(
        range(len(candidates)), key=lambda position: _score(candidates[position], position, weights), reverse=True
    )
    if not ranked:
        return ""
    first = candidates[ranked[0]]
    second = [position for position in ranked[1:] if not _repeats(candidates[position], first)]
    chosen = sorted([ranked[0], *second[:1]])
    return " ".join(" ".join(candidates[position].text.split()) for position in chosen)


def _summary_candidates(sentences: Sequence[StemmedSentence]) -> list[StemmedSentence]:
    """Return whole sentences of a readable length, each once; other pieces if there are none."""
    distinct = list({sentence.text: sentence for sentence in sentences[:MAX_SENTENCES]}.values())
    fitting = [sentence for sentence in distinct if MIN_CHARS <= len(sentence.text) <= MAX_CHARS]
    whole = [sentence for sentence in fitting if _ENDS.search(sentence.text)]
    return whole or fitting or [sentence for sentence in distinct if len(sentence.text) <= MAX_CHARS]


def _term_weights(sentences: Sequence[StemmedSentence]) -> dict[str, float]:
    """Return the weight of each term: zero where one sentence has it, highest where several but not all do."""
    having = Counter(term for sentence in sentences for term in sentence.terms)
    total = len(sentences)
    return {term: (count - 1) * math.log((total + 1) / count) for term, count in having.items()}


def _score(sentence: StemmedSentence, position: int, weights: dict[str, float]) -> float:
    shared = sum(weights[term] for term in sentence.terms)
    centrality = (0.1 + shared) / math.sqrt(len(sentence.terms) + 5)
    return centrality * (1 + LEAD / (1 + position))


def _repeats(sentence: StemmedSentence, other: StemmedSentence) -> bool:
    in_common = len(sentence.terms & other.terms)
    return in_common >= REPEATED * len(sentence.terms | other.terms)
