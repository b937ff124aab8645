"""Names and roles side by side: "Ada Holm, head of port", "the harbour master (Ida Sole)", "Ida Sole is …"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ragstone.language.grammar import BE, first_verb, tokenize
from ragstone.language.vocabulary import content_words

Span = tuple[int, int]
_MOST = 20
"""Mentions of a name or of a role that are looked at in one sentence."""
_LONGEST_ROLE = 8
_ARTICLES = r"(?:the|an?|our|its|their|his|her|your)"
_STYLE = r"(?:(?:Dr|Mr|Mrs|Ms|Prof|Professor|Sir|Dame)\b\.?\s+)?"
_FULL_NAME = re.compile(
    r"\b[A-Z][\w'’-]{0,30}(?:\s{1,3}(?:(?:de|van|von|der|la|le|du|al|bin)\s){0,2}[A-Z][\w'’-]{0,30}){1,4}"
)
_BEFORE_NAME = re.compile(_STYLE)
_ARTICLE = re.compile(rf"{_ARTICLES}\s+", re.I)
_BETWEEN = re.compile(rf"\s{{0,3}}(?P<mark>[,(:–—]|--?)?\s{{0,3}}(?P<article>{_ARTICLES}\s+)?{_STYLE}", re.I)
_CLOSED = re.compile(r"[\"'”’*_]{0,3}\s{0,3}(?:[,.;:!?)–—\n]|--|$)")
_GOES_ON = re.compile(r"\s(?:at|in|since|from|and|or)\s(?!\w+\s(?:is|was|are|were|has|had)\b)")
_LIST_MARKS = " \t\n*•-–—\"'_0123456789.)"
_NARROWED = re.compile(
    r"(?:\b(?i:former|acting|deputy|assistant|vice|interim|associate|future|next|previous|ex|joint)[\s-]+"
    r"|(?!(?:The|An?|Our|Its|Their|His|Her|Your)\b)\b[A-Z][\w'’-]{0,30}\s+)$"
)
"""Words before a role that make it another one."""
_BEHIND_NAME = re.compile(rf"{_FULL_NAME.pattern},\s+(?:{_ARTICLES}\s+)?$")
_LINK = re.compile(
    r"\b(?:is|was|are|were|been|became|becomes?|remains?|remained|as|(?:appoint|elect|nam)ed|promoted to|made)"
    rf"\s+(?:(?:now|currently|also|still)\s+)?(?:{_ARTICLES}\s+)?{_STYLE}$",
    re.I,
)
_OF_LAST_NAME = re.compile(rf"{_FULL_NAME.pattern}(?:,?\s+who)?(?:\s+(?:has|had|will))?\s+$")
_LONGEST_BEFORE = 200


@dataclass(frozen=True, slots=True)
class _Office:
    """The name and the role that a claim puts together."""

    name: re.Pattern[str]
    role: re.Pattern[str]


def is_stated_in_passing(claim: str, sentence: str) -> bool:
    """Return whether a sentence has the name and the role of a claim in apposition, whatever else it says."""
    office = _read_office(claim)
    return office is not None and any(_are_apposed(sentence, *pair) for pair in _find_pairs(office, sentence))


def is_role_of_another(claim: str, sentences: Sequence[str]) -> bool:
    """Return whether sentences give the role that a claim gives somebody to others, and none gives it to that one."""
    office = _read_office(claim)
    if office is None:
        return False
    is_of_another = False
    for sentence in sentences:
        pairs = list(_find_pairs(office, sentence))
        if any(_are_apposed(sentence, *pair) or _are_linked(sentence, *pair) for pair in pairs):
            return False
        roles = _find_spans(office.role, sentence)
        others = [name for name in _find_spans(_FULL_NAME, sentence) if not office.name.search(sentence[slice(*name)])]
        held = any(_are_apposed(sentence, name, role) for name in others for role in roles if not _meet(name, role))
        is_of_another = is_of_another or held or any(_stand_apart(sentence, *pair) for pair in pairs)
    return is_of_another


def _read_office(claim: str) -> _Office | None:
    """Return the name and the role that a claim puts together by a form of "to be", or None."""
    verb = first_verb(tokenize(claim))
    if verb is None or verb.token.word not in BE:
        return None
    front, back = (_drop_article(side) for side in (claim[: verb.token.start], claim[verb.token.end :]))
    for name, role in ((front, back), (back, front)):
        if _FULL_NAME.fullmatch(name) and len(role.split()) <= _LONGEST_ROLE and content_words(role):
            return _Office(_spell(name), _spell(role))
    return None


def _drop_article(side: str) -> str:
    side = side.strip(" .,")
    article = _ARTICLE.match(side)
    side = side[article.end() :] if article else side
    style = _BEFORE_NAME.match(side)
    return side[style.end() :] if style else side


def _spell(words: str) -> re.Pattern[str]:
    spelt = r"[\s-]+".join(map(re.escape, words.split()))
    return re.compile(rf"(?<![\w-]){spelt}(?![\w-])", re.I)


def _find_pairs(office: _Office, sentence: str) -> Iterator[tuple[Span, Span]]:
    roles = _find_spans(office.role, sentence)
    return ((name, role) for name in _find_spans(office.name, sentence) for role in roles if not _meet(name, role))


def _find_spans(pattern: re.Pattern[str], text: str) -> list[Span]:
    return [match.span() for match in islice(pattern.finditer(text), _MOST)]


def _meet(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _read_between(sentence: str, name: Span, role: Span) -> str:
    return sentence[min(name[1], role[1]) : max(name[0], role[0])]


def _are_apposed(sentence: str, name: Span, role: Span) -> bool:
    """Return whether a name and a whole role stand side by side between marks: "the pilot, Ida Sole, left"."""
    between = _BETWEEN.fullmatch(_read_between(sentence, name, role))
    if between is None or not between["mark"]:
        return False
    before, end = _read_before(sentence, min(name[0], role[0])), max(name[1], role[1])
    if between["mark"] == ":" and before.strip(_LIST_MARKS):
        return False
    is_closed = _CLOSED.match(sentence, end) is not None
    if role < name:
        return is_closed and not _NARROWED.search(before) and not _BEHIND_NAME.search(before)
    # "According to Ida Sole, the pilot left" says of neither that it is the other.
    return is_closed or (not between["article"] and _GOES_ON.match(sentence, end) is not None)


def _read_before(sentence: str, place: int) -> str:
    return sentence[max(0, place - _LONGEST_BEFORE) : place]


def _are_linked(sentence: str, name: Span, role: Span) -> bool:
    """Return whether the role stands right before the name, or a verb gives it to the name and to nobody between."""
    between = _read_between(sentence, name, role)
    if role < name and not between.strip():
        return not _NARROWED.search(_read_before(sentence, role[0]))
    link = _LINK.search(between)
    return link is not None and not _OF_LAST_NAME.search(between[: link.start()])


def _stand_apart(sentence: str, name: Span, role: Span) -> bool:
    """Return whether a name has another role beside it, or a verb or another full name between it and the role."""
    between = _read_between(sentence, name, role)
    named = _BETWEEN.fullmatch(between) or _FULL_NAME.search(between)
    return named is not None or first_verb(tokenize(f"It {between}")) is not None
