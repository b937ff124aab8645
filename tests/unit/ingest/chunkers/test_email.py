from __future__ import annotations

import pytest

from ragstone.core.model_types import WordTokenizer
from ragstone.core.protocols import Chunker
from ragstone.core.types import Chunk
from ragstone.ingest.chunkers.cutting import ChunkLimits
from ragstone.ingest.chunkers.kinds import EmailChunker
from ragstone.ingest.parsers.mail.parser import parse_mail
from ragstone.testing.suites.chunkers import ChunkerSuite, document_of

FORWARD = """\
Hi Bo,

Please check the fares below.

---------- Forwarded message ---------
From: Clara <clara@harbour.example>
Date: Mon, 4 May 2026 09:00
Subject: Fares
To: Anna

Nine for adults. Two for dogs.

From: Dora <dora@harbour.example>
Sent: Sunday
To: Clara
Subject: Old fares

Eight for adults.
"""


class TestEmailChunker(ChunkerSuite):
    @pytest.fixture(autouse=True, params=["tokens", "chars"])
    def choose(self, request: pytest.FixtureRequest) -> None:
        self.unit = request.param

    def make_chunker(self, size: int, overlap: int) -> Chunker:
        return EmailChunker(ChunkLimits(WordTokenizer(), size, overlap, self.unit))

    def measure(self, text: str) -> int:
        return len(text) if self.unit == "chars" else len(WordTokenizer().offsets(text))


def chunks(text: str, size: int = 400, overlap: int = 0, context: bool = True) -> list[Chunk]:
    mail = parse_mail(f"Subject: Fwd: Fares\n\n{text}".encode(), "note.eml")
    return EmailChunker(ChunkLimits(WordTokenizer(), size, overlap), context).chunk(mail)


def test_a_chunk_never_mixes_two_messages() -> None:
    found = chunks(FORWARD, overlap=50)
    assert [chunk.text.split("\n")[0] for chunk in found] == [
        "Subject: Fwd: Fares",
        "---------- Forwarded message ---------",
        "From: Dora <dora@harbour.example>",
    ]
    assert [chunk.text.split("\n")[-1] for chunk in found] == [
        "Please check the fares below.",
        "Nine for adults. Two for dogs.",
        "Eight for adults.",
    ]
    assert [chunk.section for chunk in found] == [(), ("Forwarded message: Fares",), ("Forwarded message: Old fares",)]


def test_every_chunk_knows_the_subject() -> None:
    found = chunks(FORWARD, size=8)
    assert found[0].context == ""
    assert {chunk.context for chunk in found if chunk.start > 0 and not chunk.section} == {"Subject: Fwd: Fares\n\n"}
    last = found[-1]
    assert last.contextual.startswith("Subject: Fwd: Fares\nForwarded message: Old fares\n\n")


def test_the_subject_can_be_left_out() -> None:
    assert {chunk.context for chunk in chunks(FORWARD, size=8, context=False)} == {""}


def test_a_greeting_stays_with_what_follows_it() -> None:
    document = document_of(
        ("paragraph", "One two three four five six."),
        ("paragraph", "Dear Bo,"),
        ("paragraph", "The ferry leaves. It returns at noon."),
    )
    found = EmailChunker(ChunkLimits(WordTokenizer(), 9, 0)).chunk(document)
    assert [chunk.text for chunk in found] == [
        "One two three four five six.",
        "Dear Bo,\n\nThe ferry leaves.",
        "It returns at noon.",
    ]


def test_a_quote_stays_with_its_answer() -> None:
    document = document_of(
        ("paragraph", "One two three four five six."), ("quote", "Which ferry?"), ("paragraph", "The one at nine.")
    )
    found = EmailChunker(ChunkLimits(WordTokenizer(), 12, 0)).chunk(document)
    assert [chunk.text for chunk in found] == ["One two three four five six.", "Which ferry?\n\nThe one at nine."]


def test_a_greeting_without_a_letter_is_a_chunk() -> None:
    found = EmailChunker(ChunkLimits(WordTokenizer(), 9, 0)).chunk(document_of(("paragraph", "Dear Bo,")))
    assert [chunk.text for chunk in found] == ["Dear Bo,"]


def test_parameters_change_the_fingerprint() -> None:
    limits = ChunkLimits(WordTokenizer(), 9, 0)
    assert EmailChunker(limits).fingerprint != EmailChunker(limits, context=False).fingerprint
