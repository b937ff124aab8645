"""Conformance tests of every `Chunker`, to inherit.

    from ragstone.testing.suites.chunkers import ChunkerSuite

    class TestMyChunker(ChunkerSuite):
        def make_chunker(self, size, overlap):
            return MyChunker(size=size, overlap=overlap)

        def measure(self, text):
            return len(text)

pytest finds the class by its name and runs every test of the suite against it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from itertools import pairwise

from ragstone.core.protocols import Chunker
from ragstone.core.types import Block, BlockKind, Chunk, Parsed

LIMITS = ((8, 0), (8, 3), (40, 10), (100, 80), (400, 50))
"""The sizes and overlaps each document is cut with."""
KINDS: tuple[BlockKind, ...] = ("paragraph", "paragraph", "paragraph", "list", "code", "table", "quote")
WORDS = (
    *("The", "module", "connects", "a", "player.", "Dr.", "It", "works!", "(e.g.", "3.5", "mg)", "hook.player"),
    *(
        "naïve",
        "e\u0301tude",
        "東京都に行く。",
        "한국어",
        "👩‍👩‍👧‍👦",
        "🇫🇷🇩🇪",
        "x" * 30,
        "https://a.example/b?c=d",
        "—",
        "'s",
    ),
)

Sample = tuple[Parsed, list[Chunk], int, int]
"""A document, its chunks, and the size and overlap it was cut with."""
_cut: dict[tuple[type, str, int, int], list[Sample]] = {}


def document_of(*blocks: tuple[BlockKind, str], title: str = "") -> Parsed:
    """Return a document of these blocks, one to a page; a heading's depth is its number of `#`."""
    parts: list[Block] = []
    text = ""
    for page, (kind, content) in enumerate(blocks, start=1):
        text += "\n\n" if parts else ""
        start = len(text)
        text += content
        level = len(content) - len(content.lstrip("#")) if kind == "heading" else 0
        label = content.lstrip("# ") if kind == "heading" else ""
        parts.append(Block(kind, start, len(text), level, label, page))
    return Parsed(text, tuple(parts), title)


def table_of(rows: int) -> str:
    """Return a Markdown table of two columns."""
    return "\n".join(("| name | price |", "|---|---|", *(f"| part {row} | {row}.50 |" for row in range(rows))))


def sample_documents() -> Iterator[Parsed]:
    """Documents that have broken chunkers: the same ones on every run."""
    yield document_of(("paragraph", "Short."))
    yield document_of(("paragraph", "x" * 500))
    yield document_of(("paragraph", "word " * 150 + "end"))
    yield document_of(("paragraph", "天地玄黃宇宙洪荒" * 40))
    yield document_of(("paragraph", "👩‍👩‍👧‍👦" * 30))
    yield document_of(("code", "\n".join(f"    call({number})  # step" for number in range(60))))
    yield document_of(*[("heading", "#" * (1 + depth % 6) + f" Part {depth}") for depth in range(40)])
    yield document_of(("heading", "# Prices"), ("table", table_of(30)), ("paragraph", "After it."))
    yield document_of(("paragraph", "Before."), ("table", table_of(2)), ("table", f"| {'wide ' * 90}|"))
    yield document_of(*[("paragraph", f"Topic {number}. One. Two! Three? Four.") for number in range(25)])
    generator = random.Random(7)  # noqa: S311 - repeatable samples, not secrets
    for _ in range(5):
        yield _random_document(generator)


def _random_document(generator: random.Random) -> Parsed:
    blocks: list[tuple[BlockKind, str]] = []
    for _ in range(generator.randint(1, 12)):
        if generator.random() < 0.25:
            marks = "#" * generator.randint(1, 6)
            blocks.append(("heading", f"{marks} {generator.choice(WORDS)} {generator.randint(1, 99)}"))
        else:
            words = generator.choices(WORDS, k=generator.choice((1, 5, 30, 60)))
            spaces = generator.choices((" ", " ", " ", "\n", "  "), k=len(words))
            blocks.append((generator.choice(KINDS), "".join(map("".join, zip(words, spaces, strict=True))).strip()))
    return document_of(*blocks, title="A title")


class ChunkerSuite:
    """Inherit, name the class `Test…`, and say how a chunker is made and how it counts."""

    def make_chunker(self, size: int, overlap: int) -> Chunker:
        """Return the chunker under test, limited to `size` and `overlap` in its own unit."""
        raise NotImplementedError

    def measure(self, text: str) -> int:
        """Return the size of a text in that unit."""
        raise NotImplementedError

    def test_text_is_what_stands_at_the_offsets(self) -> None:
        for document, chunks, _, _ in self._samples():
            for chunk in chunks:
                assert chunk.text == document.text[chunk.start : chunk.end]
                assert chunk.text.strip()

    def test_chunks_are_numbered_and_in_order(self) -> None:
        for _, chunks, _, _ in self._samples():
            assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
            for before, after in pairwise(chunks):
                assert before.start < after.start
                assert before.end < after.end

    def test_nothing_is_lost(self) -> None:
        for document, chunks, _, _ in self._samples():
            covered = 0
            for chunk in chunks:
                assert not document.text[covered : chunk.start].strip()
                covered = chunk.end
            assert not document.text[covered:].strip()

    def test_no_chunk_is_larger_than_the_size(self) -> None:
        for _, chunks, size, _ in self._samples():
            for chunk in chunks:
                assert self.measure(chunk.text) <= size, f"{chunk.text!r:.200} is larger than {size}"

    def test_no_chunk_repeats_more_than_the_overlap(self) -> None:
        for document, chunks, _, overlap in self._samples():
            for before, after in pairwise(chunks):
                assert self.measure(document.text[after.start : before.end]) <= overlap

    def test_the_same_document_is_cut_the_same_way(self) -> None:
        for document, chunks, size, overlap in self._samples(LIMITS[2:3]):
            assert self.make_chunker(size, overlap).chunk(document) == chunks

    def test_every_chunk_counts_its_tokens_and_knows_its_page(self) -> None:
        for document, chunks, _, _ in self._samples():
            for chunk in chunks:
                assert chunk.tokens > 0
                assert chunk.page == next(b.page for b in document.blocks if b.start <= chunk.start < b.end)

    def test_a_parent_comes_before_its_children_and_stands_above_them(self) -> None:
        for _, chunks, _, _ in self._samples():
            for chunk in chunks:
                if chunk.parent is not None:
                    assert chunk.parent < chunk.index
                    assert chunks[chunk.parent].level < chunk.level

    def test_metadata_can_be_stored(self) -> None:
        for _, chunks, _, _ in self._samples():
            for chunk in chunks:
                assert json.loads(json.dumps(chunk.metadata, allow_nan=False)) == chunk.metadata

    def test_an_empty_document_has_no_chunks(self) -> None:
        for text in ("", " \n\t\n "):
            assert self.make_chunker(40, 10).chunk(Parsed(text, ())) == []

    def test_a_very_short_document_is_one_chunk(self) -> None:
        for text in ("a", "Hi.", "猫", "👍🏽"):
            chunks = self.make_chunker(40, 10).chunk(document_of(("paragraph", text)))
            assert [chunk.text for chunk in chunks] == [text]

    def test_a_huge_document_is_cut_whole(self) -> None:
        paragraphs: list[tuple[BlockKind, str]] = [
            ("paragraph", f"{number} is one of many.{' And so on.' * 90}") for number in range(30)
        ]
        document = document_of(*paragraphs, ("paragraph", "y" * 20_000))
        chunks = self.make_chunker(400, 50).chunk(document)
        assert chunks[0].start == 0
        assert chunks[-1].end == len(document.text)
        for before, after in pairwise(chunks):
            assert not document.text[before.end : after.start].strip()

    def test_the_fingerprint_tells_parameters_apart(self) -> None:
        fingerprints = [self.make_chunker(size, overlap).fingerprint for size, overlap in LIMITS]
        assert len(set(fingerprints)) == len(LIMITS)
        assert fingerprints == [self.make_chunker(size, overlap).fingerprint for size, overlap in LIMITS]

    def _samples(self, limits: Iterable[tuple[int, int]] = LIMITS) -> Iterator[Sample]:
        for size, overlap in limits:
            chunker = self.make_chunker(size, overlap)
            key = (type(self), chunker.fingerprint, size, overlap)
            if key not in _cut:
                _cut[key] = [(document, chunker.chunk(document), size, overlap) for document in sample_documents()]
            yield from _cut[key]
