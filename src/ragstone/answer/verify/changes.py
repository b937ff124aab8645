"""Whether a number tells where something stands or how far it moved: "rose to 5 °C" and "rose by 5 °C"."""

from __future__ import annotations

import re
from typing import Literal

Move = Literal["", "by", "to", "unsure"]

_STEP = (
    r"about|around|approximately|roughly|nearly|almost|some|only|just|over|under|(?:no )?(?:more|less) than|at least"
    r"|at most|up to|as (?:much|many|little|few) as|[a-z]{2,14}ly|an?|the|another|a further|~"
)
_MOVER = (
    r"rose|ris(?:es?|en|ing)|rais(?:e[sd]?|ing)|fell|fall(?:s|en|ing)?|drop(?:s|ped|ping)?"
    r"|(?:in|de)creas(?:e[sd]?|ing)|climb(?:s|ed|ing)?|gr[eo]w(?:s|n|ing|th)?|shr[aiu]nk(?:s|ing)?"
    r"|reduc(?:e[sd]?|ing|tion)|lower(?:s|ed|ing)|warm(?:s|ed|ing)|cool(?:s|ed|ing)|heat(?:s|ed)"
    r"|declin(?:e[sd]?|ing)|jump(?:s|ed)?|s[aiu]nk(?:s|ing)?|gain(?:s|ed)?|los(?:es?|t)|chang(?:e[sd]?|ing)"
    r"|expand(?:s|ed)?|exten(?:ds?|ded|sion)|cuts?|went|g(?:o|oes|one)"
)
_GAP = (
    r"differ(?:s|ed|ences?|ing)?|toleran(?:ces?|t)|var(?:y|ies|ied|ying|iations?)|deviat(?:e[sd]?|ions?)"
    r"|fluctuat(?:e[sd]?|ions?|ing)|sw[iu]ngs?|swung|margins?|accura(?:te|cy)|within|warmer|cooler|colder|hotter"
    r"|errors?|uncertaint(?:y|ies)|precis(?:e|ion)|increments?|steps?|offsets?|gradients?|spread"
)
_BY = re.compile(
    rf"(?:\b(?:by|within|every|each|accurate to|(?:{_MOVER}|{_GAP}) of"
    rf"|(?:difference|tolerance)\b[^,]{{0,50}} (?:is|was|are|were)"
    rf"|(?:{_MOVER})|plus or minus)|±|\+/[-−–])(?: (?:{_STEP})){{0,3}}$",
    re.I,
)
_AT = re.compile(
    r"\b(?:(?P<to>(?<!up )(?<!accurate )to)|from|at|below|above|past|beyond|between|reach(?:es|ed|ing)?"
    r"|temperatures? of)"
    rf"(?: (?:{_STEP}|new|record|high|low|peak|total|of)){{0,4}}$",
    re.I,
)
_MOVES = re.compile(rf"\b(?:{_MOVER})\b", re.I)
_MAY_BE = re.compile(rf"\b(?:{_MOVER}|{_GAP}|range[sd]?)\b", re.I)
_FURTHER = re.compile(
    r"[ -](?:warmer|cooler|colder|hotter|higher|lower|more|less|above|below|apart|either"
    r"|too|in excess|of (?:warming|cooling)"
    r"|(?:temperature )?(?:rise|fall|drop|increase|decrease|difference|change|tolerance|swing|variation|gap|margin))\b",
    re.I,
)
_STOP = re.compile(r"[.;!?]\s")
_WINDOW = 80


def moved(text: str, start: int, end: int) -> Move:
    """What the words around a number say; "unsure" where they speak of a change but not of this number."""
    before = clause_before(text, start)
    at = _AT.search(before)
    if at is None and _BY.search(before):
        return "by"
    if _FURTHER.match(text, end):
        return "by"
    if at is not None:
        return "to" if at["to"] and _MOVES.search(before) else ""
    return "unsure" if _MAY_BE.search(before) else ""


def moves(text: str, start: int) -> bool:
    """Whether something before a number is said to rise or to fall."""
    return _MOVES.search(clause_before(text, start)) is not None


def clause_before(text: str, start: int) -> str:
    """The words that lead to a number, as far as one sentence goes."""
    return _STOP.split(text[max(0, start - _WINDOW) : start])[-1].rstrip()
