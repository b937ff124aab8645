"""What kind of writing a document is, by cues that are counted in the open.

Each cue adds its weight to one kind; the kind with the highest sum wins if it reaches `ENOUGH`, else the
document is plain documentation. What a source or the file itself says is never overruled.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Literal, NamedTuple

from ragstone.core.types import Parsed
from ragstone.ingest.enrich.excerpt import Excerpt, StemmedSentence

ContentType = Literal["tutorial", "news", "doc", "email", "paper", "code", "reference"]

ENOUGH = 3.0
MOSTLY = 0.8
"""From this share of its text on, a document is made of code or of tables."""
SOME = 0.05
MAX_SENTENCES = 60
MAX_CHARS = 300
MAX_REPEATS = 4
"""How often one cue counts: a word that is used on every line says it once."""


class Cue(NamedTuple):
    """What speaks for a kind, and how much; it begins where a word does."""

    kind: ContentType
    weight: float
    pattern: str


_NUMBER = r"^(?:[\divx]{1,4}\.? )?"
HEADING_CUES = (
    Cue(
        "tutorial", 3, r"(?:tutorial|walk-?through|quick ?start|getting started|how to|step[- ]by[- ]step)\b"
    ),
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
    Cue(
        "tutorial", 0.5, r"^(?:first|next|then|now|finally),? (?:we|you|open|click|run|create|install|add)\b"
    ),
    Cue("tutorial", 0.5, r"^(?:open|click|run|install|create|type|press|choose|select|download|copy) "),
    Cue("news", 2, r"^[\w .]{1,30}(?:, [a-z]{3,9}\.? \d{1,2})?(?: \([a-z]{2,8}\))? [—–] "),
    Cue("news", 1, r"(?:reported|announced|according to|told reporters|spokes(?:wo)?man|press release)\b"),
    Cue("news", 1, r"(?:teilte mit|a annoncé|selon|según|anunció)\b"),
    Cue(
        "news", 1, r"(?:on (?:mon|tues|wednes|thurs|fri|satur|sun)day|yesterday|last (?:week|night|month))\b"
    ),
    Cue("news", 1, r"(?:am (?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)|gestern|ayer)\b"),
    Cue("news", 0.5, r"(?:said|says|sagte|a déclaré|dijo)\b"),
    Cue("paper", 1, r"(?:et al\b|doi\s?:|arxiv\b|p ?[<=] ?0?\.\d)"),
    Cue("paper", 1, r"we (?:propose|show that|present|evaluated?|investigated?|demonstrate|conclude)\b"),
    Cue("paper", 1, r"(?:in this (?:paper|study|work)|(?:our|these) (?:results|findings|data))\b"),
    Cue("paper", 1, r"^(?:background|objectives?|methods|results|conclusions?)(?:\b[:.]| and | we | the )"),
    Cue("paper", 0.5, r"(?:(?<=\[)\d{1,3}(?:, ?\d{1,3}){0,9}\]|(?<=\()(?:19|20)\d\d\))"),
    Cue(
        "reference", 0.5, r"(?:defaults? to|must be one of|returns (?:an?|the|true|none|null)|is required)\b"
    ),
)


def _join_cues(cues: Sequence[Cue]) -> re.Pattern[str]:
    """All cues in one pattern, so that a text is searched once; the group that matched names the cue."""
    groups = "|".join(f"(?P<cue{number}>{cue.pattern})" for number, cue in enumerate(cues))
    return re.compile(rf"\b(?:{groups})")


_IN_HEADINGS = _join_cues(HEADING_CUES)
_IN_SENTENCES = _join_cues(SENTENCE_CUES)


def classify(parsed: Parsed, excerpt: Excerpt) -> ContentType:
    """The kind of a document whose source does not say."""
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
    """How much speaks for each kind."""
    headings = [excerpt.title, *excerpt.headings]
    found = [
        *_find_cues(HEADING_CUES, _IN_HEADINGS, headings),
        *_find_cues(SENTENCE_CUES, _IN_SENTENCES, excerpt.sentences[:MAX_SENTENCES]),
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
    """Kind and weight of each cue that a sentence gives; each sentence gives a cue once."""
    given = Counter(
        name
        for sentence in sentences
        for name in {match.lastgroup for match in together.finditer(sentence.text[:MAX_CHARS].lower())}
    )
    for number, cue in enumerate(cues):
        if times := given[f"cue{number}"]:
            yield cue.kind, cue.weight * min(times, MAX_REPEATS)


def _text_shares(parsed: Parsed) -> dict[str, float]:
    """Which share of a document's text is code, and which is tables."""
    sizes: Counter[str] = Counter()
    for block in parsed.blocks:
        sizes[block.kind] += block.end - block.start
    total = sum(sizes.values()) or 1
    return {kind: sizes[kind] / total for kind in ("code", "table")}
