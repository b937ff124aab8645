"""Subtitles (SubRip and WebVTT): what is said, as text, under the time at which it is said."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from ragstone.core.types import Parsed
from ragstone.ingest.parsers.draft import DEFAULT, Draft, ParseOptions, clean
from ragstone.ingest.parsers.text.paragraphs import split_paragraphs
from ragstone.ingest.parsers.text.text import decode

STRETCH_SECONDS = 120
"""Speech of two minutes fills a chunk."""
LONGEST_STRETCH = 2 * STRETCH_SECONDS
_TIMES = re.compile(r"(?:([0-9]{1,3}):)?([0-9]{1,2}):([0-9]{2})[.,][0-9]{1,3}[ \t]*-->")
_SPEAKER = re.compile(r"<v(?:\.[^ >]{0,60})?[ \t]([^>\n]{1,80})>")
_MARKS = re.compile(r"<[^<>\n]{0,100}>|\{\\[^{}\n]{0,100}\}")
_ENDS = (".", "!", "?", "…", "。", "？", "！")


class _Cue(NamedTuple):
    seconds: int
    lines: list[str]


def parse_subtitles(content: bytes, name: str, options: ParseOptions = DEFAULT) -> Parsed:
    """Read subtitles; lines that repeat the one before, as rolling captions do, are taken once."""
    decoded = decode(content, name)
    cleaned = clean(decoded.text)
    draft = Draft(name)
    draft.hidden = cleaned.hidden
    began = -1
    words: list[str] = []
    last = ""
    for cue in _cues(cleaned.text):
        passed = cue.seconds - began
        if words and ((passed >= STRETCH_SECONDS and last.endswith(_ENDS)) or passed >= LONGEST_STRETCH):
            _add_stretch(draft, began, words)
            began, words = -1, []
        began = cue.seconds if began < 0 else began
        for line in cue.lines:
            if line != last:
                words.append(line)
                last = line
    _add_stretch(draft, began, words)
    return draft.finish("text/vtt" if cleaned.text.startswith("WEBVTT") else "application/x-subrip",
                        metadata={"encoding": decoded.encoding}, warnings=decoded.warnings)  # fmt: skip


def _add_stretch(draft: Draft, seconds: int, words: list[str]) -> None:
    if words:
        time = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        draft.add("heading", time, level=2, label=time)
        draft.add("paragraph", " ".join(words))


def _cues(text: str) -> Iterator[_Cue]:
    for block in split_paragraphs(text):
        lines = block.strip("\n").split("\n")
        for number, line in enumerate(lines[:3]):
            if times := _TIMES.match(line.strip()):
                hours, minutes, seconds = (int(part or 0) for part in times.groups())
                said = (_say(spoken) for spoken in lines[number + 1 :])
                yield _Cue(hours * 3600 + minutes * 60 + seconds, [spoken for spoken in said if spoken])
                break


def _say(line: str) -> str:
    """Return a line without marks, with its speaker before it."""
    return " ".join(html.unescape(_MARKS.sub("", _SPEAKER.sub(r"\1: ", line))).split())
