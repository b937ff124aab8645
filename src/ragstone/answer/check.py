"""Checks sentences that a model wrote: each must cite passages that were given, and they must say it."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from itertools import islice

from ragstone.answer.budget import MOST_SENTENCES, StepBudget
from ragstone.answer.quotes import Quote, Statement, all_words, render_row, rows, select_for_claim
from ragstone.answer.reply import CitedSentence
from ragstone.answer.sanitize import find_foreign_words, has_address, has_link, named_places
from ragstone.answer.verify.additions import MOST_ADDED_TO_CLAUSE
from ragstone.answer.verify.checks import check
from ragstone.answer.verify.language import is_foreign
from ragstone.answer.verify.row import check_row, render_with_units
from ragstone.answer.verify.split import split_claim
from ragstone.answer.verify.support import find_unsupported
from ragstone.core.model_types import Relation
from ragstone.core.types import Hit
from ragstone.language.analyzer import analyze, analyze_query, reader
from ragstone.language.negation import are_opposites
from ragstone.language.relevance import term_share
from ragstone.language.sentences import sentence_spans
from ragstone.language.vocabulary import content_words, read_vocabulary

Relate = Callable[[Sequence[str], str], Awaitable[Sequence[Relation] | None]]
"""Gives the relation of each premise to a hypothesis, or None where no model can say."""
MIN_TERMS = 0.5
"""Share of a sentence's terms that its sources must hold: paraphrases keep half, other topics under a third."""

_NUMBER = re.compile(r"(?<![\w.])[-−]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")
_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
"""A lone "one" is rarely meant as a number."""
_DIGITS = {word: str(number) for number, word in enumerate(_WORDS, start=2)}
_WORD = re.compile(r"[a-z]+", re.I)
_CLAUSE_END = re.compile(r"[,;:()]|\b(?:but|and|whereas|while|although|though|which|however)\b", re.I)
_NEGATION = re.compile(
    r"\b(?:no|not|never|none|neither|nor|nothing|nobody|nowhere|without|cannot|unable|absent|absence"
    r"|lack(?:s|ed|ing)?|fail(?:s|ed)?|\w+n['’]t)\b",
    re.I,
)


def find_objection(sentence: str, quotes: Sequence[str], passages: str) -> str:
    """Return why the sentence is not supported by its sources, or "" if it is.

    `quotes` are the sentences it may stand on, `passages` all the text around them.
    """
    if reader.get() is not None or is_foreign(sentence, " ".join(quotes[:1]), passages):
        return _find_objection_in_any_language(sentence, quotes, passages)
    objections = find_unsupported(sentence, quotes, passages)
    return re.sub(r"^it ", "its source ", objections[0].text) if objections else ""


def _find_objection_in_any_language(sentence: str, quotes: Sequence[str], passages: str) -> str:
    if numbers(sentence) - numbers(passages):
        return "a number is not in its source"
    clauses = [clause for clause in nearest_clauses(sentence, quotes) if is_negated(clause) == is_negated(sentence)]
    if not clauses:
        return "it negates what its source says, or the reverse"
    if all(is_opposed(sentence, clause) for clause in clauses):
        return "it says the opposite of its source"
    if term_share(sentence, passages) < MIN_TERMS:
        return "its source does not say it"
    return next(
        (reason for part in split_claim(sentence) if (reason := _find_claim_objection(part, quotes, passages))), ""
    )


def _find_claim_objection(part: str, quotes: Sequence[str], passages: str) -> str:
    """Return the objection of the claim checks to one statement of a sentence, or ""."""
    if not any(_tells_all_figures(part, quote) for quote in quotes):
        # It puts figures of several quotes together: no quote alone can bear them out or refute them.
        conflicts = check(part, "\n".join(quotes), passages, passages).conflicts
        return conflicts[0].text if conflicts else ""
    found = [check(part, quote, "", passages) for quote in _nearest_quotes(part, quotes)]
    for findings in found:
        if findings.conflicts:
            return findings.conflicts[0].text
    return found[0].voids[0].text if found and all(findings.voids for findings in found) else ""


def _tells_all_figures(part: str, quote: str) -> bool:
    return numbers(part) <= numbers(quote)


def _nearest_quotes(part: str, quotes: Sequence[str]) -> list[str]:
    """Return the quotes that share most terms with a statement."""
    terms = set(analyze_query(part))
    return _keep_most(quotes, [len(terms.intersection(analyze(quote))) for quote in quotes])


def _keep_most(texts: Sequence[str], counts: Sequence[int]) -> list[str]:
    most = max(counts, default=0)
    return [text for text, count in zip(texts, counts, strict=True) if count == most]


def nearest_clauses(sentence: str, quotes: Sequence[str]) -> list[str]:
    """Return the clauses of the quotes that share most terms with the sentence: a "not" elsewhere does not count."""
    terms = set(analyze_query(sentence))
    clauses = [clause for quote in quotes for clause in _CLAUSE_END.split(quote)]
    return _keep_most(clauses, [len(terms.intersection(analyze(clause))) for clause in clauses])


def is_opposed(sentence: str, clause: str) -> bool:
    """Return whether sentence and clause hold the two sides of a pair such as higher and lower."""
    return are_opposites(sentence, clause)


def numbers(text: str) -> set[str]:
    """Return the numbers a text states, in digits or as words, written one way."""
    words = {word.lower() for word in _WORD.findall(text)}
    return {_normal(number) for number in _NUMBER.findall(text)} | {_DIGITS[word] for word in words & _DIGITS.keys()}


def _normal(number: str) -> str:
    sign = "-" if number[0] in "-−" else ""
    whole, _, fraction = number.lstrip("-−").replace(",", "").partition(".")
    fraction = fraction.rstrip("0")
    return sign + (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")


def is_negated(text: str) -> bool:
    """Return whether the text denies something; two denials cancel out."""
    return len(_NEGATION.findall(text)) % 2 == 1


_MOST_NEAR = 24
"""Sentences of the passages that a sentence is compared with."""
_LONGEST = 1000
"""Characters of a sentence that are read."""
_QUOTES_PER_PASSAGE = 2
_WORTH_A_QUOTE = 0.25
"""Share of a sentence's terms that a further quote must add."""
TOO_LONG = "it and its source have too many words to be compared"


class Checker:
    """Checks the sentences of one reply against the numbered passages that the model was given."""

    def __init__(
        self, hits: Mapping[int, Hit], relate: Relate, *, flag: bool = False, budget: StepBudget | None = None
    ) -> None:
        self._hits = hits
        self._relate = relate
        self._flag = flag
        self._budget = budget or StepBudget()
        self._left_out: Counter[str] = Counter()

    @property
    def omissions(self) -> list[str]:
        """Return how many sentences were left out, by reason."""
        return [f"{count} left out: {reason}" for reason, count in self._left_out.most_common()]

    async def check(self, sentence: CitedSentence) -> Statement | None:
        """Return the sentence with the words it stands on, or None when it may not be said."""
        # Texts may be made to take long: they are not compared on the event loop.
        reason, objection, quotes = await asyncio.to_thread(self._compare, sentence)
        if not reason:
            reason = objection or await self._find_objection(sentence, quotes)
            if not reason:
                return Statement(sentence.text, "supported", quotes)
            if self._flag:
                return Statement(sentence.text, "unsupported", quotes)
        self._left_out[reason] += 1
        return None

    def _compare(self, sentence: CitedSentence) -> tuple[str, str, tuple[Quote, ...]]:
        """Return why a sentence cannot rest on any passage, else what the explicit checks object, and its quotes."""
        cited = [self._hits[number] for number in sentence.numbers if number in self._hits]
        if not self._budget.spend_reading("\n".join(hit.text for hit in cited)):
            return TOO_LONG, "", ()
        reason, quotes = find_grounds(sentence, self._hits)
        if reason:
            return reason, "", ()
        near = find_near_sentences(sentence.text, cited, quotes)
        if not self._budget.spend(sentence.text, *near):
            return TOO_LONG, "", ()
        reason = find_added_part(sentence, cited)
        return reason, "" if reason else check_explicitly(sentence.text, cited, near), quotes

    async def _find_objection(self, sentence: CitedSentence, quotes: Sequence[Quote]) -> str:
        """Return why a model finds that its sources do not support it, or "": it overrules no explicit check."""
        texts = [quote.text for quote in quotes]
        premises = dict.fromkeys([" ".join(texts), *(self._hits[number].text for number in sentence.numbers)])
        relations = await self._relate(list(premises), sentence.text)
        if relations is None or "entails" in relations:
            return ""
        return "its source speaks against it" if "contradicts" in relations else "its source does not say it"


def find_grounds(sentence: CitedSentence, hits: Mapping[int, Hit]) -> tuple[str, tuple[Quote, ...]]:
    """Return why a sentence cannot rest on any passage, or the quotes that it may rest on."""
    if has_link(sentence.text) or "](" in sentence.raw:
        return "it holds a link or markup", ()
    if not sentence.numbers:
        return "it cites no passage", ()
    if any(number not in hits for number in sentence.numbers):
        return "it cites a passage that was not given", ()
    cited = [hits[number] for number in sentence.numbers]
    held = "\n".join(all_words(hit) for hit in cited)
    if named_places(sentence.text) - named_places(held):
        return "it names a host or a mail address that its source does not", ()
    if find_foreign_words(sentence.text, held):
        return "it holds part of an address, a command or a template that its source does not", ()
    quotes = tuple(quote for hit in cited for quote in best_quotes(sentence.text, hit))
    return ("", quotes) if quotes else ("its source does not say it", ())


def find_added_part(sentence: CitedSentence, cited: Sequence[Hit]) -> str:
    """Return why a part of a sentence beside its marks or on a line of its own is not supported, or ""."""
    if len(sentence.parts) < 2:
        return ""
    known = read_vocabulary("\n".join(map(all_words, cited)))
    for part in sentence.parts:
        words = content_words(part)
        if sum(not known.has(word) for word in words) > MOST_ADDED_TO_CLAUSE * len(words):
            return "its source does not say it"
    return ""


def check_explicitly(sentence: str, cited: Sequence[Hit], near: Sequence[str]) -> str:
    """Return the objection of the explicit checks to a sentence that rests on sentences of these passages, or ""."""
    tables = [row for hit in cited for row in rows(hit).values() if row and row.head]
    if is_repeated(sentence, [*near, *(render_row(row.text, row.head.text) for row in tables if row.head)]):
        return ""
    around = "\n".join((*(all_words(hit) for hit in cited), *near))
    reason = find_objection(sentence, near, around)
    return reason or next((found for part in split_claim(sentence) if (found := _find_row_objection(part, cited))), "")


def is_repeated(sentence: str, sources: Sequence[str]) -> bool:
    """Return whether a sentence is one of its sources as a whole, word for word."""
    said = " ".join(sentence.split()).rstrip(".!")
    return any(" ".join(source.split()).rstrip(".!") == said for source in sources)


def find_near_sentences(sentence: str, cited: Sequence[Hit], quotes: Sequence[Quote]) -> list[str]:
    """Return the sentences that share most terms with a sentence, in reading order, the quotes among them."""
    wanted = set(analyze_query(sentence))
    found = []
    for hit in cited:
        in_tables = rows(hit)
        for start, end, terms in _read_sentences(hit.text):
            row = in_tables.get(start, Quote(hit, start, min(end, start + _LONGEST)))
            if row is not None:
                text = render_with_units(row) if row.head else row.text
                found.append((row, text, len(terms & wanted)))
    kept = sorted(found, key=lambda item: (item[0] not in quotes, -item[2]))[:_MOST_NEAR]
    return [text for _, text, _ in sorted(kept, key=lambda item: found.index(item))]


def _find_row_objection(part: str, cited: Sequence[Hit]) -> str:
    """Return the objection of the rows on the same thing to a figure from another row or column, or ""."""
    terms = frozenset(analyze_query(part))
    about = select_for_claim([row for hit in cited for row in rows(hit).values() if row], part, terms)
    found = [check_row(part, row, terms, f"{row.hit.title}\n{row.hit.section}").conflicts for row in about]
    return found[0][0].text if found and all(found) else ""


@lru_cache(32)
def _read_sentences(passage: str) -> tuple[tuple[int, int, frozenset[str]], ...]:
    """Return the sentences of a passage with their terms; sentences of one reply cite the same passages."""
    spans = islice(sentence_spans(passage), MOST_SENTENCES)
    return tuple((start, end, frozenset(analyze(passage[start:end]))) for start, end in spans)


def best_quotes(sentence: str, hit: Hit) -> list[Quote]:
    """Return the sentences of a passage that hold most of a sentence's terms, in reading order."""
    wanted = set(analyze_query(sentence))
    candidates = [
        (Quote(hit, start, end), terms & wanted) for start, end, terms in _read_sentences(hit.text) if terms & wanted
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
