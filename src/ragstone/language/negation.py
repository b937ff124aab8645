"""Negation and opposites: whether two sentences deny each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from ragstone.language.analyzer import analyze
from ragstone.language.dates import REMEMBERED, Moment, date_spans, find_moments
from ragstone.language.measurements import drop_periods, quantity_spans
from ragstone.language.quantities import Quantity
from ragstone.language.synonyms import AlikeWords

_OPPOSITES = (
    "increase decrease, higher lower, high low, more less, more fewer, rise fall, raise lower, gain loss, used unused, "
    "gain lose, enable disable, allow forbid, allow prevent, allow prohibit, include exclude, used untouched, "
    "before after, above below, maximum minimum, largest smallest, larger smaller, longest shortest, spent untouched, "
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
    "cheap expensive, stop start, lend borrow, lent borrowed, rose fell, win lost, won lost, "
    "climb descend, ascend descend, climbed fell, ascending descending, upper lower, top bottom, front rear, "
    "push pull, add remove, add delete, insert delete, insert remove, encrypt decrypt, compress decompress, "
    "mount unmount, input output, incoming outgoing, inbound outbound, upstream downstream, forward backward, "
    "local remote, static dynamic, automatic manual, automatically manually, temporary permanent, "
    "temporarily permanently, majority minority, guilty innocent, convict acquit, visible hidden, show hide, "
    "attack defend, victory defeat, expand shrink, widen narrow, wide narrow, strengthen weaken, harden soften, "
    "freeze melt, thick thin, deep shallow, heavy light, rich poor, young old, tall short, urban rural, "
    "eastern western, domestic foreign, vertical horizontal, inner outer, ancient modern, profit loss, "
    "increase reduce, creditor debtor, landlord tenant, buyer seller, plaintiff defendant, predator prey, "
    "teacher student, sender receiver, source destination, prior subsequent, precede follow, "
    "predecessor successor, ancestor descendant, enter leave, enter exit, join leave, arrive leave, arrived left, "
    "hire fire, hired fired, appoint dismiss, support oppose, deny admit, approve veto, approve refuse, pass fail, "
    "succeed fail, alive dead, survive die, born died, husband wife, father mother, son daughter, brother sister, "
    "man woman, men women, boy girl, king queen, uncle aunt, nephew niece, male female, dawn dusk, sunrise sunset, "
    "compulsory optional, mandatory voluntary, enable off, disable on, host guest, donor recipient, minor major, "
    "heat cool, warm cool, cold warm, lighter heavier, older younger, nearest farthest, most least, "
    "highest lowest, fewest most, maximal minimal, praise criticise, welcome condemn, love hate, friend enemy, "
    "ally enemy, legal illegal, large small, big small, many few, near far, nearer further, closer further, "
    "ahead behind, lengthen shorten, bright dim, brightest faintest, brighter fainter, hotter cooler, allow disable, "
    "allow disallow, permit forbid, permit prohibit, permit disable, client server, upload download, recent ancient, "
    "sooner later, guilty acquit, appear disappear, connect disconnect, encourage discourage, reveal conceal, "
    "simple complicated, easy difficult, attach detach, lock unlock, agree disagree, "
    "north east, north west, south east, south west, allow deny, permit deny, grant deny, grant revoke, next previous, "
    "newest oldest, newer older, readable writable, recommend discourage, keep overwrite, keep discard, "
    "synchronous asynchronous, clockwise counterclockwise, clockwise anticlockwise, upward downward, odd even, "
    "uppercase lowercase, prefix suffix, prepend append, encode decode, borrower lender, vulnerable immune"
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


def are_opposites(claim: str, source: str) -> bool:
    """Return whether each text has one side, and only that side, of a pair such as open and closed."""
    here, there = set(analyze(spell_switches(claim))), set(analyze(spell_switches(source)))
    return any(
        this in here and that not in here and that in there and this not in there
        for pair in _pairs()
        for this, that in (pair, pair[::-1])
    ) or _differ_by_prefix(here, there)


_ON = re.compile(r"\b(?:(?:turn|switch)(?:s|es|ed|ing)? on|on(?= by default)|(?<=\bis )on(?=[.,;]|$))\b", re.I)
_OFF = re.compile(r"\b(?:(?:turn|switch)(?:s|es|ed|ing)? off|off(?= by default)|(?<=\bis )off(?=[.,;]|$))\b", re.I)


def spell_switches(text: str) -> str:
    """Return the text with "enabled" for what is on and "disabled" for what is off."""
    return _OFF.sub("disabled", _ON.sub("enabled", text))


def add_opposites(terms: set[str]) -> set[str]:
    """Return the terms, and the opposites of those that have one: "closed" speaks of open too."""
    return terms.union(that for pair in _pairs() for this, that in (pair, pair[::-1]) if this in terms)


def _differ_by_prefix(here: set[str], there: set[str]) -> bool:
    """Return whether one text has a word where the other has it with un-, in- or non-, or with -less."""
    return any(
        opposite in other and opposite not in one and word not in other
        for one, other in ((here, there), (there, here))
        for word in one
        if len(word) > 3 and word != "form"
        for opposite in (*(prefix + word for prefix in _PREFIXES), f"{word}less")
    )


@cache
def _pairs() -> tuple[tuple[str, str], ...]:
    pairs = (tuple((analyze(word) or [word])[0] for word in pair.split()) for pair in _OPPOSITES.split(", "))
    return tuple((first, second) for first, second in pairs)


@cache
def _directions() -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(analyze(_UP)), frozenset(analyze(_DOWN))


def direction(text: str) -> int:
    """Return 1 when a text speaks of more, -1 when of less, 0 when of both or of neither."""
    up, down = _directions()
    terms = set(analyze(text))
    return bool(terms & up) - bool(terms & down)


_EXACT = ("is", "about")
Figure = tuple[int, int, Quantity | Moment]
"""Its start, its end, and its quantity or moment."""


def restate(claim: str, sentence: str) -> str:
    """Return the claim with the sentence's own words for each figure that says the same."""
    stated = [other for other in find_figures(sentence) if _is_meant(sentence, other)]
    said = claim
    for start, end, figure in reversed(find_figures(claim)):
        same = next((other for other in stated if _same(figure, other[2])), None)
        if same is not None:
            said = said[:start] + sentence[same[0] : same[1]] + said[end:]
    return said


@lru_cache(REMEMBERED)
def find_figures(text: str) -> tuple[Figure, ...]:
    """Return the figures of a text in order, without those inside another figure."""
    figures: list[Figure] = [
        (start, start + len(quantity.words), quantity) for (start, _), quantity in quantity_spans(text)
    ]
    figures += [(start, end, moment) for (start, end), moment in date_spans(text)]
    found: list[Figure] = []
    for figure in sorted(figures, key=lambda spanned: spanned[:2]):
        if not found or figure[0] >= found[-1][1]:
            found.append(figure)
    return tuple(found)


def _is_meant(sentence: str, figure: Figure) -> bool:
    """Return whether its own words tell it, unlike those of "except Sunday", which tells all other days."""
    start, end, told = figure
    return not isinstance(told, Moment) or not told.weekdays or find_moments(sentence[start:end]) == [told]


def _same(figure: Quantity | Moment, other: Quantity | Moment) -> bool:
    if isinstance(figure, Quantity) and isinstance(other, Quantity):
        return figure.bound in _EXACT and other.bound in _EXACT and figure.fits(other)
    return isinstance(figure, Moment) and isinstance(other, Moment) and figure.fits(other)


Extent = Literal["all", "most", "some", "none"]

_CUE = re.compile(
    r"(?<!-)\b(?:no one|no longer|(?<!\bor )not(?! only)"
    r"|(?<!\w )(?<!default: )(?-i:No)(?=[.,])|no(?= [\w\"“‘`*_(])(?! (?:more|less|fewer|later|earlier|by|\d|\.))"
    r"|never|none|neither|nor"
    r"|nothing(?! but)|free (?:of|from)|except (?:when|if|where)"
    r"|nobody|nowhere|refuse[sd]?(?= to)|decline[sd]?(?= to)|without|unless|cannot|unable|lack(?:s|ed|ing)?"
    r"|hardly|scarcely|barely|fail(?:s|ed|ure)?(?= to\b)|absence|absent|devoid|independent(?:ly)?"
    r"|(?:prevent|keep|stop)(?:s|ped|ed|ing)? (?:[\w'’-]{1,30} ){1,4}from(?= \w{2,20}ing\b)"
    r"|\w{1,20}n['’]t)\b(?!-)",
    re.I,
)
_IMPLIED = re.compile(
    r"\b(?:skip(?:s|ped|ping)?|omit(?:s|ted|ting)?|ignor(?:es?|ed|ing)|exclud(?:es?|ed|ing)|prevent(?:s|ed|ing)?"
    r"|avoid(?:s|ed|ing)?|forb(?:ids?|idden|ade)|prohibit(?:s|ed|ing)?|refus(?:es?|ed|ing)|reject(?:s|ed|ing)?"
    r"|(?:leav(?:es?|ing)|left)(?= (?:[\w.'’-]{1,30} ){0,8}out\b)|left out|unless|without|absen(?:t|ce)|free of)\b",
    re.I,
)
"""Words that deny something without a "not"."""
_BREAK = re.compile(r"[.,;:!?]\s|\b(?:but|while|whereas|because|although|though|if|when)\b", re.I)
_SCOPE = 3
_LIGHT = frozenset(analyze("any ever anyone anything yet still really actually"))
"""Terms of a denial that say nothing of what is denied."""
_ADJACENT = 14
"""Characters between two cues that cancel each other: "never fails"."""
_HEDGE = re.compile(
    r"\b(?:may|might|could (?:be|have)|possibly|perhaps|probably|maybe|likely|unlikely|suggest(?:s|ed|ing)?"
    r"|appear(?:s|ed)? to|(?:look|appear)(?:s|ed)?(?= (?:much |far |more |less |as |like |\w{2,12}er\b))"
    r"|seem(?:s|ed)? to|hypothesi[sz]e[sd]?|unclear|uncertain|unknown|controversial|whether(?! or not)|is thought to"
    r"|are thought to|expected (?:to|that)|consider(?:s|ed|ing)? [\w-]{2,20}ing|either(?= [^.;]{1,80} or )"
    r"|is said to|it is believed|rumou?r(?:s|ed)?|alleged(?:ly)?|reportedly)\b",
    re.I,
)
_EXTENT_CLASSES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("none", re.compile(r"\b(?:none|nobody|no one|never|neither|no(?= (?!longer|more|less)))\b", re.I)),
    ("all", re.compile(r"\b(?<!at )(?<!in )(?:all|every\w{0,5}|each|any|always|whole|entire(?:ly)?|both|per)\b", re.I)),
    (
        "most",
        re.compile(
            r"\b(?<!the )(?<!at )(?:most(?:ly)?|majority|usually|generally|typically|normally|largely|mainly"
            r"|primarily)\b",
            re.I,
        ),
    ),
    (
        "some",
        re.compile(
            r"\b(?:some|several|(?<!a )few|a few|many|sometimes|occasionally|partly|part of|a part|often|rarely|seldom"
            r"|one of|certain|a number of|numerous|various)\b",
            re.I,
        ),
    ),
    (
        "only",
        re.compile(
            r"\b(?:only|just|sole(?:ly)?|alone|exclusively|merely|simply|not until|nothing but|no other)\b", re.I
        ),
    ),
)


_WHOLE = re.compile(
    r"(?<!\bin )(?<!\bat )\b(?:all|every\w{0,5}|always|whole|entire(?:ly)?|without exception|invariably)\b"
    r"|\bin (?:all|every|any|each) (?:cases?|circumstances?|situations?)\b|\bat all times\b",
    re.I,
)


def find_extents(text: str) -> set[str]:
    """Return the kinds of words for how much that a text has."""
    return {name for name, pattern in _EXTENT_CLASSES if pattern.search(drop_periods(text))}


def changes_extent(claim: str, source: str) -> bool:
    """Return whether a claim says of all, of most, of some or of none what the source does not say of as much."""
    mine, theirs = find_extents(claim), find_extents(source)
    new = mine - theirs
    # "Each fan" and "any fan" are what "a fan" says.
    whole = "most" in new or (_WHOLE.search(drop_periods(claim)) is not None and not _speaks_of_all(source))
    only = "only" in new and not _NEEDED.search(source)
    if "all" in mine and _ONLY_ONE.search(source) and not _EVERY.search(source):
        return True
    if _BOTH.search(claim) and "only" in theirs - mine and not _BOTH.search(source):
        return True
    if _WHENEVER.search(claim) and not _WHEN.search(source):
        return True
    return whole or only or ("some" in new and bool(theirs & {"all", "only", "most"}))


_ONLY_ONE = re.compile(r"\b(?:only one|one of|at most one|just one|no single|a single)\b", re.I)
_EVERY = re.compile(r"\b(?:all|every|each|both)\b(?! (?:the )?others?\b)", re.I)
_BOTH = re.compile(r"\bboth\b", re.I)
_WHENEVER = re.compile(r"\b(?:whenever|(?:every|each) time|in (?:all|any) cases?)\b", re.I)
_WHEN = re.compile(r"\b(?:whenever|when|if|always|(?:every|each) time|in (?:all|any) cases?)\b", re.I)
_NEEDED = re.compile(r"\b(?:needs? to|needed|requires?|required|necessary|must|until)\b", re.I)
_OF_ALL = re.compile(r"\b(?:all|each|any|both|no|never|none)\b", re.I)


def _speaks_of_all(source: str) -> bool:
    return _WHOLE.search(source) is not None or _OF_ALL.search(source) is not None


_EXTENTS: tuple[tuple[Extent, re.Pattern[str]], ...] = (
    ("none", re.compile(r"\b(?:no|none|never|nobody|neither)\b", re.I)),
    ("all", re.compile(r"\b(?:all|every|each|always|everyone|everything|any|only|entirely|exclusively)\b", re.I)),
    ("most", re.compile(r"\b(?<!at )(?:most|mostly|majority|usually|generally|often|typically|normally)\b", re.I)),
    ("some", re.compile(r"\b(?:some|sometimes|several|few|many|occasionally|partly|rarely|seldom)\b", re.I)),
)
_WEAKER: dict[Extent, frozenset[Extent]] = {
    "all": frozenset({"most", "some"}),
    "most": frozenset({"some"}),
    "some": frozenset(),
    "none": frozenset({"some", "most"}),
}
_THAN = re.compile(
    r"(?P<more>.{1,300})\b(?P<word>\w{2,20}er|(?:more|less) \w{1,20})\s(?:\w{1,20}\s){0,3}than\b"
    r"(?P<less>.{1,300})",
    re.I | re.S,
)
_CLAUSE = re.compile(r"[,;:]\s|\b(?:if|when|because|since|although|though|while)\b", re.I)


@dataclass(frozen=True, slots=True)
class Denial:
    """A negation and the terms it denies, nearest first."""

    scope: tuple[str, ...]


@lru_cache(REMEMBERED)
def find_denials(text: str) -> tuple[Denial, ...]:
    """Return the negations of a text; two that cancel each other are none."""
    cues = list(_CUE.finditer(text))
    plain = _drop_figures(text) if cues else text
    found: list[Denial] = []
    place = 0
    while place < len(cues):
        cue = cues[place]
        following = cues[place + 1] if place + 1 < len(cues) else None
        if following and 0 <= following.start() - cue.end() <= _ADJACENT and _cancels(text, cue, following):
            place += 2
            continue
        found.append(Denial(_scope(plain, cue) or _scope(text, cue)))
        place += 1
    return tuple(found)


def _drop_figures(text: str) -> str:
    """Return the text with blanks for figures and units: who denies a weight denies it in any unit."""
    for start, end, _ in find_figures(text):
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _cancels(text: str, cue: re.Match[str], following: re.Match[str]) -> bool:
    between = text[cue.end() : following.start()]
    joins = ("no", "neither", "nor")
    return not _BREAK.search(between) and cue.group().lower() not in joins and following.group().lower() != "nor"


def _scope(text: str, cue: re.Match[str]) -> tuple[str, ...]:
    rest = text[cue.end() : cue.end() + 200]
    stop = _BREAK.search(rest)
    words = rest[: stop.start()] if stop else rest
    terms = [term for term in analyze(words) if term not in _LIGHT][:_SCOPE] if words.strip(" .,;:!?") else []
    return tuple(terms) or tuple(reversed(analyze(text[max(0, cue.start() - 100) : cue.start()])[-2:]))


_EMPHASIS = re.compile(r"(?<!\w)_{1,2}(?=\w)|(?<=\w)_{1,2}(?!\w)")
_TERM = re.compile(r"\"[^\"\n]{1,40}\"|“[^”\n]{1,40}”|`[^`\n]{1,40}`")


def drop_emphasis(text: str) -> str:
    """Return the text without underscores around words and without quoted terms: "is _not_ used" denies it."""
    return _TERM.sub(lambda term: " " * len(term.group()), _EMPHASIS.sub("", text))


def has_denial_conflict(claim: str, source: str) -> bool:
    """Return whether one of the two denies what the other says without denying it."""
    claim, source = drop_emphasis(spell_switches(claim)), drop_emphasis(spell_switches(source))
    mine, theirs = find_denials(claim), find_denials(source)
    if bool(mine) != bool(theirs) and _implies_denial(*((source, claim) if mine else (claim, source))):
        return False  # it may be denied in other words
    there, here = (_drop_prefixes(add_opposites(set(analyze(text)))) for text in (source, claim))
    return _has_unmatched(mine, theirs, there) or _has_unmatched(theirs, mine, here)


def _drop_prefixes(terms: set[str]) -> set[str]:
    """Return the terms, and those with un- or in- without it: "unavailable" speaks of available too."""
    return terms.union(
        term[len(prefix) :] for term in terms for prefix in _PREFIXES if term.startswith(prefix) and len(term) > 6
    )


def _implies_denial(text: str, other: str) -> bool:
    """Return whether a text has a word that denies something without a "not", and the other text has it not."""
    return any(match.group().lower() not in other.lower() for match in _IMPLIED.finditer(text))


def differ_in_denial(claim: str, source: str) -> bool:
    """Return whether one of two texts has a word that denies something, and the other has none."""
    here, there = (drop_emphasis(spell_switches(text)) for text in (claim, source))
    return _may_deny(here) != _may_deny(there)


def _may_deny(text: str) -> bool:
    return bool(find_denials(text)) or _IMPLIED.search(text) is not None


def denies_more(claim: str, source: str) -> bool:
    """Return whether the claim denies what the source says without denying it."""
    claim, source = drop_emphasis(spell_switches(claim)), drop_emphasis(spell_switches(source))
    return _has_unmatched(find_denials(claim), find_denials(source), add_opposites(set(analyze(source))))


def _has_unmatched(denials: Iterable[Denial], other: Sequence[Denial], terms: set[str]) -> bool:
    """Return whether a denial concerns terms that the other text has, and finds no denial of its own there."""
    free, known = list(other), AlikeWords(terms)
    for denial in denials:
        scope = AlikeWords(denial.scope)
        partner = next((theirs for theirs in free if any(map(scope.has, theirs.scope))), None)
        if partner is not None:
            free.remove(partner)
        elif (told := list(map(known.has, denial.scope))) and (told[0] or 2 * sum(told) >= len(told)):
            return True
    return False


def is_swapped(claim: str, source: str) -> bool:
    """Return whether two comparisons by the same word name their sides the other way round."""
    mine, theirs = _THAN.match(claim), _THAN.match(source)
    if not mine or not theirs or mine["word"].lower() != theirs["word"].lower():
        return False
    (more, less), (above, below) = _read_sides(mine), _read_sides(theirs)
    straight = len((more - less) & (above - below)) + len((less - more) & (below - above))
    crossed = len((more - less) & (below - above)) + len((less - more) & (above - below))
    return crossed > straight


def _read_sides(than: re.Match[str]) -> tuple[set[str], set[str]]:
    """Return the terms on both sides of a comparison, within its clause where both have some there."""
    more, less = _CLAUSE.split(than["more"])[-1], _CLAUSE.split(than["less"])[0]
    if not analyze(more) or not analyze(less):
        more, less = than["more"], than["less"]
    return set(analyze(more)), set(analyze(less))


def find_extent(text: str) -> Extent | None:
    """Return how much of its subject a text speaks of, where it says so."""
    return next((name for name, pattern in _EXTENTS if pattern.search(drop_periods(text))), None)


def overreaches(claim: str, source: str) -> bool:
    """Return whether the claim says all where the source says some or does not say how many."""
    claimed, stated = find_extent(claim), find_extent(source)
    if claimed is None or claimed in ("none", "some"):
        return False
    return stated is None or stated in _WEAKER[claimed]


_OR = re.compile(r"\bor\b", re.I)


def drops_hedge(claim: str, source: str) -> bool:
    """Return whether a source says only that what a claim states may be so."""
    if is_hedged(claim):
        return False
    known = AlikeWords(analyze(claim))
    for hedge in _HEDGE.finditer(source):
        if hedge.group().lower() == "either" and _OR.search(claim):
            continue
        scope = _scope(source, hedge)
        if scope and 2 * sum(map(known.has, scope)) >= len(scope):
            return True
    return False


def is_hedged(text: str) -> bool:
    """Return whether a text says that something may be so rather than that it is."""
    return _HEDGE.search(text) is not None
