"""Chroma with a collection per source type and tenant, as the profile of the article pipeline asks for."""

from __future__ import annotations

from pathlib import Path

import chromadb
import pytest
from chromadb.config import Settings as ChromaSettings

from ragstone import Item, Ragstone
from ragstone.settings.load import load_settings
from ragstone.testing.fakes import FakeEmbedder

ITEMS = [
    Item("inbox", "1", "mail", "The ferry of the letters.", metadata={"source_type": "email"}),
    Item("arxiv", "2", "paper", "The ferry of the papers.", metadata={"source_type": "paper"}),
    Item("news", "3", "feed", "The ferry of the feeds.", metadata={"source_type": "rss"}),
    Item("site", "4", "page", "The ferry of the pages.", metadata={"source_type": "web"}),
]


def opened(**store: str) -> Ragstone:
    return Ragstone(data_dir="data", store={"vectors": "chroma", "isolation": "collection", **store})


def on_disk() -> dict[str, int]:
    """The collections in Chroma's own folder, with how many vectors they hold; the number of a Space is left out."""
    client = chromadb.PersistentClient(str(Path("data/vector_db")), ChromaSettings(anonymized_telemetry=False))
    try:
        return {found.name.rpartition("_")[0]: found.count() for found in client.list_collections()}
    finally:
        client._system.stop()
        client.clear_system_cache()


@pytest.mark.req("R-TEN-01", "R-TEN-03")
def test_each_source_type_of_each_tenant_is_a_collection_of_its_own(fake_model: FakeEmbedder) -> None:
    store = load_settings(overrides={"profile": "ghostwriter"}, environment={}).store
    assert (store.vectors.kind, store.isolation, store.collections) == ("chroma", "collection", "source_type")
    with opened(collections="source_type") as stone:
        ids = {tenant: stone.tenants.create(tenant).id for tenant in ("acme", "globex")}
        stone.workspace("acme").ingest_items(ITEMS)
        stone.workspace("globex").ingest_items(ITEMS[:1])
        acme = stone.workspace("acme")
        listed = {one.name: (one.chunks, one.vectors) for one in acme.collections()}
        assert listed == dict.fromkeys(("emails_acme", "papers_acme", "rss_acme", "web_acme"), (1, 1))
        assert len(acme.search("ferry", arms="dense", k=10).hits) == 4
        (mail,) = acme.search("ferry", arms="dense", where={"source_type": "email"}).hits
        assert mail.text == "The ferry of the letters."
    names = {f"{kind}_{ids['acme']}": 1 for kind in ("emails", "papers", "rss", "web")}
    assert on_disk() == {**names, f"emails_{ids['globex']}": 1}
    with opened(collections="source_type") as stone:
        stone.workspace("acme").delete(mail.document_id)
        stone.workspace("acme").reembed(mode="full", force=True, grace_days=0)
        stone.workspace("acme").clean_spaces()
        stone.tenants.delete("globex")
    assert on_disk() == {name: count for name, count in names.items() if not name.startswith("emails")}


def test_a_single_collection_is_split_when_the_settings_ask_for_it(fake_model: FakeEmbedder) -> None:
    with opened() as stone:
        stone.ingest_items(ITEMS)
        assert [one.vectors for one in stone.collections()] == [None] * 4
        before = [hit.chunk_id for hit in stone.search("ferry", arms="dense", k=10).hits]
    ((whole, count),) = on_disk().items()
    assert (whole.partition("_")[0], count) == ("rs", 4)
    with opened(collections="source_type") as stone:
        stone.ingest_items([Item("inbox", "5", "mail", "The bridge.", metadata={"source_type": "email"})])
        found = [hit.chunk_id for hit in stone.search("ferry", arms="dense", k=10).hits]
        assert set(before) < set(found)
    split = {name.partition("_")[0]: count for name, count in on_disk().items()}
    assert split == {"emails": 2, "papers": 1, "rss": 1, "web": 1}
