"""The settled text: what holds is said and cited, what a source puts otherwise is said as it has it, the rest goes."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from ragstone.agents.article.frame import keep_frame, known_terms
from ragstone.agents.article.pipeline import Pipeline
from ragstone.agents.article.state import Record
from ragstone.answer.verify.statements import find_statements
from ragstone.core.answers import SITE
from ragstone.core.documents import page_at
from ragstone.core.search import is_web
from ragstone.core.types import Hit, Json
from ragstone.language.analyzer import analyze, analyze_query

MOST_QUOTE_CHARS = 400
MOST_OF_HIT = 3
"""Sentences of one passage that fill up a text."""
FILLED = "From the sources"
_WHOLE = re.compile(r"[.!…。！]['\"”’)]*$")
_LEANS = re.compile(
    r"(?:this|these|that|those|it|its|they|their|he|his|she|her|such|also|however|but|and|or|so)\b", re.I
)
"""Words that an English sentence begins with when it leans on the one before it."""
_HEADING = re.compile(r"(#{1,6})\s+\S")
_EMPTY_ITEM = re.compile(r"^[ \t]*(?:[-*+>]|\d{1,3}[.)])[ \t]*$\n?", re.M)


@dataclass(slots=True)
class Bibliography:
    """The citations of a text. Sources are numbered as they are first cited; all quotes of one have its number."""

    entries: list[Record] = field(default_factory=list)
    numbers: dict[tuple[Json, ...], int] = field(default_factory=dict)
    quoted: set[tuple[Json, ...]] = field(default_factory=set)

    def cite(self, quote: Record) -> int:
        """Return the number of the source of a quote: a section or a page of a document."""
        number = self.numbers.setdefault(_key(quote, "document_id", "section", "page"), len(self.numbers) + 1)
        place = _key(quote, "document_id", "start", "end")
        if place not in self.quoted:
            self.quoted.add(place)
            kept = ("chunk_id", "document_id", "title", "uri", "page", "section", "start", "end")
            site = quote["source"] if is_web(str(quote["chunk_id"])) else ""
            facts = {name: quote[name] for name in kept}
            self.entries.append({"n": number, "quote": quote["text"], **facts, "site": site})
        return number


def _key(quote: Record, *names: str) -> tuple[Json, ...]:
    return tuple(quote[name] for name in names)


def settle_text(topic: str, draft: str, claims: Sequence[Record], quotes: Sequence[Record]) -> Record:
    """Return the body of a text with its marks, its citations, and each claim with what became of it."""
    book, parts, settled, last = Bibliography(), list[str](), list[Record](), 0
    holding = [claim for claim in claims if claim["outcome"] == "confirmed"]
    said = {str(claim["text"]): 0 for claim in holding}
    known = known_terms([topic, *said, *(str(item["text"]) for claim in holding for item in claim["evidence"])])
    for claim in claims:
        kept, treatment, number = _treat(claim, said, book)
        parts += [keep_frame(draft[last : claim["start"]], known), f"{kept} [{number}]" if number else ""]
        last = claim["end"]
        settled.append(_describe(claim, treatment, number))
    body = _tidy("".join([*parts, keep_frame(draft[last:], known)]))
    if not _HEADING.match(body):
        body = f"# {' '.join(topic.split())}\n\n{body}".rstrip()
    if quotes:
        lines = [f"- {' '.join(str(quote['text']).split())} [{book.cite(quote)}]" for quote in quotes]
        body = "\n\n".join([body, f"## {FILLED}", "\n".join(lines)])
        settled += [_describe(_claim_of(quote), "kept", book.cite(quote)) for quote in quotes]
    return {"body": body, "citations": book.entries, "claims": settled}


def _claim_of(quote: Record) -> Record:
    """Return a sentence of a source as a claim; it was not in the draft and has no place there."""
    own = {"start": 0, "end": 0, "outcome": "confirmed", "checked_by": ["knowledge_base"], "evidence": [quote]}
    return {**quote, **own}


def _treat(claim: Record, said: dict[str, int], book: Bibliography) -> tuple[str, str, int | None]:
    """Return what is said in the place of a claim, how it was treated, and the number of its citation.

    `said` are the sentences that the text says, with how often it has done so; nothing is said twice.
    """
    if claim["outcome"] == "confirmed" and claim["evidence"] and not said[str(claim["text"])]:
        said[str(claim["text"])] += 1
        return str(claim["text"]), "kept", book.cite(claim["evidence"][0])
    refuting = next((item for item in claim["evidence"] if item["stance"] == "refuted"), None)
    if claim["outcome"] == "refuted" and refuting and _can_stand(str(refuting["text"]), said):
        said[str(refuting["text"])] = 1
        return " ".join(str(refuting["text"]).split()), "corrected", book.cite(refuting)
    return "", "removed", None


def _can_stand(quote: str, said: Container[str]) -> bool:
    """Return whether a sentence of a source can be said in the place of another one."""
    return len(quote) <= MOST_QUOTE_CHARS and bool(_WHOLE.search(quote.strip())) and quote not in said


def _describe(claim: Record, treatment: str, number: int | None) -> Record:
    evidence = claim["evidence"][0] if claim["evidence"] else {"text": "", "title": ""}
    return {
        "text": claim["text"],
        "start": claim["start"],
        "end": claim["end"],
        "outcome": claim["outcome"],
        "checked_by": claim["checked_by"],
        "evidence": evidence["text"],
        "source": evidence["title"],
        "treatment": treatment,
        "citation": number,
    }


def _tidy(text: str) -> str:
    """Return a text without the blanks, empty items and empty sections that removed sentences leave."""
    text = _EMPTY_ITEM.sub("", re.sub(r"[ \t]+$", "", text, flags=re.M))
    text = re.sub(r"(?<=\S)[ \t]{2,}(?=\S)", " ", text)
    lines = re.sub(r"\n{3,}", "\n\n", text).strip().split("\n")
    kept: list[str] = []
    for place, line in enumerate(lines):
        heading = _HEADING.match(line)
        if heading and place:
            following = next((other for other in lines[place + 1 :] if other.strip()), "")
            below = _HEADING.match(following)
            if not following or (below and len(below[1]) <= len(heading[1])):
                continue
        kept.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()


async def find_quotes(pipeline: Pipeline, topic: str, body: str, count: int) -> list[Record]:
    """Return sentences of the sources about a topic that a text does not have yet, word for word."""
    found = await pipeline.workspace.research(topic, depth="medium", kb=pipeline.kb)
    quotes: list[Record] = []
    for hit in (finding.hit for finding in found.findings if finding.about):
        text = await pipeline.workspace.documents.text(hit.document_id)
        said = {str(quote["text"]) for quote in quotes}
        stated = [hit.text[start:end] for start, end in _rank_statements(hit.text, topic)]
        new = [one for one in stated if one not in body and _can_stand(one, said) and not _LEANS.match(one)]
        places = [(one, text.find(one, hit.start)) for one in new[:MOST_OF_HIT]]
        quotes += [_quote_hit(hit, one, place) for one, place in places if place >= 0]
    return quotes[:count]


def _rank_statements(text: str, topic: str) -> list[tuple[int, int]]:
    """Return where a passage states something, nearest to the topic first."""
    wanted = set(analyze_query(topic))
    stated = [(one.start, one.end) for one in find_statements(text).found]
    return sorted(stated, key=lambda span: -len(wanted.intersection(analyze(text[span[0] : span[1]]))))


def _quote_hit(hit: Hit, quote: str, place: int) -> Record:
    return {
        "text": quote,
        "source": str(hit.metadata.get(SITE) or ""),
        "document_id": hit.document_id,
        "chunk_id": hit.chunk_id,
        "title": hit.title,
        "uri": hit.uri,
        "page": page_at(place, hit.page, hit.page_starts),
        "section": hit.section,
        "start": place,
        "end": place + len(quote),
        "stance": "supported",
    }
