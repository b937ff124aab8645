"""A question that follows others: what it leans on, by its words alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ragstone.core.search import Exchange
from ragstone.core.types import Hit
from ragstone.language.analyzer import analyze
from ragstone.language.grammar import PREPOSITIONS, words_of
from ragstone.language.names import QUESTION_WORDS
from ragstone.language.questions import (
    AUXILIARY,
    complete,
    is_question,
    is_swap,
    lacks_subject,
    points_back,
    telling_terms,
)
from ragstone.language.topics import find_head, find_topic, has_own_subject

ENOUGH_WORDS = 3
"""Words with a meaning of their own that words have which need nothing said before."""
Leaning = Literal["yes", "maybe", "no"]
_GOES_ON = re.compile(
    r"(?:and|but|so|then|or|also|otherwise|instead|what about|how about|what if|why not|anything else|what else)\b",
    re.I,
)
_LINK = re.compile(r"(?:and|but|so|then|or|also),? ", re.I)
_OPENINGS = QUESTION_WORDS | PREPOSITIONS | words_of("and but so then or also otherwise instead all every each")
_BARE = re.compile(
    r"(?:and |but |so )?(?P<word>why|when|where|how|(?:since|until|from) when|by whom"
    r"|how (?:often|much|many|long|far|soon|old))\W*",
    re.I,
)
"""A question that asks and says nothing else."""
_CLAUSE = re.compile(rf"(?:\w+ )?(?:how|when|where|why|what)(?: \w+)? (?P<rest>{AUXILIARY} .+)", re.I)
_PLACE = re.compile(r"\b(?:with|in|on|for|of|from|via) (?!an?\b|the\b|one\b)([\w-]+)", re.I)
"""A bare noun that says what a question is asked of: "with rsync"."""
_OF_A_THING = re.compile(r"\b(?:its|their)\b", re.I)
_POINTS_TO_THING = re.compile(r"\b(?:it|its|they|them|their)\b", re.I)
_PROPERTY = re.compile(
    r"(?:(?:and|but|so|also|what about|how about) )+(?:its|their|his|her) "
    r"(?P<property>(?:[\w-]+ ){0,3}?[\w-]+?(?P<many>(?<![su])s)?)\W*",
    re.I,
)
"""Asks for something of what was talked about: "And its price?"."""
_DEFINES = re.compile(r"(?:what|who)(?:'s|’s| (?:is|are|was|were))(?: an?)? [\w-]+\W*", re.I)
"""Asks for something new, whatever was said before."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """The texts to search for and to answer in place of a question."""

    search: str
    question: str
    leaning: Leaning = "no"
    """`maybe` where the words do not tell: the texts are the question's own, and what is found has to decide."""
    basis: str = ""
    """The question that it leans on, or may lean on."""
    complete: bool = False
    """True where the text to answer has all that the question leaves out."""

    @property
    def alone(self) -> bool:
        return self.leaning != "yes"


def resolve_follow_up(question: str, earlier: Sequence[Exchange], most_chars: int) -> FollowUp:
    """Resolve a question that follows earlier ones, oldest first.

    "it" and the like are replaced by what an earlier question was about. Else a few words that are no question of their
    own ("And on Sundays?") are searched for together with the last one that is, and answered by themselves.
    """
    basis = topic = ""
    for turn in earlier:
        if not turn.question.strip():
            continue
        told = _resolve(turn.question, basis, topic, most_chars)
        if told.leaning == "maybe" and _stays_with(basis, turn.answer):
            basis = lean_on(turn.question, basis)
        elif told.alone or told.complete:
            basis = told.question
        else:
            continue
        # What "its" stood for, and not what was asked of it, is "it" in the next question, too.
        topic = topic if told.complete and _OF_A_THING.search(turn.question) else find_topic(basis)
    return _resolve(question, basis, topic, most_chars)


def _stays_with(basis: str, answer: str) -> bool:
    """Return whether an answer has words of the topic of the question before, or there is none."""
    return not answer or not telling_terms(find_topic(basis)).isdisjoint(analyze(answer))


def join_questions(basis: str, question: str) -> str:
    """Return a question behind the one that it leans on, to search for both."""
    opening = question.split(maxsplit=1)[0].lower()
    # A capital inside a sentence is read as a name.
    rest = question[:1].lower() + question[1:] if opening in _OPENINGS else question
    return f"{basis.rstrip(' ?!.')} {rest}"


def lean_on(question: str, basis: str) -> str:
    """Return a question with the topic of the one that it leans on."""
    topic = find_topic(basis)
    return f"{question.rstrip(' ?!.')} ({topic})?" if topic else question


def changes_subject(question: str, found: Sequence[Hit], on_topic: Sequence[Hit]) -> bool:
    """Return whether a question is about something else than what was talked about before.

    It is where it has a noun that no passage on the topic so far has, or where what was found for it alone is titled
    with a word of it that these passages do not have. Its verbs do not tell: it says "get rid of" where a text says
    "delete".
    """
    known = {term for hit in on_topic for term in analyze(f"{hit.title}\n{hit.section}\n{hit.text}")}
    head = analyze(find_head(question))
    if head and known.isdisjoint(head):
        return True
    titles = {term for hit in found for term in analyze(f"{hit.title}\n{hit.section}")}
    place = set(analyze(" ".join(_PLACE.findall(question)))).intersection(*(analyze(hit.text) for hit in found[:1]))
    return not titles.isdisjoint(telling_terms(question) - known) or not place <= known


def _resolve(question: str, basis: str, topic: str, most_chars: int) -> FollowUp:
    leaning = _find_leaning(question) if basis else "no"
    if leaning != "yes":
        return FollowUp(question, question, leaning, basis if leaning == "maybe" else "")
    if not _POINTS_TO_THING.search(question):
        topic = find_topic(basis)
    filled, joined = _fill_in(question, basis, topic), join_questions(basis, question)
    if len(max(joined, filled, key=len)) > most_chars:
        return FollowUp(question, question)
    if filled != question and is_question(_LINK.sub("", filled)):
        return FollowUp(filled, filled, "yes", basis, complete=True)
    own = telling_terms(question) and not points_back(question) and not _BARE.fullmatch(question)
    # Answered by its own words where it has any: a sentence about the one before would be found as well.
    return FollowUp(joined, question if own else joined, "yes", basis)


def _fill_in(question: str, basis: str, topic: str) -> str:
    """Return a question with what it leaves out: "Why?" behind "When was it built?" asks "Why was it built?"."""
    asked = _BARE.fullmatch(question)
    if asked and (clause := _CLAUSE.fullmatch(basis)):
        return f"{asked['word'].capitalize()} {clause['rest']}"
    if topic and (asked := _PROPERTY.fullmatch(question)):
        return f"What {'are' if asked['many'] else 'is'} {topic}'s {asked['property']}?"
    return complete(question, basis, topic) if points_back(question) or is_swap(question) else question


def _find_leaning(question: str) -> Leaning:
    told = len(telling_terms(question))
    if _DEFINES.fullmatch(question) and told:
        return "no"
    if _BARE.fullmatch(question) or points_back(question) or lacks_subject(question) or _GOES_ON.match(question):
        return "yes"
    if not is_question(question):
        return "yes" if told < ENOUGH_WORDS else "no"
    return "maybe" if told <= ENOUGH_WORDS and not has_own_subject(question) else "no"
