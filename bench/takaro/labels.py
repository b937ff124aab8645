"""The labelled queries beside this file; the pages they need are in a documentation folder of its own."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ragstone.evaluate.dataset import Dataset, Query

FOLDER = Path(__file__).parent
SPLITS = ("train", "test")
Split = Literal["train", "test", "all"]


@dataclass(frozen=True)
class Labels:
    """Judged queries, and of which kind each one is."""

    dataset: Dataset
    kinds: Mapping[str, str]
    """By query id."""

    def positions(self, kind: str) -> list[int]:
        """Where in the data set the queries of a kind stand."""
        return [n for n, query in enumerate(self.dataset.queries) if self.kinds[query.id] == kind]


def load_labels(split: Split = "all") -> Labels:
    """The queries of a split in the order they were written; grade 2 answers a query, grade 1 helps."""
    grades = _grades(SPLITS if split == "all" else (split,))
    lines = (FOLDER / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    records = [record for record in map(json.loads, lines) if record["_id"] in grades]
    queries = tuple(Query(record["_id"], record["text"]) for record in records)
    return Labels(
        Dataset("takaro", FOLDER, split, queries, grades), {record["_id"]: record["kind"] for record in records}
    )


def _grades(splits: tuple[str, ...]) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = {}
    for split in splits:
        with (FOLDER / "qrels" / f"{split}.tsv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                grades.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    return grades
