"""The body of a mail: its passages, and which of them its writer wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby, islice
from typing import NamedTuple

from ragstone.core.errors import EmptyDocument
from ragstone.core.types import BlockKind
from ragstone.ingest.parsers.mail.marks import LONGEST_LINE, attribution_lines, header_block, is_dated, mark_of
from ragstone.ingest.parsers.web.html import parse_markup

MAX_QUOTE_TAGS = 2000
"""A page with more is read in one piece: no person quotes that often."""
_QUOTE_MARKS = re.compile(r"[ \t]{0,3}>(?!From )[> \t]*")
_BLOCKQUOTE = re.compile(r"<(/?)blockquote(?=[\s/>])[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[a-zA-Z][^<>]*>")
# Mail has no navigation: a newsletter whose layout is named `footer` is all content.
_FRAME_NAME = re.compile(r"""(?<=[\s"'])(?:class|id|role)\s{0,4}=\s{0,4}(?:"[^"]*"|'[^']*'|[^\s"'>]+)""", re.IGNORECASE)
_FRAME_TAG = re.compile(r"<(/?)(?:header|footer|aside|main)(?=[\s/>])", re.IGNORECASE)
_MARKUP = re.compile(r"\s*(?:<!doctype\s+html|<html[\s>])", re.IGNORECASE)
_SIGNED = "-----BEGIN PGP SIGNED MESSAGE-----"
_SIGNATURE = "-----BEGIN PGP SIGNATURE-----"
_SIGNATURE_END = "-----END PGP SIGNATURE-----"
FORWARDED = "Forwarded message"
_LONGEST_SIGNATURE = 25
_LONGEST_CLOSING = 60
_NAME_WORDS = 6
_PROSE_WORDS = 9
_RULE = re.compile(r"[_\-=*]{5,}")
_POSTSCRIPT = re.compile(r"P\.?\s?S\.?\b", re.IGNORECASE)
_NAME = re.compile(r"\w+")
_ITEM = re.compile(r"\s*(?:[-*•]|\d{1,3}[.)])\s")
_DISCLAIMER = re.compile(r"confidential|intended recipient|vertraulich|disclaimer|confidenti", re.IGNORECASE)
_SENTENCE_END = (".", "?", "!", ":", ";")
_BESIDE_NAME = frozenset({"and", "from", "to", "und", "aus", "an", "et", "de", "y", "e", "en", "uit", "van"})
_MORE_CLOSINGS = ("Thanks again", "Many thanks", "Cheers", "Yours sincerely", "Sincerely", "Warm regards", "MfG")


@dataclass(frozen=True, slots=True)
class Body:
    """One text part of a message."""

    text: str
    html: bool = False
    flowed: bool = False
    """Lines that end in a space go on in the next one (RFC 3676)."""
    joined: bool = False
    """That space is not part of the text."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A block of a mail's body."""

    kind: BlockKind
    text: str
    quoted: bool = False
    level: int = 0
    label: str = ""


def passages_of(body: Body, name: str) -> list[Passage]:
    """Return the passages of a part, whatever its form."""
    if body.html or _MARKUP.match(body.text[:1000]):
        return list(_html(body.text, name))
    text = body.text.replace("\r\n", "\n").replace("\r", "\n")
    if _SIGNED in text:
        text = _without_armour(text)
    return list(_plain(_unflow(text, body.joined) if body.flowed else text))


def words_in(passages: list[Passage]) -> int:
    """Return how many words a reader would read."""
    return sum(len(passage.text.split()) for passage in passages)


def _plain(text: str) -> Iterator[Passage]:
    """Yield paragraphs: blank lines keep them apart, and a new one begins where quoting begins or ends."""
    lines: list[str] = []
    quoted = False
    for raw in [*text.split("\n"), ""]:
        marks = _QUOTE_MARKS.match(raw)
        line = (raw[marks.end() :] if marks else raw.removeprefix(">") if raw.startswith(">From ") else raw).rstrip()
        if lines and (not line or quoted is not bool(marks)):
            yield Passage("paragraph", "\n".join(lines), quoted)
            lines = []
        quoted = bool(marks)
        if line:
            lines.append(line)
    if lines:
        yield Passage("paragraph", "\n".join(lines), quoted)


def _unflow(text: str, joined: bool) -> str:
    lines: list[str] = []
    goes_on = False
    for raw in text.split("\n"):
        # Quotes are left as they are; before other lines one space may stand so that they pass for none.
        whole = raw.startswith(">") or raw == "-- "
        line = raw if whole else raw.removeprefix(" ")
        if goes_on and line and not whole:
            lines[-1] += line
        else:
            lines.append(line)
        goes_on = not whole and raw.endswith(" ")
        if goes_on and joined:
            lines[-1] = lines[-1][:-1]
    return "\n".join(lines)


def _without_armour(text: str) -> str:
    before, _, rest = text.partition(_SIGNED)
    signed = rest.partition("\n\n")[2] or rest
    words, _, behind = signed.partition(_SIGNATURE)
    return f"{before}{words}{behind.partition(_SIGNATURE_END)[2]}"


def _html(markup: str, name: str) -> Iterator[Passage]:
    for quoted, piece in _pieces(_FRAME_TAG.sub(r"<\1div", _TAG.sub(lambda tag: _FRAME_NAME.sub(" ", tag[0]), markup))):
        try:
            parsed = parse_markup(piece, name)
        except EmptyDocument:
            continue
        for block in parsed.blocks:
            text = parsed.text[block.start : block.end]
            # A tag that was closed in another piece still says quote.
            kind = "paragraph" if block.kind == "quote" else block.kind
            yield Passage(kind, text, quoted, block.level, block.label)


def _pieces(markup: str) -> Iterator[tuple[bool, str]]:
    """Yield the page cut where its outermost quotes begin and end."""
    tags = list(islice(_BLOCKQUOTE.finditer(markup), MAX_QUOTE_TAGS + 1))
    depth = start = 0
    for tag in tags if len(tags) <= MAX_QUOTE_TAGS else ():
        was_quoted = depth > 0
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if was_quoted != (depth > 0):
            yield was_quoted, markup[start : tag.start()]
            start = tag.end()
    yield depth > 0, markup[start:]


@dataclass(frozen=True, slots=True)
class _Line:
    passage: int
    text: str
    quoted: bool
    number: int
    """Its place among all lines."""


class OwnWords(NamedTuple):
    """The passages that are kept of a mail."""

    passages: list[Passage]
    forwarded: list[Passage]
    left_out: bool = False
    """True if it quotes words of an earlier mail that are not kept."""


def own_words(passages: Sequence[Passage], *, reply: bool, forward: bool, sender: str = "") -> OwnWords:
    """Return the passages without quoted replies and signature; all of them when nothing else would be left.

    Where a mail answers point by point, the quoted paragraph before each answer stays, as a quote.
    """
    lines = _lines_of(passages)
    end, forwarded = _history(lines, answered=reply and not forward)
    unquoted = _without_quotes(lines[:end], reply=reply)
    own = set(_without_name(_without_signature(unquoted), sender))
    if not own and not forwarded:
        return OwnWords(forwarded_words(passages), [])
    answered = _find_answered(lines[:end], own) if reply else set()
    written = [line for line in lines[:end] if line in own or line.passage in answered]
    kept = {*unquoted, *written, *forwarded}
    return OwnWords(
        _rebuilt(written, passages, answered),
        forwarded_words(_rebuilt(forwarded, passages)),
        left_out=any(line not in kept and (line.quoted or line.number >= end) and line.text for line in lines),
    )


def forwarded_words(passages: Sequence[Passage]) -> list[Passage]:
    """Return all passages as content: the copied headers of each message in them become its heading."""
    lines = _lines_of([replace(passage, quoted=False) for passage in passages])
    texts = [line.text for line in lines]
    content: list[Passage] = []
    first = place = 0
    while place < len(lines):
        headers = header_block(texts, place + (mark_of(texts[place]) is not None and place + 1 < len(texts)))
        if headers is None:
            place += 1
            continue
        content += _rebuilt(lines[first:place], passages)
        content.append(heading_of("\n".join(texts[place : headers.end]), headers.subject))
        first = place = headers.end
    return [*content, *_rebuilt(lines[first:], passages)]


def _lines_of(passages: Sequence[Passage]) -> list[_Line]:
    texts = [(place, text) for place, passage in enumerate(passages) for text in passage.text.split("\n")]
    return [_Line(place, text, passages[place].quoted, number) for number, (place, text) in enumerate(texts)]


def heading_of(text: str, subject: str, level: int = 2) -> Passage:
    """Return the head of a forwarded message: a heading with its subject as label."""
    return Passage("heading", text, level=level, label=f"{FORWARDED}: {subject}" if subject else FORWARDED)


def _history(lines: Sequence[_Line], *, answered: bool) -> tuple[int, Sequence[_Line]]:
    """Return the end of the writer's part, and what follows it unless that is the mail answered."""
    texts = [line.text for line in lines]
    for place, line in enumerate(lines):
        mark = mark_of(line.text)
        if line.quoted:
            opens_quote = place == 0 or not lines[place - 1].quoted
            if opens_quote and mark == "forward" and not attribution_lines(texts[max(0, place - 3) : place]):
                return place, lines[place:]
            continue
        if mark == "forward":
            return place, lines[place:]
        if mark == "original" or header_block(texts, place) is not None:
            ruled = place > 0 and bool(_RULE.fullmatch(texts[place - 1].strip()))
            return place - ruled, () if answered else lines[place:]
        if answered and _is_unmarked_reply(lines, texts, place):
            return place + 1 - attribution_lines(texts[max(0, place - 2) : place + 1]), ()
    return len(lines), ()


def _is_unmarked_reply(lines: Sequence[_Line], texts: Sequence[str], place: int) -> bool:
    """Return whether this line ends an attribution and that mail follows without any quote marks."""
    if place + 1 >= len(lines) or lines[place + 1].quoted or lines[place + 1].passage == lines[place].passage:
        return False
    said = texts[max(0, place - 2) : place + 1]
    count = attribution_lines(said)
    return count > 0 and is_dated(" ".join(said[-count:]))


def _without_quotes(lines: Sequence[_Line], *, reply: bool) -> list[_Line]:
    kept: list[_Line] = []
    for quoted, run in groupby(lines, key=lambda line: line.quoted):
        if not quoted:
            kept.extend(run)
            continue
        introduced = attribution_lines([line.text for line in kept[-3:]]) if kept and not kept[-1].quoted else 0
        if introduced:
            del kept[-introduced:]
        elif not reply:
            # A newsletter that quotes somebody is no reply.
            kept.extend(run)
    return kept


def _find_answered(lines: Sequence[_Line], own: AbstractSet[_Line]) -> AbstractSet[int]:
    """Return the quoted passages that own words follow at once; none if those words stand behind the only quote."""
    runs = [(quoted, list(run)) for quoted, run in groupby(lines, key=lambda line: line.quoted)]
    answers = [place for place, (quoted, run) in enumerate(runs) if place and not quoted and not own.isdisjoint(run)]
    if not any(place + 1 < len(runs) for place in answers):
        return frozenset()
    return {runs[place - 1][1][-1].passage for place in answers}


def _without_signature(lines: Sequence[_Line]) -> list[_Line]:
    kept = list(lines)
    for find in (_device, _delimiter, _device, _closing):
        place = find(kept)
        if place > 0:
            postscript = next((at for at in range(place + 1, len(kept)) if _POSTSCRIPT.match(kept[at].text)), len(kept))
            del kept[place:postscript]
    return kept


def _without_name(lines: list[_Line], sender: str) -> list[_Line]:
    """Return the lines without a last one that is the sender's name or part of it, unless it answers a quote."""
    if len(lines) < 2 or lines[-2].number + 1 != lines[-1].number:
        return lines
    name = set(_NAME.findall(sender.partition("<")[0].casefold()))
    signed = _NAME.findall(lines[-1].text[:LONGEST_LINE].casefold())
    return lines[:-1] if signed and name.issuperset(signed) else lines


def _device(lines: Sequence[_Line]) -> int:
    """Return the place of a last line such as `Sent from my phone`; 0 when there is none."""
    last = len(lines) - 1
    return last if last > 0 and _sent_from().fullmatch(lines[last].text[:LONGEST_LINE].strip()) else 0


def _delimiter(lines: Sequence[_Line]) -> int:
    """Return the place of the line of two dashes that programs put above a signature."""
    for place in range(len(lines) - 1, max(0, len(lines) - 1 - _LONGEST_SIGNATURE), -1):
        if lines[place].text.strip() in ("--", "—"):
            return place
    return 0


def _closing(lines: Sequence[_Line]) -> int:
    """Return the place of a closing phrase that is followed by a name and details, or by nothing."""
    for place in range(max(1, len(lines) - _LONGEST_SIGNATURE), len(lines)):
        following = [line.text for line in lines[place + 1 :]]
        if _is_closing(lines[place].text) and _is_signature(following):
            return place
    return 0


def _is_closing(line: str) -> bool:
    if len(line) > _LONGEST_CLOSING:
        return False
    phrase = _closings().match(line.strip())
    if phrase is None:
        return False
    rest = line.strip()[phrase.end() :].strip(" ,.!–-")
    first, *_ = rest.split() or [""]
    return not rest or (len(rest.split()) <= _NAME_WORDS and (first[0].isupper() or first.lower() in _BESIDE_NAME))


def _is_signature(lines: Sequence[str]) -> bool:
    """Return whether lines hold a name and details, and nothing that somebody may want to find."""
    if not lines:
        return True
    is_name = len(lines[0].split()) <= _NAME_WORDS and not lines[0].rstrip().endswith(_SENTENCE_END)
    details = next((lines[:at] for at, line in enumerate(lines) if _POSTSCRIPT.match(line)), lines)
    if any(_DISCLAIMER.search(line[:LONGEST_LINE]) for line in details):
        return is_name
    return is_name and not any(_ITEM.match(line) or len(line.split()) >= _PROSE_WORDS for line in details)


@cache
def _closings() -> re.Pattern[str]:
    phrases = [phrase.rstrip(",.") for words in _languages() for phrase in words.get("signatures", ())]
    # Whole words only; `/Anna`, a Swedish habit, is a path elsewhere.
    usable = sorted((phrase for phrase in phrases if not phrase.startswith("/")), key=len, reverse=True)
    return re.compile(rf"(?:{'|'.join([*usable, *_MORE_CLOSINGS])})(?!\w)", re.IGNORECASE)


@cache
def _sent_from() -> re.Pattern[str]:
    phrases = [words["sent_from"] for words in _languages() if words.get("sent_from")]
    return re.compile(rf"(?:{'|'.join(phrases)})\b.{{0,80}}", re.IGNORECASE)


def _languages() -> Sequence[dict[str, str]]:
    from mailparser_reply.constants import MAIL_LANGUAGES

    languages: dict[str, dict[str, str]] = MAIL_LANGUAGES
    return list(languages.values())


def _rebuilt(
    lines: Sequence[_Line], passages: Sequence[Passage], quotes: AbstractSet[int] = frozenset()
) -> list[Passage]:
    """Return passages of these lines, each of its old kind but for those that stay quotes."""
    runs = groupby(lines, key=lambda line: line.passage)
    texts = {place: [line.text for line in run] for place, run in runs}
    return [
        Passage("quote", "\n".join(f"> {text}" for text in run))
        if place in quotes
        else replace(passages[place], text="\n".join(run), quoted=False)
        for place, run in texts.items()
    ]
