"""Data moves from store to store with one command each, and ends as it began.

`RAGSTONE_MOVE_CHUNKS=5000 pytest tests/flow/test_moves.py -s` is the long run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from tests.conformance import postgres_server
from tests.conformance.postgres_server import server

from ragstone import Engine, Item, Ragstone, Settings, open_engine
from ragstone.core.search import Question, SearchQuery
from ragstone.core.types import Candidate
from ragstone.settings.tree import Adapter
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of
from ragstone.transfer.compare.searches import SearchAgreement, agree

postgres_databases = postgres_server.postgres_databases
CHUNKS = int(os.environ.get("RAGSTONE_MOVE_CHUNKS", "240"))
PER_DOCUMENT = 4
Answers = dict[str, list[Candidate]]
QUESTIONS = 20
SUBJECTS = ("ferry", "harbour", "lighthouse", "engine", "fare", "crew", "storm", "cargo", "anchor", "chart", "buoy")


def documents() -> list[Item]:
    """Handbooks of four sections, each of which says something of its own."""
    made = []
    for number in range(CHUNKS // PER_DOCUMENT):
        sections = [
            f"## {SUBJECTS[(number + at) % len(SUBJECTS)]} {at}\n\n"
            f"The {SUBJECTS[(number * 7 + at * 3) % 11]} of volume{number} has rule{number * 10 + at}, and the "
            f"{SUBJECTS[(number * 5 + at) % len(SUBJECTS)]} keeper writes entry{number}x{at} about it."
            for at in range(PER_DOCUMENT)
        ]
        text = f"# Volume {number}\n\n" + "\n\n".join(sections) + "\n"
        metadata = {
            "number": number,
            "share": number / 8,
            "tags": [SUBJECTS[number % 11], "all"],
            "even": number % 2 == 0,
        }
        made.append(Item("books", f"{number:05d}.md", f"books/{number:05d}.md", text, metadata=metadata))
    return made


def settings(folder: Path, store: Mapping[str, Any]) -> Settings:
    """Sections are too long to share a chunk."""
    chunking = {"size": 28, "overlap": 0}
    return Settings.model_validate({"data_dir": folder, "store": store, "chunking": chunking})


async def everything(engine: Engine) -> dict[str, Any]:
    """All documents with their text, and all chunks with their ids, text and metadata."""
    found: dict[str, Any] = {}
    after = ""
    while page := await workspace_of(engine).documents.list(after=after, limit=1000):
        for document in page:
            chunks = await workspace_of(engine).documents.chunks(document.id)
            found[document.id] = (document, await workspace_of(engine).documents.text(document.id), chunks)
        after = page[-1].id
    return found


async def answers(engine: Engine) -> Answers:
    """The ten nearest chunks of some questions."""
    questions = [f"what does the {SUBJECTS[at % 11]} keeper write as entry{at}x{at % 4}" for at in range(QUESTIONS)]
    return {
        question: [
            Candidate(hit.chunk_id, hit.scores["dense"])
            for hit in (await workspace_of(engine).search(SearchQuery(question, k=10, arms="dense"))).hits
        ]
        for question in questions
    }


async def remember(engine: Engine) -> tuple[Any, ...]:
    """Have something asked in a conversation, voted on and kept as a golden query."""
    await workspace_of(engine).ask(Question("what does the ferry keeper write", conversation="talk"))
    hit = (await workspace_of(engine).search("ferry keeper")).hits[0]
    await workspace_of(engine).feedback.vote("ferry keeper", [hit.chunk_id], "up", voter="ada")
    await workspace_of(engine).feedback.add_golden("ferry keeper", [hit.document_id])
    return await activity(engine)


async def activity(engine: Engine) -> tuple[Any, ...]:
    """What was asked and said; of the log, the first two searches."""
    kept = workspace_of(engine).feedback
    searches = [replace(one, tenant_id="") for one in (await kept.searches())[-2:]]
    turns = await workspace_of(engine).conversations.turns("talk")
    return turns, await kept.votes(), await kept.golden(), searches


def agreement(one: Answers, other: Answers) -> float:
    """The share of one's answers that the other gave; what differs by less than a rounding is equally good."""
    total = SearchAgreement()
    for question, expected in one.items():
        total += agree(expected, other[question])
    assert total.differences.count == 0
    return total.share


async def moved(place: Settings, to: Adapter) -> tuple[dict[str, Any], Answers]:
    """What a store holds and answers before it is moved."""
    async with open_engine(place) as engine:
        held, answered = await everything(engine), await answers(engine)
        report = await engine.migrate(to)
        assert report.is_equal, report
        assert report.tenants[0].chunks == sum(len(chunks) for _, _, chunks in held.values())
    return held, answered


@pytest.mark.req("R-STO-16")
@pytest.mark.usefixtures("fake_model")
async def test_chroma_qdrant_postgres_sqlite_and_nothing_is_lost_on_the_way(tmp_path: Path) -> None:
    dsn = server(18).database(tmp_path)
    first = settings(tmp_path / "a", {"vectors": "chroma"})
    second = settings(tmp_path / "a", {"vectors": "qdrant"})
    third = settings(tmp_path / "a", {"ledger": {"kind": "postgres", "dsn": dsn}})
    last = settings(tmp_path / "z", {})
    async with open_engine(first) as engine:
        await workspace_of(engine).documents.ingest_items(documents())
        assert (await workspace_of(engine).knowledge_bases.stats()).chunks >= CHUNKS
        remembered = await remember(engine)
    on_chroma = await moved(first, Adapter(kind="qdrant"))
    on_qdrant = await moved(second, Adapter(kind="postgres", dsn=SecretStr(dsn)))
    on_postgres = await moved(third, Adapter(kind="sqlite", path=tmp_path / "z"))
    async with open_engine(last) as engine:
        at_the_end = await everything(engine), await answers(engine)
        assert await activity(engine) == remembered
    for held, answered in (on_chroma, on_qdrant, on_postgres):
        assert held == at_the_end[0]
        assert agreement(at_the_end[1], answered) >= 0.95
    assert agreement(at_the_end[1], on_qdrant[1]) == 1.0
    assert agreement(at_the_end[1], on_postgres[1]) == 1.0


@pytest.mark.usefixtures("fake_model")
async def test_one_archive_serves_two_tenants_of_one_database(tmp_path: Path) -> None:
    letters = [
        Item("letters", "1", "letters/1", "The ferry leaves at nine."),
        Item("letters", "2", "letters/2", "Dogs travel for two crowns."),
    ]
    async with open_engine(settings(tmp_path / "a", {})) as here:
        await workspace_of(here).documents.ingest_items(letters)
        await workspace_of(here).archive.export(tmp_path / "x.zip")
        held = await everything(here)
    database = {"ledger": {"kind": "postgres", "dsn": server(18).database(tmp_path)}}
    async with open_engine(settings(tmp_path / "b", database)) as there:
        for tenant in ("one", "two"):
            assert (await there.workspace(tenant).archive.restore(tmp_path / "x.zip")).added == 2
            assert (await there.workspace(tenant).archive.restore(tmp_path / "x.zip")).unchanged == 2
            found = await there.workspace(tenant).documents.list()
            assert {one.id: one for one in found} == {identity: one[0] for identity, one in held.items()}
        assert await there.workspace("one").documents.delete(found[0].id)
        assert len(await there.workspace("one").documents.list()) == 1
        assert len(await there.workspace("two").documents.list()) == 2
        assert (await there.workspace("two").search("ferry")).hits[0].text == "The ferry leaves at nine."


async def test_an_upload_comes_with_its_original_file(fake_model: FakeEmbedder, tmp_path: Path) -> None:
    async with open_engine(Settings(data_dir=tmp_path / "a")) as here:
        status = await workspace_of(here).documents.upload(b"# Fares\n\nA dog travels for two crowns.", "fares.md")
        await here.worker().run(until_idle=True)
        with_files = await workspace_of(here).archive.export(tmp_path / "x.zip")
        without = await workspace_of(here).archive.export(tmp_path / "y.zip", files=False)
        assert (with_files.files, without.files) == (1, 0)
        assert (await here.migrate(Adapter(kind="sqlite", path=tmp_path / "c"))).is_equal
    for folder, archive, files in (("b", "x.zip", 1), ("d", "y.zip", 0), ("c", "", 1)):
        async with open_engine(Settings(data_dir=tmp_path / folder)) as there:
            if archive:
                report = await workspace_of(there).archive.restore(tmp_path / archive)
                assert (report.added, report.files) == (1, files)
            found = await workspace_of(there).documents.status(status.document_id)
            assert found.status == "completed"
            assert (found.job is not None) == bool(files)
            kept = [path.read_bytes() for path in (tmp_path / folder / "documents").rglob("*") if path.is_file()]
            assert kept == [b"# Fares\n\nA dog travels for two crowns."][:files]
            assert (await workspace_of(there).search("dog")).hits[0].document_id == status.document_id
            assert (
                await workspace_of(there).documents.upload(b"# Fares\n\nA dog travels for two crowns.", "fares.md")
            ).status == "completed"


def test_the_blocking_engine_moves_too(
    fake_model: FakeEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAGSTONE_MOVE_CHUNKS", raising=False)  # it sets nothing but the size of this file's tests
    with Ragstone(data_dir=tmp_path / "a") as stone:
        stone.ingest_items([Item("letters", "1", "letters/1", "The ferry leaves at nine.")])
        assert stone.moves.export_archive(tmp_path / "x.zip").documents == 1
        assert stone.moves.migrate(Adapter(kind="memory")).is_equal
    with Ragstone(data_dir=tmp_path / "b", tenant="other") as stone:
        assert stone.moves.import_archive(tmp_path / "x.zip").added == 1
        assert stone.search("ferry").hits[0].text == "The ferry leaves at nine."
