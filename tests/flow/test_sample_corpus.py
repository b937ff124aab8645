"""Ingest → search → ask over the five kinds of files of the sample corpus, with the default model."""

from __future__ import annotations

from contextlib import chdir
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ragstone import Answer, Document, Ragstone
from ragstone.core.errors import NotFoundError
from ragstone.samples import QUESTIONS, UNANSWERABLE, corpus_path

PDF = "corpus/research/porpoise-survey-2025.pdf"
DOCX = "corpus/staff/winter-overhaul-plan.docx"
API = "corpus/guides/booking-api.md"
PORPOISES = "How many porpoises live in Kestrel Sound?"


@pytest.fixture(scope="session")
def documents(stone: Ragstone) -> dict[str, Document]:
    return {document.uri: document for document in stone.documents()}


def check_citations(stone: Ragstone, answer: Answer) -> None:
    """Every sentence stands on quotes, and every quote is in its document at the place it names."""
    assert answer.status == "answered"
    assert [citation.n for citation in answer.citations] == list(range(1, len(answer.citations) + 1))
    for sentence in answer.sentences:
        assert sentence.support == "quoted"
        assert sentence.citations
        assert all(f"[{n}]" in answer.answer for n in sentence.citations)
    for citation in answer.citations:
        assert stone.text(citation.document_id)[citation.start : citation.end] == citation.quote
        assert stone.document(citation.document_id).uri == citation.uri


def test_everything_is_taken_in(documents: dict[str, Document]) -> None:
    kinds = [document.media_type for document in documents.values()]
    assert sorted(set(kinds)) == [
        "application/pdf",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "text/html",
        "text/markdown",
        "text/plain",
    ]
    assert len(documents) == 10
    assert all(document.embedded and document.chunks for document in documents.values())


@pytest.mark.req("R-ING-06")
@pytest.mark.parametrize(
    ("uri", "words"),
    [
        (PDF, "Six hydrophones were moored"),
        (DOCX, "Ingrid Sele"),
        ("corpus/incidents/harbour-notices.txt", "Two grey seal pups"),
    ],
)
def test_pdf_docx_and_text_carry_name_and_date(
    stone: Ragstone, documents: dict[str, Document], uri: str, words: str
) -> None:
    document = documents[uri]
    assert words in stone.text(document.id)
    assert document.metadata["filename"] == uri.rpartition("/")[2]
    assert datetime.fromisoformat(document.metadata["modified_date"]) == document.modified_at


def test_a_second_run_finds_nothing_to_do(stone: Ragstone) -> None:
    before = stone.stats()
    with chdir(corpus_path().parent):
        report = stone.ingest(corpus_path())
    assert (report.added, report.updated, report.unchanged, report.failed) == (0, 0, 10, ())
    assert stone.stats() == before


@pytest.mark.parametrize(
    ("question", "uri", "fact"),
    [
        (QUESTIONS[0], PDF, "about 340 harbour porpoises in summer"),
        (QUESTIONS[1], DOCX, "from 11 January to 5 February 2027"),
        (QUESTIONS[2], API, "holds places for fifteen minutes"),
        ("How much did the repair of the bow cost?", "corpus/incidents/2025-02-fog-collision.txt", "48,600"),
        ("May my dog sit in the café?", "corpus/guides/animals-on-board.html", "but not the café"),
    ],
)
def test_a_question_is_answered_with_quotes_of_the_right_file(
    stone: Ragstone, question: str, uri: str, fact: str
) -> None:
    answer = stone.ask(question)
    check_citations(stone, answer)
    assert answer.degraded == ()
    assert answer.citations[0].uri == uri
    assert fact in answer.citations[0].quote


@pytest.mark.req("R-EXT-09")
@pytest.mark.parametrize(
    ("query", "page"), [(PORPOISES, 1), ("Thirty-eight calves were seen, the first of them on 9 June", 3)]
)
def test_passages_of_a_pdf_know_their_page(stone: Ragstone, query: str, page: int) -> None:
    hit = stone.search(query, k=1).hits[0]
    assert (hit.uri, hit.page) == (PDF, page)
    assert stone.ask(query).citations[0].page == page


def test_pages_of_a_pdf_only_grow(stone: Ragstone, documents: dict[str, Document]) -> None:
    pages = [chunk.chunk.page or 0 for chunk in stone.chunks(documents[PDF].id)]
    assert pages == sorted(pages)
    assert set(pages) == {1, 2, 3}
    assert {chunk.chunk.page for chunk in stone.chunks(documents[DOCX].id)} == {None}


@pytest.mark.req("R-EXT-10", "R-EXT-13")
@pytest.mark.parametrize(
    ("query", "section"),
    [
        (PORPOISES, "Harbour porpoises in Kestrel Sound > Summary"),
        ("SAILING_FULL no seat or car space is left", "Create a booking > Errors"),
        ("Who is responsible for the inspection of the battery?", "Work on MV Tarrant > Battery"),
        ("The crossing takes 55 minutes.", "Port Arden to Sula"),
    ],
)
def test_passages_know_their_section_as_a_path(stone: Ragstone, query: str, section: str) -> None:
    assert stone.search(query, k=1).hits[0].section == section


def test_what_nothing_supports_is_declined(stone: Ragstone) -> None:
    answer = stone.ask(UNANSWERABLE)
    assert (answer.status, answer.sentences, answer.citations) == ("no_evidence", (), ())
    assert answer.answer == "Nothing in the knowledge base answers this question."


@pytest.mark.req("R-HYB-16", "R-HYB-17")
@pytest.mark.parametrize(
    ("identifier", "section"),
    [
        ("bookingControllerCreate", "Create a booking"),
        ("sailingControllerSearch", "Search for sailings"),
        ("hook.sailing.cancelled", "Webhooks"),
        ("KSF-4021", "Cancel a booking"),
        ("CAR_TOO_LONG", "Create a booking > Errors"),
    ],
)
@pytest.mark.parametrize("arms", ["lexical", "hybrid"])
def test_an_identifier_is_found_first_by_its_name(stone: Ragstone, identifier: str, section: str, arms: str) -> None:
    hit = stone.search(identifier, k=3, arms=arms).hits[0]
    assert (hit.uri, hit.section) == (API, section)
    assert identifier in hit.text
    assert hit.scores["lexical_rank"] == 1


def test_hits_are_parts_of_their_documents(stone: Ragstone) -> None:
    result = stone.search("ferry", k=20)
    assert len(result.hits) == 20
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert len({hit.chunk_id for hit in result.hits}) == 20
    for hit in result.hits:
        assert stone.text(hit.document_id)[hit.start : hit.end] == hit.text


@pytest.mark.req("R-HYB-15")
@pytest.mark.parametrize(
    ("arms", "stages"),
    [("lexical", {"lexical"}), ("dense", {"embed_query", "dense"}), ("hybrid", {"embed_query", "dense", "lexical"})],
)
def test_each_arm_can_be_asked_alone(stone: Ragstone, arms: str, stages: set[str]) -> None:
    result = stone.search("survey of porpoises with hydrophones", arms=arms)
    ran = {stage.stage for stage in result.trace}
    assert ran & {"embed_query", "dense", "lexical"} == stages
    assert result.hits[0].uri == PDF


@pytest.mark.parametrize("arms", ["lexical", "dense", "hybrid"])
@pytest.mark.parametrize(
    ("where", "uris"),
    [
        ({"author": "Digital services"}, {API}),
        ({"media_type": "application/pdf"}, {PDF}),
        ({"date": {"gte": "2026-03-01", "lt": "2026-04-01"}}, {"corpus/guides/timetable.html"}),
        ({"filename": {"in": ["fares.md", "booking-api.md"]}}, {"corpus/guides/fares.md", API}),
        ({"source_type": "mail"}, set()),
        ({"and": [{"source_type": "files"}, {"date": {"lt": "2025-12-01"}}]}, {"corpus/guides/animals-on-board.html"}),
    ],
)
def test_filters_act_inside_every_arm(stone: Ragstone, arms: str, where: dict[str, Any], uris: set[str]) -> None:
    result = stone.search("ferry boat sailing crossing booking sound animals", k=50, arms=arms, where=where)
    assert {hit.uri for hit in result.hits} == uris


def test_a_filter_bounds_what_is_answered_from(stone: Ragstone) -> None:
    assert stone.ask(PORPOISES, where={"media_type": "application/pdf"}).status == "answered"
    assert stone.ask(PORPOISES, where={"media_type": "text/html"}).status == "no_evidence"


def test_explain_tells_where_a_document_stood(stone: Ragstone, documents: dict[str, Document]) -> None:
    found = stone.explain(PORPOISES, documents[PDF].id)
    assert (found.found, found.lost_at, found.reason) == (True, "", "found at rank 1")
    assert [step["stage"] for step in found.stages] == ["dense", "lexical", "fuse", "result"]
    assert found.stages[1]["matched_terms"] == ["porpois", "kestrel", "sound"]


def test_explain_tells_where_a_document_was_lost(stone: Ragstone, documents: dict[str, Document]) -> None:
    fares = documents["corpus/guides/fares.md"].id
    cut = stone.explain(PORPOISES, fares, k=1)
    assert (cut.found, cut.lost_at) == (False, "pack")
    assert cut.reason.endswith("after fusion; 1 were asked for")
    filtered = stone.explain(PORPOISES, fares, where={"author": "nobody"})
    assert (filtered.lost_at, filtered.reason) == ("filter", "the filter does not let it through")


def test_explain_does_not_know_other_documents(stone: Ragstone) -> None:
    with pytest.raises(NotFoundError, match="no document nope in knowledge base 'default'"):
        stone.explain(PORPOISES, "nope")


def test_relevance_means_the_same_for_every_query(stone: Ragstone, tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text(
        "Goods may be returned within thirty days. Refunds go to the card.\n", encoding="utf-8"
    )
    stone.ingest(tmp_path / "one.md", kb="tiny")
    (alone,) = stone.search("Within how many days can goods be returned?", kb="tiny").hits
    strange = stone.search("zyxomorphic flurbnation").hits
    assert alone.relevance is not None
    assert alone.relevance > 0.5
    assert max(hit.relevance or 0.0 for hit in strange) < 0.1
    assert not stone.search("zyxomorphic flurbnation", min_relevance=0.3).hits
