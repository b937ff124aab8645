from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ragstone.core.errors import InputError
from ragstone.core.types import Item
from ragstone.evaluate.dataset import CorpusDocument, Query, documents_as_items, load_dataset

CORPUS = [
    {"_id": "d1", "title": "Limestone", "text": "A sedimentary rock.", "metadata": {"year": 1815}},
    {"_id": 2, "text": "Chalk is soft.\u2028It is white."},
]
QUERIES = [{"_id": "q1", "text": "which rock is soft?"}, {"_id": "q2", "text": "nobody judged this"}]
QRELS = "query-id\tcorpus-id\tscore\nq1\t2\t2\nq1\td1\t0\n"


def _write(
    folder: Path,
    *,
    corpus: Sequence[Any] | str = CORPUS,
    queries: Sequence[Any] | str = QUERIES,
    qrels: Mapping[str, str] | None = None,
) -> Path:
    for name, content in (("corpus", corpus), ("queries", queries)):
        text = content if isinstance(content, str) else "".join(json.dumps(line) + "\n" for line in content)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    (folder / "qrels").mkdir()
    for split, text in ({"test": QRELS} if qrels is None else qrels).items():
        (folder / "qrels" / f"{split}.tsv").write_text(text, encoding="utf-8")
    return folder


def test_a_folder_is_read(tmp_path: Path) -> None:
    dataset = load_dataset(_write(tmp_path))
    assert dataset.name == tmp_path.name
    assert dataset.queries == (Query("q1", "which rock is soft?"),)
    assert dataset.grades == {"q1": {"2": 2, "d1": 0}}
    assert list(dataset.documents()) == [
        CorpusDocument("d1", "Limestone", "A sedimentary rock.", {"year": 1815}),
        CorpusDocument("2", "", "Chalk is soft.\u2028It is white.", {}),
    ]


def test_documents_become_items(tmp_path: Path) -> None:
    name = tmp_path.name
    assert list(documents_as_items(load_dataset(_write(tmp_path)))) == [
        Item("eval", "d1", f"{name}/d1", "Limestone\n\nA sedimentary rock.", "", {"dataset_id": "d1"}),
        Item("eval", "2", f"{name}/2", "Chalk is soft.\u2028It is white.", "", {"dataset_id": "2"}),
    ]


def test_the_corpus_is_read_only_when_asked_for(tmp_path: Path) -> None:
    dataset = load_dataset(_write(tmp_path, corpus='{"_id": "d1", "text": "fine"}\nbroken\n'))
    documents = dataset.documents()
    assert next(documents).id == "d1"
    with pytest.raises(InputError, match=r"corpus\.jsonl line 2: not JSON"):
        next(documents)


def test_another_split_can_be_named(tmp_path: Path) -> None:
    folder = _write(tmp_path, qrels={"train": "q2\td1\t1\n", "test": QRELS})
    assert load_dataset(folder, "train").queries == (Query("q2", "nobody judged this"),)


def test_blank_lines_and_a_byte_order_mark_are_no_content(tmp_path: Path) -> None:
    lines = "\ufeff" + json.dumps(QUERIES[0]) + "\n\n"
    assert load_dataset(_write(tmp_path, queries=lines)).queries == (Query("q1", "which rock is soft?"),)


def test_a_missing_split_names_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"dev\.tsv does not exist") as refusal:
        load_dataset(_write(tmp_path, qrels={"train": QRELS, "test": QRELS}), "dev")
    assert refusal.value.hint == "this data set has the splits test, train"


@pytest.mark.parametrize("split", ["../queries", "test/../test"])
def test_a_split_is_a_name_and_not_a_path(tmp_path: Path, split: str) -> None:
    folder = _write(tmp_path)
    (folder / "queries.tsv").write_text(QRELS)
    with pytest.raises(InputError, match="does not exist"):
        load_dataset(folder, split)


@pytest.mark.parametrize("missing", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
def test_a_missing_file_is_named_with_the_layout(tmp_path: Path, missing: str) -> None:
    (_write(tmp_path) / missing).unlink()
    with pytest.raises(InputError) as refusal:
        load_dataset(tmp_path)
    assert str(refusal.value) == f"{tmp_path / missing} does not exist"
    assert "qrels/test.tsv" in refusal.value.hint


@pytest.mark.parametrize(
    ("corpus", "problem"),
    [
        ("[1]\n", "corpus.jsonl line 1: list instead of an object"),
        ('{"text": "x"}\n', "corpus.jsonl line 1: '_id' must be text or a whole number, not None"),
        ('{"_id": true, "text": "x"}\n', "corpus.jsonl line 1: '_id' must be"),
        ('{"_id": "", "text": "x"}\n', "corpus.jsonl line 1: '_id' must be"),
        ('{"_id": "a"}\n', "corpus.jsonl line 1: 'text' must be text, not None"),
        ('{"_id": "a", "text": 3}\n', "corpus.jsonl line 1: 'text' must be text, not 3"),
        ('{"_id": "a", "text": "x", "title": []}\n', "corpus.jsonl line 1: 'title' must be text, not []"),
        ('{"_id": "a", "text": "x", "metadata": [1]}\n', "corpus.jsonl line 1: 'metadata' must be an object"),
        ('{"_id": 1, "text": "x"}\n{"_id": "1", "text": "y"}\n', "corpus.jsonl line 2: document id '1' was used"),
    ],
)
def test_a_malformed_document_is_named_by_file_and_line(tmp_path: Path, corpus: str, problem: str) -> None:
    dataset = load_dataset(_write(tmp_path, corpus=corpus))
    with pytest.raises(InputError) as refusal:
        list(dataset.documents())
    assert problem in str(refusal.value)


@pytest.mark.parametrize(
    ("queries", "problem"),
    [
        ("{\n", "queries.jsonl line 1: not JSON"),
        ("[" * 9000, "queries.jsonl line 1: not JSON"),
        ('{"_id": "q1"}\n', "queries.jsonl line 1: 'text' must be text"),
        ('{"_id": "q1", "text": "a"}\n{"_id": "q1", "text": "b"}\n', "queries.jsonl line 2: query id 'q1' was used"),
        ('{"_id": "q2", "text": "a"}\n', "query 'q1' has judgements but is not in"),
    ],
)
def test_a_malformed_query_is_named_by_file_and_line(tmp_path: Path, queries: str, problem: str) -> None:
    with pytest.raises(InputError) as refusal:
        load_dataset(_write(tmp_path, queries=queries))
    assert problem in str(refusal.value)


@pytest.mark.parametrize(
    ("qrels", "problem"),
    [
        ("q1 d1 1\n", "test.tsv line 1: 1 columns instead of"),
        ("query-id\tcorpus-id\tscore\nq1\t0\td1\t1\n", "test.tsv line 2: 4 columns instead of"),
        ("query-id\tcorpus-id\tscore\nq1\td1\thigh\n", "test.tsv line 2: 'q1\\td1\\thigh' is not"),
        ("q1\t\t1\n", "test.tsv line 1: 'q1\\t\\t1' is not"),
        (f"q1\td1\t1\nq1\td2\t{'9' * 5000}\n", "test.tsv line 2: 'q1\\td2\\t99999"),
        ("q1\td1\t1\nq1\td1\t2\n", "test.tsv line 2: document 'd1' was judged differently"),
        ("query-id\tcorpus-id\tscore\n", "test.tsv holds no judgement"),
        ("", "test.tsv holds no judgement"),
    ],
)
def test_a_malformed_judgement_is_named_by_file_and_line(tmp_path: Path, qrels: str, problem: str) -> None:
    with pytest.raises(InputError) as refusal:
        load_dataset(_write(tmp_path, qrels={"test": qrels}))
    assert problem in str(refusal.value)


def test_bytes_that_are_not_utf8_are_named_by_line(tmp_path: Path) -> None:
    _write(tmp_path)
    (tmp_path / "queries.jsonl").write_bytes(b'{"_id": "q1", "text": "ok"}\n{"_id": "q2", "text": "\xff"}\n')
    with pytest.raises(InputError, match=r"queries\.jsonl line 2: not UTF-8"):
        load_dataset(tmp_path)
