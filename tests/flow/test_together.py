"""Many at once: tenants beside each other, and all new items of a source in batches."""

from __future__ import annotations

import asyncio
import mailbox
from collections.abc import Iterator, Sequence
from email.message import EmailMessage
from pathlib import Path

import pytest
from tests.doubles.openai import OpenAIDouble, Reply, Request, json_reply

from ragstone import Engine, Item, Settings, open_engine
from ragstone.core.model_types import Embeddings
from ragstone.core.types import Role
from ragstone.settings.load import load_settings
from ragstone.settings.tree import EmbeddingSettings, RemoteModel
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

MAILS = 70


class Held(FakeEmbedder):
    """Keeps whoever embeds heavy documents waiting until it is told to let them go."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()
        self.let_go = asyncio.Event()

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        if any("heavy" in text for text in texts):
            self.reached.set()
            await self.let_go.wait()
        return await super().embed(texts, role)


@pytest.mark.req("R-TEN-14")
async def test_a_tenant_with_a_heavy_load_holds_up_nobody(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Held()
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: model)
    pages = tmp_path / "pages"
    pages.mkdir()
    for number in range(200):
        (pages / f"{number}.txt").write_text(f"A heavy document, number {number}.")
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        await engine.workspace("light").documents.ingest_items([Item("test", "1", "1", "A light note.")])
        await engine.workspace("heavy").sources.add("files", "pages", {"path": str(pages)})
        await engine.workspace("heavy").sources.sync("pages")
        working = asyncio.create_task(engine.worker().run(until_idle=True))
        await model.reached.wait()
        # The other tenant's batch is with the model now, and stays there until all this has been done.
        for number in range(20):
            assert (await engine.workspace("light").search(f"light {number}")).hits
        uploaded = await engine.workspace("light").documents.upload(b"Another light note.", "note.txt")
        while (await engine.workspace("light").documents.status(uploaded.document_id)).status != "completed":
            assert not working.done()
            await asyncio.sleep(0.01)
        assert len((await engine.workspace("light").search("light note")).hits) == 2
        counts = await engine.workspace("heavy").jobs.counts()
        assert counts["pending"] + counts["running"] == 200
        model.let_go.set()
        await working
        assert (await engine.workspace("heavy").knowledge_bases.stats()).documents == 200


def _embeddings(request: Request) -> Reply:
    vectors = [[1.0, float(len(text))] + [0.0] * 1534 for text in request.body["input"]]
    rows = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return json_reply({"object": "list", "data": rows, "model": "m", "usage": usage})


@pytest.fixture
def service() -> Iterator[OpenAIDouble]:
    with OpenAIDouble(_embeddings) as double:
        yield double


@pytest.mark.req("R-ING-33", "R-FUT-26")
async def test_all_new_mails_are_fetched_and_embedded_32_at_a_time(
    data_dir: Path, tmp_path: Path, service: OpenAIDouble
) -> None:
    size = load_settings(overrides={"profile": "ghostwriter"}, environment={}).embedding.batch_size
    remote = RemoteModel.model_validate({"base_url": service.url, "api_key": "k"})
    embedding = EmbeddingSettings(model="text-embedding-3-small", batch_size=size, remote=remote)
    box = tmp_path / "mails.mbox"
    _write_mails(box, range(MAILS))
    async with open_engine(Settings(data_dir=data_dir, embedding=embedding)) as engine:
        await workspace_of(engine).sources.add("mbox", "mails", {"path": str(box)}, schedule="daily")
        await look_for_mails(engine)
        await engine.worker().run(until_idle=True)
        assert (await workspace_of(engine).knowledge_bases.stats()).documents == MAILS
        calls = [len(request.body["input"]) for request in service.requests]
        assert sum(calls) == MAILS
        assert sorted(calls) == [16, 22, 32], "the first call is small, so that something is found soon"
        service.requests.clear()
        _write_mails(box, range(MAILS, MAILS + 3))
        await look_for_mails(engine)
        await engine.worker().run(until_idle=True)
        assert (await workspace_of(engine).knowledge_bases.stats()).documents == MAILS + 3
        assert sum(len(request.body["input"]) for request in service.requests) == 3, "only what is new"


async def look_for_mails(engine: Engine) -> None:
    """Queue all that is new before anybody works on it: then it does not matter who is quicker."""
    await workspace_of(engine).sources.sync("mails")
    queue = engine._components.stores.queue
    (job,) = await queue.of("default").claim("me", "sync", lease_seconds=60, attempts=3, most=1, most_bytes=1)
    report = await engine._components.maintenance.run_sync("default", job)
    await queue.of("default").complete(job.ticket, str(report))


def _write_mails(path: Path, numbers: Sequence[int]) -> None:
    box = mailbox.mbox(path)
    for number in numbers:
        mail = EmailMessage()
        mail["Message-ID"] = f"<{number}@mail.example>"
        mail["From"], mail["To"] = "ada@mail.example", "bob@mail.example"
        mail["Subject"] = f"Letter {number}"
        mail["Date"] = "Mon, 02 Feb 2026 10:00:00 +0000"
        mail.set_content(f"This is what letter number {number} says.")
        box.add(mail)
    box.close()
