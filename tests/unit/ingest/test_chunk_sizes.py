"""Chunks that are out of bounds are reported: large ones by document, small ones by number."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ragstone import Item, Settings, open_engine
from ragstone.core.types import Chunk
from ragstone.ingest.work import ChunkSizes
from ragstone.settings.load import load_settings
from ragstone.settings.tree import LimitSettings
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of


def chunks(*tokens: int) -> list[Chunk]:
    return [Chunk(index, "x", 0, 1, tokens=count) for index, count in enumerate(tokens)]


@pytest.fixture
def asked() -> LimitSettings:
    return load_settings(overrides={"profile": "ghostwriter"}, environment={}).limits


@pytest.mark.req("R-REL-11")
def test_chunks_out_of_bounds_are_reported(asked: LimitSettings) -> None:
    sizes = ChunkSizes.from_limits(asked)
    assert sizes.add("good.md", chunks(100, 512, 1024)) == []
    assert sizes.warnings() == []
    assert sizes.add("large.md", chunks(1025, 500)) == ["1 chunk is over 1,024 tokens"]
    assert sizes.add("mixed.md", chunks(2000, 3000, 99)) == [
        "2 chunks are over 1,024 tokens",
        "1 chunk is under 100 tokens",
    ]
    assert sizes.warnings() == [
        "large.md: 1 chunk is over 1,024 tokens",
        "mixed.md: 2 chunks are over 1,024 tokens",
        "1 chunk is under 100 tokens",
    ]


@pytest.mark.req("R-REL-11")
def test_short_documents_are_a_number_and_no_warning_each(asked: LimitSettings) -> None:
    sizes = ChunkSizes.from_limits(asked)
    assert [sizes.add(f"{n}.md", chunks(20)) for n in range(1200)] == [[]] * 1200
    sizes.add("long.md", chunks(300, 40))
    assert sizes.warnings() == ["1,201 chunks are under 100 tokens, 1,200 of them whole documents"]


def test_whoever_does_not_ask_is_told_nothing() -> None:
    sizes = ChunkSizes.from_limits(LimitSettings())
    assert sizes.add("a.md", chunks(1, 50_000)) == []
    assert sizes.warnings() == []


@pytest.mark.req("R-REL-11")
async def test_an_ingest_and_a_job_tell_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    monkeypatch.chdir(tmp_path)
    settings = Settings(
        data_dir=tmp_path / "data",
        limits={"chunk_tokens_least": 5, "chunk_tokens_most": 20},
        chunking={"strategy": "recursive", "unit": "tokens", "size": 40, "overlap": 0},
    )
    long = "The ferry leaves the old harbour at nine in the morning. " * 8
    async with open_engine(settings) as engine:
        report = await workspace_of(engine).documents.ingest_items(
            [Item("test", "long", "test/long", long), Item("test", "short", "test/short", "Two words.")]
        )
        taken = await workspace_of(engine).documents.upload(long.encode(), "long.txt")
        await asyncio.wait_for(engine.worker().run(until_idle=True), 240)
        status = await workspace_of(engine).documents.status(taken.document_id)
    assert len(report.warnings) == 2
    assert report.warnings[0].startswith("test/long: ")
    assert report.warnings[0].endswith("over 20 tokens")
    assert report.warnings[1] == "1 chunk is under 5 tokens, 1 of them whole documents"
    assert status.job is not None
    assert [remark.split(" ", 1)[1] for remark in status.job.progress.remarks] == ["chunks are over 20 tokens"]
