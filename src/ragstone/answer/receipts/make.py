"""Make the receipt of an answer."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ragstone.answer.styles import (
    DEFAULT_FORMAT,
    FLAG,
    INDEX,
    add_marks,
    list_sources,
    word_no_answer,
    word_open_parts,
    word_sentence,
)
from ragstone.core.answers import Answer, Citation, Sentence
from ragstone.core.errors import InputError
from ragstone.core.ids import content_hash
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Json
from ragstone.schemas.receipts import ReceiptSchema, ReceiptSentenceSchema
from ragstone.settings.answers import CitationStyle

_SPEECHLESS = frozenset(string.punctuation + " ")


@dataclass(frozen=True, slots=True)
class Wording:
    """The style in which an answer names its sources in its text."""

    style: CitationStyle = "index"
    format: str = DEFAULT_FORMAT

    def speaks(self) -> bool:
        """Return whether its marks hold more than a number and signs, so that they could say something to a reader."""
        return self.style in ("index", "footnote") and not _SPEECHLESS.issuperset(self.format.replace(INDEX, ""))


VERSION = 1
MOST_BYTES = 10_000_000
MOST_CITED_IN_ALL = 2000
MOST_QUOTED_CHARS = 500_000
_NOT_ONE = "this is not a receipt of an answer"
_MAKE_ONE = Remedy(Action.CREATE_RECEIPT)


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
    nearest: tuple[Sentence, ...] = ()
    missing: tuple[str, ...] = ()
    waiting: int = 0
    whole: str = ""
    """The question with what it leaves to those before it, where it is a follow-up."""

    @property
    def quoted(self) -> tuple[Sentence, ...]:
        """Return all that it says in the words of a source: an answer, or what comes near one."""
        return (*self.sentences, *self.nearest)

    def is_made_of_its_sentences(self) -> bool:
        """Return whether its sentences, written down in its way, are its answer."""
        if bool(self.sentences) != self.answered or (self.answered and self.nearest):
            return False
        if INDEX not in self.wording.format or (self.citations and not self.quoted):
            return False
        sources = list_sources(self.citations, self.wording.style, self.wording.format) if self.citations else ""
        return any(self.answer == f"{text}{sources}" for plain in (True, False) for text in self._texts(plain=plain))

    def _texts(self, *, plain: bool) -> tuple[str, str]:
        """Return the texts that its sentences may have been written down as."""
        if self.answered:
            said = self._join(self.sentences, plain=plain)
            # Receipts of earlier versions name what is open beside the answer only.
            return said, said + word_open_parts(self.unanswered, self.missing)
        near = self._join(self.nearest, plain=plain)
        whole, partly = (
            word_no_answer(near, self.missing, self.waiting, all_done=all_done) for all_done in (True, False)
        )
        return whole, partly

    def _join(self, sentences: Sequence[Sentence], *, plain: bool) -> str:
        numbered = {citation.n: citation for citation in self.citations}
        return " ".join(_write_sentence(sentence, numbered, self.wording, plain=plain) for sentence in sentences)


def _write_sentence(sentence: Sentence, numbered: Mapping[int, Citation], wording: Wording, *, plain: bool) -> str:
    cited = [numbered[n] for n in sentence.citations if n in numbered]
    said = word_sentence(sentence.text, sentence.support, cited, plain=plain)
    text = add_marks(said, cited, wording.style, wording.format)
    return f"{text} {FLAG}" if sentence.support == "unsupported" else text


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
    body = ReceiptSchema.of(
        answer,
        receipt=VERSION,
        engine=engine,
        moment=moment,
        tenant=tenant,
        kb=kb,
        profile=profile,
        wording=wording or Wording(),
        models=models,
        answer_hash=content_hash(answer.answer),
        digest="",
    ).as_json()
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
        read = ReceiptSchema.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{_NOT_ONE}: {where[:80]}: {first['msg']}", remedy=_MAKE_ONE) from error
    cited = sum(len(item.citations) for item in (*read.sentences, *read.nearest))
    if cited > MOST_CITED_IN_ALL or sum(len(item.quote) for item in read.citations) > MOST_QUOTED_CHARS:
        raise InputError(f"{_NOT_ONE}: citations: it cites more than any answer does", remedy=_MAKE_ONE)
    return AnswerReceipt(
        question=read.question,
        moment=read.moment,
        answered=read.status == "answered",
        answer=read.answer,
        wording=Wording(read.wording.style, read.wording.format),
        sentences=_read_sentences(read.sentences),
        citations=tuple(Citation(**item.model_dump(exclude={"hash"})) for item in read.citations),
        misfits=tuple(_find_misfits(read, digest(value))),
        unanswered=tuple(read.unanswered),
        nearest=_read_sentences(read.nearest),
        missing=tuple(read.missing),
        waiting=read.waiting,
        whole=read.whole,
    )


def _read_sentences(items: Sequence[ReceiptSentenceSchema]) -> tuple[Sentence, ...]:
    return tuple(Sentence(item.text, item.support, tuple(item.citations)) for item in items)


def _find_misfits(read: ReceiptSchema, fingerprint: str) -> list[str]:
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
