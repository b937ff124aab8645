"""The verbs of a text with the words in their roles, as far as word order, prepositions and the passive tell them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ragstone.language.grammar import (
    ADVERBS,
    BE,
    HAVE,
    MODALS,
    OBJECTS,
    OWNING,
    PASTS,
    PLURALS,
    PREPOSITIONS,
    QUANTIFYING,
    SUBJECTS,
    is_known_verb,
    is_past_form,
    words_of,
)
from ragstone.language.vocabulary import Phrase, Word, content_words

MOST_TOKENS = 120
_TOKEN = re.compile(r"[^\W_](?:[\w'’&]|[-./](?=\w)){0,60}|[,;:()–—]|--")
_TAGS = {
    "be": BE | words_of("be been being got gets"),
    "auxiliary": HAVE | MODALS,
    "relative": words_of("who which that whom whose where"),
    "break": words_of("when while after before because since although though if unless until so but whereas"),
    "preposition": PREPOSITIONS,
    "and": words_of("and or nor"),
    "determiner": OWNING | QUANTIFYING,
    "adverb": ADVERBS | words_of("further very more most much early late long yet"),
    "stop": frozenset(";:"),
}
_PRONOUNS = SUBJECTS | OBJECTS
_APOSTROPHE = re.compile("['’]")
_CLAUSE_ENDS = ("verb", "be", "auxiliary", "relative", "break", "stop")
_PARTICLES = words_of("up out off down over away on")
_SAME_WAY = {"into": "to", "onto": "to", "toward": "to", "towards": "to", "upon": "on", "within": "in", "during": "in"}
LIGHT_VERBS = words_of(
    "take takes took taken taking give gives gave given giving make makes made making become becomes became "
    "go goes went put puts use uses used using get gets got"
)
"""Verbs that tell little by themselves, and yet have a subject and an object."""
_REFUSING = re.compile(r"(?:refus|declin|fail|unable|forgot)")
_POSSIBLE = words_of("would might may")
_DENYING = words_of("not never cannot nobody none nothing")
MOST_RELATIONS = 16
"""Verbs of a text that are read, and relations that one is compared with."""
_MOST_WORDS = 10
"""Words of a role."""
_MOST_READ = 40
"""Tokens beside a verb that may belong to it."""


_NO_WORDS = Phrase()


@dataclass(frozen=True)
class Relation:
    """A verb with the words in their roles: who acts ("subject"), what is acted on ("object"), "to", "from", "by"."""

    verb: str
    roles: Mapping[str, Phrase]
    points_back: bool = False
    """True where a pronoun stands for who acts or is acted on."""
    denied: bool = False
    possible: bool = False
    """True where it may or would be so."""

    def get(self, role: str) -> Phrase:
        return self.roles.get(role, _NO_WORDS)

    @cached_property
    def words(self) -> Phrase:
        """Return the words of all roles."""
        return Phrase(word for words in self.roles.values() for word in words)


@dataclass(slots=True)
class _Clause:
    """The tokens of a text, what each is, and the words that tell something by their places."""

    written: list[str]
    tokens: list[str]
    words: list[Word | None]
    tags: list[str]

    def tag_before(self, place: int) -> str:
        """Return what stands before a token, adverbs left out."""
        return next((self.tags[n] for n in range(place - 1, -1, -1) if self.tags[n] != "adverb"), "")

    def tag_at(self, place: int) -> str:
        return self.tags[place] if 0 <= place < len(self.tags) else ""


@dataclass(slots=True)
class _Subject:
    """The words before a verb, whether the verb is in the passive, and whether a pronoun is its subject."""

    words: tuple[Word, ...] = ()
    passive: bool = False
    points_back: bool = False


@lru_cache(512)
def read_relations(text: str) -> tuple[Relation, ...]:
    """Return the verbs of a text with the words in their roles."""
    matches = list(_TOKEN.finditer(text))[:MOST_TOKENS]
    telling = {word.start: word for word in content_words(text)}
    written = [match.group() for match in matches]
    words = [telling.get(match.start()) for match in matches]
    clause = _Clause(written, [token.lower() for token in written], words, [])
    for place in range(len(written)):
        clause.tags.append(_tag(clause, place))
    found: list[Relation] = []
    last = _Subject()
    for place, tag in enumerate(clause.tags):
        if len(found) < MOST_RELATIONS and (tag == "verb" or (tag == "be" and _is_copula(clause, place))):
            last = _read_left(clause, place, last)
            found.append(_read_verb(clause, place, last))
    return tuple(found)


def _tag(clause: _Clause, place: int) -> str:
    """Return what a token is; those before it are known."""
    spelt, word = clause.tokens[place], clause.words[place]
    if word is not None and word.is_name:
        return "word"
    for tag, tokens in _TAGS.items():
        if spelt in tokens:
            return tag
    if not spelt[0].isalnum():
        return "mark"
    if spelt.endswith("ly") and len(spelt) > 4:
        return "adverb"
    if (word is not None or spelt in LIGHT_VERBS) and _is_verb(clause, place):
        return "verb"
    return "word" if word is not None or _is_pronoun(spelt) else "light"


def _is_pronoun(spelt: str) -> bool:
    """Return whether a token stands for something told before: a pronoun, or a number of things."""
    return spelt[0].isdigit() or _APOSTROPHE.split(spelt, 1)[0] in _PRONOUNS


def _is_verb(clause: _Clause, place: int) -> bool:
    spelt, before = clause.tokens[place], clause.tag_before(place)
    lead = clause.tokens[place - 1] if place else ""
    after = clause.tokens[place + 1] if place + 1 < len(clause.tokens) else ""
    if before == "determiner" or (place and clause.written[place][0].isupper()):
        return False
    if spelt.endswith("ing"):
        led = before in ("be", "preposition", "mark", "", "and", "break", "auxiliary") and lead != "of"
        hung = before == "word" and (after in PREPOSITIONS or after in OWNING or lead[0].isdigit())
        return len(spelt) > 5 and (led or hung)
    if is_past_form(spelt):
        return before not in ("preposition", "light", "")
    if before == "auxiliary" or lead == "to":
        return before == "auxiliary" or is_known_verb(spelt)
    if not is_known_verb(spelt) or after == "of" or before not in ("word", "relative", "and"):
        return False
    if spelt in PLURALS and after in PREPOSITIONS:
        return False
    plural = lead.endswith("s") and not lead.endswith(("ss", "us", "is"))
    return spelt.endswith("s") != plural or before == "relative"


def _is_copula(clause: _Clause, place: int) -> bool:
    """Return whether a form of "be" is the only verb of its clause."""
    after = next((tag for tag in clause.tags[place + 1 : place + 4] if tag != "adverb"), "")
    return after not in ("verb", "be")


def _read_left(clause: _Clause, place: int, last: _Subject) -> _Subject:
    """Return what stands before a verb; a verb behind "and" has the subject of the verb before it."""
    at, helped, passive = place - 1, clause.tags[place] == "be", False
    finite = helped
    while clause.tag_at(at) in ("adverb", "auxiliary", "be"):
        helped = helped or clause.tags[at] != "adverb"
        finite = finite or (helped and clause.tokens[at] not in ("being", "been", "be"))
        passive = passive or clause.tags[at] == "be"
        at -= 1
    spelt, tag = clause.tokens[place], clause.tag_at(at)
    passive = passive and clause.tags[place] == "verb" and not spelt.endswith("ing")
    bare = not helped and spelt not in PASTS and is_past_form(spelt)
    if (
        at > 0
        and clause.tokens[at - 1 : at + 1] != ["used", "to"]
        and (clause.tokens[at] == "to" and clause.tags[at - 1] == "verb")
    ):
        return _Subject(last.words, False, last.points_back)
    if at >= 0 and (clause.tokens[at] == "to" or (tag == "preposition" and spelt.endswith("ing"))):
        return _Subject(points_back=True)
    if tag == "and" or (tag == "mark" and spelt.endswith("ing")):
        # The verb before may be that of an inner clause, so its subject is not sure to be that of this one.
        passive = passive or (last.passive and bare)
        return _Subject(last.words, passive, last.points_back or not passive)
    led = place + 1 < len(clause.tokens) and clause.tokens[place + 1] in PREPOSITIONS
    reduced = tag == "mark" and bare and led and not _ends_aside(clause, at)
    if tag == "relative" or reduced:
        at = next((n for n in range(at, -1, -1) if clause.tags[n] not in ("relative", "mark", "preposition")), -1)
        return _Subject(_read_antecedent(clause, at), passive or reduced)
    if tag == "mark":
        at = _skip_aside(clause, at)
    words, end = _read_phrase(clause, at)
    if finite and clause.tag_at(end) in ("verb", "be", "auxiliary") and "mark" not in clause.tags[end:at]:
        words = _read_holder(clause, end) or words
    behind = bare and tag == "word" and "by" in clause.tokens[place + 1 : place + 3]
    pronoun = not words and at >= 0 and _is_pronoun(clause.tokens[at])
    return _Subject(words, passive or behind, pronoun)


def _read_holder(clause: _Clause, verb: int) -> tuple[Word, ...]:
    """Return what a clause that hangs on a noun belongs to: the code in "code that stores data", the man holding it."""
    spelt, before = clause.tokens[verb], clause.tag_before(verb)
    hung = spelt.endswith("ing") or (is_past_form(spelt) and spelt not in PASTS)
    if before != "relative" and not (before == "word" and hung):
        return ()
    start = max(n for n in range(verb) if clause.tags[n] == before)
    return _read_phrase(clause, start - (before == "relative"))[0]


def _ends_aside(clause: _Clause, at: int) -> bool:
    """Return whether a mark ends a bracket or a relative clause."""
    if clause.tokens[at] != ",":
        return clause.tokens[at] == ")"
    opened = next((n for n in range(at - 1, -1, -1) if clause.tokens[n] == ","), -1)
    return opened >= 0 and clause.tag_at(opened + 1) == "relative"


def _skip_aside(clause: _Clause, at: int) -> int:
    """Return the place before a bracket or a clause between commas that ends at a place."""
    mark = "(" if clause.tokens[at] == ")" else ","
    opened = [n for n in range(max(1, at - _MOST_READ), at) if clause.tokens[n] == mark]
    if mark == ",":
        opened = [n for n in opened if clause.tag_at(n + 1) in ("relative", "verb")]
    return opened[-1] - 1 if opened else at - 1


def _read_antecedent(clause: _Clause, at: int) -> tuple[Word, ...]:
    """Return the words right before a relative clause."""
    found: list[Word] = []
    for place in range(at, max(-1, at - _MOST_READ), -1):
        tag, word = clause.tags[place], clause.words[place]
        if tag not in ("word", "light", "determiner", "and") and clause.tokens[place] != "of":
            break
        if word is not None:
            found.append(word)
    return tuple(found)


def _read_phrase(clause: _Clause, at: int) -> tuple[tuple[Word, ...], int]:
    """Return the words of a phrase that no preposition leads to, and where it begins."""
    found: list[Word] = []
    open_words: list[Word] = []
    nearest: list[Word] = []
    place = at
    while place > max(-1, at - _MOST_READ) and clause.tags[place] not in _CLAUSE_ENDS:
        tag, spelt, word = clause.tags[place], clause.tokens[place], clause.words[place]
        if tag == "and" and clause.tag_at(place - 1) == "mark" and "verb" in clause.tags[:place]:
            break
        if (spelt in ("as", "than") and open_words) or (place == at and _is_pronoun(spelt)):
            break
        if spelt == "," and _ends_clause(clause, place):
            break
        if tag == "mark" or (tag == "determiner" and clause.tag_at(place - 1) in ("word", "light")):
            found += open_words
            open_words = []
        if spelt == ")":
            place = _skip_aside(clause, place) + 1
        elif tag == "preposition" and spelt != "of":
            nearest = nearest or open_words
            open_words = []
        elif word is not None and tag == "word":
            open_words.append(word)
        place -= 1
    return (*found, *open_words) or tuple(nearest), place


def _ends_clause(clause: _Clause, comma: int) -> bool:
    """Return whether what stands before a comma belongs to a verb of its own."""
    tags = clause.tags[max(0, comma - _MOST_READ) : comma]
    return next((tag in ("verb", "be", "auxiliary") for tag in reversed(tags) if tag in ("mark", *_CLAUSE_ENDS)), False)


def _read_verb(clause: _Clause, place: int, left: _Subject) -> Relation:
    roles: dict[str, list[Word]] = {}
    for role, word in _read_right(clause, place):
        roles.setdefault(role, []).append(word)
    if left.passive:
        roles["object"] = [*left.words, *roles.get("object", [])]
        roles["subject"] = roles.pop("by", [])
    else:
        roles["subject"] = list(left.words)
    verb = clause.words[place]
    name = verb.folded if verb is not None else clause.tokens[place]
    name = name if clause.tags[place] == "verb" else "be"
    found = {role: Phrase(words[:_MOST_WORDS]) for role, words in roles.items() if words}
    return Relation(name, found, left.points_back, _is_denied(clause, place), _is_possible(clause, place))


def _is_possible(clause: _Clause, place: int) -> bool:
    at = place - 1
    while clause.tag_at(at) in ("adverb", "auxiliary", "be"):
        if clause.tokens[at] in _POSSIBLE:
            return True
        at -= 1
    return False


def _is_denied(clause: _Clause, place: int) -> bool:
    """Return whether a verb is denied: by a word before it, or behind a form of "be"."""
    at = place - 1
    while clause.tag_at(at) in ("adverb", "auxiliary", "be"):
        at -= 1
    if at > 0 and clause.tokens[at] == "to":
        return _REFUSING.match(clause.tokens[at - 1]) is not None
    around = [*clause.tokens[at + 1 : place + 1], *(clause.tokens[place + 1 : place + 2])]
    lead = clause.tokens[max(0, at - 2) : at + 1]
    return any(spelt in _DENYING or spelt.endswith(("n't", "n’t")) for spelt in around) or "no" in lead


def _read_right(clause: _Clause, place: int) -> list[tuple[str, Word]]:
    """Return the words behind a verb with their roles; what begins the next clause is none of them."""
    found: list[tuple[str, Word]] = []
    role, kept = "object", 0
    for at in range(place + 1, min(len(clause.tokens), place + _MOST_READ)):
        tag, spelt, word = clause.tags[at], clause.tokens[at], clause.words[at]
        if tag in ("verb", "be", "auxiliary"):
            # "declared an emergency, and Reyes contacted": Reyes is no part of what was declared.
            return found[:kept] if kept and not spelt.endswith("ing") else found
        if tag in _CLAUSE_ENDS or (spelt == "to" and clause.tag_at(at + 1) == "verb"):
            return found
        if tag == "preposition" and spelt != "of":
            role = role if at == place + 1 and spelt in _PARTICLES else _SAME_WAY.get(spelt, spelt)
        elif tag == "and" or spelt == ",":
            kept = len(found)
        elif word is not None and tag == "word":
            found.append((role, word))
    return found
