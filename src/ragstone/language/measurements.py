"""Find the quantities that a sentence states."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from ragstone.language.analyzer import FUNCTION_WORDS, analyze
from ragstone.language.dates import REMEMBERED, date_spans
from ragstone.language.grammar import BE, LINKS, MODALS, PREPOSITIONS, words_of
from ragstone.language.numbers import NUMBER, NUMBER_WORDS, SCALED, SHORT_SCALED, last_digit, number, scale_of, value_of
from ragstone.language.quantities import CYCLES, Bound, Quantity, Span, Spans, find_move, join_quantities
from ragstone.language.units import CELSIUS, PREFIXES, UNITS, Unit, is_told_by_case, unit_of

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
_STEPS = {"other": 2, "alternate": 2, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6}
_PER = re.compile(
    rf"\s?(?:/\s?|per (?!cent)|every (?!(?:{'|'.join(_STEPS)}) \w)|each |an? (?=[^\W\d_]))"
    r"(?P<by>[^\W\d_]{1,20})"
    r"|\s(?P<adverb>hourly|daily|weekly|monthly|quarterly|yearly|annually)\b",
    re.I,
)
_TURNS = dict.fromkeys(("night", "morning", "afternoon", "evening"), UNITS["day"]) | {"quarter": UNITS["quarter-year"]}
"""Units of time only behind "every" or "per"."""
_CYCLES = (
    *(("hourly", 1, "hour"), ("daily", 1, "day"), ("nightly", 1, "day"), ("weekly", 1, "week")),
    *(("fortnightly", 1, "fortnight"), ("monthly", 1, "month"), ("quarterly", 3, "month"), ("half-yearly", 6, "month")),
    *(("semi-annually", 6, "month"), ("biannually", 6, "month"), ("yearly", 1, "year"), ("annually", 1, "year")),
)
_ADVERBS = {word: Unit(UNITS[name].dimension, count * UNITS[name].size) for word, count, name in _CYCLES}
_ANY_ADVERB = "|".join(_ADVERBS)
_PERIOD = re.compile(
    rf"\b(?:every|each|per) (?:(?:single|full|whole|calendar) )?"
    rf"(?P<told>(?:(?P<step>{'|'.join(_STEPS)}) )?(?P<unit>[^\W\d_]{{2,12}}))\b(?!-)"
    rf"|(?<![\w-])(?P<adverb>{_ANY_ADVERB})\b(?!-)",
    re.I,
)
_BEHIND_ADVERB = re.compile(
    rf"(?:(?:,| and| or|, and|, or) (?:{_ANY_ADVERB})\b){{0,3}}(?:\s*(?:$|[^\w\s&/-])|\s(?P<word>[\w'’-]{{1,30}}))",
    re.I,
)
_NO_NOUNS = BE | LINKS | MODALS | PREPOSITIONS | {"basis"}
_AS_ADJECTIVE = re.compile(
    rf"\b(?P<adverb>{_ANY_ADVERB}|annual|half-yearly)\b"
    r"|\b(?:(?:every|each) (?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|tues|wednes|thurs|fri|satur|sun)days)\b",
    re.I,
)
_BEFORE_PERIOD = re.compile(r"\s?(?:/\s?|(?:per|every|each) (?:(?:single|full|whole|calendar) )?)?", re.I)
_EVERY = re.compile(r"\b(?:every|each)(?P<about> (?:about|around|approximately|roughly))?$", re.I)
_EVERY_PERIOD = re.compile(r"\b(?:every|each|per) (?:\w{1,13} )?$", re.I)
_TURNED: dict[Bound, Bound] = {"at least": "at most", "at most": "at least", "over": "under", "under": "over"}
_OTHER_DAYS = words_of("working business school trading banking court clear light man person half")
"""Words that make a day, a month or a year something else: five working days are a week."""
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
_NUMBERED = re.compile(
    r"\s*(?P<number>\d{1,3}(?:\.\d{1,3}){0,4}[.)]|\d{1,2}(?:\.\d{1,2}){1,4})\s{1,4}(?P<word>[A-Z][a-z]{1,20})\b"
)
"""A text that begins with the number of a heading or of an item of a list, which counts nothing."""
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
    periods = _find_periods(text)
    passed = [*dated, *(span for span, _ in periods)]
    if (numbered := _NUMBERED.match(text)) and not unit_of(numbered["word"]):
        passed.append(numbered.span("number"))
    found: list[Span] = []
    read = 0
    for match in NUMBER.finditer(text):
        if len(found) == MOST:
            break
        if match.start() < read or any(start <= match.start() < end for start, end in passed):
            continue
        whole = _whole(text, match)
        if whole:
            read = whole.end()
            found.append(((match.start(), read), _out_of(text, match, whole)))
        elif not _is_loose(text, match):
            first = max(0, match.start() - _BEFORE_IT)
            around = text[first : match.end() + _BEHIND_IT]
            found.append((match.span(), _read_quantity(around, match.start() - first)))
    found += [period for period in periods if not _is_of_rate(text, period, found)]
    return join_quantities(text, sorted(found, key=lambda span: span[0])[:MOST])


def _find_periods(text: str) -> list[Span]:
    """Return the periods of a text that have no number: an hour in "every hour" and "hourly"."""
    found: list[Span] = []
    for match in _PERIOD.finditer(text):
        if len(found) == MOST:
            break
        if match["adverb"]:
            unit = _ADVERBS[match["adverb"].lower()] if _stands_alone(text, match.end()) else None
        else:
            unit = _unit_by(match["unit"])
        if unit is None or unit.dimension not in CYCLES:
            continue
        count = Fraction(_STEPS.get((match["step"] or "").lower(), 1))
        before, (start, end) = _before(text, match), match.span("adverb" if match["adverb"] else "told")
        told = (count * unit.size, count, unit.dimension, _lead(before), _turn(_find_bound(before)))
        found.append(((start, end), Quantity(*told, size=unit.size, move="every", words=text[start:end])))
    return found


def _unit_by(word: str) -> Unit | None:
    """Return the unit that a word behind "every" or "per" stands for: there a quarter is one of time."""
    return _TURNS.get(word.lower()) or unit_of(word)


def _stands_alone(text: str, end: int) -> bool:
    """Return whether an adverb of time tells nothing of a noun behind it: not "weekly" in "the weekly report"."""
    behind = _BEHIND_ADVERB.match(text, end)
    return behind is not None and (behind["word"] is None or behind["word"].lower() in _NO_NOUNS)


def _is_of_rate(text: str, period: Span, found: list[Span]) -> bool:
    """Return whether a number right before a period is counted by it: 5 mg in "5 mg every day"."""
    start = period[0][0]
    return any(
        start < first + len(quantity.words)
        or (quantity.per is not None and _BEFORE_PERIOD.fullmatch(text, first + len(quantity.words), start))
        for (first, _), quantity in found
        if first < start
    )


@lru_cache(REMEMBERED)
def drop_periods(text: str) -> str:
    """Return the text without "every" before a period: "every two hours" is not said of all."""
    for (start, _), quantity in reversed(quantity_spans(text)):
        if quantity.is_period:
            text = _EVERY_PERIOD.sub("", text[:start]) + text[start:]
    return text


def tells_period(text: str, period: Quantity) -> bool:
    """Return whether a text tells a period by an adjective or a day of the week: weekly in "the weekly report"."""
    for match in _AS_ADJECTIVE.finditer(text) if period.is_period else ():
        unit = _read_adverb(match["adverb"] or "weekly")
        if (unit.dimension, unit.size) == (period.dimension, period.value):
            return True
    return False


def drop_told_rate(quantity: Quantity, text: str) -> Quantity:
    """Return an amount without the period that a text tells by an adjective: 840 a month of "the monthly rent"."""
    for match in _AS_ADJECTIVE.finditer(text) if quantity.per else ():
        unit = _read_adverb(match["adverb"]) if match["adverb"] else None
        if unit is not None and (unit.dimension, unit.size) == quantity.per:
            return replace(quantity, per=None)
    return quantity


def _read_adverb(word: str) -> Unit:
    adverb = word.lower()
    return _ADVERBS["annually" if adverb == "annual" else adverb]


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
    if move == "by" and unit.dimension in CYCLES and _EVERY.search(before):
        move = "every"
    below = _BELOW_ZERO.match(text, end)
    if below and below["freezing"] and unit.zero not in (0, CELSIUS.zero):
        below = None  # water does not freeze at 0 °F
    written = value_of(match) * scale * (-1 if below else 1)
    if move == "by" and not below:
        unit = unit.difference()
    elif move == "unsure":
        unit = unit.as_written()
    bound: Bound = "is" if below else _find_bound(before)
    per = _per(text, end)
    if per and unit.dimension == _find_counted("times") and per[0] in CYCLES and written > 0:
        end, unit = _end_of_rate(text, end), Unit(per[0], per[1] / written**2)
        per, move, bound = None, "every", _turn(bound)
    elif move == "every":
        bound = _turn(_find_bound(_EVERY.sub(lambda every: every["about"] or "", before).rstrip()))
    return Quantity(
        unit.measure(written),
        written,
        unit.dimension,
        _lead(before),
        bound,
        per or unit.per,
        unit.size,
        last_digit(match) * scale,
        move,
        text[match.start() : end].rstrip(),
    )


def _turn(bound: Bound) -> Bound:
    """Return the bound of a period for that of how often it comes: at least twice a day is at most every 12 hours."""
    return _TURNED.get(bound, bound)


def _end_of_rate(text: str, end: int) -> int:
    match = _PER.match(text, end)
    return match.end() if match else end


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
    if known is None and (behind := _NEXT_WORD.match(text, end)) and _describes_time(word, behind[1]):
        return unit_of(behind[1]) or Unit(""), bare
    unit = known or Unit(_own(word))
    return unit, end if unit.dimension else bare


def _describes_time(word: str, behind: str) -> bool:
    """Return whether a word between a number and a unit of time tells nothing of its length: 27 paid days are days."""
    unit = unit_of(behind) if behind.endswith("s") else None
    return (
        unit is not None and unit.dimension in CYCLES and bool(_find_counted(word)) and word.lower() not in _OTHER_DAYS
    )


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
    known = _ADVERBS[match["adverb"].lower()] if match["adverb"] else _unit_by(match["by"])
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
