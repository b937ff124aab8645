"""Claims that a passage states word for word, as a sentence of its own or of the term that its entry explains."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from ragstone.answer.units import AnswerUnit
from ragstone.answer.verify.objections import Rival
from ragstone.answer.verify.shares import Shares
from ragstone.answer.verify.subject import read_context
from ragstone.language.grammar import BE, words_of
from ragstone.language.inflection import base_forms
from ragstone.language.negation import find_denials
from ragstone.language.sentences import BEFORE_A_NUMBER, LAST_BEFORE_A_STARTER, NEVER_LAST
from ragstone.language.vocabulary import GENERIC, content_words, read_vocabulary

STATED = Shares(1.0, 1.0, 1.0, 1.0, 1.0, is_verbatim=True, counted=9, close=1.0, names_all=True, has_verb=True)
"""Shares of a claim that a sentence states word for word."""
_FEWEST_WORDS = 4
_MARKS = frozenset('*_`"“”')
_NO_MARKS = str.maketrans(dict.fromkeys(_MARKS, ""))
_SPACES = re.compile(r"\s+")
_LAST_WORD = re.compile(r"(\S{1,40})[.!]\s*$")
_FALSE = "wrong|false|falsely|untrue|incorrect|myths?|misconceptions?|mistaken?|mistakes?|hoax|rumou?rs?|fiction|bogus"
_CALLS_IT_FALSE = re.compile(
    rf"\b(?:{_FALSE}|obsolete|deprecated|outdated|not true|don['’]ts|^\W*don['’]t(?=\W*$))\b", re.I
)
_LABEL = re.compile(r"[^\s.!?:][^.!?:\n]{0,40}:(?=\s)\s*(?:[-*]\s*)?(?:$|(?=\S))")
_LIMITS = re.compile(
    r"\b(?:not|no|never|nothing|without|unless|except|if|when|whether|only|\w+n['’]t|avoid|instead|would|suppose|imagine"
    r"|former)\b",
    re.I,
)
"""In the words that announce a sentence: it holds only within a limit, or not at all."""
_ANSWERS_NO = re.compile(r"\?[\"”*_]{0,3}\s+(?:A:\s*|Answer:\s*)?No[.,!]\s*$")
"""Behind a question whose words the sentence is read with."""
_SAYS_NO = re.compile(r"[\"“*_]{0,3}No[.,!](?=\s)")
_OPENING = ("“", "‘", "«", '"')
_TAKES_BACK = re.compile(
    rf"[\s”’»\"]{{0,4}}(?:(?:this|that|it|all of this)(?: claim| statement| sentence)? "
    rf"(?:is|was|has been|turned out|proved)\b[^.!?]{{0,40}}?\b(?:{_FALSE}|not (?:true|so)|no longer)\b"
    rf"|(?:not true|not so|{_FALSE}|nonsense)\s?[.,!:])",
    re.I,
)
_REACH = 120
_BRACKETS = re.compile(r"\s*[(\[][^()\[\]]{0,80}[)\]]")
_TOKEN = re.compile(r"(?<!\w)--?\w[\w-]{0,60}|\w(?:[\w'’]|[-.,/:](?=\w)){0,60}|[^\w\s.,;:()\[\]*_`\"“”'‘’]")
_GAP = re.compile(r"[ \t]*\t[ \t]*| {3,}|:\n\s*")
_MOST_COLUMNS = 4
_PATH = re.compile(r"[./:]")
_PASSED = frozenset(
    min(base_forms(word)) for word in BE | words_of("the a an this that to use for in of if when with") | GENERIC
)


def find_verbatim(claim: str, units: Sequence[AnswerUnit]) -> Iterator[AnswerUnit]:
    """Yield the units, cut to the words in question, that state a claim word for word and take nothing of it back."""
    wanted = _read(claim.strip().rstrip(".!"))[0]
    sought = wanted.casefold()
    if len(wanted.split()) < _FEWEST_WORDS or claim.rstrip().endswith("?"):
        return
    for unit in units:
        if unit.quote.head:
            continue
        # Most units have not the words at all: where they would stand need not be looked for.
        is_there = sought in _SPACES.sub(" ", unit.text.translate(_NO_MARKS)).casefold()
        found = (_find_in(wanted, unit) if is_there else None) or _find_definition(claim, unit)
        if found and not is_taken_back(found) and not _may_not_be_meant(found):
            yield found


def _read(text: str) -> tuple[str, list[int]]:
    """Return a text without marks and repeated spaces, its first letter small, and where each character stands."""
    letters: list[str] = []
    places: list[int] = []
    for place, letter in enumerate(text):
        if letter in _MARKS or (letter.isspace() and (not letters or letters[-1] == " ")):
            continue
        letters.append(" " if letter.isspace() else letter)
        places.append(place)
    return "".join(letters), places


def _find_in(wanted: str, unit: AnswerUnit) -> AnswerUnit | None:
    """Return the part of a unit that has the wanted words from the beginning of a sentence to its end, or None."""
    text, places = _read(unit.text)
    body = unit.text.find("\n") + 1 if unit.kind == "entry" else 0
    folded, sought = text.casefold(), wanted.casefold()
    at = folded.find(sought) if len(folded) == len(text) else -1
    while at >= 0:
        end = at + len(sought)
        same = text[at + 1 : end] == wanted[1:]
        if same and _begins_here(unit.text, places[at], body) and _ends_here(text, end):
            last = places[end] + 1 if end < len(text) else len(unit.text)
            start = unit.quote.start
            return replace(unit, quote=replace(unit.quote, start=start + places[at], end=start + last), kind="sentence")
        at = folded.find(sought, end)
    return None


def _begins_here(text: str, place: int, body: int) -> bool:
    """Return whether a sentence begins at a place: what follows a stop may begin with a small letter."""
    before = text[:place][-_REACH:]
    if not before.strip(" \n\t>-*") or (body and not text[body:place].strip()):
        return True
    last = _LAST_WORD.search(before)
    if last is None:
        return False
    word = last[1].lower().lstrip("(")
    return len(word) > 1 and "." not in word and word not in NEVER_LAST | LAST_BEFORE_A_STARTER | BEFORE_A_NUMBER


def _ends_here(text: str, end: int) -> bool:
    rest = text[end : end + 2]
    return not rest.strip() or (rest[0] in ".!" and not rest[1:].strip())


def is_taken_back(unit: AnswerUnit) -> bool:
    """Return whether the words over a unit call it false, or those behind it take it back."""
    quote = unit.quote
    before = quote.hit.text[max(0, quote.start - _REACH) : quote.start]
    over = [text.text for text in (unit.heading, unit.term, unit.lead) if text]
    label = _LABEL.search(before) or _LABEL.match(quote.text)
    if any(map(_CALLS_IT_FALSE.search, (*over, quote.hit.section, label[0] if label else ""))):
        return True
    return (
        _ANSWERS_NO.search(before) is not None
        or _TAKES_BACK.match(quote.hit.text, quote.end, quote.end + _REACH) is not None
    )


def find_answer_no(claim: str, unit: AnswerUnit) -> Rival | None:
    """Return the answer "No" where a claim has no more to say than the question over it, or None."""
    if not _SAYS_NO.match(unit.quote.text) or find_denials(claim):
        return None
    before = unit.quote.hit.text[max(0, unit.quote.start - _REACH) : unit.quote.start].rstrip()
    over = (unit.heading.text if unit.heading else "", before.rsplit("\n", 1)[-1], unit.quote.hit.section)
    words = content_words(claim)
    asked = [text for text in over if text.rstrip(' *_"”').endswith("?") and not find_denials(text)]
    return next(
        (Rival(claim.rstrip(" ."), "No") for text in asked if all(map(read_vocabulary(text).has_itself, words))), None
    )


def _may_not_be_meant(unit: AnswerUnit) -> bool:
    """Return whether somebody else is quoted, or the words that announce a unit limit it."""
    before = unit.quote.hit.text[max(0, unit.quote.start - _REACH) : unit.quote.start].rstrip(" \n\t-*")
    if before.endswith(_OPENING) or (unit.lead and _LIMITS.search(unit.lead.text[-_REACH:])):
        return True
    return before.endswith(":") and _LIMITS.search(before.rsplit(". ", 1)[-1]) is not None


def _find_definition(claim: str, unit: AnswerUnit) -> AnswerUnit | None:
    """Return an entry if a claim says of its term what the entry says: "-q is quiet" where "-q" is over "Be quiet."."""
    term, body = split_term(unit)
    if not term or not body or not any(_ends_with(claim, said) for said in (body, _BRACKETS.sub("", body))):
        return None
    if _names_another(claim, f"{term}\n{body}"):
        return None
    mine, named = _read_bases(claim), _read_bases(f"{term} {_PATH.sub(' ', term)}")
    above = _read_bases(read_context(unit).text)
    for said in {body, _BRACKETS.sub("", body)}:
        if not _ends_with(claim, said):
            continue
        lead = [word for word in mine[: -len(_read_bases(said))] if word not in _PASSED]
        if any(word in named for word in lead) and all(word in named or word in above for word in lead):
            return unit
    return None


def _ends_with(claim: str, body: str) -> bool:
    told = _read_bases(body)
    return len(told) > 1 and _read_bases(claim)[-len(told) :] == told


def _names_another(claim: str, entry: str) -> bool:
    """Return whether a claim has an option or another sign that an entry lacks, or the one that switches it off."""
    signs = [word for word in (word.strip(".,;:'\"“”‘’`*") for word in claim.split()) if not word.isalnum()]
    return any(sign not in entry or sign.startswith("--no-") for sign in signs)


def split_term(unit: AnswerUnit) -> tuple[str, str]:
    """Return the term of an entry or of a line in columns, and what is said of it, or two empty texts."""
    if unit.kind == "entry":
        term, _, body = unit.text.partition("\n")
        return term, body
    if unit.term and unit.topic is None:
        return unit.term.text, unit.text
    columns = _GAP.split(unit.text.strip())  # a table without marks
    return (" ".join(columns[:-1]), columns[-1]) if 1 < len(columns) <= _MOST_COLUMNS else ("", "")


@lru_cache(64)
def _read_bases(text: str) -> tuple[str, ...]:
    """Return the words of a text in their base forms; options of commands differ by case."""
    found = []
    for match in _TOKEN.finditer(text):
        word = match.group()
        found.append(word if word.startswith("-") else min(base_forms(word.lower())))
    return tuple(found)
