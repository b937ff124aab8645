"""The quantities a text states: numbers with their unit, what they count, and how exact they are meant to be."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from ragstone.answer.verify.dates import REMEMBERED, date_spans
from ragstone.answer.verify.quantity import Bound, Quantity
from ragstone.answer.verify.units import PREFIXES, Unit, unit_of
from ragstone.core.analyzer import FUNCTION_WORDS, analyze

Span = tuple[tuple[int, int], Quantity]
Spans = tuple[Span, ...]

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
)
_SMALL = {word: value for value, word in enumerate(f"{_ONES} seventeen eighteen nineteen".split())}
_DECADES = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_TENS = {word: 10 * n for n, word in enumerate(_DECADES, 2)}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_OF_MONEY = {"k": 1000, "m": 10**6, "bn": 10**9}
_SHARES = {"half": Fraction(1, 2), "third": Fraction(1, 3), "quarter": Fraction(1, 4)}
_PARTS = {
    "third": 3,
    "thirds": 3,
    "quarters": 4,
    "fourths": 4,
    "fifths": 5,
    "sixths": 6,
    "eighths": 8,
    "tenths": 10,
}
_WORDS = "|".join([*_SMALL, *_TENS])
_NUMBER = re.compile(
    r"(?P<sign>(?<![\w.)])[-−])?(?<![\w.,])(?<![^\W\d_][-/])(?P<digits>\d{1,18}(?:,\d{3}){0,6}(?:\.\d{1,18})?)"
    rf"|(?<![\w-])(?P<word>(?:{'|'.join(_TENS)})-(?:{_WORDS})|{_WORDS})\b"
    r"|(?<![\w-])(?:(?:a|one)[ -])?(?P<share>half|third|quarter)\b(?! (?:time|party|person|world|day))",
    re.I,
)
_AFTER = re.compile(
    r"(?:[ \u00a0-]?(?P<scale>hundred|thousand|million|billion|trillion)\b)?(?P<gap>[ \u00a0-])?"
    r"(?P<unit>°[CFK]?|[%‰]|per ?cent|degrees? (?:Celsius|Fahrenheit|[CF]\b)|[kcmd]?m[23]\b"
    r"|(?:square|cubic|sq\.?|nautical|metric) [^\W\d_]{1,20}|[^\W\d_]{1,20})?",
    re.I,
)
_OUT_OF = re.compile(rf" (?:out of|(?P<one>in))(?: every)? (?P<whole>\d{{1,9}}|{_WORDS})\b", re.I)
_NEXT_WORD = re.compile(r" ([^\W\d_]{1,20})")
_A_UNIT = re.compile(r" (?:of )?an? ([^\W\d_]{1,20})", re.I)
_PER = re.compile(r"\s?(?:/\s?|per (?!cent)|every |each |an? (?=[^\W\d_]))([^\W\d_]{1,20})", re.I)
_BOUNDS: tuple[tuple[Bound, str], ...] = (
    ("at least", r"at least|no (?:less|fewer) than|minimum of|from|≥|>="),
    ("at most", r"at most|no more than|not more than|up to|maximum of|≤|<="),
    ("over", r"more than|greater than|over|above|exceed(?:s|ed|ing)?|longer than|higher than|>"),
    ("under", r"less than|fewer than|under|below|shorter than|lower than|<"),
    ("about", r"about|approximately|around|roughly|nearly|almost|some|circa|ca\.|~"),
)
_BEFORE = re.compile("|".join(f"(?P<b{n}>{words})" for n, (_, words) in enumerate(_BOUNDS)), re.I)
_MOVED = re.compile(
    r"\b(?:by|(?:rise|fall|drop|increase|decrease|difference|change) of)(?: \w{1,13})?$", re.I
)
"""Before a number that tells how far something moved, not where it stands."""
_NOT_COUNTED = frozenset(
    f"{FUNCTION_WORDS} per between until who also out off more less fewer other further".split()
)
_REACH = 24
MOST = 60
"""Quantities looked at in one text."""


def quantities(text: str) -> list[Quantity]:
    """The quantities of a text in order; dates and times are not among them."""
    return [quantity for _, quantity in quantity_spans(text)]


@lru_cache(REMEMBERED)
def quantity_spans(text: str) -> Spans:
    """Where the numbers of a text stand, and what they tell."""
    dated = [span for span, _ in date_spans(text)]
    found: list[Span] = []
    read = 0
    for match in _NUMBER.finditer(text):
        if len(found) == MOST:
            break
        if match.start() < read or any(start <= match.start() < end for start, end in dated):
            continue
        whole = _whole(text, match)
        if whole:
            read = whole.end()
            found.append(((match.start(), read), _out_of(text, match, whole)))
        elif not _is_loose_one(match):
            found.append((match.span(), _quantity(text, match)))
    return _joined(text, found)


def _is_loose_one(match: re.Match[str]) -> bool:
    """A lone "one" is rarely meant as a number."""
    return (match["word"] or "").lower() == "one"


def _whole(text: str, match: re.Match[str]) -> re.Match[str] | None:
    """What stands behind a number in "3 out of 4" and "one in five"; "1 in 5 minutes" is no share."""
    whole = _OUT_OF.match(text, match.end())
    if whole is None or match["share"] or not abs(_value(match)) < _number(whole["whole"]):
        return None
    after = _NEXT_WORD.match(text, whole.end())
    if whole["one"] and (_value(match) != 1 or (after and unit_of(after[1]))):
        return None
    return whole


def _out_of(text: str, match: re.Match[str], whole: re.Match[str]) -> Quantity:
    before, share = _before(text, match), _value(match) / _number(whole["whole"])
    return Quantity(
        share, share, "share", _lead(before), _bound(before), words=text[match.start() : whole.end()]
    )


def _quantity(text: str, match: re.Match[str]) -> Quantity:
    after = _AFTER.match(text, match.end())
    before = _before(text, match)
    scale = _SCALES.get((after["scale"] or "").lower(), 1) if after else 1
    if after and before.endswith(tuple(PREFIXES)):
        scale = _OF_MONEY.get((after["unit"] or "").lower(), scale)
    written = _value(match) * scale
    unit, end = _unit(text, match, before)
    if unit.zero and _MOVED.search(before):
        unit = unit.difference()
    return Quantity(
        unit.measure(written),
        written,
        unit.dimension,
        _lead(before),
        _bound(before),
        _per(text, end) or unit.per,
        unit.size,
        _last_digit(match) * scale,
        text[match.start() : end].rstrip(),
    )


def _unit(text: str, match: re.Match[str], before: str) -> tuple[Unit, int]:
    """What a number is a number of, and where the words for it end."""
    after = _AFTER.match(text, match.end())
    word, end = (after["unit"] or "", after.end()) if after else ("", match.end())
    if match["share"]:
        return _part_of(text, match.end())
    if word.lower() in _PARTS and (word.lower() != "quarters" or text.startswith(" of", end)):
        whole, end = _part_of(text, end)
        return Unit(whole.dimension, whole.size / _PARTS[word.lower()]), end
    if before.endswith(tuple(PREFIXES)):
        return unit_of(before[-1]) or Unit(""), end
    known = unit_of(word.replace(" ", "") if word.lower().startswith("per") else word)
    if (
        after
        and word.isalpha()
        and not after["gap"]
        and (known is None or (len(word) == 1 and word.isupper()))
    ):
        return Unit(""), match.end()  # "5th" and "3D" count nothing
    return known or Unit(_counted(word)), end


def _joined(text: str, found: list[Span]) -> Spans:
    """One quantity of the two in "1 hour 30 minutes"."""
    joined: list[Span] = []
    for span, one in found:
        start, before = joined[-1] if joined else (span, one)
        between = text[start[0] + len(before.words) : span[0]]
        smaller = one.dimension == before.dimension and 0 <= one.value < before.size
        measured = one.dimension in ("time in s", "length in m") and one.bound == before.bound != "about"
        if joined and smaller and measured and between in (" ", " and ") and not before.per:
            words = text[start[0] : span[0] + len(one.words)]
            whole = replace(
                before, value=before.value + one.value, size=one.size, step=one.step, per=one.per, words=words
            )
            joined[-1] = (start[0], span[1]), replace(whole, written=whole.value / one.size)
        else:
            joined.append((span, one))
    return tuple(joined)


def _per(text: str, end: int) -> tuple[str, Fraction] | None:
    """What follows "per", a slash or "a", where that is a measure; after "per" anything may count."""
    match = _PER.match(text, end)
    if match is None:
        return None
    known = unit_of(match[1])
    if known is not None:
        return known.dimension, known.size
    return (_counted(match[1]), Fraction(1)) if match.group().lstrip().lower().startswith("per ") else None


def _part_of(text: str, end: int) -> tuple[Unit, int]:
    """The unit in "half an hour" and where it ends; a share of anything else is a share."""
    whole = _A_UNIT.match(text, end)
    unit = unit_of(whole[1]) if whole else None
    return (unit, whole.end()) if whole and unit else (Unit("share"), end)


def _value(match: re.Match[str]) -> Fraction:
    if match["share"]:
        return _SHARES[match["share"].lower()]
    value = _number(match["word"] or match["digits"])
    return -value if match["sign"] else value


def _number(written: str) -> Fraction:
    """A number in digits or as a word."""
    if written[0].isdigit():
        return Fraction(written.replace(",", ""))
    return Fraction(sum(_SMALL.get(part, _TENS.get(part, 0)) for part in written.lower().split("-")))


def _last_digit(match: re.Match[str]) -> Fraction:
    decimals = (match["digits"] or "").partition(".")[2]
    return Fraction(1, 10 ** len(decimals))


def _counted(word: str) -> str:
    """The stem of the noun behind a number; function words count nothing."""
    if not word or word.lower() in _NOT_COUNTED:
        return ""
    stems = analyze(word)
    return stems[0] if stems else ""


def _before(text: str, match: re.Match[str]) -> str:
    return text[max(0, match.start() - _REACH) : match.start()].rstrip()


def _lead(before: str) -> str:
    words = before.lower().split()[-2:]
    return (_counted(words[-1]) or " ".join(words)) if words else ""


def _bound(before: str) -> Bound:
    """How the words right before a number qualify it."""
    last: Bound = "is"
    for match in _BEFORE.finditer(before):
        if len(before) - match.end() <= 1 + sum(before.endswith(sign) for sign in PREFIXES):
            last = _BOUNDS[int(str(match.lastgroup)[1:])][0]
    return last


def tells_share(text: str) -> bool:
    """Whether a text speaks of a part of something."""
    return any(one.dimension == "share" and one.value < 1 for one in quantities(text))


def unbounded(claim: str, sentence: str) -> bool:
    """Whether a sentence is about what lies over or under a number, and the claim leaves that out."""
    limits = [one for one in quantities(sentence) if one.bound in ("over", "under")]
    kept = quantities(claim)
    return any(
        not any(mine.written == limit.written or mine.value == limit.value for mine in kept)
        for limit in limits
    )
