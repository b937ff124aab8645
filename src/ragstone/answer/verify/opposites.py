"""Words of opposite meaning, and words that speak of more or of less."""

from __future__ import annotations

from functools import cache

from ragstone.core.analyzer import analyze

_OPPOSITES = (
    "increase decrease, higher lower, high low, more less, more fewer, rise fall, raise lower, gain loss, "
    "gain lose, enable disable, allow forbid, allow prevent, allow prohibit, include exclude, "
    "before after, above below, maximum minimum, largest smallest, larger smaller, longest shortest, "
    "longer shorter, first last, open close, opening closing, accept reject, promote inhibit, "
    "promote suppress, activate inhibit, activate inactivate, activate suppress, positive negative, "
    "positively negatively, early late, earlier later, sufficient insufficient, sensitive resistant, "
    "sensitivity resistance, presence absence, cause prevent, induce inhibit, induce prevent, "
    "necessary unnecessary, required optional, mandatory optional, safe dangerous, win lose, north south, "
    "east west, northern southern, summer winter, weekday weekend, possible impossible, same different, "
    "dependent independent, upregulate downregulate, upregulation downregulation, free paid, "
    "with without, inside outside, start end, begin end, arrive depart, left right, port starboard, "
    "old new, fast slow, faster slower, strong weak, stronger weaker, hot cold, wet dry, full empty, "
    "true false, public private, internal external, improve worsen, better worse, best worst, "
    "protect harm, beneficial harmful, rare common, stable unstable, essential dispensable, "
    "success failure, always never, stimulate inhibit, enhance reduce, enhance impair, enhance inhibit, "
    "accelerate slow, day night, morning evening, import export, until since, "
    "acquire sell, acquire sold, buy sell, bought sold, approve reject, agree refuse, accept refuse, cheaper dearer, "
    "cheap expensive, stop start, lend borrow, lent borrowed, rose fell, win lost, won lost"
)
_UP = (
    "increase raise rise elevate higher more enhance promote activate upregulate improve induce stimulate "
    "augment expand greater grow strengthen facilitate accelerate boost larger longer elevated increased"
)
_DOWN = (
    "decrease reduce lower fall less fewer diminish inhibit suppress block downregulate impair prevent "
    "attenuate decline shrink deplete loss drop weaken abolish abrogate limit restrict smaller shorter "
    "reduction inhibition deficiency"
)
_PREFIXES = ("un", "in", "im", "non", "dis", "ir", "il")


def opposites(claim: str, source: str) -> bool:
    """Whether each text has one side, and only that side, of a pair such as open and closed."""
    here, there = set(analyze(claim)), set(analyze(source))
    return any(
        this in here and that not in here and that in there and this not in there
        for pair in _pairs()
        for this, that in (pair, pair[::-1])
    ) or _prefixed(here, there)


def with_opposites(terms: set[str]) -> set[str]:
    """The terms, and the opposites of those that have one: "closed" speaks of open too."""
    return terms.union(that for pair in _pairs() for this, that in (pair, pair[::-1]) if this in terms)


def _prefixed(here: set[str], there: set[str]) -> bool:
    """Whether one text has a word where the other has it with un-, in- or non-."""
    return any(
        prefix + word in other and prefix + word not in one and word not in other
        for one, other in ((here, there), (there, here))
        for word in one
        if len(word) > 3
        for prefix in _PREFIXES
    )


@cache
def _pairs() -> tuple[tuple[str, str], ...]:
    pairs = (tuple((analyze(word) or [word])[0] for word in pair.split()) for pair in _OPPOSITES.split(", "))
    return tuple((first, second) for first, second in pairs)


@cache
def _directions() -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(analyze(_UP)), frozenset(analyze(_DOWN))


def direction(text: str) -> int:
    """1 when a text speaks of more, -1 when of less, 0 when of both or of neither."""
    up, down = _directions()
    terms = set(analyze(text))
    return bool(terms & up) - bool(terms & down)
