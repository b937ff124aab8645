"""A quote is on its own page, also in a passage that begins on an earlier one."""

from __future__ import annotations

from pathlib import Path

import pytest
from reportlab.pdfgen import canvas

from ragstone import Ragstone

PAGES = (
    "The harbour opens at six in the morning on every day.",
    "The ferry to the island leaves at nine in the evening.",
    "A berth for one night costs twenty euros in the winter.",
)
KB = "pages"


@pytest.fixture(scope="module")
def harbour(stone: Ragstone, tmp_path_factory: pytest.TempPathFactory) -> Ragstone:
    """A PDF of three pages that is one chunk."""
    path = tmp_path_factory.mktemp("pages") / "harbour.pdf"
    pdf = canvas.Canvas(str(path), invariant=1)
    for sentence in PAGES:
        pdf.drawString(72, 700, sentence)
        pdf.showPage()
    pdf.save()
    assert stone.ingest(Path(path), kb=KB).chunks == 1
    return stone


@pytest.mark.parametrize(
    ("question", "page"),
    [
        ("When does the harbour open in the morning?", 1),
        ("When does the ferry to the island leave?", 2),
        ("What does a berth for one night cost?", 3),
    ],
)
def test_an_answer_cites_the_page_of_its_quote(harbour: Ragstone, question: str, page: int) -> None:
    answer = harbour.ask(question, kb=KB)
    assert [(cited.quote, cited.page) for cited in answer.citations] == [(PAGES[page - 1], page)]
    assert harbour.check_receipt(harbour.receipt(answer, kb=KB)).holds


def test_so_does_the_evidence_of_a_claim(harbour: Ragstone) -> None:
    first, *_ = harbour.verify(PAGES[2], kb=KB).evidence
    assert (first.text, first.page) == (PAGES[2], 3)


def test_a_search_shows_the_page_a_passage_begins_on_and_nothing_else_of_pages(harbour: Ragstone) -> None:
    (hit,) = harbour.search("ferry", kb=KB).hits
    assert (hit.page, [start.page for start in hit.page_starts]) == (1, [2, 3])
    assert "page_starts" not in hit.metadata
