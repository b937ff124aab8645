"""Shares of a claim that a sentence has: of what it is about, of what it says, in order and in any order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ragstone.answer.verify.fit import read_sentence
from ragstone.answer.verify.frame import BRACKETS, Frame, is_neutral, read_tokens
from ragstone.language.analyzer import STOP_WORDS
from ragstone.language.grammar import BE, OWNING, Verb, first_verb, tokenize, words_of
from ragstone.language.names import is_code
from ragstone.language.negation import find_figures
from ragstone.language.vocabulary import GENERIC, Vocabulary, Word, content_words, read_vocabulary

_FLAG = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]{0,40}|(?<=[a-z|] )-\d(?![\d.]| ?[°%])")
_SIGN = re.compile(r"[\[\]:$@^~|\\&<>]\w")
"""Of a name that is told from another by its sign: [c from ]c."""
_MARKS = frozenset(("-", "–", "—", "&", "/", "…", "...", "--"))
"""Signs that join words and name nothing."""
_MOST_KINDS = 2
_DEFINED = re.compile(r"[^:.!?]{1,60}: \S")
"""A term and what it is."""
_PASSED = OWNING | BE | words_of("that this these those of in and")
"""Words that a claim may leave out or put in and still be the sentence."""
_DEFINES = re.compile(r"(?<=\s)(?:means|denotes|signifies|says|states|indicates|stands for|refers to)(?: that)?(?=\s)")
"""In a claim: what stands before it is a term, and what follows is said of that."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of a claim's words, in whatever form, between 0 and 1."""

    own: float = 0.0
    """Of the words that do not stand above the sentence, those that it has itself."""
    told: float = 0.0
    """Of all words, those of the sentence, the sentences before it and what stands above."""
    repeated: float = 0.0
    """Of all words, those that the sentence has in the same order."""
    subject: float = 0.0
    """Of the words before the verb, those that are told."""
    predicate: float = 0.0
    """Of the words from the verb on, those of the sentence itself."""
    is_verbatim: bool = False
    """True when the sentence has the claim word for word, and no telling word between."""
    counted: int = 0
    """Words and figures of the claim that the sentence itself has."""
    close: float = 0.0
    """Of the words that titles do not have, those of the sentence, its entry and the sentences before it."""
    states_default: bool = False
    """True when the sentence gives the default that the claim gives."""
    gives_default: bool = False
    """True when the sentence gives a default of what the claim is about, this one or another."""
    names_all: bool = False
    """True when every name of the claim is told."""
    has_verb: bool = False
    """True when the sentence itself has the verb of the claim, and not only a similar one."""


NOTHING = Shares()


@dataclass(frozen=True, slots=True)
class Context:
    """The texts over a sentence: titles far above, its entry or heading, and the sentences before it."""

    titles: str = ""
    entry: str = ""
    before: tuple[str, ...] = ()
    lead: str = ""
    """The first words of the passage, where neither a term nor a heading stands over the sentence."""

    @property
    def named(self) -> str:
        """Return what tells of whom or what a sentence speaks that does not name it."""
        return f"{self.titles}\n{self.entry}"

    @property
    def above(self) -> str:
        return f"{self.named}\n{self.lead}"

    @property
    def near(self) -> str:
        return "\n".join((self.entry, self.lead, *self.before))

    @property
    def text(self) -> str:
        return "\n".join((self.titles, self.entry, self.lead, *self.before))


def measure_shares(
    claim: str, said: str, sentence: str, frame: Frame | None, context: Context, *, is_row: bool = False
) -> Shares:
    """Return how much of a claim a sentence has; `said` is the claim in the figures of the sentence."""
    own, over = read_vocabulary(sentence), read_vocabulary(context.above)
    around = read_vocabulary(f"{context.text}\n{sentence}")
    verb = first_verb(tokenize(claim))
    defines = _DEFINES.search(claim) if _DEFINED.match(sentence) else None
    start = defines.start() if defines else verb.token.start if verb else 0
    # Rows have no verbs: "2.2 | 3.5" tells what runs on what.
    left_out = start if verb and (is_row or defines or _has_no_verb(verb, sentence)) else -1
    # What a line of a list without a verb says is read with the line that announces it.
    line = read_vocabulary(f"{context.entry}\n{context.lead}\n{sentence}") if left_out >= 0 and not is_row else own
    # What a row or an entry is about is named by its label: of what kind that is it need not say.
    kinds = _find_kinds(claim, start) if is_row or _DEFINED.match(sentence) else set()
    words = [
        word
        for word in content_words(claim)
        if word.start != left_out and (word.start not in kinds or around.has(word))
    ]
    # A name that only the text before has is that of another, unless the sentence points back.
    named = around if read_sentence(sentence).points_back else read_vocabulary(f"{context.named}\n{sentence}")
    subject = [word for word in words if word.start < start and (word.folded not in GENERIC or around.has(word))]
    spelt = [claim[first:last] for first, last, _ in find_figures(claim)]
    figures = sum(figure in sentence or figure not in said for figure in spelt)
    return Shares(
        own=_share([word for word in words if own.has(word) or not over.has(word)], own),
        told=_share([word for word in words if word.folded not in GENERIC or around.has(word)], around),
        repeated=frame.share if frame else 0.0,
        is_verbatim=frame is not None and is_verbatim(frame),
        subject=_share(subject, around, 1.0),
        predicate=_share([word for word in words if word.start >= start] or _find_light_words(claim, start), line, 1.0),
        close=_measure_close(words, sentence, context),
        counted=sum(map(own.has, words)) + figures,
        names_all=all(named.has(word) for word in words if word.is_name)
        and _names_flags(claim, f"{context.text}\n{sentence}"),
        has_verb=_has_verb(words, verb, own),
    )


def _find_kinds(claim: str, end: int) -> set[int]:
    """Return where the words before a verb stand that tell of what kind an identifier is: "the channel FM3"."""
    words = [word for word in content_words(claim) if word.start < end]
    found: set[int] = set()
    for word, following in reversed(list(pairwise(words))):
        is_next = claim[word.end : following.start].strip() in ("", *GENERIC) and not word.is_name
        is_kind = is_code(following.text) or following.text[1:].isupper() or following.start in found
        if is_next and is_kind and len(found) < _MOST_KINDS:
            found.add(word.start)
    return found


def _has_no_verb(verb: Verb, sentence: str) -> bool:
    """Return whether a claim has a verb that says nothing more, where a sentence is a line or entry without one."""
    return is_neutral(verb.token.word) and (bool(_DEFINED.match(sentence)) or first_verb(tokenize(sentence)) is None)


def _has_verb(words: Sequence[Word], verb: Verb | None, own: Vocabulary) -> bool:
    """Return whether a vocabulary has a verb, or of a form of "to be" or a modal the word behind it."""
    behind = [word for word in words if verb and word.start >= verb.token.start]
    return not behind or own.has_itself(behind[0])


def _find_light_words(claim: str, start: int) -> list[Word]:
    """Return the words from a place on that say little, and yet all that is said: used in "has been used"."""
    return [
        Word(token.word, token.start, token.end, False)
        for token in tokenize(claim)
        if token.start >= start and token.kind in ("participle", "word", "adverb") and token.word not in STOP_WORDS
    ]


def _measure_close(words: Sequence[Word], sentence: str, context: Context) -> float:
    near, titles = read_vocabulary(f"{context.near}\n{sentence}"), read_vocabulary(context.titles)
    return _share([word for word in words if near.has(word) or not titles.has(word)], near)


def is_verbatim(frame: Frame) -> bool:
    """Return whether a claim leaves out and puts in no more than articles, brackets and words of politeness."""
    mine, theirs = read_tokens(frame.statement), read_tokens(frame.sentence)
    put_in = [word for first, last, _, _ in frame.others for word, _ in mine[first:last]]
    left_out = [
        frame.sentence[theirs[place][1] :].split()[0]
        for (_, here), (_, there) in pairwise(frame.matched)
        for place in range(here + 1, there)
        if not _is_in_brackets(frame.sentence, theirs[place][1])
    ]
    return all(word.strip(".,;:").lower() in _PASSED for word in (*put_in, *left_out))


def _is_in_brackets(text: str, place: int) -> bool:
    return any(match.start() < place < match.end() for match in BRACKETS.finditer(text))


def _names_flags(claim: str, text: str) -> bool:
    """Return whether a text has the options of a claim; under "--color, --no-color" only the first is spoken of."""
    mine, theirs = find_flags(claim), find_flags(text)
    if any(sign not in text for sign in find_signs(claim)):
        return False
    return mine <= theirs and not any(f"--no-{flag.lstrip('-')}" in mine for flag in theirs - mine)


def find_signs(text: str) -> set[str]:
    """Return the words of a text that are told from others by a sign, and signs that stand alone: a key "#"."""
    words = {word.strip(".,;'\"“”‘’`*()") for word in text.split()}
    alone = {word for word in words if word and not any(map(str.isalnum, word))} - _MARKS
    return alone | {word for word in words if _SIGN.match(word)}


def find_flags(text: str) -> set[str]:
    """Return the options of commands that a text names, which differ by case."""
    return set(_FLAG.findall(text))


def _share(words: Sequence[Word], known: Vocabulary, empty: float = 0.0) -> float:
    return sum(map(known.has, words)) / len(words) if words else empty
