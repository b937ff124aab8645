"""Units that convert into each other exactly, and what they are called."""

from __future__ import annotations

from fractions import Fraction

_SCALES = {
    "length in m": "nm 1/1000000000,µm um micron 1/1000000,mm millimetre millimeter 1/1000,"
    "cm centimetre centimeter 1/100,m metre meter 1,km kilometre kilometer 1000,"
    "inch inches 127/5000,ft foot feet 381/1250,yd yard 1143/1250,"
    "mile mi 201168/125,nmi 1852",
    "mass in g": "ng nanogram 1/1000000000,µg ug mcg microgram 1/1000000,mg milligram 1/1000,g gram gramme 1,"
    "kg kilo kilogram kilogramme 1000,t tonne 1000000,lb pound-mass 45359237/100000,oz ounce 45359237/1600000",
    "volume in l": "µl ul microlitre microliter 1/1000000,ml millilitre milliliter 1/1000,cl centilitre 1/100,"
    "dl decilitre deciliter 1/10,l litre liter 1",
    "time in s": "ns nanosecond 1/1000000000,µs us microsecond 1/1000000,ms millisecond 1/1000,s sec second 1,"
    "min minute 60,h hr hour 3600,d day 86400,wk week 604800,fortnight 1209600",
    "calendar in months": "month mo 1,quarter-year 3,year yr annum 12,decade 120,century centuries 1200",
    "data in bytes": "byte 1,kb 1000,mb 1000000,gb 1000000000,tb 1000000000000,kib 1024,mib 1048576,gib 1073741824,"
    "tib 1099511627776",
    "share": "% percent per-cent pct 1/100,‰ 1/1000",
    "power in w": "w watt 1,kw kilowatt 1000,mw megawatt 1000000,gw gigawatt 1000000000",
    "energy in wh": "wh 1,kwh 1000,mwh 1000000",
    "speed in kn": "kn knot 1",
    "angle": "degree deg ° 1",
    "celsius": "°c celsius 1",
    "fahrenheit": "°f fahrenheit 1",
    "dollars": "$ usd dollar 1",
    "euros": "€ eur euro 1",
    "pounds": "£ gbp 1",
}
PREFIXES = "$€£"
"""Signs that stand before their number."""


def _table() -> dict[str, tuple[str, Fraction]]:
    units: dict[str, tuple[str, Fraction]] = {}
    for dimension, listed in _SCALES.items():
        for entry in listed.split(","):
            *names, scale = entry.split()
            for name in names:
                units[name] = units.setdefault(f"{name}s", (dimension, Fraction(scale)))
    return units


UNITS = _table()


def unit_of(word: str) -> tuple[str, Fraction] | None:
    """The dimension a word measures and its size in that dimension's own unit."""
    # "MB" and "mb" mean the same to most writers; "mW" and "MW" do not, so short mixed forms must be exact.
    folded = word.replace("μ", "µ").lower()
    if folded == "mw" and word != "MW":
        return None
    return UNITS.get(folded)
