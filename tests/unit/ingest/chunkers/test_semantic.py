"""The semantic strategy: segments, topics, and what happens without a model."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.unit.ingest.chunkers.models import Subjects

from ragstone.core.errors import ModelError, RemoteError
from ragstone.core.model_types import WordTokenizer
from ragstone.core.protocols import Chunker
from ragstone.core.types import Matrix, Parsed
from ragstone.ingest.chunkers import build_chunker, semantic
from ragstone.ingest.chunkers.packing import TextUnit, group_by_section, iter_units
from ragstone.ingest.chunkers.semantic import cut_segments, find_topics
from ragstone.settings.tree import ChunkingSettings
from ragstone.testing.suites.chunkers import document_of, table_of


def sentences(subject: str, count: int) -> str:
    return " ".join(f"Number {number} is about the {subject} alone." for number in range(count))


def build(embed: Any, size: int = 400, overlap: int = 0, **options: Any) -> Chunker:
    settings = ChunkingSettings(strategy="semantic", size=size, overlap=overlap, **options)
    return build_chunker(settings, WordTokenizer(), embed)


def counts(document: Parsed) -> list[list[int]]:
    return [
        [len(segment.parts) for segment in cut_segments(document.text, section)]
        for section in group_by_section(iter_units(document))
    ]


SEA_AND_HILLS = document_of(
    ("paragraph", sentences("sea", 4)), ("paragraph", sentences("hill", 3)), ("paragraph", sentences("sea", 5))
)


@pytest.mark.req("R-CHK-08")
@pytest.mark.parametrize("number", range(3, 40))
def test_a_segment_has_three_to_five_sentences(number: int) -> None:
    [found] = counts(document_of(("paragraph", sentences("sea", number))))
    assert sum(found) == number
    assert set(found) <= {3, 4, 5}


@pytest.mark.req("R-CHK-08")
def test_segments_end_with_their_paragraph_and_never_reach_across_headings_code_or_tables() -> None:
    document = document_of(
        ("paragraph", sentences("sea", 1)),
        ("paragraph", sentences("sea", 7)),
        ("paragraph", sentences("sea", 2)),
        ("code", "one()\ntwo()"),
        ("paragraph", sentences("sea", 2)),
        ("heading", "# Next"),
        ("paragraph", sentences("sea", 3)),
        ("table", table_of(3)),
    )
    assert counts(document) == [[5, 5, 1, 2], [3, 1]]


def test_a_heading_belongs_to_the_first_sentence_under_it() -> None:
    document = document_of(("heading", "# A"), ("heading", "## B"), ("paragraph", "One. Two. Three."))
    [found] = cut_segments(document.text, iter_units(document))
    assert [document.text[start:end] for start, end in found.parts] == ["# A\n\n## B\n\nOne.", "Two.", "Three."]


@pytest.mark.req("R-CHK-08")
def test_it_cuts_where_the_topic_changes() -> None:
    model = Subjects("sea", "hill")
    chunks = build(model, min_size=1).chunk(SEA_AND_HILLS)
    assert [chunk.text for chunk in chunks] == [sentences("sea", 4), sentences("hill", 3), sentences("sea", 5)]
    assert model.asked == [chunk.text for chunk in chunks]
    assert [chunk.metadata for chunk in chunks] == [{}, {"topic_shift_score": 1.0}, {"topic_shift_score": 1.0}]


@pytest.mark.req("R-CHK-08")
@pytest.mark.parametrize(("threshold", "count"), [(0.79, 1), (0.8, 1), (0.81, 2)])
def test_segments_at_or_above_the_threshold_are_merged_and_others_are_not(threshold: float, count: int) -> None:
    def embed(texts: Sequence[str]) -> Matrix:
        return np.array([[1.0, 0.0], [0.8, 0.6]])

    document = document_of(("paragraph", sentences("sea", 3)), ("paragraph", sentences("sea", 3)))
    assert len(build(embed, min_size=1, breakpoint=threshold).chunk(document)) == count


@pytest.mark.req("R-CHK-12", "R-CHK-21")
def test_a_topic_below_the_minimum_goes_with_the_neighbour_it_is_more_like() -> None:
    document = document_of(
        ("paragraph", sentences("sea", 20)),
        ("paragraph", " ".join(["The hill by the sea."] * 2 + ["The hill."])),
        ("paragraph", sentences("hill", 20)),
    )
    chunks = build(Subjects("sea", "hill"), breakpoint=0.9).chunk(document)
    assert [chunk.text.count("hill") for chunk in chunks] == [0, 23]


@pytest.mark.req("R-CHK-12")
def test_no_chunk_of_a_long_section_is_tiny() -> None:
    paragraphs = [("paragraph", sentences(("sea", "hill", "wood")[number % 3], 3)) for number in range(40)]
    document = document_of(*paragraphs)
    chunks = build(Subjects("sea", "hill", "wood")).chunk(document)
    assert min(chunk.tokens for chunk in chunks) >= 100
    assert max(chunk.tokens for chunk in chunks) <= 400


@pytest.mark.req("R-CHK-21")
def test_a_topic_above_the_maximum_is_cut_at_sentences_without_a_tiny_rest() -> None:
    text = " ".join(["It is about the sea."] * (47 * 4 + 1))
    chunks = build(Subjects("sea"), 1000, unit="chars", min_size=100).chunk(document_of(("paragraph", text)))
    assert [len(chunk.text) for chunk in chunks] == [797, 797, 797, 797, 776]
    assert all(chunk.text.startswith("It") and chunk.text.endswith("sea.") for chunk in chunks)


def test_sections_are_never_mixed_or_compared() -> None:
    document = document_of(
        ("heading", "# A"), ("paragraph", sentences("sea", 3)), ("heading", "# B"), ("paragraph", sentences("sea", 3))
    )
    model = Subjects("sea")
    assert [chunk.section for chunk in build(model).chunk(document)] == [("A",), ("B",)]
    assert model.asked == []


def test_a_text_that_the_model_refuses_is_no_change_of_topic() -> None:
    chunks = build(Subjects("nothing of it"), min_size=1).chunk(SEA_AND_HILLS)
    assert ["topic_shift_score" in chunk.metadata for chunk in chunks] == [False]


@pytest.mark.req("R-CHK-22")
def test_without_a_model_it_is_recursive_with_512_and_50(caplog: pytest.LogCaptureFixture) -> None:
    settings = ChunkingSettings(strategy="semantic", unit="chars", size=1000, overlap=50, min_size=100)
    with caplog.at_level(logging.WARNING, "ragstone"):
        chunker = build_chunker(settings, WordTokenizer())
    assert caplog.messages == ["no model for semantic chunking, cutting documents recursively"]
    assert chunker.fingerprint == (
        "recursive v3 512/50 chars tokenizer=words min=512 separators=('\\n\\n', '\\n', '. ', ' ') context=True"
    )


@pytest.mark.req("R-CHK-22")
@pytest.mark.parametrize("problem", [ModelError("out of order"), RemoteError("no answer")])
@pytest.mark.parametrize("strategy", ["semantic", "hybrid"])
def test_a_document_is_cut_recursively_when_the_model_fails(
    strategy: Any, problem: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def embed(texts: Sequence[str]) -> Matrix:
        raise problem

    document = document_of(("paragraph", sentences("sea", 90)), title="Waves")
    settings = ChunkingSettings(strategy=strategy)
    with caplog.at_level(logging.WARNING, "ragstone"):
        chunks = build_chunker(settings, WordTokenizer(), embed).chunk(document)
    assert caplog.messages == [f"cannot cut a document by meaning, cutting it by structure: {problem}"]
    assert chunks == build_chunker(settings, WordTokenizer()).chunk(document)
    assert len(chunks) > 1


@pytest.mark.req("R-CHK-22")
def test_a_text_of_too_many_segments_is_not_sent_to_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(semantic, "MAX_SEGMENTS", 2)
    model = Subjects("sea")
    assert build(model).chunk(SEA_AND_HILLS)[0].start == 0
    assert model.asked == []


def test_an_error_that_is_no_model_s_is_not_hidden() -> None:
    def embed(texts: Sequence[str]) -> Matrix:
        raise KeyError("a fault of ours")

    with pytest.raises(KeyError):
        build(embed).chunk(SEA_AND_HILLS)


def test_vectors_are_asked_for_in_batches_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = cut_segments(SEA_AND_HILLS.text, iter_units(SEA_AND_HILLS))
    whole = find_topics(SEA_AND_HILLS.text, [parts], Subjects("sea", "hill"), 0.5)
    monkeypatch.setattr(semantic, "BATCH", 1)
    assert [[topic.segments for topic in section] for section in whole] == [
        [topic.segments for topic in section]
        for section in find_topics(SEA_AND_HILLS.text, [parts], Subjects("sea", "hill"), 0.5)
    ]


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf])
def test_vectors_that_are_none_join_everything(value: float) -> None:
    def embed(texts: Sequence[str]) -> Matrix:
        return np.full((len(texts), 4), value, np.float32)

    assert len(build(embed, min_size=1).chunk(SEA_AND_HILLS)) == 1


@pytest.mark.parametrize("shape", [(2, 4), (12,)])
def test_vectors_that_do_not_fit_the_texts_are_a_model_s_failure(shape: tuple[int, ...]) -> None:
    parts = cut_segments(SEA_AND_HILLS.text, [TextUnit(0, len(SEA_AND_HILLS.text), "paragraph")])
    with pytest.raises(ModelError, match="shape"):
        find_topics(SEA_AND_HILLS.text, [parts], lambda _: np.ones(shape, np.float32), 0.5)
