"""An answer written by an LLM, of which only what its passages say is kept."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragstone.answer.cite import Quote, Statement
from ragstone.answer.pack import Passage
from ragstone.answer.plain import has_address, has_link
from ragstone.answer.prompt import build_messages
from ragstone.answer.reply import CitedSentence, declines, read_reply
from ragstone.answer.support import unsupported
from ragstone.core.analyzer import analyze, analyze_query
from ragstone.core.errors import RemoteError
from ragstone.core.protocols import LLM
from ragstone.core.sentences import sentence_spans
from ragstone.core.types import Hit

_QUOTES_PER_PASSAGE = 2
_WORTH_A_QUOTE = 0.25
"""Share of a sentence's terms that a further quote must add."""


@dataclass(frozen=True, slots=True)
class Composition:
    """What is left of a reply, and why the rest is not."""

    statements: tuple[Statement, ...]
    dropped: tuple[str, ...] = ()
    declined: bool = False


async def compose(
    question: str,
    passages: Sequence[Passage],
    llm: LLM,
    *,
    max_sentences: int,
    max_tokens: int,
    seconds: float,
) -> Composition:
    """Ask the model and keep the sentences that their passages support. Raises `RemoteError`, also when slow."""
    messages = build_messages(question, passages, max_sentences)
    try:
        async with asyncio.timeout(seconds):
            reply = await llm.complete(messages, max_tokens=max_tokens, seconds=seconds)
    except TimeoutError as error:
        raise RemoteError(
            f"{llm.name} timed out after {seconds:g} s", hint="raise llm.timeout or choose a faster llm.model"
        ) from error
    if declines(reply):
        return Composition((), declined=True)
    return verify_reply(reply, passages, max_sentences)


def verify_reply(reply: str, passages: Sequence[Passage], max_sentences: int) -> Composition:
    """Keep the cited and supported sentences of a reply, each with the words it stands on."""
    hits = {passage.number: passage.hit for passage in passages}
    statements: dict[str, Statement] = {}
    reasons: Counter[str] = Counter()
    for sentence in read_reply(reply):
        reason, quotes = _verify(sentence, hits)
        if reason:
            reasons[reason] += 1
        elif len(statements) < max_sentences:
            statements.setdefault(sentence.text.casefold(), Statement(sentence.text, "supported", quotes))
    dropped = tuple(f"{count} left out: {reason}" for reason, count in reasons.most_common())
    return Composition(tuple(statements.values()), dropped)


def _verify(sentence: CitedSentence, hits: Mapping[int, Hit]) -> tuple[str, tuple[Quote, ...]]:
    """Why a sentence may not stay, or the quotes that let it."""
    if has_link(sentence.text) or "](" in sentence.raw:
        return "it holds a link or markup", ()
    if not sentence.numbers:
        return "it cites no passage", ()
    if any(number not in hits for number in sentence.numbers):
        return "it cites a passage that was not given", ()
    cited = [hits[number] for number in sentence.numbers]
    quotes = tuple(quote for hit in cited for quote in best_quotes(sentence.text, hit))
    if not quotes:
        return "its source does not say it", ()
    around = "\n".join(f"{hit.title}\n{hit.section}\n{hit.text}" for hit in cited)
    return unsupported(sentence.text, [quote.text for quote in quotes], around), quotes


def best_quotes(sentence: str, hit: Hit) -> list[Quote]:
    """The sentences of a passage that hold most of a sentence's terms, in reading order."""
    wanted = set(analyze_query(sentence))
    candidates = [
        (Quote(hit, start, end), wanted.intersection(analyze(hit.text[start:end])))
        for start, end in sentence_spans(hit.text)
    ]
    # Where two say the same, the one without an address is quoted.
    candidates.sort(key=lambda candidate: has_address(candidate[0].text))
    chosen: list[Quote] = []
    while candidates and len(chosen) < _QUOTES_PER_PASSAGE:
        quote, terms = max(candidates, key=lambda candidate: len(candidate[1] & wanted))
        added = terms & wanted
        if not added or (chosen and len(added) < _WORTH_A_QUOTE * len(analyze_query(sentence))):
            break
        chosen.append(quote)
        wanted -= added
    return sorted(chosen, key=lambda quote: quote.start)
