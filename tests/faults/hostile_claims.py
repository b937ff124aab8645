"""Claims and passages made to take long: random mixtures of what is compared piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from ragstone.answer.verify.split import MAX_CHARS
from ragstone.core.types import Hit


def _split(words: str) -> list[str]:
    return words.split()


_PLAIN = _split(
    "ferry island leaves pier red boat nine the to of and a in that is are was has will may must can tickets cost on "
    "off yes enabled disabled default true false higher lower most all every some none which who Anna Morgan London"
)
_FOREIGN = _split("der die nicht und kein mit für le pas une с не что 不是 船")
_VERBS = _split("leaves sells gives takes pays bought sold increased")
_DENIALS = _split("not never no without neither isn't hardly")
_NUMBERS = _split("two three twenty thirty hundred thousand million")
_NAMES = _split("Anna Berta Carla Morgan London")
_PRONOUNS = _split("Anna's ferry's it its this they")
_CONDITIONS = (*_split("if unless when only except provided because although since"), "in case", "due to")
_RELATIONS = ("than", "from", "to", "by", "more than", "less than", "between", "before", "after", "until")

PIECES: dict[str, Callable[[Random], str]] = {
    "number": lambda chance: f"{chance.randrange(10_000)}",
    "quantity": lambda chance: f"{chance.randrange(10_000)} {chance.choice(('euros', 'metres', 'kg', 'hours', '%'))}",
    "bound": lambda chance: f"about {chance.randrange(100)}.{chance.randrange(100)} km",
    "date": lambda chance: f"{chance.randrange(1, 29)} May {chance.randrange(1900, 2100)}",
    "time": lambda chance: f"{chance.randrange(24)}:{chance.randrange(60):02d}",
    "number word": lambda chance: chance.choice(_NUMBERS),
    "name": lambda chance: f"Anna Bert{chance.randrange(10_000)} Carla",
    "capital": lambda chance: chance.choice(_NAMES),
    "word": lambda chance: chance.choice(_PLAIN),
    "new word": lambda chance: "".join(chance.choices("abcdefgst", k=chance.randrange(3, 9))),
    "foreign": lambda chance: chance.choice(_FOREIGN),
    "same": lambda chance: "ferry",
    "verb": lambda chance: chance.choice(_VERBS),
    "denial": lambda chance: chance.choice(_DENIALS),
    "condition": lambda chance: chance.choice(_CONDITIONS),
    "relation": lambda chance: chance.choice(_RELATIONS),
    "pronoun": lambda chance: chance.choice(_PRONOUNS),
    "hyphens": lambda chance: "-".join(chance.choices(_PLAIN, k=5)),
    "path": lambda chance: f"/etc/x{chance.randrange(10_000)}/y.conf",
    "option": lambda chance: f"--opt-{chance.randrange(10_000)}",
    "identifier": lambda chance: f"max_{chance.randrange(10_000)}_size",
    "long": lambda chance: chance.choice("abc") * chance.randrange(30, 200),
    "letter": lambda chance: chance.choice("äöüßéĀ\u0301\u200b½²³©"),
    "comma": lambda chance: ",",
    "bracket": lambda chance: chance.choice("()[]{}"),
    "quotation": lambda chance: chance.choice("\"`“”'"),
    "stop": lambda chance: chance.choice(";:—–"),
    "column": lambda chance: chance.choice(("\t", " | ", "   ")),
    "line": lambda chance: "\n",
    "item": lambda chance: "\n- ",
    "sentence": lambda chance: ". Then",
}
_LENGTHS = (300, 600, 1000, MAX_CHARS)
_SIZES = (1_000, 3_000, 10_000, 60_000)
_BEGIN = "The ferry leaves "


@dataclass(frozen=True)
class HostileClaim:
    """A claim, the passages that it is checked against, and what both are made of."""

    claim: str
    hits: tuple[Hit, ...]
    made_of: str


def make_claim(seed: int) -> HostileClaim:
    """Return a claim that is made of up to four kinds of pieces, and passages of the same or that repeat it."""
    chance = Random(seed)
    kinds = chance.sample(list(PIECES), chance.randrange(1, 5))
    length, size, passages = chance.choice(_LENGTHS), chance.choice(_SIZES), chance.choice((1, 3, 6))
    said = _join(chance, kinds, length - 60)
    repeated = chance.random() < 0.6
    hits = []
    for number in range(passages):
        times = max(1, size // (len(said) + 20))
        own = " ".join(f"{_BEGIN}{said} {place}." for place in range(times))
        hits.append(_make_hit(own if repeated else _BEGIN + _join(chance, kinds, size), number))
    made_of = f"{seed}: {', '.join(kinds)}; {length} characters beside {passages} times {size}, repeated: {repeated}"
    return HostileClaim(_BEGIN + said, tuple(hits), made_of)


def _join(chance: Random, kinds: Sequence[str], length: int) -> str:
    text = ""
    while len(text) < length:
        text += " ".join(PIECES[chance.choice(kinds)](chance) for _ in range(20)) + " "
    return text[:length]


def _make_hit(text: str, number: int) -> Hit:
    name = f"d{number}"
    return Hit(f"{name}:0", name, name, f"{name}.md", "", None, text, 0.9, {}, {}, 0, len(text))
