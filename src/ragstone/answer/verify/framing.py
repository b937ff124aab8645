"""Whether a sentence states what it mentions: frames, conditions, counterfactuals and words that take back."""

from __future__ import annotations

import re

from ragstone.answer.verify.conditions import condition_dropped
from ragstone.answer.verify.objections import Objection, ObjectionKind
from ragstone.language.analyzer import analyze, analyze_query

_STRONG_JOINT = re.compile(r";\s|\.\s(?=[A-Z])|,?\s(?:but|whereas|although|though)\s", re.I)
_FALSE = re.compile(
    r"\b(?:(?:false|untrue|incorrect|wrong|a myth|a lie|a hoax) that"
    r"|(?:claims?|idea|notion|report|rumou?rs?|story|belief|allegations?|statement|assertion) that\b[^;]{1,300}"
    r"\b(?:is|are|was|were|proved|turned out) (?:to be )?(?:false|untrue|incorrect|wrong|mistaken|baseless|unfounded"
    r"|refuted|disproved|a myth|a lie|a hoax))\b",
    re.I,
)
_FRAME = re.compile(
    r"\b(?:den(?:y|ies|ied) (?:that|having|any)|dispute[sd]?|disprove[sdn]?|debunk(?:s|ed)?|refute[sd]?"
    r"|alleg(?:e|es|ed|edly)|rumou?r(?:s|ed)?|suppos(?:ed|edly)|purported(?:ly)?|so-called|hearsay|pretend(?:s|ed)?"
    r"|(?:claim|believe|think|argue|suspect|fear|hope|assume|guess|doubt|speculate|predict)(?:s|d|ed)?(?= that\b)"
    r"|thought that|(?:critics|opponents|some|people|skeptics|sceptics) (?:say|said|claim(?:ed)?|believed?|argued?)"
    r"|(?:plan(?:s|ned)?|intend(?:s|ed)?|hope[sd]?|want(?:s|ed)?|tr(?:y|ies|ied)|attempt(?:s|ed)?|scheduled|meant"
    r"|propose[sd]?|threaten(?:s|ed)?|offer(?:s|ed)?|ordered|asked|about|fail(?:s|ed)?|refuse[sd]?|decline[sd]?"
    r"|forgot|proposal) to)\b",
    re.I,
)
_UNREAL = re.compile(
    r"\b(?:would|could|might|should)(?: not| never)? have\b|^\s*(?:had|were)\b[^;]{1,300}\bwould\b|\bif only\b",
    re.I,
)
_TAKEN_BACK = re.compile(
    r"\b(?:former(?:ly)?|ex-\w{1,30}|previously|once(?= (?:was|were|had))|used to|until"
    r"|(?:almost|nearly)(?! (?:all|every|\d))|hardly|scarcely|barely|rarely|seldom|(?<!a )few(?!er)|fake|would-be"
    r"|potential|proposed|planned|hypothetical|not yet|no longer)\b",
    re.I,
)
_BARELY = re.compile(
    r"\b(?:hardly|scarcely|barely|rarely|seldom|almost|nearly|former(?:ly)?|(?<!a )few(?!er))\b", re.I
)
_ONLY = re.compile(r"\bonly ((?!when|if|after|on|in|at|by|for|with|\d)[^\W\d_]{2,30})", re.I)

_SEASON = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|week(?:ends?|days?)|summer|winter|spring|autumn|holidays?)\b",
    re.I,
)


def at_certain_times(claim: str, sentence: str) -> bool:
    """Whether a sentence speaks of certain days or seasons and the claim leaves them out."""
    return _SEASON.search(strong_part(claim, sentence)) is not None and _SEASON.search(claim) is None


def denied_as_a_whole(claim: str, sentence: str) -> bool:
    """Whether one of the two calls false what the other states."""
    return bool(_FALSE.search(sentence)) != bool(_FALSE.search(claim))


def unstated(claim: str, sentence: str) -> Objection | None:
    """Return why a sentence that mentions what a claim says does not state it, or None when it may."""
    part = strong_part(claim, sentence)
    if _FRAME.search(part) and not _FRAME.search(claim):
        return Objection(ObjectionKind.NOT_A_FACT)
    if _UNREAL.search(part) and not _UNREAL.search(claim):
        return Objection(ObjectionKind.UNREAL)
    if condition_dropped(claim, part):
        return Objection(ObjectionKind.CONDITIONAL)
    here = set(analyze(claim))
    for word in _TAKEN_BACK.finditer(part):
        if not here.intersection(analyze(word.group())):
            return Objection(ObjectionKind.TAKEN_BACK, word.group().lower())
    there = set(analyze(sentence))
    if any(not there.intersection(analyze(word.group())) for word in _BARELY.finditer(claim)):
        return Objection(ObjectionKind.WITHOUT_LIMIT)
    sole = _ONLY.search(part)
    if sole and not here.intersection(analyze(sole[1])):
        return Objection(ObjectionKind.ONLY_OF_ANOTHER)
    return None


def strong_part(claim: str, sentence: str) -> str:
    """The part of a sentence between semicolons and "but" that a claim is about; all of it where it needs more."""
    parts = _STRONG_JOINT.split(sentence)
    wanted = set(analyze_query(claim))
    counts = [len(wanted.intersection(analyze(part))) for part in parts]
    best = max(counts)
    whole = len(wanted.intersection(analyze(sentence)))
    return parts[counts.index(best)] if best == whole else sentence
