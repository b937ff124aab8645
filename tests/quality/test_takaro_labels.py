"""The labelled queries about a product's documentation: enough of each kind, and split so that tuning stays honest."""

from __future__ import annotations

import json
from collections import Counter
from hashlib import sha256

from bench.takaro.labels import FOLDER, load_labels

SEEDS = {
    "moduleControllerCreate",
    "hook.player.connected",
    "how do cronjobs work",
    "ban player with reason",
    "how do hooks work with commands",
}


def test_there_are_enough_queries_of_every_kind_and_those_of_the_seed() -> None:
    labels = load_labels()
    texts = [query.text for query in labels.dataset.queries]
    assert len(texts) == len(set(texts)) >= 65
    assert set(texts) > SEEDS
    kinds = Counter(labels.kinds.values())
    assert set(kinds) == {"question", "paraphrase", "identifier", "phrase", "keywords", "multipart"}
    assert min(kinds.values()) >= 10


def test_every_query_is_judged_and_needs_a_page() -> None:
    written = [json.loads(line)["_id"] for line in (FOLDER / "queries.jsonl").read_text().splitlines()]
    grades = load_labels().dataset.grades
    assert sorted(written) == sorted(grades)
    for query_id, judged in grades.items():
        assert max(judged.values()) == 2, query_id
        assert all(page.endswith((".md", ".mdx")) and not page.startswith("/") for page in judged), query_id


def test_the_splits_are_halves_of_every_kind_by_hash() -> None:
    whole, train, test = (load_labels(split) for split in ("all", "train", "test"))
    assert not set(train.kinds) & set(test.kinds)
    assert {**train.kinds, **test.kinds} == dict(whole.kinds)
    for kind in set(whole.kinds.values()):
        ids = [query_id for query_id, its_kind in whole.kinds.items() if its_kind == kind]
        ids.sort(key=lambda query_id: sha256(query_id.encode()).hexdigest())
        assert {one for one in train.kinds if train.kinds[one] == kind} == set(ids[: len(ids) // 2])
