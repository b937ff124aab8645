"""What all strategies share: limits, overlaps, counts, whole words, and the way they are chosen."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, get_args

import pytest
from tests.unit.ingest.chunkers.models import by_words

from ragstone.core.errors import InputError
from ragstone.core.model_types import WordTokenizer
from ragstone.core.protocols import Chunker
from ragstone.ingest.chunkers import build_chunker
from ragstone.ingest.chunkers.cutting import ChunkLimits
from ragstone.language.sentences import sentence_spans
from ragstone.settings.tree import ChunkingSettings, Strategy
from ragstone.testing.suites.chunkers import document_of

STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
PROSE = " ".join(f"Sentence number {n} has some words, e.g. these." for n in range(60))


def build(strategy: Any, size: int = 40, overlap: int = 10, unit: Any = "tokens", **options: Any) -> Chunker:
    settings = ChunkingSettings(strategy=strategy, size=size, overlap=overlap, unit=unit, **options)
    return build_chunker(settings, WordTokenizer(), by_words)


def size_of(text: str, unit: str) -> int:
    return len(text) if unit == "chars" else len(WordTokenizer().offsets(text))


@pytest.mark.req("R-CHK-28")
@pytest.mark.parametrize(
    ("strategy", "first"),
    [
        pytest.param("sliding_window", "# A\n\nOne two. Three four.\n\nFive", id="fixed size and sliding window"),
        pytest.param("sentence", "# A\n\nOne two. Three four.", id="sentence"),
        pytest.param("paragraph", "# A\n\nOne two. Three four.", id="paragraph"),
        pytest.param("semantic", "# A\n\nOne two. Three four.", id="semantic"),
        pytest.param("recursive", "# A", id="recursive"),
        pytest.param("hybrid", "# A", id="hybrid"),
        pytest.param("markdown", "# A\n\nOne two. Three four.", id="markdown-contextual"),
    ],
)
def test_the_catalogue_of_strategies(strategy: str, first: str) -> None:
    document = document_of(
        ("heading", "# A"), ("paragraph", "One two. Three four."), ("paragraph", "Five six. Seven eight."), title="T"
    )
    chunker = build(strategy, 9, 2)
    assert chunker.fingerprint.startswith(strategy)
    chunk = chunker.chunk(document)[0]
    assert (chunk.text, chunk.context) == (first, "# T\n## A\n\n")


@pytest.mark.req("R-CHK-24", "R-CHK-25", "R-TST-19")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("text", "chunks"), [("", []), (" \n ", []), ("Hi", ["Hi"]), ("a.", ["a."])])
def test_empty_and_very_short_text(strategy: str, text: str, chunks: list[str]) -> None:
    document = document_of(*([("paragraph", text)] if text.strip() else []))
    assert [chunk.text for chunk in build(strategy).chunk(document)] == chunks


@pytest.mark.req("R-CHK-27", "R-TST-19")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("unit", "size", "overlap", "least"),
    [("tokens", 30, 0, 0), ("tokens", 30, 12, 0), ("tokens", 60, 25, 1), ("chars", 60, 25, 0), ("chars", 300, 100, 1)],
)
def test_overlap_is_there_and_never_breaks_the_maximum(
    strategy: str, unit: str, size: int, overlap: int, least: int
) -> None:
    document = document_of(("paragraph", PROSE))
    chunks = build(strategy, size, overlap, unit).chunk(document)
    assert max(size_of(chunk.text, unit) for chunk in chunks) <= size
    shared = [size_of(PROSE[after.start : before.end], unit) for before, after in pairwise(chunks)]
    assert least <= min(shared[:-1])
    assert max(shared) <= overlap


@pytest.mark.req("R-CHK-29")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("unit", ["tokens", "chars"])
def test_index_and_token_count_are_recorded(strategy: str, unit: str) -> None:
    chunks = build(strategy, unit=unit).chunk(document_of(("paragraph", PROSE)))
    assert len(chunks) > 5
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert [chunk.tokens for chunk in chunks] == [size_of(chunk.text, "tokens") for chunk in chunks]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("unit", ["tokens", "chars"])
def test_words_are_never_cut(strategy: str, unit: str) -> None:
    words = set(PROSE.split())
    for chunk in build(strategy, 35, 12, unit).chunk(document_of(("paragraph", PROSE))):
        assert set(chunk.text.split()) <= words


@pytest.mark.req("R-CHK-20")
@pytest.mark.parametrize("strategy", ["markdown", "sentence", "paragraph"])
@pytest.mark.parametrize("overlap", [0, 8, 25])
def test_sentences_are_never_cut_where_they_fit(strategy: str, overlap: int) -> None:
    spans = sentence_spans(PROSE)
    starts, ends = {start for start, _ in spans}, {end for _, end in spans}
    chunks = build(strategy, 40, overlap).chunk(document_of(("paragraph", PROSE)))
    assert {chunk.start for chunk in chunks} <= starts
    assert {chunk.end for chunk in chunks} <= ends


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_sentence_larger_than_a_chunk_is_cut_between_words_and_overlaps(strategy: str) -> None:
    text = " ".join(f"w{n}" for n in range(30))
    chunks = build(strategy, 10, 4).chunk(document_of(("paragraph", text)))
    first = " ".join(f"w{n}" for n in range(10 if strategy == "sliding_window" else 6))
    assert chunks[0].text == first
    assert all(after.start < before.end for before, after in pairwise(chunks))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("cluster", ["👩‍👩‍👧‍👦", "🇫🇷", "e\u0301\u0323", "👍🏽", "각"])
def test_visible_characters_are_never_cut(strategy: str, cluster: str) -> None:
    for chunk in build(strategy, 22, 11, "chars").chunk(document_of(("paragraph", cluster * 100))):
        assert chunk.text == cluster * (len(chunk.text) // len(cluster))


class BytesTokenizer:
    """A token per byte, as byte-level vocabularies make of rare characters."""

    name = "bytes"

    def offsets(self, text: str) -> Sequence[tuple[int, int]]:
        return [(at, at + 1) for at, char in enumerate(text) for _ in char.encode()]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_several_tokens_of_one_character_stay_together(strategy: Any) -> None:
    settings = ChunkingSettings(strategy=strategy, size=10, overlap=0)
    chunks = build_chunker(settings, BytesTokenizer(), by_words).chunk(document_of(("paragraph", "天地玄黃宇宙")))
    assert [(chunk.text, chunk.tokens) for chunk in chunks] == [("天地玄", 9), ("黃宇宙", 9)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_character_larger_than_a_chunk_still_passes(strategy: Any) -> None:
    class Costly:
        name = "costly"

        def offsets(self, text: str) -> Sequence[tuple[int, int]]:
            return [(at, at + 1) for at in range(len(text)) for _ in range(20)]

    settings = ChunkingSettings(strategy=strategy, size=8, overlap=2)
    chunks = build_chunker(settings, Costly(), by_words).chunk(document_of(("paragraph", "ab")))
    assert [chunk.text for chunk in chunks] == ["a", "b"]


def test_sliding_windows() -> None:
    document = document_of(("paragraph", "a b c d e"), ("heading", "# F"), ("paragraph", "g h i j k"))
    chunks = build("sliding_window", 8, 3).chunk(document)
    assert [chunk.text for chunk in chunks] == ["a b c d e\n\n# F\n\ng", "# F\n\ng h i j k"]
    assert [(chunk.section, chunk.page, chunk.kind) for chunk in chunks] == [
        ((), 1, "paragraph"),
        (("F",), 2, "paragraph"),
    ]


def test_an_overlap_makes_way_for_a_long_word() -> None:
    text = "a b c d " + "x" * 16 + " e"
    chunks = build("sliding_window", 20, 8, "chars").chunk(document_of(("paragraph", text)))
    assert [chunk.text for chunk in chunks] == ["a b c d", "c d " + "x" * 16, "e"]


def test_sentences_are_packed_across_paragraphs() -> None:
    document = document_of(("paragraph", "A b. C d."), ("paragraph", "E f. G h."))
    assert [chunk.text for chunk in build("sentence", 9, 3).chunk(document)] == ["A b. C d.\n\nE f.", "E f. G h."]


def test_paragraphs_are_packed_whole() -> None:
    document = document_of(("paragraph", "A b. C d."), ("paragraph", "E f. G h."), ("paragraph", "I."))
    assert [chunk.text for chunk in build("paragraph", 9, 0).chunk(document)] == ["A b. C d.", "E f. G h.\n\nI."]


def test_code_repeats_whole_lines() -> None:
    document = document_of(("code", "\n".join(f"step {n} done" for n in range(6))))
    assert [chunk.text for chunk in build("paragraph", 9, 4).chunk(document)] == [
        "step 0 done\nstep 1 done\nstep 2 done",
        "step 2 done\nstep 3 done\nstep 4 done",
        "step 4 done\nstep 5 done",
    ]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("change", [{"size": 41}, {"overlap": 11}, {"unit": "chars"}, {"context": False}])
def test_the_fingerprint_changes_with_every_parameter(strategy: str, change: dict[str, Any]) -> None:
    assert build(strategy, **change).fingerprint != build(strategy).fingerprint
    assert build(strategy).fingerprint == build(strategy).fingerprint


@pytest.mark.parametrize(
    ("strategy", "change"),
    [
        *((strategy, {"min_size": 5}) for strategy in ("markdown", "recursive", "semantic", "hybrid", "code")),
        *((strategy, {"separators": ("\n",)}) for strategy in ("recursive", "semantic", "hybrid")),
        *((strategy, {"breakpoint": 0.6}) for strategy in ("semantic", "hybrid")),
    ],
)
def test_the_fingerprint_changes_with_a_strategy_s_own_parameters(strategy: str, change: dict[str, Any]) -> None:
    assert build(strategy, **change).fingerprint != build(strategy).fingerprint


def test_the_fingerprint_names_strategy_and_tokenizer() -> None:
    assert len({build(strategy).fingerprint for strategy in STRATEGIES}) == len(STRATEGIES)
    other = build_chunker(ChunkingSettings(), BytesTokenizer())
    assert other.fingerprint == "markdown v3 400/50 tokens tokenizer=bytes min=0 context=True"


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (10, 10), (10, -1)])
def test_limits_that_cannot_work_are_refused(size: int, overlap: int) -> None:
    with pytest.raises(InputError, match=f"an overlap of {overlap} does not go with a chunk size of {size}"):
        ChunkLimits(WordTokenizer(), size, overlap)
