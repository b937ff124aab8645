"""Truncate and resync: all vectors go and are made again from the text in the ledger, also after a kill."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.warm import warm_python

from ragstone import Item, Ragstone
from ragstone.core.errors import ModelError, ModelMismatch, NotFoundError
from ragstone.core.model_types import Embeddings
from ragstone.core.types import Role
from ragstone.ingest.backfill import FillProgress
from ragstone.models.embedders.pool import FallbackEmbedder
from ragstone.testing.fakes import FakeEmbedder

WORDS = ("ferry", "harbour", "lantern", "orchard", "tide")
ITEMS = [Item("test", word, word, f"All about the {word}.") for word in WORDS]
KILLED = """
import os, signal, sys
from ragstone import Ragstone
from ragstone.ingest import backfill
from ragstone.testing.fakes import FakeEmbedder

class Killed(FakeEmbedder):
    batches = 0

    async def embed(self, texts, role):
        if texts[0].startswith("All about"):
            Killed.batches += 1
            if Killed.batches > int(sys.argv[1]):
                os.kill(os.getpid(), signal.SIGKILL)
        return await super().embed(texts, role)

backfill.BATCH = 2
import ragstone.engine.components as components
components.build_embedder = lambda _: Killed()
with Ragstone(data_dir="data") as stone:
    stone.resync()
"""


def found(stone: Ragstone, arm: str) -> int:
    return len({hit.text for word in WORDS for hit in stone.search(word, arms=arm, k=10).hits})


@pytest.mark.parametrize("vectors", ["sqlite", "memory", "chroma"])
def test_all_vectors_are_made_again(vectors: str, fake_model: FakeEmbedder) -> None:
    progress: list[FillProgress] = []
    with Ragstone(data_dir="data", store={"vectors": vectors}) as stone:
        stone.ingest_items(ITEMS)
        stone.reembed(mode="dual")
        chunks, before = stone.stats().chunks, len(fake_model.calls)
        report = stone.resync(on_progress=progress.append)
        assert (report.removed, report.written, report.chunks) == (2 * chunks, chunks, chunks)
        assert (report.generation, report.refused, report.sources, report.resumed) == (3, 0, 0, False)
        again = {text for texts, _ in fake_model.calls[before:] for text in texts}
        assert again >= {str(item.content) for item in ITEMS}
        assert [(step.done, step.total) for step in (progress[0], progress[-1])] == [(0, chunks), (chunks, chunks)]
        assert [(one.space.generation, one.vectors) for one in stone.spaces()] == [(3, chunks)]
        assert found(stone, "dense") == found(stone, "lexical") == len(WORDS)
        assert stone.stats().unembedded == 0
        assert stone.resync().generation == 4
        with pytest.raises(NotFoundError):
            stone.resync(kb="elsewhere")


@pytest.mark.parametrize(("batches", "by"), [(0, "worker"), (2, "command")])
def test_a_kill_between_the_two_loses_nothing(batches: int, by: str, fake_model: FakeEmbedder) -> None:
    with Ragstone(data_dir="data") as stone:
        stone.ingest_items(ITEMS)
        chunks = stone.stats().chunks
    done = subprocess.run([*warm_python(), "-c", KILLED, str(batches)], capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Ragstone(data_dir="data") as stone:
        (live,) = stone.spaces()
        assert (live.space.generation, live.vectors) == (2, 2 * batches)
        assert found(stone, "lexical") == len(WORDS)
        if by == "command":
            report = stone.resync()
            assert (report.resumed, report.removed, report.written) == (True, 0, chunks - 2 * batches)
        else:
            stone.work()
        assert [(one.space.generation, one.vectors) for one in stone.spaces()] == [(2, chunks)]
        assert stone.stats().unembedded == 0
        assert found(stone, "dense") == len(WORDS)
        assert stone.resync().resumed is False


def test_without_a_model_nothing_is_removed(fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object) -> None:
        raise ModelError("the model is away")

    with Ragstone(data_dir="data") as stone:
        stone.ingest_items(ITEMS)
        before = stone.spaces()
        monkeypatch.setattr(fake_model, "embed", refuse)
        with pytest.raises(ModelError):
            stone.resync()
        assert stone.spaces() == before


def test_nothing_is_removed_while_a_fallback_answers(fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ragstone(data_dir="data") as stone:
        stone.ingest_items(ITEMS)
        before = stone.spaces()
    fake_model.errors = [ModelError("the model is away")]
    both = FallbackEmbedder(fake_model, FakeEmbedder(name="second"))
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: both)
    with Ragstone(data_dir="data") as stone:
        with pytest.raises(ModelMismatch, match="second@1 answered instead of fake@1"):
            stone.resync()
        assert stone.spaces() == before


def test_one_that_was_interrupted_starts_again_for_another_dimension(
    fake_model: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    embed = fake_model.embed

    async def fall_over(texts: Sequence[str], role: Role = "document") -> Embeddings:
        if texts[0].startswith("All about"):
            raise ModelError("the model fell over")
        return await embed(texts, role)

    with Ragstone(data_dir="data") as stone:
        stone.ingest_items(ITEMS)
        monkeypatch.setattr(fake_model, "embed", fall_over)
        with pytest.raises(ModelError):
            stone.resync()
    monkeypatch.setattr(fake_model, "embed", embed)
    fake_model.model = replace(fake_model.model, dimension=32)
    with Ragstone(data_dir="data") as stone:
        report = stone.resync()
        assert (report.resumed, report.written) == (False, report.chunks)
        assert [one.space.dimension for one in stone.spaces()] == [32]
        assert found(stone, "dense") == len(WORDS)


@pytest.mark.req("R-DOM-41")
def test_sources_are_read_again_with_the_new_chunking(tmp_path: Path, fake_model: FakeEmbedder) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "guide.md").write_text("# Guide\n\n## Dogs\n\nA dog travels for two crowns.\n")
    with Ragstone(data_dir="data", chunking={"context": False}) as stone:
        stone.sources.add("files", "docs", {"path": str(folder)})
        stone.sources.sync("docs")
        stone.work()
    with Ragstone(data_dir="data") as stone:
        (document,) = stone.documents()
        assert {one.chunk.context for one in stone.chunks(document.id)} == {""}
        assert stone.resync().sources == 1
        stone.work()
        assert "# Guide\n## Dogs\n\n" in {one.chunk.context for one in stone.chunks(document.id)}
        assert stone.stats().unembedded == 0
