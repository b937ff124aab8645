"""Make the receipt of an answer."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from ragstone.answer.styles import DEFAULT_FORMAT, FLAG, INDEX, NO_EVIDENCE, add_marks, list_sources, word_sentence
from ragstone.core.answers import Answer, Citation, Sentence, Support
from ragstone.core.clock import canonical
from ragstone.core.errors import InputError
from ragstone.core.ids import content_hash
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Json
from ragstone.settings.answers import CitationStyle
from ragstone.settings.base import SettingsModel

_SPEECHLESS = frozenset(string.punctuation + " ")


@dataclass(frozen=True, slots=True)
class Wording:
    """The style in which an answer names its sources in its text."""

    style: CitationStyle = "index"
    format: str = DEFAULT_FORMAT

    def speaks(self) -> bool:
        """Return whether its marks hold more than a number and signs, so that they could say something to a reader."""
        return self.style in ("index", "footnote") and not _SPEECHLESS.issuperset(self.format.replace(INDEX, ""))


def is_made_of(
    answer: str, sentences: Sequence[Sentence], citations: Sequence[Citation], wording: Wording, *, answered: bool
) -> bool:
    """Return whether the sentences, written down in this way, are this answer."""
    if not answered or not sentences:
        return not answered and not sentences and not citations and answer == NO_EVIDENCE
    if INDEX not in wording.format:
        return False
    numbered = {citation.n: citation for citation in citations}
    return answer == " ".join(_write_sentence(sentence, numbered, wording) for sentence in sentences) + list_sources(
        citations, wording.style, wording.format
    )


def _write_sentence(sentence: Sentence, numbered: dict[int, Citation], wording: Wording) -> str:
    cited = [numbered[n] for n in sentence.citations if n in numbered]
    said = word_sentence(sentence.text, sentence.support, cited)
    text = add_marks(said, cited, wording.style, wording.format)
    return f"{text} {FLAG}" if sentence.support == "unsupported" else text


VERSION = 1
MOST_BYTES = 10_000_000
MOST_SENTENCES = 200
MOST_CITATIONS = 1000
MOST_CITED = 200
"""By one sentence: two quotes of each of a hundred passages."""
MOST_CITED_IN_ALL = 2000
MOST_QUOTED_CHARS = 500_000
MOST_PARTS = 100
MOST_CHARS = 8000
"""Of a sentence or a quote, which are parts of a passage."""
_NOT_ONE = "this is not a receipt of an answer"
_MAKE_ONE = Remedy(Action.CREATE_RECEIPT)


class _Citation(SettingsModel):
    n: int
    document_id: str
    chunk_id: str
    title: str
    uri: str
    section: str
    page: int | None
    site: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    quote: str = Field(min_length=1, max_length=MOST_CHARS)
    hash: str


class _Sentence(SettingsModel):
    text: str = Field(max_length=MOST_CHARS)
    support: Support
    citations: tuple[int, ...] = Field(max_length=MOST_CITED)


class _Wording(SettingsModel):
    style: CitationStyle = "index"
    format: str = Field(default=DEFAULT_FORMAT, max_length=100)


class _Receipt(SettingsModel):
    receipt: Literal[1]
    engine: str
    moment: str
    tenant: str
    kb: str
    profile: str
    wording: _Wording = _Wording()
    models: dict[str, str | None]
    question: str
    answer: str
    answer_hash: str
    status: Literal["answered", "no_evidence"]
    sentences: tuple[_Sentence, ...] = Field(max_length=MOST_SENTENCES)
    citations: tuple[_Citation, ...] = Field(max_length=MOST_CITATIONS)
    unanswered: tuple[Annotated[str, Field(max_length=MOST_CHARS)], ...] = Field(default=(), max_length=MOST_PARTS)
    digest: str


@dataclass(frozen=True, slots=True)
class AnswerReceipt:
    """A receipt that was read: what it says, and what in it does not fit together."""

    question: str
    moment: str
    answered: bool
    answer: str
    wording: Wording
    sentences: tuple[Sentence, ...]
    citations: tuple[Citation, ...]
    misfits: tuple[str, ...]
    """Signs that the receipt was changed after it was made."""
    unanswered: tuple[str, ...] = ()


def make_receipt(
    answer: Answer,
    *,
    engine: str,
    moment: datetime,
    tenant: str,
    kb: str,
    profile: str,
    models: Mapping[str, str | None],
    wording: Wording | None = None,
) -> dict[str, Json]:
    """Return all that a later check of an answer needs, as JSON. Raises `InputError` without sources."""
    if answer.status not in ("answered", "no_evidence"):
        raise InputError(
            "this answer stands on no passage, so a receipt could prove nothing of it",
            hint="unset answer.confident and ask again",
        )
    written = wording or Wording()
    body: dict[str, Json] = {
        "receipt": VERSION,
        "engine": engine,
        "moment": canonical(moment),
        "tenant": tenant,
        "kb": kb,
        "profile": profile,
        "wording": {"style": written.style, "format": written.format},
        "models": dict(models),
        "question": answer.question,
        "answer": answer.answer,
        "answer_hash": content_hash(answer.answer),
        "status": answer.status,
        "sentences": [_sentence_json(sentence) for sentence in answer.sentences],
        "citations": [_citation_json(citation) for citation in answer.citations],
        "unanswered": list(answer.unanswered),
    }
    return {**body, "digest": digest(body)}


def digest(body: Mapping[str, Json]) -> str:
    """Return the hash of a receipt's fields, however they are spaced and ordered."""
    bare = {name: value for name, value in body.items() if name != "digest"}
    return content_hash(json.dumps(bare, sort_keys=True, separators=(",", ":")))


def load_receipt(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; `InputError` for anything that is not a receipt."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}", remedy=_MAKE_ONE) from error
    if len(content) > MOST_BYTES:
        raise InputError(f"{path} is too large for a receipt", remedy=_MAKE_ONE)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}", remedy=_MAKE_ONE) from error
    if not isinstance(value, dict):
        raise InputError(f"{path} is not a receipt of an answer", remedy=_MAKE_ONE)
    return value


def read_receipt(value: Mapping[str, Any]) -> AnswerReceipt:
    """Return the content of a receipt. Raises `InputError` for other JSON."""
    try:
        read = _Receipt.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{_NOT_ONE}: {where[:80]}: {first['msg']}", remedy=_MAKE_ONE) from error
    cited = sum(len(item.citations) for item in read.sentences)
    if cited > MOST_CITED_IN_ALL or sum(len(item.quote) for item in read.citations) > MOST_QUOTED_CHARS:
        raise InputError(f"{_NOT_ONE}: citations: it cites more than any answer does", remedy=_MAKE_ONE)
    return AnswerReceipt(
        question=read.question,
        moment=read.moment,
        answered=read.status == "answered",
        answer=read.answer,
        wording=Wording(read.wording.style, read.wording.format),
        sentences=tuple(Sentence(item.text, item.support, item.citations) for item in read.sentences),
        citations=tuple(Citation(**item.model_dump(exclude={"hash"})) for item in read.citations),
        misfits=tuple(_find_misfits(read, digest(value))),
        unanswered=read.unanswered,
    )


def _find_misfits(read: _Receipt, fingerprint: str) -> list[str]:
    found = []
    if fingerprint != read.digest:
        found.append("its digest does not fit: it is not as it was made")
    if content_hash(read.answer) != read.answer_hash:
        found.append("the answer is not the one it was made for")
    found += [
        f"quote {citation.n} is not the one it was made for"
        for citation in read.citations
        if content_hash(citation.quote) != citation.hash
    ]
    numbers = [citation.n for citation in read.citations]
    if len(set(numbers)) != len(numbers):
        found.append("two citations have the same number")
    return found


def _sentence_json(sentence: Sentence) -> dict[str, Json]:
    return {"text": sentence.text, "support": sentence.support, "citations": list(sentence.citations)}


def _citation_json(citation: Citation) -> dict[str, Json]:
    return {
        "n": citation.n,
        "document_id": citation.document_id,
        "chunk_id": citation.chunk_id,
        "title": citation.title,
        "uri": citation.uri,
        "section": citation.section,
        "page": citation.page,
        "site": citation.site,
        "start": citation.start,
        "end": citation.end,
        "quote": citation.quote,
        "hash": content_hash(citation.quote),
    }
