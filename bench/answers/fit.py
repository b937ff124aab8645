"""Fit the weights by which units are chosen and answers are given, to questions of the develop half and further ones.

How well they do is told with whole manuals left out: what is said of a manual's questions was fitted to manuals of
other groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zlib import crc32

import numpy as np

from bench.answers.collection import FITTED, AskedQuestion, Collection, load_collection
from bench.answers.grade import grade
from bench.answers.knowledge import ingest_pages, open_knowledge
from bench.answers.measure import Filter, read_by_asking
from ragstone.answer import weights
from ragstone.answer.complete import complete_units
from ragstone.answer.extract import Extraction, Extractor, FoundUnits, quote_best
from ragstone.answer.quotes import Statement
from ragstone.answer.score import ScoredUnit, describe_best, estimate_chance
from ragstone.answer.styles import word_sentence
from ragstone.answer.units import AnswerUnit
from ragstone.core.types import Hit
from ragstone.engine.engine import Engine
from ragstone.engine.workspace import Workspace

MOST_SENTENCES, MOST_PAGES = 4, 1000
TAKEN_AWAY = 0.3
"""The weight of a question whose right units were taken away: a page that comes near and does not answer."""
RANK_PENALTY, ANSWER_PENALTY = 0.03, 3.0
STEPS, RATE = 250, 0.1
GROUPS = 8
"""Groups of manuals; each is left out in turn."""
CHOICE = (
    *("own", "above", "near", "section", "title", "alike", "lacking", "dense", "pairs", "held", "missed"),
    *("softly_held", "default", "odd_code", "odd_list", "list", "opens", "hit", "relevance", "term_asked"),
    *("heading_asked", "counted", "uncounted", "named_place", "no_named_place", "other_identifier", "length", "new"),
    *("entry", "row", "item", "announces", "settles", "asks", "symbols", "defines"),
)
DECISION = (
    *("own", "above", "title", "alike", "lacking", "held", "missed", "default", "uncounted", "no_named_place"),
    *("other_identifier", "softly_held", "counted", "named_place", "margin", "best_coverage", "mass"),
    *("entry", "row", "item", "announces", "settles", "defines"),
)
FILE = Path(weights.__file__)


@dataclass(frozen=True)
class Example:
    """A question as it came to the extractor, the units that were read for it, and which of them hold the facts."""

    question: AskedQuestion
    text: str
    units: Sequence[AnswerUnit]
    scored: Sequence[ScoredUnit]
    right: Sequence[bool]
    has_missing: bool
    manual: str
    is_of_all_pages: bool = True
    """False where only the page that answers was searched."""

    @property
    def group(self) -> int:
        return crc32(self.manual.encode()) % GROUPS

    def without_right(self) -> Example:
        """Return the example as if no page held the facts."""
        left = [item for item, right in zip(self.scored, self.right, strict=True) if not right]
        return replace(self, scored=left, right=[False] * len(left))


@dataclass(frozen=True)
class Asked:
    """A question of the collection and what the extractor was given for it."""

    question: AskedQuestion
    text: str
    hits: Sequence[Hit]
    shared: frozenset[str]


async def fit_weights(kept: Path | None) -> tuple[list[str], str]:
    """Return the figures with whole manuals left out, and the file of the weights that are fitted to all of them."""
    found = [await collect_examples(load_collection(half), kept) for half in FITTED]
    return fit_to([example for half in found for example in half])


def fit_to(examples: Sequence[Example]) -> tuple[list[str], str]:
    """Return the figures and the file of the weights that are fitted to examples."""
    lines, parts = [], ['"""Weights of what speaks for a unit, made by `python -m bench.answers fit`."""\n']
    for name, suffix, known in (
        ("with the reader", "", [one for one in examples if one.scored[0].reader_odds is not None]),
        ("by meaning and words", "_BY_MEANING", [drop_reading(one) for one in examples]),
        ("by words only", "_BY_WORDS", [drop_models(one) for one in examples]),
    ):
        rankings = fit_left_out(known)
        judged = judge_examples(known, rankings)
        for asked_of, among in (("all pages", True), ("the page that answers", False)):
            part = [one for one in known if one.is_of_all_pages is among]
            lines += [f"{name}, asked of {asked_of}", *measure_left_out(part, rankings, judged)]
        parts += [_render(f"RANKING{suffix}", fit_ranking(known)), _render(f"ANSWERS{suffix}", fit_answers(judged))]
    return lines, "\n".join(parts) + "\n"


def _render(name: str, values: Mapping[str, float]) -> str:
    lines = "\n".join(f'    "{feature}": {value:.3f},' for feature, value in values.items())
    return f"{name} = {{\n{lines}\n}}"


async def collect_examples(collection: Collection, kept: Path | None) -> list[Example]:
    """Return the questions of a collection as examples, asked of all pages and of the one that answers.

    What is known of a hit depends on how many there are, and most knowledge bases are small when they are tried.
    """
    async with ingest_pages(collection.pages, kept) as data, open_knowledge(data) as components:
        workspace = Engine(components).workspace("default")
        pages = [document.uri for document in await workspace.documents.list(limit=MOST_PAGES)]

        def within_page(question: AskedQuestion) -> Filter:
            return {"source": {"in": [uri for uri in pages if uri.endswith(f"/pages/{question.document}")]}}

        on_pages = [question for question in collection.questions if question.document]
        extractor = Extractor(components.embedder, reader=components.reader)
        among_all = await read_examples(await record_calls(collection.questions, workspace), extractor)
        alone = await read_examples(await record_calls(on_pages, workspace, within_page), extractor)
        return [*among_all, *(replace(example, is_of_all_pages=False) for example in alone)]


async def record_calls(
    questions: Sequence[AskedQuestion],
    workspace: Workspace,
    where: Callable[[AskedQuestion], Filter] = lambda question: None,
) -> list[Asked]:
    """Return what the extractor is given for each question; of a follow-up, not for the questions before it."""
    calls: list[tuple[str, Sequence[Hit], frozenset[str]]] = []
    extract = Extractor.extract

    async def record(self: Extractor, question: str, hits: Sequence[Hit], **options: Any) -> Any:
        calls.append((question, hits, frozenset(options.get("shared", ()))))
        return await extract(self, question, hits, **options) if asked.earlier else Extraction(())

    recorded: list[Asked] = []
    read = read_by_asking(workspace, where)
    with patch.object(Extractor, "extract", record):
        for asked in questions:
            calls.clear()
            await read(asked)
            own = calls[len(asked.earlier) :] if asked.earlier else calls
            recorded += [Asked(asked, *call) for call in own]
    return recorded


async def read_examples(asked: Sequence[Asked], extractor: Extractor) -> list[Example]:
    """Return the recorded questions with the units that are compared for each, and what the models say of them."""
    found_for = []
    for one in asked:
        found, notes = await extractor.compare(one.text, one.hits, shared=one.shared)
        if notes:
            raise RuntimeError(f"weights cannot be fitted to what no model has read: {notes[0]}")
        found_for.append(found)
    return judge_units(asked, found_for)


def judge_units(asked: Sequence[Asked], found_for: Sequence[FoundUnits]) -> list[Example]:
    """Return the recorded questions with the units that were found for each, and which of these are right."""
    manuals = sorted({manual_of(one.question) for one in asked} - {""})
    examples = []
    for number, (one, found) in enumerate(zip(asked, found_for, strict=True)):
        right = [
            bool(one.question.facts)
            and holds_facts(one.question, complete_units([item.unit], found.units, MOST_SENTENCES))
            for item in found.short
        ]
        # What nothing answers belongs to no manual: each is left out with another.
        manual = manual_of(one.question) or manuals[number % len(manuals)]
        examples.append(Example(one.question, one.text, found.units, found.short, right, bool(found.missing), manual))
    return [example for example in examples if example.scored]


def manual_of(question: AskedQuestion) -> str:
    return question.document.split("/")[0]


def holds_facts(question: AskedQuestion, said: Sequence[Statement]) -> bool:
    """Return whether statements hold what is asked for; a part of a question need not hold all of it."""
    shown = [
        word_sentence(one.text, one.support, [quote.citation(n) for n, quote in enumerate(one.quotes, 1)])
        for one in said
    ]
    label = grade("\n".join(shown), question.facts, in_parts=question.kind == "two-part")
    return label in ("right", "partly")


def drop_reading(example: Example) -> Example:
    """Return an example as it is where there is no reader."""
    return replace(example, scored=[replace(item, reader_odds=None) for item in example.scored])


def drop_models(example: Example) -> Example:
    """Return an example as it is where no model could be asked."""
    return replace(example, scored=[replace(item, closeness=None, reader_odds=None) for item in example.scored])


def measure_left_out(
    examples: Sequence[Example], rankings: Sequence[Mapping[str, float]], judged: Sequence[Judged]
) -> Iterator[str]:
    """Yield right, wrong and refused answers when each group of manuals is left out in turn, by the least chance."""
    rows = list(_leave_out(examples, rankings, judged))
    for least in (0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6):
        known = [row for row in rows if row[0].question.facts]
        right = sum(is_right and chance >= least for _, chance, is_right in known) / len(known)
        wrong = sum(not is_right and chance >= least for _, chance, is_right in known) / len(known)
        unknown = [chance < least for example, chance, _ in rows if not example.question.facts]
        yield (
            f"  least chance {least:.2f}: right {right:.1%}, wrong {wrong:.1%}, "
            f"of {len(unknown)} that nothing answers {sum(unknown)} refused"
        )


def _leave_out(
    examples: Sequence[Example], rankings: Sequence[Mapping[str, float]], judged: Sequence[Judged]
) -> Iterator[tuple[Example, float, bool]]:
    for group, ranking in enumerate(rankings):
        answers = fit_answers([one for one in judged if one.group != group])
        with _using(ranking, answers):
            for example in examples:
                if example.group == group:
                    ranked = _rank(example)
                    said = quote_best(example.text, ranked, example.units, MOST_SENTENCES)
                    chance = estimate_chance(ranked) if said and not example.has_missing else 0.0
                    yield example, chance, bool(example.question.facts) and holds_facts(example.question, said)


def fit_left_out(examples: Sequence[Example]) -> list[dict[str, float]]:
    """Return for each group the weights of the ranking that are fitted to the manuals of the others."""
    return [fit_ranking([one for one in examples if one.group != group]) for group in range(GROUPS)]


def _rank(example: Example) -> list[ScoredUnit]:
    return sorted(example.scored, key=lambda item: item.score, reverse=True)


def _using(ranking: Mapping[str, float], answers: Mapping[str, float]) -> Any:
    """Use other weights within a block, whatever is known of a unit."""
    stack = ExitStack()
    for suffix in ("", "_BY_MEANING", "_BY_WORDS"):
        stack.enter_context(patch.dict(getattr(weights, f"RANKING{suffix}"), ranking, clear=True))
        stack.enter_context(patch.dict(getattr(weights, f"ANSWERS{suffix}"), answers, clear=True))
    return stack


def fit_ranking(examples: Sequence[Example]) -> dict[str, float]:
    """Return the weights under which right units score higher than the others of their question."""
    usable = [one for one in examples if any(one.right) and not all(one.right)]
    names = [
        *CHOICE,
        *(name for name in ("closeness", "reader_odds") if getattr(examples[0].scored[0], name) is not None),
    ]
    table = np.array([[_value(item, name) for name in names] for one in usable for item in one.scored])
    right = np.array([float(each) for one in usable for each in one.right])
    starts = np.cumsum([0, *(len(one.right) for one in usable[:-1])])
    group = np.repeat(np.arange(len(usable)), [len(one.right) for one in usable])
    spread = table.std(0) + 1e-9
    scaled = (table - table.mean(0)) / spread
    found, mean, square = np.zeros(len(names)), np.zeros(len(names)), np.zeros(len(names))
    for step in range(1, STEPS + 1):
        score = scaled @ found
        share = np.exp(score - np.maximum.reduceat(score, starts)[group])
        of_right = share * right / np.maximum(np.add.reduceat(share * right, starts), 1e-12)[group]
        slope = scaled.T @ (share / np.add.reduceat(share, starts)[group] - of_right) / len(usable)
        slope += RANK_PENALTY * found
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        found -= RATE * mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return dict(zip(names, (found / spread).tolist(), strict=True))


def _value(item: ScoredUnit, name: str) -> float:
    return (getattr(item, name) or 0.0) if name in ("closeness", "reader_odds") else item.features[name]


@dataclass(frozen=True)
class Judged:
    """What tells whether the best units of a question answer it, whether they do, and how much that counts."""

    group: int
    features: Mapping[str, float]
    is_right: bool
    weight: float


def judge_examples(examples: Sequence[Example], rankings: Sequence[Mapping[str, float]]) -> list[Judged]:
    """Return what is said to each question when its group was left out, also as if no page held the facts."""
    judged: list[Judged] = []
    for example in examples:
        with _using(rankings[example.group], {}):
            judged.append(Judged(example.group, *_judge(example), 1.0))
            if any(example.right) and not all(example.right):
                judged.append(Judged(example.group, *_judge(example.without_right()), TAKEN_AWAY))
    return judged


def fit_answers(judged: Sequence[Judged]) -> dict[str, float]:
    """Return the weights that tell whether the best units answer."""
    told = ("closeness", "best_closeness", "reader_odds", "best_reader_odds")
    names = [*DECISION, *(name for name in told if name in judged[0].features)]
    table = np.array([[one.features[name] for name in names] for one in judged])
    right = np.array([float(one.is_right) for one in judged])
    counted = np.array([one.weight for one in judged])
    return _fit_logistic(names, table, right, counted)


def _judge(example: Example) -> tuple[Mapping[str, float], bool]:
    ranked = _rank(example)
    said = quote_best(example.text, ranked, example.units, MOST_SENTENCES)
    return describe_best(ranked), bool(example.question.facts) and holds_facts(example.question, said)


def _fit_logistic(names: Sequence[str], table: Any, right: Any, counted: Any) -> dict[str, float]:
    middle, spread = table.mean(0), table.std(0) + 1e-9
    scaled = np.c_[np.ones(len(table)), (table - middle) / spread]
    penalty = ANSWER_PENALTY * np.diag([1e-6, *np.ones(len(names))])
    found = np.zeros(len(names) + 1)
    for _ in range(50):
        chance = 1 / (1 + np.exp(-scaled @ found))
        slope = scaled.T @ (counted * (chance - right)) + penalty @ found
        bend = (scaled * (counted * chance * (1 - chance))[:, None]).T @ scaled + penalty
        found -= np.linalg.solve(bend, slope)
    fitted = found[1:] / spread
    return {"bias": float(found[0] - fitted @ middle), **dict(zip(names, fitted.tolist(), strict=True))}
