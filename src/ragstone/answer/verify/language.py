"""Claims and evidence that are not in English: the checks read English and would miss a denial.

A statistical detector tells them. English text full of foreign names ("Verdi composed Aida") must pass, so the words
without capitals are looked at by themselves, and English function words and verbs raise the bar.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragstone.answer.verify.checks import check
from ragstone.answer.verify.objections import OTHER_FIGURE, has_kind
from ragstone.language.analyzer import STOP_WORDS
from ragstone.language.detector import probability_of
from ragstone.language.grammar import ADVERBS, LINKS, MODALS, PARTICIPLES, PASTS, PREPOSITIONS, is_known_verb, words_of

_LEAST_ENGLISH, _LEAST_ENGLISH_SMALL = 0.02, 0.05
"""Probability of English of all words, and of those without a capital, under which a text is in another language.

No claim of SciFact is under the first one; sentences of three words in other languages are."""
_DESPITE_ENGLISH_WORDS = 0.001
"""The same for a text with words that only English has."""
_WITH_FOREIGN_DENIAL = 0.2
"""The same for a text that denies something in another language."""
_FEWEST_LETTERS = 8
"""Of different words."""
_SHORT = 60
"""Letters under which the passage has a say in the language of a sentence."""
_MOST_CHARS = 400

_WORD = re.compile(r"(?<![\w@./:\\-])[^\W\d_]+(?:['’-][^\W\d_]+)*(?![\w@/\\])")
"""Neither identifiers nor part numbers nor addresses."""
_SEPARATOR = re.compile(r"(?<=\d)[.,](?=\d)")
_QUOTED = re.compile(r"[\"“„«][^\"“”„«»]{1,200}[\"”“»]")
_SHARED = words_of(
    "a about also am an as at be bit bred but by can come cost die do down even fed fell for had has have he her "
    "his hit i if in is it led let like lit man me met most my near no nor of off on once one online or over per "
    "put sank see sent set so sold still till to too under up us via was we will won"
)
"""Words that other languages have too."""
_DENIALS = words_of(
    "aldri aldrig aucun aucune değil ei geen ikke ingen inte jamais kein keine keinem keinen keiner ne nebo nem "
    "nenhum nenhuma není nessun nessuna nessuno nicht nichts nie niemals niemand niet niets nigdy nikt ninguna "
    "ninguno ninguém ningún non nooit nu nunca não pas rien sans sem senza sin tampoco"
)
_FREQUENT = words_of("and are been could from not should that the their these they this were which with would")
_CLEARLY_ENGLISH = 0.15
"""Share of these among the words from which the detector, which takes a while to load, is not asked."""
_ENGLISH = (STOP_WORDS | ADVERBS | LINKS | MODALS | PARTICIPLES | PASTS | PREPOSITIONS) - _SHARED


def is_foreign(claim: str, sentence: str, passage: str) -> bool:
    """Return whether a claim, or a sentence of a passage that is read beside it, is not in English."""
    both = f"{claim} {sentence}"
    texts = [claim, sentence, both]
    if len(both) < _SHORT:
        texts.append(f"{both} {passage}")
    return any(is_foreign_text(text) for text in texts)


def differs_in_figures(claim: str, sentence: str) -> bool:
    """Return whether a sentence in another language states other figures, however its commas and points are meant."""
    words = {word.lower() for text in (claim, sentence) for word in _WORD.findall(text)}
    return words.isdisjoint(_DENIALS | {"no"}) and all(
        has_kind(check(mine, theirs).conflicts, OTHER_FIGURE)
        for mine in (claim, _swap_separators(claim))
        for theirs in (sentence, _swap_separators(sentence))
    )


def _swap_separators(text: str) -> str:
    return _SEPARATOR.sub(lambda mark: "," if mark.group() == "." else ".", text)


def is_foreign_text(text: str) -> bool:
    """Return whether a text is surely not in English."""
    words = _WORD.findall(_QUOTED.sub(" ", text[:_MOST_CHARS]))
    small = [word for word in words if not word[0].isupper()]
    if not small or sum(map(len, {word.lower() for word in words})) < _FEWEST_LETTERS:
        return False  # names and figures are of no language
    frequent = sum(word.lower() in _FREQUENT for word in words)
    if frequent >= _CLEARLY_ENGLISH * len(words) and _DENIALS.isdisjoint(small):
        return False
    of_all, of_small = _limits(small)
    return probability_of("en", " ".join(words)) < of_all and probability_of("en", " ".join(small)) < of_small


def _limits(small: Sequence[str]) -> tuple[float, float]:
    """Return under which probabilities of English a text with these words is in another language."""
    if any(word in _ENGLISH or _is_english_verb(word) for word in small):
        return _DESPITE_ENGLISH_WORDS, _DESPITE_ENGLISH_WORDS
    if not _DENIALS.isdisjoint(small):
        return _WITH_FOREIGN_DENIAL, _WITH_FOREIGN_DENIAL
    return _LEAST_ENGLISH, _LEAST_ENGLISH_SMALL


def _is_english_verb(word: str) -> bool:
    return word.endswith(("s", "ed")) and is_known_verb(word)
