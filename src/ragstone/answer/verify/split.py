"""The statements of a compound claim, each of which can be checked by itself."""

from __future__ import annotations

import re

MOST_PARTS = 4
MAX_CHARS = 2000
"""Longer claims are read up to here."""
_FEWEST_WORDS = 3
_JOINT = re.compile(
    r"(?P<strong>;\s+|,?\s+(?:but|whereas|although|though)\s+|\.\s+(?=[A-Z]))|(?P<weak>,?\s+and\s+|,\s+while\s+)",
    re.I,
)
_HANGS = re.compile(r"(?:by|to|from|on|for|with|of|as|than|into|rather|only|also)\b", re.I)
"""Words that a fragment begins with, not a statement."""
VERB = re.compile(
    r"\b(?:is|are|was|were|be|has|have|had|does|do|did|can|could|will|would|may|might|must|should|shall|"
    r"(?:cost|take|open|close|sail|run|arrive|leave|depart|hold|need|carr|start|stop|begin|end|increas|decreas|reduc|rais|"
    r"improv|prevent|caus|inhibit|promot|activat|induc|affect|contain|requir|support|allow|return|appl|work|live|grow|"
    r"enhanc|regulat|bind|express|produc|show|remain|provid|include|exclude|become|make|give|get|pay|weigh|last|call|belong|"
    r"rest|pass|fall|ris|win|los|lower|stay|sit|bring|build|use|found|own|lead|keep|show|expect)(?:e?s|ies|e?d|ied)|"
    r"took|left|began|held|ran|rose|fell|won|lost|made|gave|got|paid|became|kept|brought|built|found|led|sat|sank|said)\b",
    re.I,
)


def split_claim(claim: str) -> list[str]:
    """The parts of a claim in order; one that cannot be taken apart safely is its own only part."""
    text = " ".join(claim[:MAX_CHARS].split())
    parts: list[str] = []
    start = 0
    for joint in _JOINT.finditer(text):
        left, right = text[start : joint.start()], text[joint.end() :]
        if len(parts) + 1 < MOST_PARTS and _states(left) and _states(_until_joint(right)):
            parts.append(left)
            start = joint.end()
    parts.append(text[start:])
    return _with_subjects(parts)


def clauses(sentence: str) -> list[str]:
    """A sentence and, where it has several, its clauses: a short claim may be one of them."""
    parts = split_claim(sentence)
    return [sentence, *parts] if len(parts) > 1 else [sentence]


def _until_joint(text: str) -> str:
    joint = _JOINT.search(text)
    return text[: joint.start()] if joint else text


def _states(text: str) -> bool:
    """Whether words make a statement rather than one side of "salt and pepper" or "not by boat but by train"."""
    return len(text.split()) >= _FEWEST_WORDS and not _HANGS.match(text) and VERB.search(text) is not None


def _with_subjects(parts: list[str]) -> list[str]:
    """Give a part that begins with its verb ("… and arrives at nine") the subject of the part before it."""
    whole: list[str] = []
    for part in parts:
        verb = VERB.match(part)
        if verb and whole and (first := VERB.search(whole[-1])) and first.start():
            part = whole[-1][: first.start()] + part
        whole.append(part.strip(" ,"))
    return whole
