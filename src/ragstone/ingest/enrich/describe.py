"""Read the sentences of a document that enrichment looks at, with the stem of each word."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import itemgetter

import Stemmer

from ragstone.core.types import Parsed
from ragstone.ingest.enrich.gazetteer import HEADING_CUES, SENTENCE_CUES, ContentType, Cue
from ragstone.language.analyzer import INDIC, UNSPACED
from ragstone.language.sentences import sentence_spans
from ragstone.language.stop_words import STEMMERS, stop_words

MAX_BYTES = 8 * 1024
"""The most bytes of one list of names or keywords, as it is stored."""
HEAD = 12_000
MIDDLE = 6_000
MAX_HEADINGS = 200
MAX_HEADING = 300
RUN_ON = 1000
"""A longer piece without one whole sentence is read nevertheless."""
MAX_WORD = 40
CACHED_TOKENS = 50_000
PROSE = ("paragraph", "quote", "list")

_TOKEN = rf"[^\W_][\w{INDIC}]*+(?:[-'’.][\w{INDIC}]++)*(?:\+\+|#)?|[^\w\s]"
_TOKENS = re.compile(_TOKEN)
_ADDRESS = re.compile(r"\b(?:https?://|www\.)[^\s)\]>]++")
_ELIDED_TOKENS = re.compile(rf"(?:\b(?:qu|[cdjlmnst])['’])|{_TOKEN}", re.IGNORECASE)
_ELIDING = ("ca", "fr", "it")
"""Their articles melt into the next word: "l'université"."""
_UNUSABLE = re.compile(rf"[\d.,-]++$|.*[{UNSPACED}]|.*'$")
"""A number, a script without spaces between its words, an elided article."""
FINGERPRINT = "enrich-1"
"""Changes whenever the same document would be described differently."""
MAX_WORDS = 3
IN_HEADING = 2.0
"""The weight of a candidate whose words all stand in headings."""
MIN_SHARE = 0.5
"""A word goes when one phrase holds at least this share of its uses."""
_ROOTS = [math.sqrt(words) for words in range(MAX_WORDS + 1)]
Words = tuple[str, ...]
"""The stems of a candidate, or the words they are of."""
ENOUGH = 3.0
MOSTLY = 0.8
"""From this share of its text on, a document is made of code or of tables."""
SOME = 0.05
CUE_SENTENCES = 60
CUE_CHARS = 300
MAX_REPEATS = 4
"""The most times that one cue counts: a word that is used on every line says it once."""
MIN_CHARS = 30
MAX_CHARS = 400
MAX_SENTENCES = 150
LEAD = 0.6
"""The extra weight of the first sentence over one far down."""
REPEATED = 0.6
"""Two sentences with this share of their terms in common say the same."""
_ENDS = re.compile(r"[.!?…。！？؟।][\"'”’»)\]]{0,2}$")


@dataclass(frozen=True)
class StemmedSentence:
    """A sentence as it stands in the text, its words and marks, and the stem of each."""

    text: str
    tokens: tuple[str, ...]
    stems: tuple[str, ...]
    """Empty for a function word, a number or a mark."""

    @cached_property
    def terms(self) -> frozenset[str]:
        """Return the stems that carry meaning, each once."""
        return frozenset(self.stems) - {""}


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The parts of a document that are read; without prose its sentences are lines of code or of tables."""

    language: str
    title: StemmedSentence
    headings: tuple[StemmedSentence, ...]
    sentences: tuple[StemmedSentence, ...]
    has_prose: bool


def read_excerpt(parsed: Parsed) -> Excerpt:
    """Cut the prose of a document, or what there is instead, into sentences and words."""
    language = str(parsed.metadata.get("language") or "")
    has_prose = any(block.kind in PROSE for block in parsed.blocks)
    labels = [block.label[:MAX_HEADING] for block in parsed.blocks if block.kind == "heading"][:MAX_HEADINGS]
    texts = [parsed.title[:MAX_HEADING], *labels, *_sentences(parsed, prose_only=has_prose)]
    find = (_ELIDED_TOKENS if language in _ELIDING else _TOKENS).findall
    tokens = [tuple(find(_without_addresses(text))) for text in texts]
    stem_of = _find_stems({token for row in tokens for token in row}, language)
    title, *sentences = [
        StemmedSentence(text, row, tuple(stem_of[token] for token in row))
        for text, row in zip(texts, tokens, strict=True)
    ]
    headings = len(labels)
    return Excerpt(language, title, tuple(sentences[:headings]), tuple(sentences[headings:]), has_prose)


def _sentences(parsed: Parsed, *, prose_only: bool) -> Iterator[str]:
    for start, end in _windows(len(parsed.text)):
        for block in parsed.blocks:
            if block.kind == "heading" or (prose_only and block.kind not in PROSE):
                continue
            if block.start < end and block.end > start:
                piece = parsed.text[max(block.start, start) : min(block.end, end)]
                yield from _whole_sentences(piece, cut_before=block.start < start, cut_behind=block.end > end)


def _windows(length: int) -> list[tuple[int, int]]:
    if length <= HEAD + MIDDLE:
        return [(0, length)]
    middle = max(HEAD, (length - MIDDLE) // 2)
    return [(0, HEAD), (middle, middle + MIDDLE)]


def _whole_sentences(piece: str, *, cut_before: bool, cut_behind: bool) -> Iterator[str]:
    """Yield the whole sentences of a piece, without those that the window cuts through."""
    spans = sentence_spans(piece)
    whole = spans[cut_before : len(spans) - cut_behind]
    for start, end in whole or (spans if len(piece) > RUN_ON else ()):
        yield piece[start:end]


def _without_addresses(text: str) -> str:
    return _ADDRESS.sub(" ", text) if "://" in text or "www." in text else text


def _find_stems(tokens: Collection[str], language: str) -> dict[str, str]:
    """Return the stem of each token; empty for those without meaning. Stems of earlier documents are cached."""
    met = _stem_cache(language)
    stems = {token: stem for token in tokens if (stem := met.get(token)) is not None}
    new = [token for token in tokens if token not in stems]
    if new:
        made = _stem(new, language)
        if len(met) > CACHED_TOKENS:
            met.clear()  # another thread may read from it: what it misses, it makes
        met.update({token: stem for token, stem in made.items() if len(token) <= MAX_WORD})
        stems.update(made)
    return stems


@lru_cache(maxsize=16)
def _stem_cache(language: str) -> dict[str, str]:
    return {}


def _stem(tokens: Iterable[str], language: str) -> dict[str, str]:
    stops = stop_words(language)
    folded = {token: token.casefold().replace("’", "'") for token in tokens}
    telling = {
        token: word
        for token, word in folded.items()
        if 1 < len(word) <= MAX_WORD and word not in stops and not _UNUSABLE.match(word)
    }
    stemmer = Stemmer.Stemmer(STEMMERS.get(language, "english"), 0)
    stemmed = stemmer.stemWords([word.removesuffix("'s") for word in telling.values()])
    return dict.fromkeys(folded, "") | dict(zip(telling, stemmed, strict=True))


def take_fitting(texts: Iterable[str]) -> list[str]:
    """Return the first texts of a list, as many as fit its share of the metadata."""
    kept = []
    left = MAX_BYTES
    for text in texts:
        left -= len(json.dumps(text)) + 2
        if left < 0:
            break
        kept.append(text)
    return kept


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
    in_headings = {stem for heading in (excerpt.title, *excerpt.headings) for stem in heading.terms}
    best = _take_distinct(_rank(uses, whole_runs, in_headings), limit)
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
