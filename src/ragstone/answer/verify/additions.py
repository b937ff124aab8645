"""Additions of a statement to its sources: names they lack, clauses they do not say, certainty, words of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import islice, pairwise

from ragstone.answer.verify.objections import Objection, ObjectionKind
from ragstone.language.grammar import is_past_form, is_verb_form
from ragstone.language.inflection import base_forms
from ragstone.language.negation import find_figures
from ragstone.language.quantities import Quantity
from ragstone.language.units import unit_of
from ragstone.language.vocabulary import GENERIC, Word, content_words, read_vocabulary

MOST_ADDED = 0.34
"""Share of the words of a statement that its sources may lack: paraphrases have some words of their own."""
MOST_ADDED_TO_CLAUSE = 0.5
_BEFORE_ATTRIBUTE = re.compile(
    r"\b(?:an?|the|its|their|his|her|our|your|each|every|by|with|of|from|in|on|for|to|two|three|four|five|several"
    r"|many|all|no|only|\d{1,9}) $",
    re.I,
)
_MOST = 12
"""Numbers of a statement that are looked at."""
_BOUNDARY = re.compile(
    r"[,;:](?=\s)|\s[-–—]\s|[—()\[\]]|[.!?](?=\s)"
    r"|\b(?:who|whom|whose|which|where|because|since|although|though|whereas|while|when|after|before|until|unless|if"
    r"|so that|in order to|due to|thanks to|owing to|despite|but|as a result of|leading to|causing|resulting in)\b",
    re.I,
)
"""Marks by which something is hung onto a sentence."""


def find_additions(statement: str, evidence: str) -> list[Objection]:
    """Return the names that the evidence lacks, and whether the statement says something beside that it lacks."""
    known = read_vocabulary(evidence)
    words = content_words(statement)
    missing = {word for word in words if not known.has(word) and word.folded not in GENERIC}
    found = [
        Objection(ObjectionKind.NAME_MISSING, word.text)
        for word in words
        if word in missing and (word.is_name or word.may_be_name)
    ]
    if any(word in missing and word.folded.endswith("s") and unit_of(word.folded) for word in words):
        found.append(Objection(ObjectionKind.NUMBER_MISSING))
    if len(missing) > MOST_ADDED * len(words) or _adds_attribute(statement, words, missing):
        found.append(Objection(ObjectionKind.ADDED_WORDS))
    for clause in _clauses(statement, words):
        if len(missing.intersection(clause)) > MOST_ADDED_TO_CLAUSE * len(clause):
            found.append(Objection(ObjectionKind.ADDED_CLAUSE))
            break
    return list(dict.fromkeys(found))


def _adds_attribute(statement: str, words: tuple[Word, ...], missing: AbstractSet[Word]) -> bool:
    """Return whether a statement tells of a thing of which kind it is, and its sources do not: a lithium battery."""
    return any(
        word in missing
        and other not in missing
        and statement[word.end : other.start] == " "
        and _BEFORE_ATTRIBUTE.search(statement, 0, word.start) is not None
        for word, other in pairwise(words)
    )


def _clauses(statement: str, words: tuple[Word, ...]) -> Iterator[list[Word]]:
    """Yield the words of each part of a statement that has some."""
    ends = [boundary.start() for boundary in _BOUNDARY.finditer(statement)]
    start = 0
    for end in [*ends, len(statement)]:
        inside = [word for word in words if start <= word.start < end]
        bare = statement[start : start + 1].isalpha() and len(inside) == 1 and _is_verb(inside[0].folded)
        if inside and not bare:
            yield inside
        if inside:
            start = end


def _is_verb(word: str) -> bool:
    return is_verb_form(word) or is_past_form(word)


_CERTAIN = (
    re.compile(r"\b(?:must|ha(?:s|ve|d) to|needs? to|required?|necessary|mandatory|compulsory|obligatory)\b", re.I),
    re.compile(
        r"\b(?:certain(?:ly)?(?! \w{2,20}s\b)|definite(?:ly)?|undoubted(?:ly)?|without (?:any )?doubt"
        r"|prove[nds]?|proof|guarantee[ds]?|surely|confirmed|established (?:fact|that)|known for certain)\b",
        re.I,
    ),
    re.compile(r"\b(?:exact(?:ly)?|precise(?:ly)?|no more (?:and no less )?than|neither more nor less)\b", re.I),
)
_LESS_CERTAIN = re.compile(
    r"\b(?:should|needs?|needed|only|cannot|requires?|essential|shall|ordered?|demand\w*)\b", re.I
)


_ENOUGH = re.compile(r"\b(?:enough|suffic\w+|adequate(?:ly)?)\b", re.I)
_ENOUGH_IN_OTHER_WORDS = re.compile(rf"{_ENOUGH.pattern}|\b(?:only|just|single|minimum|at least)\b", re.I)


def adds_sufficiency(claim: str, source: str) -> bool:
    """Return whether a claim calls enough what the source does not."""
    return _ENOUGH.search(claim) is not None and _ENOUGH_IN_OTHER_WORDS.search(source) is None


_ONE = re.compile(r"\b(?:one|a single)\s(?!or\b)(?P<noun>[a-z]{3,30})\b", re.I)
_ONE_OF = r"\b(?:an?|one|single|each|every|any)\s(?:[a-z]{{2,20}}\s)?{noun}"


def is_one_of_several(claim: str, source: str) -> bool:
    """Return whether a claim says one of what a source counts more of: one person where it says two people."""
    for one in islice(_ONE.finditer(claim), _MOST):
        noun = one["noun"].lower()
        counted = [
            figure
            for _, _, figure in find_figures(source)
            if isinstance(figure, Quantity) and base_forms(noun) & base_forms(figure.words.split()[-1].lower())
        ]
        alone = re.search(_ONE_OF.format(noun=noun), source, re.I)
        if counted and not alone and all(figure.bound == "is" and figure.written > 1 for figure in counted):
            return True
    return False


def adds_certainty(claim: str, source: str) -> bool:
    """Return whether a claim calls necessary, certain or exact what the source does not."""
    for place, words in enumerate(_CERTAIN):
        if words.search(claim) and not words.search(source) and not (place == 0 and _LESS_CERTAIN.search(source)):
            return True
    return False
