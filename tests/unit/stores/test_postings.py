"""BM25 three ways: the reference, FTS5 on disk and postings in memory give the same scores."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragstone.core.types import Candidate
from ragstone.language.analyzer import analyze, analyze_query
from ragstone.stores.lexical.postings import MAX_SEGMENTS, PostingsMatrix, term_hashes
from ragstone.stores.lexical.sqlite import Fts5Writer
from ragstone.testing.oracles import bm25, check_ranking

TOLERANCE = 1e-4
WORDS = st.lists(st.sampled_from(["a1", "b2", "c3", "d4", "rare"]), max_size=8)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.lists(st.tuples(st.integers(0, 12), WORDS), min_size=1, max_size=4)),
        st.tuples(st.just("remove"), st.lists(st.integers(0, 12), max_size=8)),
    ),
    min_size=1,
    max_size=3 * MAX_SEGMENTS,
)


class ThreeWays:
    """The same chunks in a dictionary, in FTS5 and in the postings."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.texts: dict[int, list[str]] = {}
        self.postings = PostingsMatrix()
        self.connection = connection
        self.writer = Fts5Writer()
        self.writer.open(connection, 1)

    def put(self, chunks: dict[int, list[str]]) -> None:
        self._forget([number for number in chunks if number in self.texts])
        rows = [(number, " ".join(words)) for number, words in chunks.items()]
        self.writer.add(self.connection, 1, rows)
        self.postings.put(list(chunks), [name(number) for number in chunks], [text for _, text in rows])
        self.texts.update(chunks)

    def remove(self, numbers: Sequence[int]) -> None:
        self._forget([number for number in dict.fromkeys(numbers) if number in self.texts])
        self.postings.remove(numbers)

    def _forget(self, numbers: Sequence[int]) -> None:
        self.writer.remove(self.connection, 1, [(number, " ".join(self.texts.pop(number))) for number in numbers])

    def check(self, query: Sequence[str]) -> None:
        expected = bm25(query, {name(number): words for number, words in self.texts.items()})
        assert len(self.postings) == len(self.texts)
        for k in (1, 3, 100):
            check_ranking(self.postings.best([[term] for term in query], k), expected, k, TOLERANCE)
        check_ranking(self.by_fts(query), expected, 100, TOLERANCE)

    def by_fts(self, query: Sequence[str]) -> list[Candidate]:
        match = " OR ".join(f'"{term}"' for term in query)
        rows = self.connection.execute("SELECT rowid, bm25(lexical_1) FROM lexical_1 WHERE lexical_1 MATCH ?", (match,))
        found = [Candidate(name(number), -score) for number, score in rows]
        return sorted(found, key=lambda one: (-one.score, one.chunk_id))


def name(number: int) -> str:
    return f"chunk-{number:03}"


@pytest.fixture
def three() -> Iterator[ThreeWays]:
    with closing(sqlite3.connect(":memory:")) as connection:
        yield ThreeWays(connection)


@given(steps=STEPS)
@example(steps=[("put", [(n, ["a1"])]) for n in range(10)] + [("remove", list(range(10)))])
@example(steps=[("put", [(0, [])]), ("put", [(1, ["a1"])])])
@example(steps=[("put", [(0, ["a1"])]), ("remove", [0]), ("put", [(0, ["b2"])])])
def test_all_three_agree_after_every_change(steps: list[tuple[str, list[object]]]) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        three = ThreeWays(connection)
        for step, argument in steps:
            if step == "put":
                three.put(dict(argument))  # type: ignore[arg-type]
            else:
                three.remove(argument)  # type: ignore[arg-type]
            three.check(["a1", "rare"])
        three.check(["a1", "b2", "c3", "d4", "rare", "absent"])


@given(texts=st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=5))
@example(texts=["ЖУРНАЛ журнал", "ΣΊΣΥΦΟΣ σίσυφος", "İstanbul ıstanbul", "Straße STRASSE", "ǅ ǆ"])
@example(texts=["हिन्दी में खोज", "ภาษาไทย", "日本語のテキスト", "한국어 텍스트", "ⅨⅩ ①② ﬁne"])
@example(texts=["𐐀𐐨 Ꮳꮳ ᲐᲑა", "ᜀᜁ ꧁ꦏ", "\U00030000\U00031350", "🙂x", "a\u0300\u0301"])
def test_fts5_cuts_analysed_text_at_the_same_places(texts: list[str]) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        three = ThreeWays(connection)
        three.put({number: analyze(text) for number, text in enumerate(texts)})
        for text in texts:
            if terms := analyze_query(text):
                three.check(terms)


def test_merging_keeps_scores(three: ThreeWays) -> None:
    for number in range(3 * MAX_SEGMENTS):
        three.put({number: ["a1"] * (number % 4) + ["b2"], 100 + number: ["c3", "a1"]})
        three.check(["a1", "b2"])
    three.remove(range(0, 3 * MAX_SEGMENTS, 2))
    three.check(["a1", "b2"])
    three.remove([*range(3 * MAX_SEGMENTS), *range(100, 200)])
    three.check(["a1", "b2"])
    assert three.postings.best([["a1"]], 10) == []


def test_only_allowed_numbers_are_found_and_scores_stay(three: ThreeWays) -> None:
    three.put({1: ["a1"], 2: ["a1", "b2"], 3: ["a1", "a1"], 4: ["c3"], 5: ["c3"], 6: ["c3"], 7: ["c3"]})
    every = {one.chunk_id: one.score for one in three.postings.best([["a1"]], 10)}
    allowed = three.postings.best([["a1"]], 10, np.array([2, 4, 99], np.int64))
    assert allowed == [Candidate(name(2), every[name(2)])]
    assert three.postings.best([["a1"]], 10, np.empty(0, np.int64)) == []


def test_bytes_grow_and_shrink(three: ThreeWays) -> None:
    empty = three.postings.bytes
    three.put({n: ["a1", f"w{n}"] for n in range(100)})
    full = three.postings.bytes
    three.remove(range(100))
    assert empty < full
    assert three.postings.bytes < full / 10


@given(st.lists(st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=64), max_size=20))
def test_a_term_hashes_the_same_alone_and_among_others(terms: list[str]) -> None:
    together = term_hashes(" ".join(terms)).tolist()
    alone = [int(term_hashes(term)[0]) for term in terms]
    assert together == alone
    assert len(set(alone)) == len(set(terms))
