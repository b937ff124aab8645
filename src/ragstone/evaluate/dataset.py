"""Labelled collections in the BEIR layout: corpus.jsonl, queries.jsonl, qrels/<split>.tsv."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragstone.core.errors import InputError
from ragstone.core.types import Item, Metadata

SOURCE = "eval"
MOST_DIGITS = 18
LAYOUT = "a data set is a folder with corpus.jsonl, queries.jsonl and qrels/test.tsv"


@dataclass(frozen=True, slots=True)
class Query:
    """A labelled question."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class CorpusDocument:
    """One line of corpus.jsonl."""

    id: str
    title: str
    text: str
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dataset:
    """The judged queries of one split; the corpus is read when it is asked for."""

    name: str
    folder: Path
    split: str
    queries: tuple[Query, ...]
    grades: Mapping[str, Mapping[str, int]]
    """By query id, then by document id."""

    def documents(self) -> Iterator[CorpusDocument]:
        """Yield the corpus, one line at a time."""
        seen: set[str] = set()
        for where, record in _records(self.folder / "corpus.jsonl"):
            document = CorpusDocument(
                id=_id(where, record),
                title=_text(where, record, "title", default=""),
                text=_text(where, record, "text"),
                metadata=_metadata(where, record),
            )
            if document.id in seen:
                raise InputError(f"{where}: document id {document.id!r} was used before")
            seen.add(document.id)
            yield document


def load_dataset(folder: Path | str, split: str = "test") -> Dataset:
    """Read the queries and judgements of a split; queries without a judgement are left out."""
    root = Path(folder)
    for needed in (root / "corpus.jsonl", root / "queries.jsonl"):
        if not needed.is_file():
            raise InputError(f"{needed} does not exist", hint=LAYOUT)
    grades = _read_grades(_split_file(root, split))
    queries = _read_queries(root / "queries.jsonl", grades)
    return Dataset(root.resolve().name, root, split, queries, grades)


def load_queries(path: Path | str) -> Dataset:
    """Labelled queries for documents that are somewhere else: a folder as above, or a file of golden questions.

    Each line of the file is an object with `query` and `relevant`, the ids or addresses of what answers it.
    """
    place = Path(path)
    if place.is_dir():
        return load_dataset(place)
    queries: list[Query] = []
    grades: dict[str, dict[str, int]] = {}
    for where, record in _records(place):
        key = f"q{len(queries)}"
        relevant = record.get("relevant")
        if (
            not isinstance(relevant, list)
            or not relevant
            or not all(isinstance(document, str) for document in relevant)
        ):
            raise InputError(f"{where}: 'relevant' must be a list of ids or addresses, not {relevant!r:.40}")
        text = _text(where, record, "query").strip()
        if not text:
            raise InputError(f"{where}: 'query' is empty")
        queries.append(Query(key, text))
        grades[key] = dict.fromkeys(relevant, 1)
    if not queries:
        raise InputError(f"{place} holds no query", hint='a line is {"query": "…", "relevant": ["…"]}')
    return Dataset(place.name, place.parent, "golden", tuple(queries), grades)


def documents_as_items(dataset: Dataset) -> Iterator[Item]:
    """Yield the corpus as the ingest pipeline takes it; `dataset_id` leads a hit back to its judgements.

    As is usual with these collections, a document's text is its title and its text, one after the other.
    """
    for document in dataset.documents():
        yield Item(
            source=SOURCE,
            external_id=document.id,
            uri=f"{dataset.name}/{document.id}",
            content=f"{document.title}\n\n{document.text}" if document.title else document.text,
            metadata={"dataset_id": document.id},
        )


def _split_file(root: Path, split: str) -> Path:
    path = root / "qrels" / f"{split}.tsv"
    if path.is_file() and path.parent == root / "qrels":
        return path
    others = sorted(found.stem for found in (root / "qrels").glob("*.tsv"))
    hint = f"this data set has the splits {', '.join(others)}" if others else LAYOUT
    raise InputError(f"{path} does not exist", hint=hint)


def _read_queries(path: Path, grades: Mapping[str, Any]) -> tuple[Query, ...]:
    queries: dict[str, Query] = {}
    for where, record in _records(path):
        query_id = _id(where, record)
        if query_id not in grades:
            continue
        if query_id in queries:
            raise InputError(f"{where}: query id {query_id!r} was used before")
        queries[query_id] = Query(query_id, _text(where, record, "text"))
    unknown = next((query_id for query_id in grades if query_id not in queries), None)
    if unknown is not None:
        raise InputError(f"query {unknown!r} has judgements but is not in {path}")
    return tuple(queries.values())


def _read_grades(path: Path) -> dict[str, dict[str, int]]:
    grades: dict[str, dict[str, int]] = {}
    for number, line in _lines(path):
        where = f"{path} line {number}"
        fields = line.rstrip("\r\n").split("\t")
        if len(fields) != 3:
            raise InputError(f"{where}: {len(fields)} columns instead of query-id, corpus-id and score")
        query_id, document_id, grade = (part.strip() for part in fields)
        if number == 1 and not _is_integer(grade):
            continue  # the header
        if not _is_integer(grade) or not query_id or not document_id:
            raise InputError(f"{where}: {line.strip()!r:.80} is not a query id, a document id and a whole number")
        judged = grades.setdefault(query_id, {})
        if judged.setdefault(document_id, int(grade)) != int(grade):
            raise InputError(f"{where}: document {document_id!r} was judged differently before")
    if not grades:
        raise InputError(f"{path} holds no judgement", hint=LAYOUT)
    return grades


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and len(text) <= MOST_DIGITS


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in _lines(path):
        where = f"{path} line {number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: not JSON ({error})") from error
        if not isinstance(record, dict):
            raise InputError(f"{where}: {type(record).__name__} instead of an object")
        yield where, record


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    # Lines are cut as bytes: U+2028 and the like inside a JSON text are not line ends.
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                if raw.strip():
                    yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} line {number}: not UTF-8 ({error.reason})") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def _id(where: str, record: Mapping[str, Any]) -> str:
    value = record.get("_id")
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise InputError(f"{where}: '_id' must be text or a whole number, not {value!r:.40}")
    return str(value)


def _text(where: str, record: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = record.get(key)
    value = default if value is None else value
    if not isinstance(value, str):
        raise InputError(f"{where}: '{key}' must be text, not {value!r:.40}")
    return value


def _metadata(where: str, record: Mapping[str, Any]) -> Metadata:
    value = record.get("metadata") or {}
    if not isinstance(value, dict):
        raise InputError(f"{where}: 'metadata' must be an object, not {value!r:.40}")
    return value
