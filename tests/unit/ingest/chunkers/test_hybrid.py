"""The hybrid strategy: structure, then meaning, then overlap."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.unit.ingest.chunkers.models import Subjects

from ragstone.core.model_types import WordTokenizer
from ragstone.core.protocols import Chunker
from ragstone.ingest.chunkers import build_chunker
from ragstone.language.sentences import sentence_spans
from ragstone.settings.tree import ChunkingSettings
from ragstone.testing.suites.chunkers import document_of, table_of


def sentences(subject: str, count: int) -> str:
    return " ".join(f"Number {number} is about the {subject} alone." for number in range(count))


def build(embed: Any, size: int = 1024, overlap: int = 0, **options: Any) -> Chunker:
    settings = ChunkingSettings(strategy="hybrid", size=size, overlap=overlap, **options)
    return build_chunker(settings, WordTokenizer(), embed)


LONG = document_of(
    ("heading", "# Coast"),
    ("paragraph", f"{sentences('sea', 20)} {sentences('hill', 20)}"),
    ("heading", "## Inland"),
    ("paragraph", sentences("wood", 5)),
    title="Guide",
)


@pytest.mark.req("R-CHK-01")
def test_chunks_hold_512_to_1024_tokens_and_share_10_to_20_percent() -> None:
    # Sentences of 77 tokens: two of them are 15 %.
    text = " ".join(f"Sentence {number} {'goes on and on ' * 18}and on." for number in range(60))
    chunker = build(Subjects("on"), 1024, 154, min_size=512)
    chunks = chunker.chunk(document_of(("paragraph", text)))
    assert len(chunks) > 3
    assert all(512 <= chunk.tokens <= 1024 for chunk in chunks)
    shared = [len(WordTokenizer().offsets(text[after.start : before.end])) / 1024 for before, after in pairwise(chunks)]
    assert all(0.1 <= share <= 0.2 for share in shared)


@pytest.mark.req("R-CHK-02")
def test_structure_comes_first_then_the_separators_in_their_order() -> None:
    document = document_of(
        ("heading", "# A"),
        ("paragraph", "One two three. Four five six."),
        ("paragraph", "Line one has it.\nLine two has more. It goes on.\nLine three is short."),
        ("heading", "# B"),
        ("paragraph", "Seven."),
    )
    chunks = build(Subjects("nothing"), 12, separators=("\n\n", "\n", ". ")).chunk(document)
    assert [chunk.text for chunk in chunks] == [
        "# A\n\nOne two three. Four five six.",
        "Line one has it.",
        "Line two has more. It goes on.",
        "Line three is short.",
        "# B\n\nSeven.",
    ]


@pytest.mark.req("R-CHK-03")
def test_only_what_is_too_large_is_cut_by_meaning() -> None:
    model = Subjects("sea", "hill", "wood")
    chunks = build(model, 200, min_size=1).chunk(LONG)
    assert [chunk.text for chunk in chunks] == [
        "# Coast",
        sentences("sea", 20),
        sentences("hill", 20),
        "## Inland",
        sentences("wood", 5),
    ]
    assert " ".join(model.asked) == f"{sentences('sea', 20)} {sentences('hill', 20)}"


@pytest.mark.req("R-CHK-03")
def test_a_model_is_not_asked_when_everything_fits() -> None:
    model = Subjects("sea", "hill")
    build(model, 1024).chunk(LONG)
    assert "".join(model.asked) == ""


@pytest.mark.req("R-CHK-04", "R-CHK-27", "R-TST-27")
@pytest.mark.parametrize(("overlap", "repeated"), [(0, 0), (7, 0), (8, 1), (15, 1), (16, 2), (60, 2)])
def test_one_or_two_sentences_are_repeated_within_the_limit(overlap: int, repeated: int) -> None:
    text = f"{sentences('sea', 20)} {sentences('hill', 20)}"
    chunks = build(Subjects("sea", "hill"), 200, overlap).chunk(document_of(("paragraph", text)))
    assert max(chunk.tokens for chunk in chunks) <= 200
    for before, after in pairwise(chunks):
        assert len(sentence_spans(text[after.start : before.end])) == repeated


def test_nothing_is_repeated_across_sections_tables_or_from_headings() -> None:
    document = document_of(
        ("heading", "# A"),
        ("paragraph", sentences("sea", 30)),
        ("table", table_of(3)),
        ("paragraph", sentences("sea", 14)),
        ("heading", "# B"),
        ("paragraph", sentences("sea", 14)),
    )
    chunks = build(Subjects("sea"), 150, 30, min_size=1).chunk(document)
    shared = [document.text[after.start : before.end] for before, after in pairwise(chunks)]
    assert [bool(text) for text in shared] == [False, True, False, False, False, False]


@pytest.mark.req("R-CHK-05")
def test_hierarchy_parent_and_topic_shift_are_recorded() -> None:
    chunks = build(Subjects("sea", "hill", "wood"), 200, 20, min_size=1).chunk(LONG)
    assert [(chunk.level, chunk.parent, chunk.section) for chunk in chunks] == [
        (1, None, ("Coast",)),
        (2, 0, ("Coast",)),
        (2, 0, ("Coast",)),
        (2, 0, ("Coast", "Inland")),
        (3, 3, ("Coast", "Inland")),
    ]
    assert [chunk.metadata for chunk in chunks] == [{}, {}, {"topic_shift_score": 1.0}, {}, {}]


@pytest.mark.req("R-CHK-12")
def test_small_neighbours_of_a_section_share_a_chunk() -> None:
    paragraphs = [("paragraph", sentences("sea", 3)) for _ in range(30)]
    chunks = build(Subjects("sea"), 400).chunk(document_of(("heading", "# A"), *paragraphs))
    assert min(chunk.tokens for chunk in chunks) >= 100


def test_code_and_tables_are_never_sent_to_the_model() -> None:
    model = Subjects("part")
    document = document_of(("table", table_of(60)), ("code", "\n".join(["call(part)"] * 80)))
    chunks = build(model, 60).chunk(document)
    assert model.asked == []
    assert all(chunk.text.startswith(("|", "call")) for chunk in chunks)
