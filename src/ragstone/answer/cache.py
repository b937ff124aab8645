"""Gives an answer again to nearly the same question, as long as everything it was made from is unchanged.

Two questions are nearly the same when their vectors are, and they have the same words in the same order: only
articles, capitals of words that are no names, commas, and the mark at the end may differ. A question that is wrongly
taken for another one costs more than an answer that is made twice.
"""

from __future__ import annotations

import re
import unicodedata
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from ragstone.answer.parts import PassagePlace, place_of
from ragstone.core.answers import Answer
from ragstone.core.documents import page_at, page_starts
from ragstone.core.errors import ModelError, RemoteError
from ragstone.core.ids import content_hash
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import Embedder
from ragstone.core.search import is_web
from ragstone.core.types import Hit, KnowledgeBase, LiveChunk, Vector

MOST_ANSWERS = 512
WORD = re.compile(r"[\w'’]+")
SAYS_NOTHING = frozenset(["an", "the", "please"])
"""Words that may be missing. An "a" may be a name, as of a vitamin."""
CLOSING = re.compile(r"(?:(?<=\w)[.…。])?[?？؟]*$|[,，、،]$")
"""Marks after a word that are the sentence's. An exclamation mark may be a factorial or a macro, a quote an inch."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, where it was asked, and how an answer to it is made: only an equal way is of use."""

    tenant: str
    kb: KnowledgeBase
    way: str
    question: str
    embedder: Embedder


@dataclass(frozen=True, slots=True)
class _CachedAnswer:
    question: str
    vector: Vector
    answer: Answer
    evidence: Mapping[PassagePlace, str]
    """Hash of each passage."""


class AnswerCache:
    """Answers in memory, each tenant's and kb's apart, least recently used out first."""

    def __init__(self, ledger: Ledger, similarity: float) -> None:
        self._ledger = ledger
        self._similarity = similarity
        self._kept: OrderedDict[tuple[str, str], _CachedAnswer] = OrderedDict()

    async def find(self, asked: Asked) -> Answer | None:
        """Return the answer to nearly the same question, or None without one or when its evidence has changed."""
        place = _place(asked)
        near = [(key, kept) for key, kept in self._kept.items() if key[0] == place]
        if not near:
            return None
        vector = await _vector(asked)
        if vector is None:
            return None
        alike = [(float(kept.vector @ vector), key, kept) for key, kept in near]
        for cosine, key, kept in sorted(alike, key=lambda match: -match[0]):
            if cosine < self._similarity:
                break
            if not says_the_same(kept.question, asked.question):
                continue
            if await self._is_current(asked, kept):
                self._kept.move_to_end(key)
                return replace(kept.answer, question=asked.question)
            self._kept.pop(key, None)
        return None

    async def keep(self, asked: Asked, hits: Sequence[Hit], answer: Answer) -> None:
        """Remember an answer with what it was made from; one that is not whole, or is of the web, is not kept."""
        if answer.status != "answered" or answer.degraded or any(is_web(hit.chunk_id) for hit in hits):
            return
        vector = await _vector(asked)
        if vector is None:
            return
        evidence = {place_of(hit): _hash_of_hit(hit) for hit in hits}
        kept = _CachedAnswer(asked.question, vector, answer, evidence)
        self._kept[_place(asked), asked.question] = kept
        while len(self._kept) > MOST_ANSWERS:
            self._kept.popitem(last=False)

    def __len__(self) -> int:
        return len(self._kept)

    async def _is_current(self, asked: Asked, kept: _CachedAnswer) -> bool:
        names = list({place.chunk_id for place in kept.evidence})
        live = await self._ledger.of(asked.tenant).chunks(asked.kb, names)
        return all(
            place.chunk_id in live and _hash_of_part(live[place.chunk_id], place) == known
            for place, known in kept.evidence.items()
        )


def says_the_same(known: str, new: str) -> bool:
    """Return whether the words of two questions allow one answer."""
    return _words(known) == _words(new) and _names(known) == _names(new)


def _words(question: str) -> list[str]:
    """Return the significant words in order; signs belong to their word, as in C++, -5 or .5, or are one, as in {}."""
    written = unicodedata.normalize("NFC", question).replace("’", "'").casefold().removeprefix("¿")
    words = (CLOSING.sub("", word) if WORD.search(word) else word for word in written.split())
    return [word for word in words if word not in SAYS_NOTHING]


def _names(question: str) -> list[str]:
    """Return the words written like names, in order: Polish is not polish, and the WHO is not who."""
    return [
        word
        for place, word in enumerate(WORD.findall(question))
        if (word[0].isupper() if place else len(word) > 1 and word.isupper())
    ]


def _place(asked: Asked) -> str:
    return content_hash(repr((asked.tenant, asked.kb, asked.way, asked.embedder.model.id)))


async def _vector(asked: Asked) -> Vector | None:
    """Return the vector of a question in the Space of its kb; None where another model answers, or none."""
    with suppress(ModelError, RemoteError):  # the search that follows says so
        embedded = await asked.embedder.embed([asked.question], "query")
        space = asked.kb.space
        if (
            space
            and not embedded.failed
            and (embedded.model, embedded.vectors.shape[1]) == (space.model, space.dimension)
        ):
            vector: Vector = embedded.vectors[0]
            return vector
    return None


def _hash_of_hit(hit: Hit) -> str:
    return content_hash(repr((hit.text, hit.title, hit.uri, hit.section, hit.page, hit.start, hit.end)))


def _hash_of_part(live: LiveChunk, place: PassagePlace) -> str:
    """Return the hash of what now stands where a passage stood."""
    chunk = live.chunk
    text = chunk.text[place.start - chunk.start : place.end - chunk.start]
    section = " > ".join(chunk.section)
    page = page_at(place.start, chunk.page, page_starts(chunk.metadata))
    return content_hash(repr((text, live.title, live.uri, section, page, place.start, place.end)))
