"""Find the quantities that a sentence states."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from ragstone.language.analyzer import FUNCTION_WORDS, analyze
from ragstone.language.dates import REMEMBERED, date_spans
from ragstone.language.numbers import NUMBER, NUMBER_WORDS, SCALED, SHORT_SCALED, last_digit, number, scale_of, value_of
from ragstone.language.quantities import Bound, Quantity, Span, Spans, find_move, join_quantities
from ragstone.language.units import CELSIUS, PREFIXES, Unit, is_told_by_case, unit_of

_OF_MONEY = {"m": 10**6}
_PARTS = {"third": 3, "thirds": 3, "quarters": 4, "fourths": 4, "fifths": 5, "sixths": 6, "eighths": 8, "tenths": 10}
_AFTER = re.compile(
    rf"(?P<scale>{SCALED}|{SHORT_SCALED})?(?P<gap>[ \u00a0-])?"
    r"(?P<unit>°[CFK]?|[%‰]|per ?cent|degrees? (?:Celsius|Fahrenheit|[CF]\b)|[kcmd]?m[23]\b"
    r"|US dollars?\b|(?:square|cubic|sq\.?|nautical|metric) [^\W\d_]{1,20}|[^\W\d_]{1,20})?",
    re.I,
)
_ORDINAL = frozenset(("st", "nd", "rd", "th"))
_OUT_OF = re.compile(rf" (?:out of|(?P<one>in))(?: every)? (?P<whole>\d{{1,9}}|{NUMBER_WORDS})\b", re.I)
_NEXT_WORD = re.compile(r" ([^\W\d_]{1,20})")
_A_UNIT = re.compile(r" (?:of )?an? ([^\W\d_]{1,20})", re.I)
_PER = re.compile(
    r"\s?(?:/\s?|per (?!cent)|every |each |an? (?=[^\W\d_]))(?P<by>[^\W\d_]{1,20})"
    r"|\s(?P<adverb>hourly|daily|weekly|monthly|yearly|annually)\b",
    re.I,
)
_ADVERBS = {"daily": "day", "annually": "year"}
_BELOW_ZERO = re.compile(r"[ -](?:below|under) (?:zero|0\b(?!\.\d)|(?P<freezing>freezing))", re.I)
_DOLLARS = re.compile(r"(?<![^\W\d_])([^\W\d_]{1,3})\$$")
_BOUNDS: tuple[tuple[Bound, str], ...] = (
    ("at least", r"at least|no (?:less|fewer) than|minimum of|from|≥|>="),
    ("at most", r"at most|no more than|not more than|up to|maximum of|≤|<="),
    ("over", r"more than|greater than|over|above|exceed(?:s|ed|ing)?|longer than|higher than|>"),
    ("under", r"less than|fewer than|under|below|shorter than|lower than|<"),
    ("about", r"about|approximately|around|roughly|nearly|almost|some|circa|ca\.|~"),
)
_BEFORE = re.compile("|".join(f"(?P<b{n}>{words})" for n, (_, words) in enumerate(_BOUNDS)), re.I)
_NOT_COUNTED = frozenset(f"{FUNCTION_WORDS} per between until who also out off more less fewer other further".split())
_REACH = 24
_BEFORE_IT, _BEHIND_IT = 100, 200
"""Characters around a number among which stands all that it is read with."""
MOST = 60
"""Quantities looked at in one text."""


def find_quantities(text: str) -> list[Quantity]:
    """Return the quantities of a text in order; dates and times are not among them."""
    return [quantity for _, quantity in quantity_spans(text)]


@lru_cache(REMEMBERED)
def quantity_spans(text: str) -> Spans:
    """Return where the numbers of a text stand, and what they tell."""
    dated = [span for span, _ in date_spans(text)]
    found: list[Span] = []
    read = 0
    for match in NUMBER.finditer(text):
        if len(found) == MOST:
            break
        if match.start() < read or any(start <= match.start() < end for start, end in dated):
            continue
        whole = _whole(text, match)
        if whole:
            read = whole.end()
            found.append(((match.start(), read), _out_of(text, match, whole)))
        elif not _is_loose(text, match):
            first = max(0, match.start() - _BEFORE_IT)
            around = text[first : match.end() + _BEHIND_IT]
            found.append((match.span(), _read_quantity(around, match.start() - first)))
    return join_quantities(text, found)


@lru_cache(8 * REMEMBERED)
def _read_quantity(text: str, start: int) -> Quantity:
    """Return the quantity at a place, kept: parts of a text have the same numbers between the same words."""
    match = NUMBER.match(text, start)
    assert match is not None, "it was found there"
    return _quantity(text, match)


def _is_loose(text: str, match: re.Match[str]) -> bool:
    """Return a lone "one" or "once" is rarely meant as a number; "one week" and "once a week" are."""
    if match["often"]:
        return _per(text, match.end()) is None
    if (match["word"] or "").lower() != "one" or match["plus"] or match["sign"]:
        return False
    if text[max(0, match.start() - 13) : match.start()].lower().endswith(("hundred and ", "thousand and ")):
        return False
    after = _AFTER.match(text, match.end())
    return after is None or not (after["scale"] or (after["unit"] and unit_of(after["unit"])))


def _whole(text: str, match: re.Match[str]) -> re.Match[str] | None:
    """Return what stands behind a number in "3 out of 4" and "one in five"; "1 in 5 minutes" is no share."""
    whole = _OUT_OF.match(text, match.end())
    if (
        whole is None
        or match["share"]
        or match["often"]
        or match["long"]
        or not abs(value_of(match)) < number(whole["whole"])
    ):
        return None
    after = _NEXT_WORD.match(text, whole.end())
    if whole["one"] and (value_of(match) != 1 or (after and unit_of(after[1]))):
        return None
    return whole


def _out_of(text: str, match: re.Match[str], whole: re.Match[str]) -> Quantity:
    before, share = _before(text, match), value_of(match) / number(whole["whole"])
    return Quantity(share, share, "share", _lead(before), _find_bound(before), words=text[match.start() : whole.end()])


def _quantity(text: str, match: re.Match[str]) -> Quantity:
    after = _AFTER.match(text, match.end())
    before = _before(text, match)
    scale = scale_of(after["scale"] or "") if after else 1
    if after and before.endswith(tuple(PREFIXES)):
        scale *= _OF_MONEY.get((after["unit"] or "").lower(), 1)
    unit, end = _unit(text, match, before)
    move = find_move(text, match.start(), end)
    below = _BELOW_ZERO.match(text, end)
    if below and below["freezing"] and unit.zero not in (0, CELSIUS.zero):
        below = None  # water does not freeze at 0 °F
    written = value_of(match) * scale * (-1 if below else 1)
    if move == "by" and not below:
        unit = unit.difference()
    elif move == "unsure":
        unit = unit.as_written()
    return Quantity(
        unit.measure(written),
        written,
        unit.dimension,
        _lead(before),
        "is" if below else _find_bound(before),
        _per(text, end) or unit.per,
        unit.size,
        last_digit(match) * scale,
        move,
        text[match.start() : end].rstrip(),
    )


def _unit(text: str, match: re.Match[str], before: str) -> tuple[Unit, int]:
    """Return what a number is a number of, and where the words for it end."""
    if match["often"]:
        return Unit(_find_counted("times")), match.end()
    if match["long"]:
        return Unit(f"digits {match['long']}"), match.end()
    if match["share"]:
        return _part_of(text, match.end())
    after = _AFTER.match(text, match.end())
    if after is None:
        return Unit(""), match.end()
    word, end = (after["unit"] or "").removeprefix("US "), after.end()
    bare = after.end("scale") if after["scale"] else match.end()
    if word.lower() in _PARTS and (word.lower() != "quarters" or text.startswith(" of", end)):
        whole, end = _part_of(text, end)
        return Unit(whole.dimension, whole.size / _PARTS[word.lower()]), end
    if _BELOW_ZERO.match(text, bare):
        return Unit(""), bare
    if before.endswith(tuple(PREFIXES)):
        return _currency(before), end if word.lower() in _OF_MONEY else bare
    known = unit_of(word.replace(" ", "") if word.lower().startswith("per") else word)
    if not after["gap"] and word.lower() in _ORDINAL:
        return Unit(""), bare
    unit = known or Unit(_own(word))
    return unit, end if unit.dimension else bare


def _currency(before: str) -> Unit:
    """Return the currency of the sign before a number; "C$" is not "$"."""
    other = _DOLLARS.search(before)
    if other and other[1].upper() != "US":
        return Unit(f"{other[1].lower()}$")
    return unit_of(before[-1]) or Unit("")


def _own(word: str) -> str:
    """Return the thing that a word without a unit counts; letters that may be a unit keep their case."""
    return word if is_told_by_case(word) or (len(word) == 1 and word.isupper()) else _find_counted(word)


def _per(text: str, end: int) -> tuple[str, Fraction] | None:
    """Return what follows "per", a slash or "a", where that is a measure; after "per" anything may count."""
    match = _PER.match(text, end)
    if match is None:
        return None
    adverb = (match["adverb"] or "").lower()
    known = unit_of(match["by"] or _ADVERBS.get(adverb, adverb.removesuffix("ly")))
    if known is not None:
        return known.dimension, known.size
    return (_find_counted(match["by"]), Fraction(1)) if match.group().lstrip().lower().startswith("per ") else None


def _part_of(text: str, end: int) -> tuple[Unit, int]:
    """Return the unit in "half an hour" and where it ends; a share of anything else is a share."""
    whole = _A_UNIT.match(text, end)
    unit = unit_of(whole[1]) if whole else None
    return (unit, whole.end()) if whole and unit else (Unit("share"), end)


def _find_counted(word: str) -> str:
    """Return the stem of the noun behind a number; function words count nothing."""
    if not word or word.lower() in _NOT_COUNTED:
        return ""
    stems = analyze(word)
    return stems[0] if stems else ""


def _before(text: str, match: re.Match[str]) -> str:
    return text[max(0, match.start() - _REACH) : match.start()].rstrip()


def _lead(before: str) -> str:
    words = before.lower().split()[-2:]
    return (_find_counted(words[-1]) or " ".join(words)) if words else ""


@lru_cache(1024)
def _find_bound(before: str) -> Bound:
    """Return how the words right before a number qualify it."""
    last: Bound = "is"
    for match in _BEFORE.finditer(before):
        if len(before) - match.end() <= 1 + sum(before.endswith(sign) for sign in PREFIXES):
            last = _BOUNDS[int(str(match.lastgroup)[1:])][0]
    return last


def speaks_of_share(text: str) -> bool:
    """Return whether a text speaks of a part of something."""
    return any(quantity.dimension == "share" and quantity.value < 1 for quantity in find_quantities(text))


def drops_bound(claim: str, sentence: str) -> bool:
    """Return whether a sentence is about what lies over or under a number, and the claim leaves that out."""
    limits = [quantity for quantity in find_quantities(sentence) if quantity.bound in ("over", "under")]
    kept = find_quantities(claim)
    return any(not any(mine.written == limit.written or mine.value == limit.value for mine in kept) for limit in limits)
