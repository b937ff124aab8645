"""How often the form of a query tells whether its words or its meaning should weigh more."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from bench.report import Row
from bench.takaro.labels import load_labels
from ragstone.query.kind import MEANT, MOST_WEIGHT, Kind, query_kind

PART = "kinds"
QUERIES = Path(__file__).parent / "query_kinds.jsonl"
TAKARO = {
    "identifier": "words",
    "phrase": "words",
    "keywords": "words",
    "question": "meaning",
    "paraphrase": "meaning",
    "multipart": "meaning",
}
"""What should weigh more, by the kind of a labelled query."""
BEFORE: dict[Kind, Kind] = {"term": "description"}
"""Without the rule for noun phrases these were descriptions."""


def run() -> list[Row]:
    """The accuracy on both lists, with the rule for noun phrases and without it."""
    labels = load_labels()
    takaro = [(query.text, TAKARO[labels.kinds[query.id]]) for query in labels.dataset.queries]
    return [row for name, queries in (("own", load_queries()), ("takaro", takaro)) for row in _rows(name, queries)]


def load_queries() -> list[tuple[str, str]]:
    """The queries of the list beside this file, each with what should weigh more."""
    return [(record["text"], record["weighs"]) for record in map(json.loads, QUERIES.read_text("utf-8").splitlines())]


def _rows(name: str, queries: Sequence[tuple[str, str]]) -> list[Row]:
    rows = []
    for weighs in ("words", "meaning"):
        texts = [text for text, label in queries if label == weighs]
        before = sum(_weighs(BEFORE.get(query_kind(text), query_kind(text))) == weighs for text in texts)
        wrong = [text for text in texts if _weighs(query_kind(text)) != weighs]
        rows.append(
            Row(
                PART,
                f"{name}, {weighs} ({len(texts)}): right without and with the rule for noun phrases",
                f"{before / len(texts):.3f} / {1 - len(wrong) / len(texts):.3f}; wrong: {'; '.join(wrong) or 'none'}",
            )
        )
    return rows


def _weighs(kind: Kind) -> str:
    # A long statement keeps the configured weights, which lean on meaning in every profile but one.
    return "words" if kind in MOST_WEIGHT and kind not in MEANT else "meaning"
