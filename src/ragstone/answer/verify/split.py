"""The statements of a compound claim, each of which can be checked by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from ragstone.language.dates import REMEMBERED
from ragstone.language.grammar import BE, HAVE, MODALS, OWNING, Token, Verb, first_verb, tokenize

MOST_PARTS = 4
MOST_JOINTS = 24
"""Places looked at: what follows stays with the last part."""
MAX_CHARS = 2000
"""Longer claims are read up to here."""
_FEWEST_WORDS = 2
_JOINT = re.compile(
    r"(?P<strong>;\s+|,?\s+(?:but|whereas|although|though)\s+|(?<!\b[A-Z])(?<!\bDr)(?<!\bMr)(?<!\bMrs)(?<!\bSt)\.\s+(?=[A-Z]))|(?P<weak>,?\s+and\s+(?:then\s+)?|,?\s+while\s+)",
    re.I,
)
_HANGS = re.compile(r"(?:by|to|from|on|for|with|of|as|than|into|rather|only|also|not|no longer)\b", re.I)
"""Words that a fragment begins with, not a statement."""
_LEADS = r"^(?:if|when|whenever|because|although|though|while|after|before|since|unless|once|as|until|where)\b"
_REACHES_OVER = re.compile(
    rf"{_LEADS}"
    r"|\b(?:that|whether|who|which|whose|both|either|neither|between|to (?!the|a|an)[a-z]{2,20})\b(?!.*,)",
    re.I,
)
"""On the left of an "and": what it joins may both stand under it."""
_STANDS_OVER = re.compile(
    rf"{_LEADS}|\b(?:whether|neither|(?:says?|said|tells?|told|claim(?:s|ed)?|believe[sd]?|thinks?|thought|report(?:s|ed)?"
    r"|suggest(?:s|ed)?|assume[sd]?|argue[sd]?|hope[sd]?|fear(?:s|ed)?|den(?:y|ies|ied)|expect(?:s|ed)?) that)\b",
    re.I,
)
"""The same for what has a subject of its own behind a comma."""
_PRONOUN = re.compile(r"(?P<of>(?:each|both|all|some|one|none) of )?(?:it|they|them|he|she|this|these)\b(?=\s)", re.I)
_SUBJECT = re.compile(rf"{_PRONOUN.pattern}|(?:the|an?|its|their|every|each|no)\s", re.I)
_LONGEST_SUBJECT = 60
_CONDITION = re.compile(r"\b(?:if|unless|when|because|so that)\b", re.I)


def split_claim(claim: str) -> list[str]:
    """Return the parts of a claim in order; one that cannot be taken apart safely is its own only part."""
    return list(_split(claim[:MAX_CHARS]))


@lru_cache(REMEMBERED)
def _split(claim: str) -> tuple[str, ...]:
    text = " ".join(claim.split())
    parts: list[str] = []
    start = 0
    for joint in islice(_JOINT.finditer(text), MOST_JOINTS):
        left, right = text[start : joint.start()], _until_joint(text[joint.end() :])
        over = _STANDS_OVER if "," in joint.group() and _SUBJECT.match(right) else _REACHES_OVER
        if len(parts) + 1 < MOST_PARTS and _parts_here(left, right, over if joint["weak"] else None):
            parts.append(left)
            start = joint.end()
    parts.append(text[start:])
    return tuple(_with_subjects(parts))


def name_pronouns(parts: Sequence[str]) -> list[str]:
    """Return the parts of a claim, each that begins with a pronoun with the subject of the part before it."""
    named: list[str] = []
    for part in parts:
        pronoun = _PRONOUN.match(part)
        subject = _find_subject(named[-1]) if pronoun and named else ""
        named.append(f"{pronoun['of'] or ''}{subject}{part[pronoun.end() :]}" if pronoun and subject else part)
    return named


def _find_subject(part: str) -> str:
    """Return what stands before the verb of a part, or ""."""
    verb = first_verb(tokenize(part))
    subject = part[: verb.token.start].strip() if verb else ""
    return subject if len(subject) <= _LONGEST_SUBJECT and "," not in subject else ""


def split_clauses(sentence: str) -> list[str]:
    """Return a sentence and, where it has several, its clauses: a short claim may be one of them."""
    parts = split_claim(sentence)
    return [sentence, *parts] if len(parts) > 1 else [sentence]


def _until_joint(text: str) -> str:
    joint = _JOINT.search(text)
    return text[: joint.start()] if joint else text


def _parts_here(left: str, right: str, over: re.Pattern[str] | None) -> bool:
    """Return whether both sides state something, unlike those of "salt and pepper" or "not by boat but by train".

    `over` are the words on the left of an "and" under which both sides may stand.
    """
    before, after = tokenize(left), tokenize(right)
    if min(len(before), len(after)) < _FEWEST_WORDS or _HANGS.match(left) or _HANGS.match(right):
        return False
    weak = over is not None
    if over is not None and (over.search(left) or _CONDITION.search(right)):
        return False
    verb = first_verb(before) or first_verb(before, shared=True)
    own, shared = first_verb(after), first_verb(after, shared=True)
    if verb is None or (weak and not verb.sure and verb.place == len(before) - 1 and not _ends_alike(verb, own, after)):
        return False
    closed = not weak or _is_closed(before, verb)
    if shared and shared.agrees_with(verb) and (shared.sure or closed):
        # "did not stop the pump and check the oil": it is unclear how far the "not" reaches.
        return shared.form == "s" or not _is_denied(before, verb)
    return own is not None and _has_subject(after, own) and (own.sure or (closed and own.same_time(verb)))


def _is_denied(words: Sequence[Token], verb: Verb) -> bool:
    after = words[verb.place + 1 : verb.place + 2]
    denying = verb.token.word == "cannot" or verb.token.word.endswith(("n't", "n’t"))
    return denying or any(word.word in ("not", "never") for word in after)


def _ends_alike(verb: Verb, own: Verb | None, after: Sequence[Token]) -> bool:
    """Return whether both sides end with what may be their verbs: one of them must be, and then both are."""
    return own is not None and own.form == verb.form and own.place == len(after) - 1


def _is_closed(words: Sequence[Token], verb: Verb) -> bool:
    """Return whether what follows the verb cannot go on as a list: "at eight and …", "is open and …"."""
    rest = words[verb.place + 1 :]
    if not rest or rest[-1].kind in ("number", "adverb", "name"):
        return True
    return len(rest) == 1 and verb.token.word in BE


def _has_subject(words: Sequence[Token], verb: Verb) -> bool:
    """Return whether what stands before a verb can be its subject; "old boats in the harbour" has none."""
    first = words[0]
    return verb.form != "s" or first.kind in ("determiner", "pronoun", "name", "number") or verb.sure


def _with_subjects(parts: list[str]) -> list[str]:
    """Give a part that begins with its verb ("… and arrives at nine") the subject of the part before it."""
    whole: list[str] = []
    for part in parts:
        lead = _shared_lead(whole[-1], part) if whole else ""
        whole.append((lead + part).strip(" ,"))
    return whole


def _shared_lead(before: str, part: str) -> str:
    """Return what the second of two statements leaves out: the subject, with "must" or "was"."""
    words = tokenize(part)
    verb, first = first_verb(words, shared=True), first_verb(tokenize(before))
    if verb is None or first is None or not verb.agrees_with(first):
        return ""
    own = first_verb(words)
    if own and own.sure and (words[0].kind in ("determiner", "pronoun", "name") or not verb.sure):
        return ""
    after = words[verb.place + 1 : verb.place + 2]
    acts = any(word.word in OWNING for word in after)
    helping = verb.form == "base" and first.token.word in MODALS
    passive = verb.form == "participle" and first.token.word in BE | HAVE and not acts and " born " not in before
    return before[: first.token.end] + " " if helping or passive else before[: first.token.start]
