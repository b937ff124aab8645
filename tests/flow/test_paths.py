"""Citations one can open: one document for one file, however its folder is named and whoever brings it."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path

import pytest
from tests.conformance import postgres_server
from tests.conformance.postgres_server import server

from ragstone import Item, Ragstone
from ragstone.ingest.sources.files.read import read_files
from ragstone.testing.fakes import FakeEmbedder

postgres_databases = postgres_server.postgres_databases


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "docs"
    (folder / "guides").mkdir(parents=True)
    (folder / "fares.md").write_text("# Fares\n\nA ticket to the island costs nine crowns.\n")
    (folder / "guides" / "pets.md").write_text("# Pets\n\nDogs travel in the aft cabin of the ferry.\n")
    return folder


@pytest.fixture
def stone(docs: Path, fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ragstone]:
    monkeypatch.chdir(docs.parent)
    with Ragstone(data_dir=docs.parent / "data") as stone:
        yield stone


def shown(stone: Ragstone) -> dict[str, str]:
    return {document.uri: document.id for document in stone.documents()}


def test_a_file_is_shown_by_a_path_that_opens_however_its_folder_was_named(stone: Ragstone, docs: Path) -> None:
    stone.ingest("docs")
    first = shown(stone)
    assert set(first) == {"docs/fares.md", "docs/guides/pets.md"}
    (docs.parent / "link").symlink_to(docs)
    for named in ("./docs/", docs, "../project/docs", "link", "docs/guides", "docs/fares.md", "."):
        report = stone.ingest(named)
        assert (report.added, report.updated, report.removed) == (0, 0, 0)
        assert shown(stone) == first
    assert {hit.uri for hit in stone.search("ticket dogs ferry").hits} == set(first)
    assert all(Path(uri).is_file() for uri in first)


def test_a_file_outside_of_the_working_folder_is_shown_by_its_absolute_path(
    stone: Ragstone, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stone.ingest("docs")
    first = shown(stone)
    monkeypatch.chdir(docs)
    assert stone.ingest(".").unchanged == 2
    moved = shown(stone)
    assert {Path(uri) for uri in moved} == {docs / "fares.md", docs / "guides" / "pets.md"}
    assert sorted(moved.values()) == sorted(first.values())
    monkeypatch.chdir(docs.parent)
    assert stone.ingest("docs").unchanged == 2
    assert shown(stone) == moved


def test_a_file_that_a_source_has_brought_is_not_ingested_again(stone: Ragstone, docs: Path) -> None:
    stone.sources.add("files", "handbook", {"path": str(docs)})
    stone.sources.sync("handbook")
    stone.work()
    before = shown(stone)
    (docs / "new.md").write_text("# New\n\nThe quay is closed in winter.\n")
    report = stone.ingest("docs/fares.md", "docs/guides")
    assert (report.added, report.skipped, report.documents) == (0, 2, 2)
    assert report.warnings == ("docs/fares.md and 1 more skipped: already in the kb by source 'handbook'",)
    assert stone.preview("docs").skipped == 2
    assert shown(stone) == before
    assert stone.ingest("docs").added == 1


def test_a_source_passes_over_a_file_that_was_ingested(stone: Ragstone, docs: Path) -> None:
    stone.ingest("docs/fares.md")
    stone.sources.add("files", "handbook", {"path": "docs"})
    stone.sources.add("files", "guides", {"path": "docs/guides"})
    for name in ("handbook", "guides"):
        stone.sources.sync(name)
        stone.work()
    assert sorted(shown(stone)) == ["docs/fares.md", "docs/guides/pets.md"]
    assert sorted((document.source, Path(document.uri).name) for document in stone.documents()) == [
        ("files", "fares.md"),
        ("handbook", "pets.md"),
    ]


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_documents_that_were_shown_from_their_folder_are_found_again(
    docs: Path, fake_model: FakeEmbedder, tmp_path: Path, store: str
) -> None:
    """As earlier versions stored them: `docs/…` wherever the folder was, and an archive's members under it."""
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "anna@example.org", "Rota"
    mail.set_content("The rota is attached.")
    mail.add_attachment("Ola has the watch.", filename="rota.txt")
    (docs / "rota.eml").write_bytes(bytes(mail))
    with zipfile.ZipFile(docs / "old.zip", "w") as archive:
        archive.writestr("lights.txt", "The light of the pier is green.")
    items = [item for item in read_files([docs]) if isinstance(item, Item)]
    old = [replace(item, uri=f"docs{item.external_id.removeprefix(str(docs))}") for item in items]
    ledger = {"ledger": {"dsn": server(18).database(tmp_path)}} if store == "postgres" else {}
    with Ragstone(data_dir=tmp_path / "data", store=ledger) as stone:
        stone.ingest_items(old)
        before = shown(stone)
        assert (len(before), "docs/rota.eml" in before) == (5, True)
        report = stone.ingest(docs)
        assert (report.added, report.removed, report.failed) == (0, 0, ())
        after = shown(stone)
    assert {identity: f"{docs.parent}/{uri}" for uri, identity in before.items()} == {
        identity: uri for uri, identity in after.items()
    }
