"""The words that tell what a text says, and whether another text has them, in whatever form."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice

from ragstone.language.analyzer import STOP_WORDS, fold
from ragstone.language.grammar import (
    BE,
    HAVE,
    LINKS,
    MODALS,
    NUMBERS,
    OBJECTS,
    OWNING,
    PREPOSITIONS,
    QUANTIFYING,
    SUBJECTS,
    is_known_verb,
    is_verb_form,
    words_of,
)
from ragstone.language.inflection import Roots, base_forms
from ragstone.language.names import is_identifier
from ragstone.language.negation import find_figures
from ragstone.language.quantities import Quantity
from ragstone.language.synonyms import AlikeWords, groups_of

REMEMBERED = 256
MOST_WORDS = 4000
"""Words of a text that are read."""
_WORD = re.compile(r"[^\W_](?:[\w'’&+]|[-./](?=\w)){0,60}(?:\+\+|#)?")
_STARTS = re.compile(r"(?:^|[.!?:;]\s+|[\"“‘(\n]\s*)$")
_CODE = re.compile(r"\w*\d\w*")
_INITIALS = re.compile(r"(?:[A-Z][\w'’-]*\s(?:(?:of|and|the|for|on|in|de)\s){0,2}){1,7}[A-Z][\w'’-]*")
_MEASURES = frozenset(("share", "angle", "dollars", "euros", "pounds"))
_TITLE_CASE = 0.6
"""Share of capitalised words from which capitals say nothing."""

_LIGHT = (
    STOP_WORDS
    | (BE | HAVE | MODALS | OWNING | QUANTIFYING | SUBJECTS | OBJECTS | PREPOSITIONS | LINKS | NUMBERS)
    | words_of(
        "whatever whichever whoever wherever regardless also however therefore thus hence moreover furthermore "
        "additionally meanwhile instead likewise similarly "
        "respectively namely overall indeed well too very quite rather so such both either neither own same other "
        "others another else ever yet still already just even only once again away back together now then here "
        "there thereby whose whom upon amid amidst throughout according due because since although though despite "
        "while whereas whether unless until till if when whenever where after before during within without between "
        "among per via like unlike including included include includes regarding concerning "
        "be been being is isn't having had do doing done make makes made making take takes took taken taking "
        "get gets got give gives gave given become becomes became becoming remain remains remained "
        "go goes went going come comes came coming put puts use uses used using use happen happens happened "
        "occur occurs occurred occurring call called name named known certain various several total "
        "number numbers amount thing things way ways case cases fact kind type part one ones many much more most less "
        "few fewer least about around almost nearly roughly approximately over under up down off out on "
        "able unable order mr mrs ms dr sir lord lady st saint time times first previously later earlier ago "
        "subsequently eventually finally "
        "initially originally currently today it's its that's there's he's she's who's what's let's say says said "
        "whole entire all any every each no none nor not never cannot can't won't don't doesn't didn't isn't aren't "
        "wasn't weren't hasn't haven't hadn't couldn't wouldn't shouldn't must may might could would should shall "
        "people person persons heavily strongly greatly highly considerably extremely fairly particularly especially "
        "really actually together enough "
        "reportedly apparently possibly perhaps probably maybe likely unlikely allegedly as well result"
    )
) - words_of("hundred thousand million")
"""Words that carry grammar, degree or time: other checks read those of them that matter."""
_HELPING = BE | HAVE | MODALS

_KINDS = words_of(
    "option flag switch command parameter setting variable field argument role type template value directive keyword "
    "function method class mode attribute program tool utility column row table key file server daemon service library "
    "package module project software application"
)
GENERIC = _KINDS | {f"{noun}s" for noun in _KINDS} | words_of("property properties entry entries utilities classes")
"""Nouns that tell what kind of thing a name is of."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word that tells something, and where it stands."""

    text: str
    start: int
    end: int
    is_name: bool
    may_be_name: bool = False
    """True for the first word of a sentence where a common noun would have an article."""

    @property
    def folded(self) -> str:
        return _fold_word(self.text)


class Phrase(tuple[Word, ...]):
    """Words of a text, to look up whether one of them is another word."""

    @cached_property
    def _folded(self) -> frozenset[str]:
        return frozenset(word.folded for word in self)

    @cached_property
    def _plain(self) -> AlikeWords:
        return AlikeWords(word.folded for word in self if not word.is_name)

    def has(self, word: Word) -> bool:
        """Return whether one of them is the word, or for a plain word one that is alike; names are the same or not."""
        return word.folded in self._folded or (not word.is_name and self._plain.has(word.folded))


@lru_cache(16 * REMEMBERED)
def _fold_word(word: str) -> str:
    return fold(word).casefold().removesuffix("'s").removesuffix("’s").rstrip("'’.")


@lru_cache(REMEMBERED)
def content_words(text: str) -> Phrase:
    """Return the words of a text that tell something, without figures and dates."""
    bare = _blank_figures(text)
    matches = list(_WORD.finditer(bare))[:MOST_WORDS]
    capitals = sum(match.group()[0].isupper() for match in matches)
    # A title writes its verb with a capital: "Ada Holm is Head of Port" is none.
    has_verb = any(match.group() in _HELPING or is_verb_form(match.group()) for match in matches)
    shouting = len(matches) > 4 and capitals > _TITLE_CASE * len(matches) and not has_verb
    found = []
    for place, match in enumerate(matches):
        written = match.group()
        folded = _fold_word(written)
        if not folded or folded in _LIGHT:
            continue
        named = not shouting and _is_name(bare, matches, place)
        if named or len(folded) > 1:
            may_be_name = not shouting and not named and _may_be_name(bare, matches, place)
            found.append(Word(written, *match.span(), named, may_be_name))
    return Phrase(found)


def _blank_figures(text: str) -> str:
    """Return the text with blanks for dates, numbers and units of measure; what is counted stays."""
    for start, end, figure in find_figures(text):
        if isinstance(figure, Quantity) and not is_measured(figure):
            end = start + len(figure.words.split(" ")[0])
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def is_measured(quantity: Quantity) -> bool:
    """Return whether a quantity has a unit of measure; others count things."""
    return " in " in quantity.dimension or quantity.dimension in _MEASURES


def _is_name(text: str, matches: list[re.Match[str]], place: int) -> bool:
    written = matches[place].group()
    if is_identifier(written) or _CODE.fullmatch(written):
        return True
    if not written[0].isupper() or written.casefold() in _LIGHT:
        return False
    if written[1:2].isupper() or not _STARTS.search(text[: matches[place].start()][-3:]):
        return True
    return _begins_with_name(text, matches, place)


def _begins_with_name(text: str, matches: list[re.Match[str]], place: int) -> bool:
    """Return whether a sentence's first word is a name: another word of it follows."""
    if place + 1 == len(matches):
        return False
    after = matches[place + 1]
    if text[matches[place].end() : after.start()] not in (" ", " & "):
        return False
    following = after.group()
    return following[0].isupper() and following.casefold() not in _LIGHT


def _may_be_name(text: str, matches: list[re.Match[str]], place: int) -> bool:
    """Return whether a sentence begins with a word and its verb: a noun in the singular would have an article."""
    written = matches[place].group()
    if place + 1 == len(matches) or not written[0].isupper() or text[matches[place].end()] != " ":
        return False
    following = matches[place + 1].group()
    if written.endswith(("s", "ing", "ly", "ed")) and not written.endswith(("is", "us", "ss")):
        return False
    return following in _HELPING or (following.endswith(("s", "ed")) and is_known_verb(following))


class Vocabulary:
    """The words of a text, to look up whether it has a word in some form."""

    def __init__(self, text: str) -> None:
        matches = list(islice(_WORD.finditer(text), MOST_WORDS))
        words = [match.group() for match in matches]
        folded = {Word(word, 0, 0, False).folded for word in words}
        self.words = folded | {part for match in matches for part in _split_word(text, match) if part}
        self._bases = frozenset[str]().union(*map(base_forms, self.words))
        self._roots = Roots(self._bases)
        self._beginnings: dict[str, list[str]] = defaultdict(list)
        for base in self._bases:
            self._beginnings[base[:3]].append(base)
        self._groups = frozenset[int]().union(*map(groups_of, self.words))
        self._joined = {word.replace("-", "") for word in folded} | set(_join_pairs(words))
        self._initials = {_initials(match.group()) for match in _INITIALS.finditer(text[:100_000])}

    def has(self, word: Word) -> bool:
        """Return whether the text has the word in some form, or for a plain word one that means the same."""
        if word.is_name:
            return self._has_name(word)
        return self._has_form(word.folded) or self._has_plain(word.folded)

    def has_itself(self, word: Word) -> bool:
        """Return whether the text has the word in some form; one that means the same is not enough."""
        return self._has_name(word) if word.is_name else self._has_form(word.folded)

    def _has_name(self, word: Word) -> bool:
        """Return whether the text has a name, or one that it begins or that begins it: German for Germany."""
        name = word.folded
        if name in self.words or name.replace("-", "") in self._joined or self._has_initials(word.text):
            return True
        folder, _, file = name.rpartition("/")
        if folder and file in self.words and folder in self.words:
            return True
        near = self._beginnings.get(name[:3], ())
        return self._has_form(name) and (
            not groups_of(name).isdisjoint(self._groups)
            or any(name.startswith(other) or other.startswith(name) for other in near if len(other) > 2)
        )

    def _has_form(self, folded: str) -> bool:
        if folded in self.words or folded.replace("-", "") in self._joined:
            return True
        return any(base in self._bases or self._roots.has(base) for base in base_forms(folded))

    def _has_plain(self, folded: str) -> bool:
        parts = [part for part in re.split(r"[-./]", folded) if part]
        if len(parts) > 1:
            return all(part in _LIGHT or self._has_form(part) or self._has_plain(part) for part in parts)
        return not self._groups.isdisjoint(groups_of(folded))

    def _has_initials(self, written: str) -> bool:
        return written.casefold().replace(".", "") in self._initials


def _split_word(text: str, match: re.Match[str]) -> list[str]:
    """Return the parts of a word; of a path only the name of the file: "/etc/ssh/sshd_config" does not name ssh."""
    folded = Word(match.group(), 0, 0, False).folded
    if text[max(0, match.start() - 2) : match.start()].rstrip(".").endswith("/"):
        return [folded.rpartition("/")[2]]
    return re.split(r"[-./]", folded)


def _join_pairs(words: Iterable[str]) -> Iterable[str]:
    before = ""
    for word in words:
        yield (before + word).casefold()
        before = word


def _initials(run: str) -> str:
    words = (word for word in run.split() if word.casefold() not in STOP_WORDS)
    return "".join(word[0] for word in words if word[0].isupper()).casefold()


@lru_cache(REMEMBERED)
def read_vocabulary(text: str) -> Vocabulary:
    """Return the vocabulary of a text, kept for the next statement that rests on it."""
    return Vocabulary(text)
