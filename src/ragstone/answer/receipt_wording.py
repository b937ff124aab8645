"""Whether the text of an answer is made of its sentences and its marks, and of nothing else.

A receipt does not say in which style its answer was written, so each is tried. Marks may be of any format, as long
as the words in it are those of a mark: a format must not be a way to say something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import get_args

from ragstone.answer.cite import DEFAULT_FORMAT, INDEX
from ragstone.answer.styles import below, marked, unmarked
from ragstone.answer.write import FLAG, NO_EVIDENCE
from ragstone.core.answer_settings import CitationStyle
from ragstone.core.answers import Citation, Sentence

MOST_AROUND = 16
"""Characters of a mark on each side of its number."""
_WORD = re.compile(r"[^\W\d_]+")
_WORDS_OF_MARKS = (
    "source sources src ref refs reference cite cited citation passage note notes footnote fn see no nr n p "
    "doc document evidence quote sup quelle siehe dokument voir fuente fonte"
)


def is_made_of(
    answer: str, sentences: Sequence[Sentence], citations: Sequence[Citation], *, answered: bool
) -> bool:
    """Whether the sentences, written down in one of the styles, are this answer."""
    if not answered or not sentences:
        return not answered and not sentences and not citations and answer == NO_EVIDENCE
    numbered = {citation.n: citation for citation in citations}
    cited = [[numbered[n] for n in one.citations if n in numbered] for one in sentences]

    def written(count: int, style: CitationStyle, citation_format: str) -> str:
        return " ".join(
            marked(one.text, its, style, citation_format) + (f" {FLAG}" * (one.support == "unsupported"))
            for one, its in zip(sentences[:count], cited[:count], strict=True)
        )

    for citation_format in (DEFAULT_FORMAT, *_other_formats(answer, sentences[0], cited[0])):
        for style in get_args(CitationStyle):
            # The first sentence tells nearly always, and at little cost.
            if answer.startswith(written(1, style, citation_format)) and answer == (
                written(len(sentences), style, citation_format) + below(citations, style, citation_format)
            ):
                return True
    return False


def _other_formats(answer: str, first: Sentence, cited: Sequence[Citation]) -> Iterator[str]:
    """The formats that what follows the first sentence may be a mark of."""
    bare = unmarked(first.text) + " "
    if not cited or not answer.startswith(bare):
        return
    number = str(cited[0].n)
    before, found, rest = answer[len(bare) : len(bare) + 2 * MOST_AROUND + len(number)].partition(number)
    if not found or len(before) > MOST_AROUND:
        return
    for length in range(min(MOST_AROUND, len(rest)) + 1):
        around = before + rest[:length]
        if set(_WORD.findall(around.lower())).issubset(_WORDS_OF_MARKS.split()) and INDEX not in around:
            yield f"{before}{INDEX}{rest[:length]}"
