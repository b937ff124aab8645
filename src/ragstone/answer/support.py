"""Explicit checks that a passage says what a sentence says: its terms, numbers, negations and directions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ragstone.answer.verify.checks import check
from ragstone.answer.verify.split import split_claim
from ragstone.language.analyzer import analyze, analyze_query
from ragstone.language.negation import opposites

MIN_TERMS = 0.5
"""Share of a sentence's terms that its sources must hold: paraphrases keep half, other topics under a third."""

_NUMBER = re.compile(r"(?<![\w.])[-−]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")
_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
"""A lone "one" is rarely meant as a number."""
_DIGITS = {word: str(number) for number, word in enumerate(_WORDS, start=2)}
_WORD = re.compile(r"[a-z]+", re.I)
_CLAUSE_END = re.compile(r"[,;:()]|\b(?:but|and|whereas|while|although|though|which|however)\b", re.I)
_NEGATION = re.compile(
    r"\b(?:no|not|never|none|neither|nor|nothing|nobody|nowhere|without|cannot|unable|absent|absence"
    r"|lack(?:s|ed|ing)?|fail(?:s|ed)?|\w+n['’]t)\b",
    re.I,
)


def unsupported(sentence: str, quotes: Sequence[str], passages: str) -> str:
    """Why the sentence does not stand on its sources; empty when it does.

    `quotes` are the sentences it stands on most, `passages` all the text around them.
    """
    if numbers(sentence) - numbers(passages):
        return "a number is not in its source"
    clauses = [clause for clause in nearest_clauses(sentence, quotes) if negated(clause) == negated(sentence)]
    if not clauses:
        return "it negates what its source says, or the reverse"
    if all(opposed(sentence, clause) for clause in clauses):
        return "it says the opposite of its source"
    if term_share(sentence, passages) < MIN_TERMS:
        return "its source does not say it"
    return next(
        (reason for part in split_claim(sentence) if (reason := _refused(part, quotes, passages))), ""
    )


def _refused(part: str, quotes: Sequence[str], passages: str) -> str:
    """What the checks of claims hold against one statement of a sentence."""
    if not any(_tells_all_figures(part, quote) for quote in quotes):
        # It puts figures of several quotes together: no quote alone can bear them out or refute them.
        conflicts = check(part, "\n".join(quotes), passages, passages).conflicts
        return conflicts[0].text if conflicts else ""
    found = [check(part, quote, "", passages) for quote in _nearest(part, quotes)]
    for findings in found:
        if findings.conflicts:
            return findings.conflicts[0].text
    return found[0].voids[0].text if found and all(findings.voids for findings in found) else ""


def _tells_all_figures(part: str, quote: str) -> bool:
    return numbers(part) <= numbers(quote)


def _nearest(part: str, quotes: Sequence[str]) -> list[str]:
    """The quotes that share most terms with a statement."""
    terms = set(analyze_query(part))
    shared = [len(terms.intersection(analyze(quote))) for quote in quotes]
    return [quote for quote, count in zip(quotes, shared, strict=True) if count == max(shared)]


def nearest_clauses(sentence: str, quotes: Sequence[str]) -> list[str]:
    """The clauses of the quotes that share most terms with the sentence: a "not" elsewhere does not count."""
    terms = set(analyze_query(sentence))
    clauses = [clause for quote in quotes for clause in _CLAUSE_END.split(quote)]
    shared = [len(terms.intersection(analyze(clause))) for clause in clauses]
    return [clause for clause, count in zip(clauses, shared, strict=True) if count == max(shared)]


def opposed(sentence: str, clause: str) -> bool:
    """Whether one side of a pair such as higher and lower stands in the sentence and the other in the clause."""
    return opposites(sentence, clause)


def term_share(sentence: str, passages: str) -> float:
    """Share of the sentence's distinct terms that occur in the passages."""
    terms = analyze_query(sentence)
    known = set(analyze(passages))
    return sum(term in known for term in terms) / len(terms) if terms else 0.0


def numbers(text: str) -> set[str]:
    """The numbers a text states, in digits or as words, written one way."""
    words = {word.lower() for word in _WORD.findall(text)}
    return {_normal(number) for number in _NUMBER.findall(text)} | {
        _DIGITS[word] for word in words & _DIGITS.keys()
    }


def _normal(number: str) -> str:
    sign = "-" if number[0] in "-−" else ""
    whole, _, fraction = number.lstrip("-−").replace(",", "").partition(".")
    fraction = fraction.rstrip("0")
    return sign + (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")


def negated(text: str) -> bool:
    """Whether the text denies something; two denials make none."""
    return len(_NEGATION.findall(text)) % 2 == 1
