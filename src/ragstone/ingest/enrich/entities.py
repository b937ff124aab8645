"""Find the people, organizations and technologies that a document names, by rules and a small gazetteer.

A name that is doubtful is left out: a filter on a wrong name misleads, one that is missing is still found by
search. A capital alone proves nothing, since sentences, headings and German nouns begin with one; so a person
needs a title, a known given name or a verb that only people go with, an organization a word such as "Institute"
or "GmbH", a technology a known name, a version or the spelling of an identifier.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, pairwise

from ragstone.ingest.enrich import gazetteer as known
from ragstone.ingest.enrich.describe import Excerpt, StemmedSentence, take_fitting
from ragstone.language.stop_words import stop_words

MAX_NAME = 60
SHOUTED = 0.8
"""A sentence with a larger share of capitals is a headline: its capitals mean nothing."""

_IDENTIFIER = re.compile(
    r"(?!(?:Mc|Mac|Fitz|De|Di|La|Le|Van)[A-Z])[A-Za-z][a-z0-9]+[A-Z][a-z]\w*|[a-z][a-z0-9]*+(?:_[a-z0-9]++)+"
)
_MIN_IDENTIFIER = 6
_ACRONYM = re.compile(r"[A-Z][A-Z0-9]{1,5}")
_VERSION = re.compile(r"v?[0-9]{1,4}(?:\.[0-9]{1,6}){1,3}")
_DECIMAL = re.compile(r"[0-9]\.[0-9]")
_NAME = re.compile(r"(?=[^a-z]*[a-z])[A-Z][\w+#-]{1,40}")
"""Nothing but capitals before a number is a currency or a measure more often than a product."""
_FUNCTION_WORDS = stop_words("en")
_NOUNS_HAVE_CAPITALS = ("de", "lb")


@dataclass(frozen=True, slots=True)
class NameRun:
    """Neighbouring words that begin with a capital, with what joins them."""

    words: tuple[str, ...]
    starts_sentence: bool
    follower: str


@dataclass
class NameCounts:
    """Counts of the names of each kind."""

    people: Counter[str] = field(default_factory=Counter)
    organizations: Counter[str] = field(default_factory=Counter)
    technologies: Counter[str] = field(default_factory=Counter)


def find_entities(excerpt: Excerpt, limit: int) -> dict[str, list[str]]:
    """Return the names of each kind, the most frequent first; empty if there are none."""
    if not limit:
        return {}
    names = NameCounts(technologies=_technologies(excerpt))
    nouns_have_capitals = excerpt.language in _NOUNS_HAVE_CAPITALS
    for sentence in excerpt.sentences:
        for run in _find_runs(sentence):
            _count_name(run, names, nouns_have_capitals)
    found = {
        "people": _most_named(names.people, limit),
        "organizations": _most_named(names.organizations, limit),
        "technologies": _most_named(names.technologies, limit),
    }
    return found if any(found.values()) else {}


def _most_named(names: Counter[str], limit: int) -> list[str]:
    return take_fitting(name for name, _ in names.most_common(limit))


def _find_runs(sentence: StemmedSentence) -> Iterator[NameRun]:
    tokens = sentence.tokens
    capitals = [position for position, token in enumerate(tokens) if token[0].isupper()]
    if len(tokens) > 4 and len(capitals) > SHOUTED * len(tokens):
        return
    end = 0
    for start in capitals:
        if start < end:
            continue
        end = _run_end(tokens, start)
        first = start
        # "The", "In" and "However" begin sentences, not names.
        while first < end and _begins_no_name(sentence, first):
            first += 1
        if first < end:
            words = tuple(word for word in tokens[first:end] if word != ".")
            yield NameRun(words, first == 0, tokens[end] if end < len(tokens) else "")


def _begins_no_name(sentence: StemmedSentence, position: int) -> bool:
    token = sentence.tokens[position]
    return not sentence.stems[position] and len(token) > 1 and token not in known.HONORIFICS


def _run_end(tokens: tuple[str, ...], start: int) -> int:
    """Return one past the last word of the run that begins at `start`."""
    end = start + 1
    while end < len(tokens):
        step = _step(tokens, start, end)
        if not step:
            break
        end += step
    return end


def _step(tokens: tuple[str, ...], start: int, end: int) -> int:
    """Return how many tokens the run goes on; 0 if it ends here."""
    mark = tokens[end]
    if mark[0].isupper():
        return 1
    seconds = _joined_by(mark, tokens, start, end)
    if seconds is None:
        return 0
    capitals = [following[0].isupper() for following in tokens[end + 1 : end + 3]]
    if capitals[:1] == [True]:
        return 2
    return 3 if capitals[1:] == [True] and tokens[end + 1] in seconds else 0


def _joined_by(mark: str, tokens: tuple[str, ...], start: int, end: int) -> frozenset[str] | None:
    """Return the words that may stand between a joining mark and the next word of a name; None if it joins nothing."""
    if mark == ".":
        before = tokens[end - 1]
        return frozenset() if len(before) == 1 or before in known.HONORIFICS else None
    if mark in known.ORG_LINKS and not known.ORG_BEGINNINGS.isdisjoint(tokens[start:end]):
        return known.ORG_LINKS
    return known.ARTICLES if mark == "&" or mark in known.PARTICLES else None


def _count_name(run: NameRun, names: NameCounts, nouns_have_capitals: bool) -> None:
    text = " ".join(run.words)
    if len(text) > MAX_NAME:
        return
    if organization := _organization(run.words):
        names.organizations[organization] += 1
    elif text in known.TECHNOLOGIES:
        if len(run.words) > 1:  # single words have been counted
            names.technologies[text] += 1
    elif person := _person(run, nouns_have_capitals):
        names.people[person] += 1


def _organization(words: tuple[str, ...]) -> str:
    text = " ".join(words)
    if text in known.ORGANIZATIONS:
        return text
    if len(words) < 2 or words[0] in known.HONORIFICS:
        return ""
    linked = words[0] in known.ORG_BEGINNINGS and words[1] in known.ORG_LINKS
    return text if linked or words[-1] in known.ORG_ENDINGS else ""


def _person(run: NameRun, nouns_have_capitals: bool) -> str:
    words = run.words
    if words[0] in known.HONORIFICS:
        rest = tuple(word for word in words if word not in known.HONORIFICS)
        return "" if known.NOT_PEOPLE.intersection(rest[-1:]) else " ".join(_cut_name(rest, nouns_have_capitals))
    for position, word in enumerate(words[:2]):
        name = words[position:]
        if word in known.GIVEN_NAMES and _may_be_a_person(name):
            doubtful = word in known.NAMES_AND_WORDS and run.starts_sentence and not position
            return "" if doubtful else " ".join(_cut_name(name, nouns_have_capitals))
    acts = run.follower in known.PERSON_VERBS and words[0] not in known.PLACES and not nouns_have_capitals
    return " ".join(words) if acts and _may_be_a_person(words) else ""


def _cut_name(name: tuple[str, ...], nouns_have_capitals: bool) -> tuple[str, ...]:
    """Return the name without the noun behind it, in languages that capitalize nouns."""
    if not nouns_have_capitals or known.PARTICLES.intersection(name):
        return name
    return name[: 2 if name[:1] and name[0] in known.GIVEN_NAMES else 1]


def _may_be_a_person(name: tuple[str, ...]) -> bool:
    return (
        2 <= len(name) <= 4
        and name[-1] not in known.NOT_PEOPLE
        and not any(word.casefold() in _FUNCTION_WORDS or (len(word) > 1 and word.isupper()) for word in name)
        and known.TECHNOLOGIES.isdisjoint(name)
    )


def _technologies(excerpt: Excerpt) -> Counter[str]:
    counts = Counter(chain.from_iterable(sentence.tokens for sentence in excerpt.sentences))
    named = {token for token in counts if token in known.TECHNOLOGIES or token in known.TECH_ACRONYMS}
    for sentence in excerpt.sentences:
        named.update(_names_by_neighbour(sentence))
    if named:
        # Elsewhere such spellings are brand names, genes, or two words that lost the space between them.
        named.update(filter(_is_identifier, counts))
        for sentence in excerpt.sentences:
            named.update(known.AMBIGUOUS_TECHNOLOGIES.intersection(sentence.tokens[1:]))
    return Counter({token: count for token, count in counts.items() if token in named})


def _is_identifier(token: str) -> bool:
    return (
        _MIN_IDENTIFIER <= len(token) <= MAX_NAME
        and (not token[1:].islower() or "_" in token)
        and _IDENTIFIER.fullmatch(token) is not None
        and token not in known.ORGANIZATIONS
    )


def _names_by_neighbour(sentence: StemmedSentence) -> Iterator[str]:
    """Yield names before a version, and acronyms before a word such as "protocol"."""
    if known.TECH_NOUNS.isdisjoint(sentence.tokens) and not _DECIMAL.search(sentence.text):
        return
    for before, token in pairwise(sentence.tokens):
        if token in known.TECH_NOUNS:
            if _ACRONYM.fullmatch(before) and before not in known.ORGANIZATIONS:
                yield before
        elif _VERSION.fullmatch(token) and _NAME.fullmatch(before) and before not in known.NOT_VERSIONED:
            yield before
