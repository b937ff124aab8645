"""Names and other words that a question asks for and no passage has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ragstone.answer.quotes import all_words
from ragstone.core.types import Hit
from ragstone.language.analyzer import analyze
from ragstone.language.asked import asks_whether
from ragstone.language.dates import date_spans
from ragstone.language.grammar import is_verb_form, tokenize, words_of
from ragstone.language.names import QUESTION_WORDS, find_identifiers, find_inner_names
from ragstone.language.relevance import ASKING
from ragstone.language.synonyms import groups_of

_NOT_LETTERS = re.compile(r"[\W_]+")
_OWNING = re.compile(r"['’]s$")
_FEWEST_LETTERS = 4
_MOST = 0.66
_KIND_OF_THING = re.compile(
    r"\b(?:an?|any|some) (?P<kind>[\w-]{1,60}) (?:(?P<particle>in|on|off|out|up|down) )?(?=[^\W\d_])", re.I
)
_NO_AMOUNT = (
    r"(?![\w%°]|[.,:/]?-?\d"
    r"| ?(?:%|percent|(?:milli|micro)?seconds?|minutes?|hours?|days?|weeks?|months?|years?|times|people|o'clock)\b)"
)
_NUMBER = re.compile(rf" (?!(?:1[5-9]|20)\d\d\b)\d{{1,9}}(?:\.\d{{1,9}})*[a-z]?{_NO_AMOUNT}")
"""A number that makes one name with the name before it, "Python 3.13": no year and no amount."""
_NUMBERED = re.compile(r"(.*\D) (\d[\w.]*)", re.S)
_OTHERS = r"(?:\w[\w.]{0,11}(?:,? (?:and|or|&) |, ?| ?/ ?)){0,6}"
"""Further numbers between a name and one that goes with it, too: "rooms 3, 4 and 8"."""
_RANGE = (
    r"(?P<first>\d[\d.]*)(?:(?: ?[-–] ?| to | through )(?P<last>\d[\d.]*)|\+|,? (?:or|and) (?:newer|later|above|up)\b)"
)
_OF_TEXTS = words_of("section article chapter clause paragraph part rule step figure table appendix annex item")
"""Parts of a text that may have their number without their name: "12. Liability"."""
_NO_NOUN = ("ing", "er", "est", "ly", "ful", "able", "ible", "ous", "ive")


def find_missing_names(question: str, hits: Sequence[Hit]) -> tuple[str, ...]:
    """Return the names and identifiers of a question that no passage has, as the question spells them."""
    known, letters = _read_hits(hits)
    names = _join_neighbours(question, find_inner_names(question))
    named = dict.fromkeys([*names, *find_identifiers(question)])
    numbered = dict(_find_numbered(question, named))
    plain = [name for name in named if name not in numbered.values()]
    missing = [name for name in plain if not _is_known(name, known, letters)]
    missing += [name for name in numbered if not any(mentions(hit, name) for hit in hits)]
    return tuple(name for name in missing if not any(name != other and name in other for other in missing))


def mentions(hit: Hit, name: str) -> bool:
    """Return whether a passage has a name, or its last word: people go by their family name.

    Of a name with a number it has both together.
    """
    text = f"{all_words(hit)}\n{hit.uri}"
    numbered = _NUMBERED.fullmatch(name)
    if numbered is None:
        return re.search(rf"(?<!\w){_spell(name.split()[-1])}", text, re.I) is not None
    before, number = numbered[1].split()[-1], numbered[2]
    behind = rf"(?<!\w){_spell(before)}(?:e?s)?\W{{0,3}}(?:v(?:ersion)?|no)?\.? ?"
    whole = rf"{behind}{_OTHERS}{re.escape(number)}(?:\.\d+)*{_NO_AMOUNT}"
    if before.lower() in _OF_TEXTS:
        whole += rf"|(?:§ ?|\b{before[:3]}\w?\. ?|^[\W_]*|> ){re.escape(number)}(?!\w|[.,]\d)"
    if re.search(whole, text, re.I | re.M):
        return True
    return any(_is_within(number, found) for found in re.finditer(behind + _RANGE, text, re.I))


def _is_within(number: str, found: re.Match[str]) -> bool:
    first, own, last = (
        tuple(map(int, re.findall(r"\d+", text or ""))) for text in (found["first"], number, found["last"])
    )
    return first <= own and (not last or own[: len(last)] <= last)


def _find_numbered(question: str, names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the names that a number follows, each with and without it."""
    dated = [span for span, _ in date_spans(question)]
    return [
        (f"{name}{number.group()}", name)
        for name in names
        for place in re.finditer(rf"(?<!\w){re.escape(name)}(?= )", question)
        if (number := _NUMBER.match(question, place.end()))
        and not any(start < number.end() and number.start() < end for start, end in dated)
    ]


def drop_unnamed(question: str, hits: Sequence[Hit]) -> Sequence[Hit]:
    """Return the passages without those that have no name of the question, where most of them have one.

    "Which port does Radicale listen on?" is not answered by the manual of another program.
    """
    lacking = [frozenset(find_missing_names(question, [hit])) for hit in hits]
    names = frozenset[str]().union(*lacking) - frozenset(find_missing_names(question, hits))
    named = [hit for hit, missing in zip(hits, lacking, strict=True) if not missing >= names]
    return named if names and len(named) >= _MOST * len(hits) else hits


def find_missing_nouns(question: str, hits: Sequence[Hit]) -> tuple[str, ...]:
    """Return the words in lower case of an English question that seem to name something, and that no passage has.

    Common words are left out: a passage says the same with others.
    """
    known, letters = _read_hits(hits)
    nouns = [_OWNING.sub("", token.word) for token in tokenize(question) if token.kind in ("word", "s")]
    return tuple(
        word for word in dict.fromkeys(nouns) if _names_something(word) and not _is_known(word, known, letters)
    )


def asks_for_unknown(question: str, unknown: Sequence[str], hits: Sequence[Hit]) -> bool:
    """Return whether a question asks for a kind of thing of which no passage has the word: "Is there a night bus?".

    `unknown` are its nouns that no passage has; "sign on" is the same word as sign-on.
    """
    if not asks_whether(question):
        return False
    kinds = [(match["kind"].lower(), match["particle"]) for match in _KIND_OF_THING.finditer(question)]
    _, letters = _read_hits(hits) if any(particle for _, particle in kinds) else (set[str](), "")
    return any(
        is_verb_form(kind) and f"{kind}{particle}" not in letters if particle else kind in unknown
        for kind, particle in kinds
    )


def _names_something(word: str) -> bool:
    if len(word) < _FEWEST_LETTERS or word.endswith(_NO_NOUN) or not word.isascii():
        return False
    return not (word in QUESTION_WORDS or is_verb_form(word) or groups_of(word) or not ASKING.isdisjoint(analyze(word)))


def _read_hits(hits: Sequence[Hit]) -> tuple[set[str], str]:
    """Return the terms of the hits, and their letters in a row."""
    said = "\n".join(f"{all_words(hit)}\n{hit.uri}" for hit in hits)
    return set(analyze(said)), _NOT_LETTERS.sub("", said.casefold())


def _is_known(name: str, known: set[str], letters: str) -> bool:
    terms = analyze(name)
    return not terms or known.issuperset(terms) or _NOT_LETTERS.sub("", name.casefold()) in letters


def _spell(word: str) -> str:
    """Return a pattern for a word with or without hyphens in it: e-mail, email."""
    return "-?".join(re.escape(letter) for letter in word.replace("-", ""))


def _join_neighbours(question: str, names: Sequence[str]) -> list[str]:
    """Return names that stand side by side in the question as one."""
    joined: list[str] = []
    for name in names:
        if joined and f"{joined[-1]} {name}" in question:
            joined[-1] = f"{joined[-1]} {name}"
        else:
            joined.append(name)
    return joined
