"""Finds the sentences of a text.

A full stop ends a sentence unless what stands around it says otherwise: an abbreviation, an initial, a
number, an address, a word in lower case on the same line. Blank lines, headings, list items and table rows
end one without a stop; a single line break inside a paragraph does not. Every step looks at a bounded number
of characters, so hostile text costs no more than its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

STOPS = re.compile(r"[.!?…؟۔।॥]++[\"'”’»)\]}*_]*+|[。！？｡．]++[」』）》〉】”’\"')\]]*+")
LINE = re.compile(r"[^\n]*+(?:\n|$)")
ROW = re.compile(r"[ \t]{0,3}\|")
OWN_LINE = re.compile(r"[ \t]{0,3}(?:#{1,6}[ \t]|\|)")
ITEM = re.compile(r"[ \t>]*+(?:[-*+•‣◦–][ \t]+|[0-9]{1,3}[.)][ \t]+|\(?[a-zA-Z0-9]\)[ \t]+|#{1,6}[ \t]+)")
QUOTE = re.compile(r"[ \t]*+(?:>[ \t]*+)+")
RULE = re.compile(r"[ \t]*+(?:=++|-++|\*{3,}+|_{3,}+)[ \t]*+$")
FENCE = re.compile(r"[ \t]*+(?:```|~~~)")
LAST_WORD = re.compile(r"[^\s(\[{\"'“‘*_]*$")
NEXT_WORD = re.compile(r"[\s\"'“‘(\[{*_]*+([\w.]*)")
DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
INSIDE_A_NAME = re.compile(r"[A-Z0-9_.]")
LINE_BREAK = re.compile(r"[ \t]{0,4}\r?\n")
FULL_WORD = re.compile(r"(?:[\w-]*-)?[A-Za-z]{4,}|[0-9]{3,}|`[^`]+`")
"""No abbreviation by its form: few have more than three letters."""
CJK_STOPS = frozenset("。！？｡．")
REACH = 40
"""Characters read around a full stop; no abbreviation is longer."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEVER_LAST = _words(
    "dr mr mrs ms prof rev hon gen col maj capt lt sgt sen rep gov pres st mt ft messrs fig figs eq eqs ref refs "
    "tab vs viz cf ca approx resp incl excl esp e.g i.e eg ie eds dept univ assn bros spp subsp "
    "vol vols pp para chap"
)
"""Abbreviations that something always follows."""
LAST_BEFORE_A_STARTER = _words(
    "al inc ltd co corp llc plc jr sr ph.d m.d b.a m.a b.sc m.sc a.m p.m u.s u.k u.n e.u d.c jan feb apr jun "
    "jul aug sep sept oct nov dec tue thu fri ave blvd rd ed min max avg temp tel ext sp var ver"
)
"""Abbreviations that end a sentence only where a word follows that usually begins one."""
BEFORE_A_NUMBER = _words("no nos art arts sec secs ch p nr op §")
"""Abbreviations of a number to come; words of their own otherwise."""
LONG_ABBREVIATIONS = _words(
    "abbr acct aprox assoc attn auth bijv bspw bzgl calif conf conn cont diff evtl exkl freq ggfs govt illus inkl insb "
    "intl mass mich minn misc natl okla orig phys prev prob proc sogen spec suppl tenn trans transl zzgl"
)
"""Further abbreviations of four letters and more; they matter where a line ends behind one and goes on below."""
ABBREVIATIONS = NEVER_LAST | LAST_BEFORE_A_STARTER | BEFORE_A_NUMBER | LONG_ABBREVIATIONS
STARTERS = _words(
    "a an the this that these those it its he she they we you i there here in on at by for from with as after "
    "before during when while where if although though because since however moreover furthermore therefore thus "
    "hence also both each some many most our their his her my your what which who how why but and so yet to no not "
    "such all one two then finally first second"
)


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences in order, free of white space and of list or heading marks around them."""
    spans: list[tuple[int, int]] = []
    for start, end in _segments(text):
        if start < end:
            spans.extend(_split(text, start, end))
    return spans


def _segments(text: str) -> Iterator[tuple[int, int]]:
    """Spans that no sentence reaches across: paragraphs, items, headings, table rows."""
    start = end = 0
    for match in LINE.finditer(text):
        line = match.group()
        if not line.strip():
            yield start, end
            start = end = match.end()
            continue
        if OWN_LINE.match(line) or FENCE.match(line):
            yield start, end
            yield match.span()
            start = end = match.end()
        elif RULE.match(line):
            yield start, match.end()
            start = end = match.end()
        elif ITEM.match(line):
            yield start, end
            start, end = match.span()
        else:
            end = match.end()
    yield start, end


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    start = _after_marks(text, start, end)
    stops = () if ROW.match(text, start, end) else STOPS.finditer(text, start, end)
    for stop in stops:
        if _ends_sentence(text, start, stop, end):
            yield from _trim(text, start, stop.end())
            start = stop.end()
    yield from _trim(text, start, end)


def _after_marks(text: str, start: int, end: int) -> int:
    for mark in (QUOTE, ITEM):
        if (match := mark.match(text, start, end)) and text[match.end() : end].strip():
            start = match.end()
    return start


def _trim(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    part = text[start:end]
    bare = part.strip()
    if bare:
        begin = start + len(part) - len(part.lstrip())
        yield begin, begin + len(bare)


def _ends_sentence(text: str, start: int, stop: re.Match[str], end: int) -> bool:
    marks = stop.group()
    after = stop.end()
    if marks[0] in CJK_STOPS or after >= end:
        return True
    if not text[after].isspace():
        return False
    following = NEXT_WORD.match(text, after, min(end, after + REACH))
    next_word = following.group(1) if following else ""
    before = text[max(start, stop.start() - REACH) : stop.start()]
    if next_word[:1].islower() and not INSIDE_A_NAME.search(next_word.rstrip(".")):
        return marks == "." and LINE_BREAK.match(text, after, end) is not None and _ends_line(before)
    if not marks.startswith(".") or marks.startswith(".."):
        return True
    return _ends_after(before, next_word, at_start=stop.start() - start < REACH)


def _ends_line(before: str) -> bool:
    """Return whether a full stop at the end of a line ends the sentence although the next line is in lower case."""
    last = LAST_WORD.search(before)
    word = last.group() if last else ""
    return FULL_WORD.fullmatch(word) is not None and word.lower() not in ABBREVIATIONS


def _ends_after(before: str, next_word: str, *, at_start: bool) -> bool:
    """Return whether one full stop behind `before` ends the sentence, given the word that follows."""
    last = LAST_WORD.search(before)
    word = last.group() if last else ""
    folded = word.lower()
    if folded in NEVER_LAST:
        return False
    if folded in BEFORE_A_NUMBER:
        return not next_word[:1].isdigit()
    if folded in LAST_BEFORE_A_STARTER or DOTTED.fullmatch(word):
        return next_word.lower() in STARTERS
    if len(word) == 1 and word.isalpha():
        # "J. Smith" and "p. 5" go on; "vitamin C. The dose" and "solve for x. Done" do not.
        return next_word.lower() in STARTERS if word.isupper() else not next_word[:1].isdigit()
    numbered_heading = at_start and word.isdigit() and before == word and len(word) <= 3
    return not numbered_heading
