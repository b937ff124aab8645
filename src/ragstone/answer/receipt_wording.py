"""Whether the text of an answer is made of its sentences and its marks, and of nothing else."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass

from ragstone.answer.cite import DEFAULT_FORMAT, INDEX
from ragstone.answer.styles import below, marked, worded
from ragstone.answer.write import FLAG, NO_EVIDENCE
from ragstone.core.answers import Citation, Sentence
from ragstone.settings.answers import CitationStyle

_SPEECHLESS = frozenset(string.punctuation + " ")


@dataclass(frozen=True, slots=True)
class Wording:
    """How an answer names its sources in its text."""

    style: CitationStyle = "index"
    format: str = DEFAULT_FORMAT

    def speaks(self) -> bool:
        """Whether its marks hold more than a number and signs, so that they could say something to a reader."""
        return self.style in ("index", "footnote") and not _SPEECHLESS.issuperset(
            self.format.replace(INDEX, "")
        )


def is_made_of(
    answer: str,
    sentences: Sequence[Sentence],
    citations: Sequence[Citation],
    wording: Wording,
    *,
    answered: bool,
) -> bool:
    """Whether the sentences, written down in this way, are this answer."""
    if not answered or not sentences:
        return not answered and not sentences and not citations and answer == NO_EVIDENCE
    if INDEX not in wording.format:
        return False
    numbered = {citation.n: citation for citation in citations}
    return answer == " ".join(_written(one, numbered, wording) for one in sentences) + below(
        citations, wording.style, wording.format
    )


def _written(sentence: Sentence, numbered: dict[int, Citation], wording: Wording) -> str:
    cited = [numbered[n] for n in sentence.citations if n in numbered]
    said = worded(sentence.text, sentence.support, cited)
    text = marked(said, cited, wording.style, wording.format)
    return f"{text} {FLAG}" if sentence.support == "unsupported" else text
