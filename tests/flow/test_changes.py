"""What becomes of documents that change, go, or belong to somebody else; with real parsers and model."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from ragstone import Item, Ragstone
from ragstone.blocking import BlockingWorkspace
from ragstone.core.errors import NotFoundError
from ragstone.core.remedies import Action, Remedy

ARMS: tuple[Literal["lexical", "dense", "hybrid"], ...] = ("lexical", "dense", "hybrid")
QUESTION = "How much does the lighthouse tour cost?"
TOUR = "# Lighthouse\n\nThe lighthouse tour costs nine crowns. It starts at noon.\n"


def found(stone: BlockingWorkspace, query: str, **scope: str) -> dict[str, set[str]]:
    """The documents that each arm finds."""
    return {arms: {hit.document_id for hit in stone.search(query, k=50, arms=arms, **scope).hits} for arms in ARMS}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "tour.md").write_text(TOUR, encoding="utf-8")
    (folder / "shop.md").write_text("# Shop\n\nThe shop sells rope and tea.\n", encoding="utf-8")
    return folder


def test_a_deleted_document_is_gone_everywhere(stone: Ragstone, folder: Path) -> None:
    stone.ingest(folder, kb="deleting")
    tour, shop = (
        next(one.id for one in stone.documents(kb="deleting") if one.uri == f"pages/{name}")
        for name in ("tour.md", "shop.md")
    )
    assert all(tour in ids for ids in found(stone, QUESTION, kb="deleting").values())
    assert stone.ask(QUESTION, kb="deleting").status == "answered"
    assert stone.delete(tour)
    assert found(stone, QUESTION, kb="deleting") == {"lexical": set(), "dense": {shop}, "hybrid": {shop}}
    assert stone.ask(QUESTION, kb="deleting").status == "no_evidence"
    assert stone.chunks(tour) == []
    for look in (stone.document, stone.text):
        with pytest.raises(NotFoundError, match=f"no document {tour}"):
            look(tour)
    with pytest.raises(NotFoundError, match=f"no document {tour}"):
        stone.explain(QUESTION, tour, kb="deleting")
    assert not stone.delete(tour)
    assert stone.stats(kb="deleting").documents == 1


def test_a_deleted_document_can_come_back(stone: Ragstone, folder: Path) -> None:
    stone.ingest(folder, kb="returning")
    for document in stone.documents(kb="returning"):
        stone.delete(document.id)
    assert stone.stats(kb="returning").chunks == 0
    report = stone.ingest(folder, kb="returning")
    assert (report.added, report.documents) == (2, 2)
    assert stone.ask(QUESTION, kb="returning").status == "answered"


def test_an_update_replaces_what_was_said(stone: Ragstone, folder: Path) -> None:
    stone.ingest(folder, kb="updating")
    before = {document.uri: document for document in stone.documents(kb="updating")}
    (folder / "tour.md").write_text(TOUR.replace("nine crowns", "twelve crowns"), encoding="utf-8")
    report = stone.ingest(folder, kb="updating")
    assert (report.added, report.updated, report.unchanged) == (0, 1, 1)
    after = {document.uri: document for document in stone.documents(kb="updating")}
    assert after["pages/tour.md"].id == before["pages/tour.md"].id
    assert after["pages/tour.md"].version == 2
    assert after["pages/shop.md"] == before["pages/shop.md"]
    answer = stone.ask(QUESTION, kb="updating")
    assert [citation.quote for citation in answer.citations] == ["The lighthouse tour costs twelve crowns."]
    for arms in ARMS:
        texts = [hit.text for hit in stone.search("nine crowns", kb="updating", arms=arms).hits]
        assert not any("nine" in text for text in texts)


def test_one_bad_file_does_not_stop_the_others(stone: Ragstone, folder: Path) -> None:
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and nothing more")
    (folder / "empty.txt").touch()
    (folder / "table.xlsx").write_bytes(b"PK\x03\x04 not really")
    report = stone.ingest(folder, kb="hostile")
    assert report.added == 2
    assert [(failure.uri, failure.code) for failure in report.failed] == [
        ("pages/broken.pdf", "parse_failed"),
        ("pages/empty.txt", "empty_document"),
        ("pages/table.xlsx", "parse_failed"),
    ]
    assert stone.ask(QUESTION, kb="hostile").status == "answered"


def _letter(company: str, fact: str) -> Item:
    return Item("letters", "letter-1", "letters/1", f"The {company} accounts are kept in {fact}.")


@pytest.mark.req("R-TST-52")
def test_tenants_never_see_each_other(stone: Ragstone) -> None:
    names = {"acme": "Zurich", "globex": "Lisbon", "initech": "Oslo"}
    for tenant, place in names.items():
        stone.workspace(tenant).ingest_items([_letter(tenant, place)])
    query = "Where are the accounts kept?"
    ids = {tenant: stone.workspace(tenant).documents()[0].id for tenant in names}
    assert len(set(ids.values())) == len(names)
    for tenant, place in names.items():
        assert found(stone.workspace(tenant), query) == {arms: {ids[tenant]} for arms in ARMS}
        for other in set(names.values()) - {place}:
            assert not any(other in hit.text for hit in stone.workspace(tenant).search(other).hits)
        answer = stone.workspace(tenant).ask(query)
        assert [citation.quote for citation in answer.citations] == [f"The {tenant} accounts are kept in {place}."]
        for stranger, document in ids.items():
            if stranger == tenant:
                continue
            with pytest.raises(NotFoundError, match=f"no document {document}"):
                stone.workspace(tenant).document(document)
            with pytest.raises(NotFoundError):
                stone.workspace(tenant).text(document)
            with pytest.raises(NotFoundError):
                stone.workspace(tenant).explain(query, document)
            assert stone.workspace(tenant).chunks(document) == []
            assert not stone.workspace(tenant).delete(document)
        assert stone.workspace(tenant).stats().documents == 1


def test_a_document_of_another_tenant_looks_like_one_that_never_was(stone: Ragstone) -> None:
    stone.workspace("acme").ingest_items([_letter("acme", "Zurich")])
    theirs = stone.workspace("acme").documents()[0].id
    messages = []
    for document in (theirs, "f" * len(theirs)):
        with pytest.raises(NotFoundError) as caught:
            stone.workspace("globex").document(document)
        messages.append((str(caught.value).replace(document, "ID"), caught.value.advice))
    assert messages[0] == messages[1]


def test_kbs_of_one_tenant_are_apart(stone: Ragstone, folder: Path) -> None:
    stone.ingest(folder / "tour.md", kb="first")
    stone.ingest(folder / "shop.md", kb="second")
    assert {hit.title for hit in stone.search("lighthouse shop", kb="first").hits} == {"Lighthouse"}
    assert {hit.title for hit in stone.search("lighthouse shop", kb="second").hits} == {"Shop"}
    assert {kb.name for kb in stone.kbs()} >= {"default", "first", "second"}
    assert stone.delete_kb("first") == 1
    with pytest.raises(NotFoundError, match="there is no knowledge base 'first' yet"):
        stone.search("lighthouse", kb="first")
    assert stone.search("rope", kb="second").hits[0].title == "Shop"


@pytest.mark.parametrize("kb", ["unheard-of"])
def test_a_kb_that_does_not_exist_is_not_found(stone: Ragstone, kb: str) -> None:
    for look in (stone.search, stone.ask):
        with pytest.raises(NotFoundError) as caught:
            look("anything", kb=kb)
        assert caught.value.remedy == Remedy(Action.INGEST, kb=kb)
    assert kb not in {one.name for one in stone.kbs()}
