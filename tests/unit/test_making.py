"""Which chunker a document gets."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ragstone.core.model_types import WordTokenizer
from ragstone.core.types import Block, Item, Parsed
from ragstone.ingest.prepare import chunking_kind, make_preparer
from ragstone.settings.load import load_settings
from ragstone.settings.tree import Settings
from ragstone.testing.fakes import FakeEmbedder

TEXT = "One sentence here. Another sentence there."


@pytest.mark.parametrize(
    ("metadata", "media_type", "block", "kind"),
    [
        ({"source_type": "web"}, "text/html", "paragraph", "web"),
        ({"source_type": "files"}, "message/rfc822", "paragraph", "email"),
        ({"source_type": "files"}, "text/x-python", "code", "code"),
        ({"source_type": "paper"}, "text/plain", "paragraph", "paper"),
        ({}, "text/plain", "paragraph", ""),
        ({"source_type": ["a", "list"]}, "text/plain", "paragraph", ""),
    ],
)
def test_a_document_is_cut_as_what_it_is_or_where_it_is_from(
    metadata: dict[str, Any], media_type: str, block: Any, kind: str
) -> None:
    parsed = Parsed(TEXT, (Block(block, 0, len(TEXT)),), media_type=media_type)
    assert chunking_kind(Item("s", "x", "x", b"", metadata=metadata), parsed) == kind


@pytest.mark.req("R-CHK-09")
@pytest.mark.parametrize(
    ("source_type", "media_type", "strategy"),
    [
        ("email", "message/rfc822", "semantic"),
        ("paper", "application/pdf", "paper"),
        ("rss", "text/html", "hybrid"),
        ("web", "text/html", "hybrid"),
        ("files", "text/plain", "recursive"),
    ],
)
async def test_ghostwriter_cuts_a_document_by_where_it_is_from(
    source_type: str, media_type: str, strategy: str
) -> None:
    settings = load_settings(overrides={"profile": "ghostwriter"}, environment={})
    preparer, close = make_preparer(settings, FakeEmbedder(), WordTokenizer(), None, "fake@1")
    item = Item("s", "x", "x", b"", metadata={"source_type": source_type})
    parsed = Parsed(TEXT, (Block("paragraph", 0, len(TEXT)),), media_type=media_type)
    chunker = preparer._options.chunker_for(chunking_kind(item, parsed))
    await close()
    assert chunker.fingerprint.split()[0] == strategy


@pytest.mark.req("R-CHK-13")
async def test_each_kind_of_source_may_be_cut_its_own_way() -> None:
    settings = Settings.model_validate(
        {
            "chunking": {"strategy": "sentence", "size": 50, "overlap": 5},
            "chunking_by_source": {"web": {"strategy": "hybrid", "size": 60, "overlap": 0}},
        }
    )
    preparer, close = make_preparer(settings, FakeEmbedder(), WordTokenizer(), None, "fake@1")
    named = {kind: preparer._options.chunker_for(kind).fingerprint for kind in ("", "web", "email", "code", "paper")}
    await close()
    assert {kind: fingerprint.split()[0] for kind, fingerprint in named.items()} == {
        "": "sentence",
        "web": "hybrid",
        "email": "email",
        "code": "code",
        "paper": "paper",
    }
    assert "60/0" in named["web"]
    assert "50/5" in named["email"]


async def test_a_chunker_asks_the_model_from_its_thread() -> None:
    settings = Settings.model_validate({"chunking": {"strategy": "semantic", "size": 50, "overlap": 0}})
    model = FakeEmbedder()
    preparer, close = make_preparer(settings, model, WordTokenizer(), None, "fake@1")
    text = " ".join(f"Sentence {number} tells of the ferry." for number in range(12))
    parsed = Parsed(text, (Block("paragraph", 0, len(text)),))
    chunks = await asyncio.to_thread(preparer._options.chunker_for("").chunk, parsed)
    await close()
    assert len(model.calls) == 1
    assert chunks[0].start == 0
    assert chunks[-1].end == len(text)


async def test_other_settings_mean_another_recipe() -> None:
    item = Item("s", "x", "x", "text")
    recipes = set()
    for changes in (
        {},
        {"chunking": {"size": 300}},
        {"chunking_by_source": {"web": {"strategy": "paragraph"}}},
        {"enrich": {"keywords": 3}},
        {"extract": {"ocr": "off"}},
    ):
        preparer, close = make_preparer(
            Settings.model_validate(changes), FakeEmbedder(), WordTokenizer(), None, "fake@1"
        )
        recipes.add(preparer.recipe(item))
        await close()
    assert len(recipes) == 5


async def test_the_recipe_of_documents_in_existing_data_is_kept() -> None:
    """Another recipe means that every document is read, cut and embedded again."""
    preparer, close = make_preparer(Settings(), FakeEmbedder(), WordTokenizer(), None, "fake@1")
    assert preparer.recipe(Item("s", "x", "x", "text")) == "be4003f8f730e2bb8fdd28d973939913"
    await close()
