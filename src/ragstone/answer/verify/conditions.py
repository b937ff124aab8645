"""Conditions, exceptions and framing that limit what a sentence states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal

from ragstone.answer.verify.objections import Objection, ObjectionKind
from ragstone.language.analyzer import STOP_WORDS, analyze, analyze_query
from ragstone.language.dates import find_moments
from ragstone.language.grammar import first_verb, tokenize
from ragstone.language.negation import find_denials
from ragstone.language.synonyms import AlikeWords

_SOURCE = re.compile(
    r"(?<!even )(?<!as )\bif\b"
    r"|\b(?:unless|provided that|in case|as long as|on condition|otherwise|subject to"
    r"|(?<!while )(?<!by )(?<!for )(?<!of )providing(?= (?:that|the|it|they|you|he|she|there)\b))\b"
    r"|(?P<clause>(?<!are )(?<!is )(?<!was )(?<!were )(?<!be )(?<!been )\bprovided\b)"
    r"|\b(?P<time>(?:only )?(?:when|whenever)|only (?:after|once|where|upon|with)"
    r"|once(?= (?:the|it|they|all|you|he|she|we|this|these|your|its|their|both|every)\b))\b",
    re.I,
)
"""Of a time it is only where it tells no past: "the bridge fell when the storm came" says that it fell."""
_NARROWED = re.compile(
    r"^\W{0,3}(?!(?:the|this|that|its|our|their|his|her|he|she|it)\b)(?:[\w'’-]{1,30}\s){0,2}"
    r"(?:[\w'’-]{2,30}s|people|children|staff|men|women|anyone|everyone|those)\s"
    r"(?:with(?:out)?|who|holding|carrying|aged)\s(?P<what>[^,;.:]{1,80}?)\s"
    r"(?:may|can|cannot|must|shall|will|should|need|are|get|receive|pay|enter|travel)\b",
    re.I,
)
"""Those of whom alone a sentence speaks: visitors with a ticket."""
_CLAIM = re.compile(
    r"(?<!even )(?<!as )\b(?:if|unless|when|whenever|where|once|while|provided(?: that)?|providing|in case(?: of)?"
    r"|as long as|on condition(?: that)?|subject to|in the event(?: of)?|except(?: for| with| when| if| where)?|with|on"
    r"|upon|after|for|without|otherwise)\b",
    re.I,
)
_PAST = ("was", "were", "had", "did")
_DENYING = ("unless", "without", "except")
_ANY = re.compile(r"\b(?:an?|any|every|each)\s(?P<what>(?:[\w'’-]{1,30}\s?){1,4})", re.I)
"""A thing that is named by its state: "a full disk" is a disk, if it is full."""
_END = re.compile(r"[,;:.!?](?:\s|$)|\s(?:then|but)\s", re.I)
_RELATIVE = re.compile(r"\b(?:whose|(?:that|which|who) (?:is|are|was|were|has|have))\b", re.I)
_WANTED = re.compile(r"(?:if|when) you (?:only |just |really )?(?:want|wish|need|would like|prefer|intend|try)\b", re.I)
_KEPT, _KEPT_OF_LONG, _LONG = 0.6, 0.4, 4
"""Share of a condition's terms that its other wording must have, and of those of a long one."""


MOST = 12
"""Conditions of one text that are read; a sentence of more states nothing that could be told apart."""


@dataclass(frozen=True)
class Condition:
    """The terms of a condition, and whether they must not be so."""

    terms: frozenset[str]
    denied: bool
    last: str = ""
    """The term that tells most: is flashing."""
    is_purpose: bool = False
    """True when it says what somebody wants: what follows is how that is done."""

    @cached_property
    def words(self) -> AlikeWords:
        return AlikeWords(self.terms)


def drops_condition(claim: str, sentence: str) -> bool:
    """Return whether a sentence says something under a condition that the claim leaves out, or turns round."""
    if narrowed := _NARROWED.match(sentence):
        wanted = _terms(narrowed["what"])
        if len(wanted.intersection(_terms(claim))) < _KEPT * len(wanted):
            return True
    stated = _find_conditions(sentence, _SOURCE)
    if not stated:
        return False
    kept = [*_find_conditions(claim, _CLAIM), *_states(claim)]
    told = AlikeWords(analyze(claim))
    return len(stated) == MOST or any(
        not _is_told(condition, claim, told) and not any(_are_same(mine, condition) for mine in kept)
        for condition in stated
    )


def _is_told(condition: Condition, claim: str, told: AlikeWords) -> bool:
    """Return whether a claim tells a condition in other words: as a purpose, or of what it speaks of: "whose …"."""
    shared = sum(map(told.has, condition.terms))
    if condition.is_purpose:
        return 2 * shared >= len(condition.terms)
    return not condition.denied and shared == len(condition.terms) and _RELATIVE.search(claim) is not None


def _find_conditions(text: str, marks: re.Pattern[str]) -> list[Condition]:
    found = []
    for mark in islice(marks.finditer(text), MOST):
        end = _END.search(text, mark.end())
        words = text[mark.end() : end.start() if end else len(text)]
        if marks is _SOURCE and not _is_condition(text, mark, words):
            continue
        denied = mark.group().lower().startswith(_DENYING) != bool(len(find_denials(words)) % 2)
        terms = _terms_in_order(words)
        whole = (mark.group() + words).strip()
        found.append(
            Condition(frozenset(terms), denied, terms[-1] if terms else "", is_purpose=_WANTED.match(whole) is not None)
        )
    return found


def _states(claim: str) -> list[Condition]:
    return [Condition(_terms(match["what"]), False) for match in _ANY.finditer(claim)]


def _is_condition(text: str, mark: re.Match[str], words: str) -> bool:
    """Return whether a word that may mean something else begins a condition here."""
    if mark["clause"]:
        stated = first_verb(tokenize(text[: mark.start()])) is not None or not text[: mark.start()].strip()
        return stated and first_verb(tokenize(words)) is not None
    if not mark["time"]:
        return True
    verb = first_verb(tokenize(words))
    return verb is None or not (verb.form in ("past", "participle") or verb.token.word in _PAST)


def _terms(words: str) -> frozenset[str]:
    return frozenset(_terms_in_order(words))


def _terms_in_order(words: str) -> list[str]:
    return analyze(words) if words.strip(" ,.;:") else []


def _are_same(mine: Condition, theirs: Condition) -> bool:
    """Return whether one is the other in other words; "otherwise" points back and has none of its own."""
    shared = sum(map(mine.words.has, theirs.terms))
    if shared < len(theirs.terms) == len(mine.terms):
        return False  # one word was put for another: a steady red light for a flashing one
    if len(theirs.terms) >= _LONG and mine.denied == theirs.denied and shared >= _KEPT_OF_LONG * len(theirs.terms):
        return True
    if theirs.last and not mine.words.has(theirs.last):
        return False
    return mine.denied == theirs.denied and shared >= _KEPT * len(theirs.terms)


_STRONG_JOINT = re.compile(r";\s|,\s(?=otherwise\b)|\.\s(?=[A-Z])|,?\s(?:but|whereas|although|though|because)\s", re.I)
_BRACKETS = re.compile(r"\([^()]{0,300}\)")
_FALSE = re.compile(
    r"\b(?:(?:false|untrue|incorrect|wrong|a myth|a lie|a hoax) that"
    r"|(?:claims?|idea|notion|report|rumou?rs?|story|belief|allegations?|statement|assertion) that\b[^;]{1,300}"
    r"\b(?:is|are|was|were|proved|turned out) (?:to be )?(?:false|untrue|incorrect|wrong|mistaken|baseless|unfounded"
    r"|refuted|disproved|a myth|a lie|a hoax))\b",
    re.I,
)
_FRAME = re.compile(
    r"\b(?:den(?:y|ies|ied) (?:that|having|any)|dispute[sd]?|disprove[sdn]?|debunk(?:s|ed)?|refute[sd]?"
    r"|alleg(?:e|es|ed|edly)|rumou?r(?:s|ed)?|suppos(?:ed|edly)|purported(?:ly)?|so-called|hearsay|pretend(?:s|ed)?"
    r"|(?:claim|believe|think|argue|suspect|fear|hope|assume|guess|doubt|speculate|predict)(?:s|d|ed)?(?= that\b)"
    r"|thought that|consider(?:s|ed)?(?= \w{2,20}ing\b)"
    r"|(?:often|commonly|widely|sometimes) (?:said|claimed|believed|assumed|thought|reported)"
    r"|(?:critics|opponents|some|people|skeptics|sceptics) (?:say|said|claim(?:ed)?|believed?|argued?)"
    r"|(?<!if you )(?<!when you )(?:plan(?:s|ned)?|intend(?:s|ed)?|hope[sd]?|want(?:s|ed)?|tr(?:y|ies|ied)"
    r"|attempt(?:s|ed)?|scheduled|meant"
    r"|propose[sd]?|threaten(?:s|ed)?|offer(?:s|ed)?|ordered|asked|about|fail(?:s|ed)?|refuse[sd]?|decline[sd]?"
    r"|forgot|proposal) to)\b",
    re.I,
)
_MEANT = re.compile(r"\b(?:meant|intended|designed|supposed|planned|proposed) (?:as|for)\b", re.I)
_REFUSAL = re.compile(r"fail|refuse|decline|den", re.I)
_UNREAL = re.compile(
    r"\b(?:would|could|might|should)(?: not| never)? have\b|^\s*(?:had|were)\b[^;]{1,300}\bwould\b|\bif only\b", re.I
)
_TAKEN_BACK = re.compile(
    r"\b(?:former(?:ly)?|ex-\w{1,30}|previously|once(?= (?:was|were|had))"
    r"|(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )(?<!\bbe )(?<!\bbeen )(?<=\w )used to|(?<!not )until"
    r"|(?:almost|nearly)(?! (?:all|every|\d))|hardly|scarcely|barely|rarely|seldom|(?<!a )few(?!er)|fake|would-be"
    r"|proposed|planned|hypothetical|not yet|no longer)\b",
    re.I,
)
_NEAR, _NEAR_TERMS = 40, 2
"""Characters and terms behind a word that it may belong to."""
_BARELY = re.compile(r"\b(?:hardly|scarcely|barely|rarely|seldom|almost|nearly|former(?:ly)?|(?<!a )few(?!er))\b", re.I)
_ONLY = re.compile(
    r"\bonly (?:(?:the|those|these|this|that|its|their|an?) )?"
    r"((?!when|if|after|on|in|at|by|for|with|\d)[^\W\d_]{2,30})",
    re.I,
)

_SEASON = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|week(?:ends?|days?)|summer|winter|spring|autumn|holidays?)\b",
    re.I,
)


def is_at_certain_times(claim: str, sentence: str) -> bool:
    """Return whether a sentence speaks of certain days or seasons and the claim leaves them out."""
    return _SEASON.search(strong_part(claim, sentence)) is not None and _SEASON.search(claim) is None


def is_denied_as_a_whole(claim: str, sentence: str) -> bool:
    """Return whether one of the two calls false what the other states."""
    return bool(_FALSE.search(sentence)) != bool(_FALSE.search(claim))


def find_framing(claim: str, sentence: str) -> Objection | None:
    """Return why a sentence that mentions what a claim says does not state it, or None when it may."""
    part = strong_part(claim, sentence)
    frame = _FRAME.search(part)
    denied = frame is not None and _REFUSAL.match(frame.group()) and find_denials(claim)
    if frame and not denied and not _FRAME.search(claim) and not _MEANT.search(claim):
        return Objection(ObjectionKind.NOT_A_FACT)
    if _UNREAL.search(part) and not _UNREAL.search(claim):
        return Objection(ObjectionKind.UNREAL)
    if drops_condition(claim, part):
        return Objection(ObjectionKind.CONDITIONAL)
    here = AlikeWords(terms := analyze(claim))
    denies = bool(find_denials(claim))
    for word in _TAKEN_BACK.finditer(part):
        if denies and find_denials(word.group()):
            continue  # both deny it
        if not any(map(here.has, analyze(word.group()))) and _stands_near(word, here):
            return Objection(ObjectionKind.TAKEN_BACK, word.group().lower())
    there = AlikeWords(analyze(sentence))
    if any(not any(map(there.has, analyze(word.group()))) for word in _BARELY.finditer(claim)):
        return Objection(ObjectionKind.WITHOUT_LIMIT)
    sole = _ONLY.search(part)
    if sole and sole[1].lower() not in STOP_WORDS and set(terms).isdisjoint(analyze(sole[1])):
        return Objection(ObjectionKind.ONLY_OF_ANOTHER)
    return None


def _stands_near(word: re.Match[str], terms: AlikeWords) -> bool:
    """Return whether a claim has one of the words right behind or before a word, to which that one may belong."""
    behind = analyze(word.string[word.end() : word.end() + _NEAR])[:_NEAR_TERMS]
    before = analyze(word.string[max(0, word.start() - _NEAR) : word.start()])[-1:]
    return any(map(terms.has, (*behind, *before)))


def strong_part(claim: str, sentence: str) -> str:
    """Return the part of a sentence, cut at semicolons and "but", that a claim is about, or all of it."""
    wanted = set(analyze_query(claim))
    outside = _BRACKETS.sub(" ", sentence)
    if len(wanted.intersection(analyze(outside))) == len(wanted.intersection(analyze(sentence))):
        sentence = outside
    parts = _STRONG_JOINT.split(sentence)
    counts = [len(wanted.intersection(analyze(part))) for part in parts]
    best = max(counts)
    whole = len(wanted.intersection(analyze(sentence)))
    return parts[counts.index(best)] if best == whole else sentence


_ALL = r"(?:all|every(?:one|body|thing|where)?|any(?:one|body|thing)?|no ?one|nobody|none|nothing)"
_MARK = re.compile(
    r"\b(?:(?P<plain>except(?:ing)?(?: for)?|excluding|not including|with the exceptions? of|save for|but not"
    rf"|{_ALL} (?:but|save)|(?:all|every|each) (?:the )?[^\W\d_]{{1,30}} (?:but|save))"
    r"|other than|apart from|aside from|besides|instead of|rather than"
    r"|but (?:(?:it |they )?(?:is|are|was|were|stays?|remains?) )?(?P<state>closed|shut|open|unavailable))\s",
    re.I,
)
_BEHIND = re.compile(r"[,(–—]\s?(?P<what>(?:[\w'’-]{1,30}\s){1,4})(?:excepted|excluded)\b", re.I)
_ENDS = re.compile(r"[;:.!?()](?:\s|$)|\s(?:but|because|although|though|which|who)\s", re.I)
_NEXT = re.compile(r",?\s(?:and|or|nor)\s|,\s", re.I)
_WHOLE = re.compile(r"\b(?:all|every\w{0,5}|each|always|daily|any\w{0,5})\b", re.I)
_DENIES = re.compile(r"\b(?:no|not|none|nobody|nothing|never|cannot|closed|shut|\w{1,20}n['’]t)\b", re.I)

Left = Literal["", "left out", "denied"]


@dataclass(frozen=True, slots=True)
class Excepted:
    """One thing that a text takes out of what it says."""

    words: str
    terms: frozenset[str]
    """Those that the text has nowhere but in its exceptions."""
    plain: bool
    """True if the exception denies of this what is said of the others."""
    state: frozenset[str]
    """The state of this instead, if the text tells it: closed."""


def find_exception(claim: str, sentence: str) -> Left:
    """Return whether a claim says of an exception, or of all, what the sentence says only of the others."""
    found = list(_find_exceptions(sentence))
    if not found:
        return ""
    terms, own = set(analyze(claim)), [thing.terms for thing in _find_exceptions(claim)]
    for thing in found:
        if any(thing.terms & kept for kept in own) or thing.state & terms:
            continue
        share = _named_share(claim, terms, thing)
        denies = not thing.state and _DENIES.search(sentence) is not None
        if share == 1 and thing.plain and denies == bool(_DENIES.search(claim)):
            return "denied"
        if share or (_WHOLE.search(claim) and not own):
            return "left out"
    return ""


def _named_share(claim: str, terms: set[str], thing: Excepted) -> float:
    """Return how much of an excepted thing a claim names; days and dates are compared as such."""
    mine, theirs = find_moments(claim), find_moments(thing.words)
    if mine and theirs:
        return float(any(moment.meets(other) for moment in mine for other in theirs))
    return len(thing.terms & terms) / len(thing.terms) if thing.terms else 0.0


def _find_exceptions(text: str) -> Iterator[Excepted]:
    """Yield the things that a text excepts."""
    found: list[tuple[str, bool, frozenset[str]]] = []
    rest = text
    for mark in islice(_MARK.finditer(text), MOST):
        state = frozenset(analyze(mark["state"])) if mark["state"] else frozenset[str]()
        for words in _find_things(text, mark):
            found.append((words, bool(mark["plain"] or state), state))
            rest = rest.replace(words, " ", 1)
    for mark in islice(_BEHIND.finditer(text), MOST):
        found.append((mark["what"], True, frozenset()))
        rest = rest.replace(mark["what"], " ", 1)
    outside = frozenset(analyze(rest)) if found else frozenset[str]()
    for words, plain, state in found:
        yield Excepted(words, frozenset(analyze(words)) - outside, plain, state)


def _find_things(text: str, mark: re.Match[str]) -> Iterator[str]:
    """Yield the things an exception names, across "and" and commas, up to the next verb."""
    end = _ENDS.search(text, mark.end())
    phrase = text[mark.end() : end.start() if end else len(text)].strip(" .!?")
    stated = first_verb(tokenize(text[: mark.start()])) is not None
    start, over = 0, ""
    for joint in [*islice(_NEXT.finditer(phrase), MOST), None]:
        piece = phrase[start : joint.start() if joint else len(phrase)]
        verb = first_verb(tokenize(piece))
        begins = first_verb(tokenize(piece), shared=True) if over else None
        if over and ((verb and (stated or over.strip() == ",")) or (begins and begins.sure)):
            return
        cut = verb is not None and not stated
        yield piece[: verb.token.start] if verb is not None and cut else piece
        if joint is None or cut:
            return
        start, over = joint.end(), joint.group()
