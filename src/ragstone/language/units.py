"""Units of measure that convert into each other, and what they are called."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction

from ragstone.language.analyzer import STOP_WORDS

_SCALES = {
    "length in m": "nm 1/1000000000,µm um micron 1/1000000,mm millimetre millimeter 1/1000,"
    "cm centimetre centimeter 1/100,m metre meter 1,km kilometre kilometer 1000,"
    "inch inches 127/5000,ft foot feet 381/1250,yd yard 1143/1250,"
    "mile mi 201168/125,nmi nautical-mile 1852",
    "mass in g": "ng nanogram 1/1000000000,µg ug mcg microgram 1/1000000,mg milligram 1/1000,g gram gramme 1,"
    "kg kilo kilogram kilogramme 1000,t tonne metric-ton 1000000,lb pound-mass 45359237/100000,"
    "oz ounce 45359237/1600000",
    "area in m²": "hectare ha 10000,acre 316160658/78125,sqm 1,sqft 145161/1562500",
    "volume in l": "µl ul microlitre microliter 1/1000000,ml millilitre milliliter 1/1000,cl centilitre 1/100,"
    "dl decilitre deciliter 1/10,l litre liter 1,hl hectolitre hectoliter 100",
    "time in s": "ns nanosecond 1/1000000000,µs us microsecond 1/1000000,ms millisecond 1/1000,s sec second 1,"
    "min minute 60,h hr hour 3600,d day 86400,wk week 604800,fortnight 1209600",
    "calendar in months": "month mo 1,quarter-year 3,year yr annum 12,decade 120,century centuries 1200",
    "data in bytes": "bit 1/8,kbit 125,mbit 125000,gbit 125000000,tbit 125000000000,byte 1,"
    "kb kilobyte 1000,mb megabyte 1000000,"
    "gb gigabyte 1000000000,tb terabyte 1000000000000,pb petabyte 1000000000000000,"
    "kib 1024,mib 1048576,gib 1073741824,tib 1099511627776",
    "share": "% percent per-cent pct 1/100,‰ 1/1000",
    "power in w": "w watt 1,kw kilowatt 1000,mw megawatt 1000000,gw gigawatt 1000000000",
    "energy in wh": "wh 1,kwh 1000,mwh 1000000",
    "angle": "degree deg ° 1",
    "dollars": "$ usd dollar 1",
    "euros": "€ eur euro 1",
    "pounds": "£ gbp 1",
}
_RATES = {
    "mph": ("mile", "hour"),
    "kmh": ("km", "hour"),
    "kph": ("km", "hour"),
    "mps": ("m", "second"),
} | dict.fromkeys(("kn", "knot", "knots"), ("nmi", "hour"))
_HEAT = "temperature in k"
_DEGREES = {
    "c": (Fraction(1), Fraction("273.15")),
    "f": (Fraction(5, 9), Fraction("459.67") * 5 / 9),
    "k": (Fraction(1), Fraction(0)),
}
"""Size of a degree, and where its scale begins."""
_DEGREE = re.compile(r"(?:°|degrees? )?(?P<scale>c(?:elsius)?|f(?:ahrenheit)?|k(?:elvins?)?)", re.I)
_POWER = re.compile(r"(?:(?P<word>square|sq|cubic|cu)[. ] ?)?(?P<unit>[a-z]{1,20})(?P<sign>[²³23])?")
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3, "²": 2, "2": 2, "³": 3, "3": 3}
_LITRES = 1000
"""In a cubic metre."""
_CASED = re.compile(r"[kmgtp]i?bs?|[kmgt]bps|mwh?s?|[mnµuckd]?m|m[gls]|us|[gtshdw]")
"""Units that another case makes another unit: b is a bit and B a byte, m a thousandth and M a million."""
_CERTAIN = re.compile(r"[kKMGTP]i?Bs?|[KMGT]bs?|[kKMGT][bB]ps|MW[hH]?s?|[mnµuckdCK]?m|CM|KM|mg|m[lL]|ms|us|[gtshd]|W")
PREFIXES = "$€£"
"""Signs that stand before their number; what one currency is worth in another is nowhere here."""


@dataclass(frozen=True, slots=True)
class Unit:
    """The dimension that a word measures, and its size in that dimension's own unit."""

    dimension: str
    size: Fraction = Fraction(1)
    zero: Fraction = Fraction(0)
    """Value at a measure of 0: 0 °C is not the absence of heat."""
    per: tuple[str, Fraction] | None = None
    """The unit it is counted by: the hour of a knot."""

    def measure(self, number: Fraction) -> Fraction:
        return number * self.size + self.zero

    def difference(self) -> Unit:
        """Return the unit of a rise or a fall: 5 °C more are 9 °F more."""
        return Unit(f"{_HEAT} more", self.size) if self.dimension == _HEAT else self

    def as_written(self) -> Unit:
        """Return the unit of a temperature that may be a point or a difference: only the same number equals it."""
        if not self.zero and self.dimension != _HEAT:
            return self
        return Unit(f"{self.dimension} from {self.zero}")


def _table() -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for dimension, listed in _SCALES.items():
        for entry in listed.split(","):
            *names, size = entry.split()
            for name in names:
                units[name] = Unit(dimension, Fraction(size))
                if f"{name}s" not in STOP_WORDS:  # "5 has" are no hectares
                    units.setdefault(f"{name}s", units[name])
    for name, (over, under) in _RATES.items():
        counted = units[under]
        units[name] = replace(units[over], per=(counted.dimension, counted.size))
    return units


UNITS = _table()

CELSIUS = Unit(_HEAT, *_DEGREES["c"])


def unit_of(word: str) -> Unit | None:
    """Return the unit a word stands for, or a few words as in "square metres"; None when it measures nothing."""
    word = word.replace("μ", "µ")
    folded = " ".join(word.lower().split())
    if is_told_by_case(word):
        return _find_cased(word, folded)
    return UNITS.get(folded.replace(" ", "-")) or _degrees(word, folded) or _powers(folded)


def is_told_by_case(word: str) -> bool:
    """Return whether a word would be another unit, or none, in another case."""
    return _CASED.fullmatch(word.lower()) is not None


def _find_cased(word: str, folded: str) -> Unit | None:
    """Return a unit that is told by its case; in any other case nobody knows what it is."""
    if _CERTAIN.fullmatch(word) is None:
        return None
    if word[1:2] in ("b", "B") and folded[0] in "kmgtp":
        unit = UNITS[f"{folded[0]}bit" if word[1] == "b" else f"{folded[0]}b"]
        second = UNITS["second"]
        return replace(unit, per=(second.dimension, second.size)) if word.endswith("ps") else unit
    return UNITS.get(folded)


def _degrees(word: str, folded: str) -> Unit | None:
    match = _DEGREE.fullmatch(folded)
    # A letter alone may be anything; "300 K" is hardly anything else.
    if match is None or (len(word) == 1 and word != "K"):
        return None
    return Unit(_HEAT, *_DEGREES[match["scale"][0]])


def _powers(folded: str) -> Unit | None:
    """Return the units of square and cubic lengths."""
    match = _POWER.fullmatch(folded)
    raised = match and (match["word"] or match["sign"])
    base = UNITS.get(match["unit"]) if match and raised else None
    if base is None or not raised or base.dimension != "length in m":
        return None
    if _POWERS[raised] == 2:
        return Unit("area in m²", base.size**2)
    return Unit("volume in l", base.size**3 * _LITRES)
