"""Numbers as they are written: in digits, as words, with a sign, and with what multiplies them."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

SMALL_NUMBERS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_SMALL = {word: value for value, word in enumerate(SMALL_NUMBERS)}
_DECADES = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_TENS = {word: 10 * n for n, word in enumerate(_DECADES, 2)}
_TIMES = {"once": 1, "twice": 2, "thrice": 3}
_SHARES = {"half": Fraction(1, 2), "third": Fraction(1, 3), "quarter": Fraction(1, 4)}
_MARKS = {"½": Fraction(1, 2), "¼": Fraction(1, 4), "¾": Fraction(3, 4)}
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12} | {
    "k": 1000,
    "m": 10**6,
    "b": 10**9,
    "bn": 10**9,
    "tn": 10**12,
}
NUMBER_WORDS = "|".join([*_SMALL, *_TENS])
SCALED = r"(?:[ \u00a0-]?(?:hundred|thousand|million|billion|trillion)\b){1,3}"
SHORT_SCALED = r"(?-i:[kKMB]|[ \u00a0]?(?:bn|tn))\b"
"""Only "5k" and "5M" are large; "5 k" and "5 m" are something else."""
NUMBER = re.compile(
    r"(?<!\w)(?=[-−–‐‑\d]|[aefhmnoqstz])(?:"  # what no number begins with is passed over at once
    r"(?P<sign>(?<![\w./)])(?<!\d )[-−–‐‑]|(?<![\w-])(?<!or )(?<!\d )(?:minus|negative)[ \u00a0])?"
    r"(?:(?<![\w.,])(?<![^\W\d_][-/])"
    r"(?:(?P<long>\d{19,})|(?P<digits>\d{1,18}(?:,\d{3}){0,30}(?:\.\d{1,400})?)(?P<mark>[½¼¾])?)"
    rf"|(?<![\w-])(?P<word>(?:{'|'.join(_TENS)})[- ](?:{'|'.join(SMALL_NUMBERS[1:10])})|{NUMBER_WORDS})\b)"
    r"(?: and (?:a|one)[ -](?P<plus>half|third|quarter)\b)?"
    r"|(?<![\w-])(?:(?:a|one)[ -])?(?P<share>half|third|quarter)\b(?! (?:time|party|person|world|day))"
    rf"|(?<![\w-])(?P<often>{'|'.join(_TIMES)})\b)",
    re.I,
)


def value_of(match: re.Match[str]) -> Fraction:
    """Return the number a match of NUMBER stands for; one too long to be an amount has none."""
    if match["share"]:
        return _SHARES[match["share"].lower()]
    if match["often"]:
        return Fraction(_TIMES[match["often"].lower()])
    if match["long"]:
        return Fraction(0)
    value = number(match["word"] or match["digits"])
    value += _SHARES.get((match["plus"] or "").lower(), Fraction(0)) + _MARKS.get(match["mark"], Fraction(0))
    return -value if match["sign"] else value


@lru_cache(1024)
def number(written: str) -> Fraction:
    """Return a number in digits or as a word."""
    if written[0].isdigit():
        return Fraction(written.replace(",", ""))
    return Fraction(sum(_SMALL.get(part, _TENS.get(part, 0)) for part in written.lower().replace("-", " ").split()))


def scale_of(words: str) -> int:
    """Return what the words behind a number multiply it by: "hundred thousand", "k"."""
    scale = 1
    for word in words.lower().replace("-", " ").split():
        scale *= _SCALES.get(word, 1)
    return scale


def last_digit(match: re.Match[str]) -> Fraction:
    """Return what one more in the last digit given amounts to."""
    if match["plus"] or match["mark"]:
        return _SHARES.get((match["plus"] or "").lower(), Fraction(1, 4))
    decimals = (match["digits"] or "").partition(".")[2]
    return Fraction(1, 10 ** len(decimals))
