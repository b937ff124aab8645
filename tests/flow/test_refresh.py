"""Embeddings are looked after by workers: on a schedule, after a change of models, and when people find too little."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragstone import Engine, Item, Settings, open_engine
from ragstone.core import clock
from ragstone.core.errors import CollectionBusy, ModelError, ModelUnavailable, SettingsError
from ragstone.core.jobs import Job
from ragstone.core.model_types import Embeddings
from ragstone.core.remedies import Action, Remedy, advise
from ragstone.core.search import SearchQuery
from ragstone.core.types import Role
from ragstone.ingest import backfill as fill
from ragstone.settings.tree import EmbeddingSettings, RefreshSettings
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

LATER = timedelta(days=40)
MONTHLY = RefreshSettings(every="monthly")
NAMES = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath"]


class Changing(FakeEmbedder):
    """The same name, and from one day on another model behind it."""

    era = ""

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        return await super().embed([f"{text} {self.era}" for text in texts], role)

    def documents(self) -> int:
        """Texts that it embedded as documents since the last look."""
        texts = [text for call, role in self.calls if role == "document" for text in call]
        self.calls.clear()
        return len(texts)


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> dict[str, Changing]:
    """Models by name; one that is not there yet is made."""
    made: dict[str, Changing] = {}
    monkeypatch.setattr(
        "ragstone.engine.components.build_embedder",
        lambda chosen: made.setdefault(chosen.model, Changing(name=chosen.model)),
    )
    return made


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks what is due, asks 40 days from now."""
    monkeypatch.setattr("ragstone.engine.embeddings.triggers.now", lambda: clock.now() + LATER)


def settings_of(folder: Path, refresh: RefreshSettings, model: str = "old", **others: Any) -> Settings:
    return Settings(data_dir=folder, embedding=EmbeddingSettings(model=model, refresh=refresh), **others)


def items(*names: str) -> list[Item]:
    return [Item("test", name, f"test/{name}", f"The {name} is what this page tells of.") for name in names]


async def look(engine: Engine) -> None:
    """What a worker does once an hour, and then the jobs that came of it."""
    await engine._components.triggers.start_due("default")
    await engine.worker().run(until_idle=True)


async def refreshes(engine: Engine) -> list[Job]:
    return [job for job in await workspace_of(engine).jobs.list() if job.kind == "reembed"]


def lose_vectors(folder: Path, some: int) -> None:
    """As after a defect: chunks that should have a vector, and do not."""
    (file,) = [path for path in folder.rglob("*.db") if _holds_vectors(path)]
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM vectors WHERE chunk_seq IN (SELECT chunk_seq FROM vectors LIMIT ?)", (some,))


def _holds_vectors(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'vectors'").fetchone())


@pytest.mark.req("R-EMB-26", "R-REL-13")
async def test_everything_is_embedded_again_once_a_month(
    data_dir: Path, models: dict[str, Changing], later: None
) -> None:
    """Although most vectors are there and are what the model makes today."""
    async with open_engine(settings_of(data_dir, MONTHLY)) as engine:
        await workspace_of(engine).documents.ingest_items(items(*NAMES))
    lose_vectors(data_dir, 3)
    async with open_engine(settings_of(data_dir, MONTHLY)) as engine:
        assert (await workspace_of(engine).embeddings.spaces())[0].vectors == len(NAMES) - 3
        models["old"].calls.clear()
        await look(engine)
        embedded = {text for texts, role in models["old"].calls if role == "document" for text in texts}
        assert all(any(name in text for text in embedded) for name in NAMES)
        (job,) = await refreshes(engine)
        assert (job.state, job.kb, job.uri) == ("completed", "default", "reembed:default")
        (said,) = job.progress.remarks
        assert said.endswith("(monthly); 8 vectors were made anew and old@1, generation 2 is live now")
        assert [notice.message for notice in await workspace_of(engine).jobs.notices()] == [said]
        before, after = await workspace_of(engine).embeddings.spaces()
        assert (before.space.state, before.vectors) == ("retired", len(NAMES) - 3)
        assert (after.space.state, after.vectors) == ("live", len(NAMES))


@pytest.mark.req("R-EMB-26", "R-REL-13")
async def test_a_month_corrects_the_one_wrong_vector_that_no_sample_shows(
    data_dir: Path, models: dict[str, Changing], later: None
) -> None:
    async with open_engine(settings_of(data_dir, RefreshSettings(every="monthly", sample=1))) as engine:
        await workspace_of(engine).documents.ingest_items(items(*NAMES[:-1]))
        models["old"].era = "on a bad day"
        await workspace_of(engine).documents.ingest_items(items(NAMES[-1]))
        models["old"].era = ""
        query = SearchQuery(items(NAMES[-1])[0].content, k=1, arms="dense")
        assert (await workspace_of(engine).search(query)).hits[0].scores["dense"] < 0.99
        await look(engine)
        found = (await workspace_of(engine).search(query)).hits[0]
        assert (found.text, found.scores["dense"]) == (query.text, pytest.approx(1, abs=0.001))


async def test_a_refresh_that_an_older_version_queued_looks_at_a_sample(
    data_dir: Path, models: dict[str, Changing], later: None
) -> None:
    async with open_engine(settings_of(data_dir, MONTHLY)) as engine:
        await workspace_of(engine).documents.ingest_items(items("amber"))
        await engine._components.triggers.start_due("default")
        (queued,) = await refreshes(engine)
        job = replace(queued, facts={"because": "due", "model": "", "model_id": "", "sources": False})
        said = await engine._components.refresher.do("default", job, lambda _: None, 256, None)
        assert said == "due; 0 missing vectors filled in; 0 of 1 sampled vectors differ from what old@1 makes today"


@pytest.mark.req("R-EMB-26")
async def test_a_month_has_one_turn_whoever_finds_it_due(
    data_dir: Path, models: dict[str, Changing], later: None
) -> None:
    wanted = settings_of(data_dir, MONTHLY)
    async with open_engine(wanted) as one, open_engine(wanted) as other:
        await workspace_of(one).documents.ingest_items(items("amber"))
        await asyncio.gather(*(each._components.triggers.start_due("default") for each in (one, other)))
        assert len(await refreshes(one)) == 1
        await other.worker().run(until_idle=True)
        # As if the first one had looked before the second was done.
        turn = (await refreshes(one))[0]
        kb = (await workspace_of(one).knowledge_bases.list())[0]
        triggers = one._components.triggers
        again = await triggers._next_at("default", kb, None)
        assert again is not None
        assert turn.external_id == f"schedule {clock.canonical(again)}"
        await look(one)
        assert [job.state for job in await refreshes(one)] == ["completed"]


@pytest.mark.parametrize("every", ["manual", "0 0 1 1 *"])
async def test_what_is_not_due_is_not_done(
    data_dir: Path, models: dict[str, Changing], every: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragstone.engine.embeddings.triggers.now", lambda: clock.now() + timedelta(seconds=1))
    async with open_engine(settings_of(data_dir, RefreshSettings(every=every))) as engine:
        await workspace_of(engine).documents.ingest_items(items("amber"))
        await look(engine)
        assert await refreshes(engine) == []


async def test_vectors_that_the_model_makes_otherwise_today_are_all_made_anew(
    data_dir: Path, models: dict[str, Changing]
) -> None:
    async with open_engine(settings_of(data_dir, RefreshSettings())) as engine:
        await workspace_of(engine).documents.ingest_items(items(*NAMES))
        models["old"].era = "changed behind its name"
        report = await workspace_of(engine).embeddings.refresh()
        assert (report.outcome, report.freshness.differing, report.freshness.sampled) == ("promoted", 8, 8)
        assert "8 vectors were made anew and old@1, generation 2 is live now" in str(report)
        before, after = await workspace_of(engine).embeddings.spaces()
        assert (before.space.state, after.space.state, after.vectors) == ("retired", "live", len(NAMES))
        assert (await workspace_of(engine).embeddings.refresh()).outcome == "fresh"


async def test_a_refresh_of_what_is_fresh_costs_no_more_than_its_sample(
    data_dir: Path, models: dict[str, Changing]
) -> None:
    async with open_engine(settings_of(data_dir, RefreshSettings(sample=3))) as engine:
        await workspace_of(engine).documents.ingest_items(items(*NAMES))
        models["old"].documents()
        report = await workspace_of(engine).embeddings.refresh()
        assert (report.outcome, report.written, report.freshness.sampled) == ("fresh", 0, 3)
        assert models["old"].documents() == 3


@pytest.mark.req("R-EMB-26")
async def test_a_refresh_that_lost_its_worker_goes_on_where_it_was(
    data_dir: Path, models: dict[str, Changing], later: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fill, "BATCH", 2)
    async with open_engine(settings_of(data_dir, MONTHLY)) as engine:
        await workspace_of(engine).documents.ingest_items(items(*NAMES))
        models["old"].era = "changed"
        await engine._components.triggers.start_due("default")
        queue = engine._components.stores.queue
        (job,) = await queue.of("default").claim("dead", "reembed", lease_seconds=0, attempts=3, most=1, most_bytes=1)
        refresher, embed = engine._components.refresher, models["old"].embed
        calls = 0

        async def dying(texts: Sequence[str], role: Role = "document") -> Embeddings:
            nonlocal calls
            calls += 1
            if calls == 4:  # the model's name, two batches, and then
                raise ModelError("gone")
            return await embed(texts, role)

        monkeypatch.setattr(models["old"], "embed", dying)
        with pytest.raises(ModelError, match="gone"):
            await refresher.do("default", job, lambda _: None, 256, None)
        monkeypatch.setattr(models["old"], "embed", embed)
        assert [(one.space.state, one.vectors) for one in await workspace_of(engine).embeddings.spaces()] == [
            ("live", 8),
            ("building", 4),
        ]
        await engine.worker().run(until_idle=True)
        (job,) = await refreshes(engine)
        assert (job.state, job.attempts) == ("completed", 2)
        assert "4 vectors were made anew" in job.progress.remarks[0]
        assert [(one.space.state, one.vectors) for one in await workspace_of(engine).embeddings.spaces()] == [
            ("retired", 8),
            ("live", 8),
        ]


@pytest.mark.req("R-EMB-26", "R-REL-13")
async def test_a_month_takes_no_vectors_from_a_space_that_was_begun_before(
    data_dir: Path, models: dict[str, Changing], later: None
) -> None:
    async with open_engine(settings_of(data_dir, MONTHLY)) as engine:
        await workspace_of(engine).documents.ingest_items(items(*NAMES))
        await workspace_of(engine).embeddings.reembed("old", mode="dual")
        models["old"].era = "changed behind its name"
        await look(engine)
        (job,) = await refreshes(engine)
        assert "8 vectors were made anew and old@1, generation 3 is live now" in job.progress.remarks[0]
        assert [(one.space.generation, one.space.state) for one in await workspace_of(engine).embeddings.spaces()] == [
            (1, "retired"),
            (3, "live"),
        ]
        assert (await workspace_of(engine).embeddings.refresh()).outcome == "fresh"


async def test_a_refresh_whose_worker_was_lost_after_the_switch_embeds_nothing_again(
    data_dir: Path, models: dict[str, Changing], later: None
) -> None:
    async with open_engine(settings_of(data_dir, MONTHLY)) as engine:
        await workspace_of(engine).documents.ingest_items(items(*NAMES))
        await engine._components.triggers.start_due("default")
        (job,) = await refreshes(engine)
        said = [await engine._components.refresher.do("default", job, lambda _: None, 1, None) for _ in range(2)]
        assert said[0].endswith("; 8 vectors were made anew and old@1, generation 2 is live now")
        assert said[1].endswith("; 0 of 1 sampled vectors differ from what old@1 makes today")
        assert len(await workspace_of(engine).embeddings.spaces()) == 2


async def test_a_refresh_by_hand_goes_on_with_vectors_that_are_fresh_only(
    data_dir: Path, models: dict[str, Changing]
) -> None:
    async with open_engine(settings_of(data_dir, RefreshSettings())) as engine:
        embeddings = workspace_of(engine).embeddings
        await workspace_of(engine).documents.ingest_items(items(*NAMES))
        await embeddings.reembed("old", mode="dual")
        models["old"].era = "changed behind its name"
        report = await embeddings.refresh()
        assert report.anew is not None
        assert (report.outcome, report.anew.written, report.anew.generation) == ("promoted", 8, 3)
        models["old"].era = "changed again"
        await embeddings.reembed("old", mode="dual")
        report = await embeddings.refresh()
        assert report.anew is not None
        assert (report.outcome, report.anew.written, report.anew.generation) == ("promoted", 0, 4)


@pytest.mark.parametrize("model", [None, "old"])
async def test_a_request_that_names_the_live_model_embeds_everything_again(
    data_dir: Path, models: dict[str, Changing], model: str | None
) -> None:
    async with open_engine(settings_of(data_dir, RefreshSettings())) as engine:
        await workspace_of(engine).documents.ingest_items(items(*NAMES))
        await workspace_of(engine).embeddings.queue(model)
        await engine.worker().run(until_idle=True)
        (job,) = await refreshes(engine)
        assert "8 vectors were made anew and old@1, generation 2 is live now" in job.progress.remarks[0]


async def test_a_request_is_refused_while_another_one_waits(
    data_dir: Path, models: dict[str, Changing], later: None
) -> None:
    async with open_engine(settings_of(data_dir, MONTHLY)) as engine:
        embeddings = workspace_of(engine).embeddings
        await workspace_of(engine).documents.ingest_items(items("amber"))
        await engine._components.triggers.start_due("default")
        (waiting,) = await refreshes(engine)
        assert (await embeddings.queue()).id == waiting.id, "it embeds everything again as well"
        with pytest.raises(CollectionBusy) as caught:
            await embeddings.queue("new")
        because = waiting.facts["because"]
        said = f"cannot move knowledge base 'default' to new: job {waiting.id} of it is pending ({because})"
        assert (str(caught.value), caught.value.hint) == (said, "wait until it has ended, or cancel it")
        assert caught.value.remedy == Remedy(Action.LIST_JOBS)
        await engine.worker().run(until_idle=True)
        moving = await embeddings.queue("new")
        assert (await embeddings.queue("new")).id == moving.id
        with pytest.raises(CollectionBusy, match="cannot embed all of knowledge base 'default' again: job"):
            await embeddings.queue()


@pytest.mark.req("R-EMB-25")
async def test_settings_that_name_another_model_move_the_kb_once(data_dir: Path, models: dict[str, Changing]) -> None:
    on_model = RefreshSettings(when=("model",))
    async with open_engine(settings_of(data_dir, on_model)) as engine:
        await workspace_of(engine).documents.ingest_items(items(*NAMES))
        await look(engine)
        assert await refreshes(engine) == []
    async with open_engine(settings_of(data_dir, on_model, "new")) as engine:
        await look(engine)
        (job,) = await refreshes(engine)
        assert job.state == "completed"
        assert job.progress.remarks[0].startswith("the settings name new@1 instead of old@1; 8 vectors")
        assert [(one.space.model, one.space.state) for one in await workspace_of(engine).embeddings.spaces()] == [
            ("old@1", "retired"),
            ("new@1", "live"),
        ]
        # Who goes back means it, and a worker that still has the old settings does not go forth.
        await workspace_of(engine).embeddings.rollback()
        await workspace_of(engine).embeddings.clean(retired=True)
        await look(engine)
        assert len(await refreshes(engine)) == 1
        assert (await workspace_of(engine).knowledge_bases.stats()).model == "old@1"


async def test_a_kb_that_somebody_moved_back_by_hand_stays_there(data_dir: Path, models: dict[str, Changing]) -> None:
    async with open_engine(settings_of(data_dir, RefreshSettings(when=("model",)), "new")) as engine:
        await workspace_of(engine).documents.ingest_items(items(*NAMES))
        await workspace_of(engine).embeddings.reembed("old", force=True)
        await look(engine)
        assert await refreshes(engine) == []
        assert (await workspace_of(engine).knowledge_bases.stats()).model == "old@1"


async def test_a_model_that_had_its_turn_does_not_stand_in_the_way_of_the_schedule(
    data_dir: Path, models: dict[str, Changing], later: None
) -> None:
    both = RefreshSettings(every="monthly", when=("model",))
    async with open_engine(settings_of(data_dir, both)) as engine:
        await workspace_of(engine).documents.ingest_items(items("amber"))
    async with open_engine(settings_of(data_dir, both, "new")) as engine:
        models["new"].errors = [ModelError("no such weights")]
        await look(engine)
        assert [job.state for job in await refreshes(engine)][-1] == "failed"
        await look(engine)
        assert [job.external_id.split()[0] for job in await refreshes(engine)] == ["schedule", "model"]


async def test_a_model_that_is_not_here_ends_the_job_and_not_the_worker(
    data_dir: Path, models: dict[str, Changing], later: None
) -> None:
    async with open_engine(settings_of(data_dir, MONTHLY)) as engine:
        await workspace_of(engine).documents.ingest_items(items("amber"))
        models["old"].errors = [ModelUnavailable("old is not installed", hint="install it")]
        await look(engine)
        (job,) = await refreshes(engine)
        assert (job.state, job.error_code, job.error) == ("failed", "model_failed", "old is not installed")


@pytest.mark.req("R-EMB-25")
async def test_changed_content_is_embedded_anew(data_dir: Path, models: dict[str, Changing]) -> None:
    async with open_engine(settings_of(data_dir, RefreshSettings())) as engine:
        await workspace_of(engine).documents.ingest_items(items("amber", "birch"))
        models["old"].documents()
        changed = Item("test", "amber", "test/amber", "Amber is resin that has turned to stone.")
        assert (await workspace_of(engine).documents.ingest_items([changed])).updated == 1
        assert models["old"].documents() == 1
        best = (
            await workspace_of(engine).search(SearchQuery("resin that has turned to stone", k=1, arms="dense"))
        ).hits[0]
        assert best.text == changed.content


async def find_too_little(engine: Engine, times: int) -> None:
    """What people want is there, and no search of theirs brings it."""
    await workspace_of(engine).documents.ingest_items(items(*NAMES))
    wanted = (await workspace_of(engine).search(SearchQuery("heath", k=1))).hits[0]
    for _ in range(times):
        assert (await workspace_of(engine).search(SearchQuery("the amber page", k=1))).hits[
            0
        ].document_id != wanted.document_id
    await workspace_of(engine).feedback.vote("the amber page", [wanted.chunk_id], "up")


@pytest.mark.req("R-EMB-25")
async def test_low_quality_starts_a_refresh_where_that_is_wanted(
    data_dir: Path, models: dict[str, Changing], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_quality = RefreshSettings(when=("quality",))
    async with open_engine(settings_of(data_dir, on_quality)) as engine:
        await find_too_little(engine, 20)
        await look(engine)
        (job,) = await refreshes(engine)
        said = job.progress.remarks[0]
        assert said.startswith(
            "recall@10 is 0.00 (wanted > 0.8, alarming at 0.6) on 20 judged searches; 0 missing vectors"
        )
    for days, times in ((0, 1), (6, 1), (8, 2)):
        monkeypatch.setattr(
            "ragstone.engine.embeddings.triggers.now", lambda days=days: clock.now() + timedelta(days=days)
        )
        async with open_engine(settings_of(data_dir, on_quality)) as engine:
            await look(engine)
            assert len(await refreshes(engine)) == times, "once a week is enough"


@pytest.mark.req("R-EMB-25")
async def test_low_quality_is_told_once_where_nothing_else_is_wanted(
    data_dir: Path, models: dict[str, Changing]
) -> None:
    for _ in range(2):
        async with open_engine(settings_of(data_dir, RefreshSettings())) as engine:
            if not await workspace_of(engine).knowledge_bases.list():
                await find_too_little(engine, 20)
            await look(engine)
            assert await refreshes(engine) == []
            (notice,) = await workspace_of(engine).jobs.notices()
    assert (notice.kind, notice.uri, notice.job_id) == ("warning", "quality:default", "")
    assert "recall@10 is 0.00" in notice.message
    assert notice.message.endswith(advise("", Remedy(Action.IMPROVE_SEARCH, kb="default")))
    async with open_engine(settings_of(data_dir, RefreshSettings())) as engine:
        await workspace_of(engine).knowledge_bases.delete("default")
        assert await workspace_of(engine).jobs.notices() == []


async def test_few_judged_searches_say_nothing(data_dir: Path, models: dict[str, Changing]) -> None:
    async with open_engine(settings_of(data_dir, RefreshSettings(when=("quality",)))) as engine:
        await find_too_little(engine, 19)
        await look(engine)
        assert await refreshes(engine) == []
        assert await workspace_of(engine).jobs.notices() == []


async def test_a_scheduled_refresh_reads_the_sources_from_their_beginning(
    data_dir: Path, tmp_path: Path, models: dict[str, Changing], later: None
) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "amber.md").write_text("# Amber\n\nAmber floats.\n")
    async with open_engine(settings_of(data_dir, MONTHLY)) as engine:
        await workspace_of(engine).sources.add("files", "pages", {"path": str(folder)})
        await workspace_of(engine).sources.sync("pages")
        await engine.worker().run(until_idle=True)
        (folder / "amber.md").write_text("# Amber\n\nAmber burns.\n")
        await look(engine)
        assert "1 sources are read from their beginning" in (await refreshes(engine))[0].progress.remarks[0]
        assert "burns" in (await workspace_of(engine).search(SearchQuery("amber", k=1))).hits[0].text


async def test_another_tenants_kbs_are_left_alone(data_dir: Path, models: dict[str, Changing], later: None) -> None:
    async with open_engine(settings_of(data_dir, MONTHLY)) as engine:
        await workspace_of(engine).documents.ingest_items(items("amber"))
        await engine.workspace("acme").documents.ingest_items(items("amber"))
        await engine._components.triggers.start_due("default")
        await engine.worker(only="default").run(until_idle=True)
        assert [job.state for job in await refreshes(engine)] == ["completed"]
        assert await engine.workspace("acme").jobs.list() == []
        assert (await engine.workspace("acme").embeddings.status()).last is None


async def test_the_status_says_when_it_was_and_will_be(
    data_dir: Path, models: dict[str, Changing], later: None
) -> None:
    async with open_engine(settings_of(data_dir, MONTHLY)) as engine:
        await workspace_of(engine).documents.ingest_items(items("amber"))
        status = await workspace_of(engine).embeddings.status()
        assert status.last is None
        assert status.next_at is not None
        assert (status.next_at.day, status.next_at.hour) == (1, 0)
        assert isinstance(status.next_at, datetime)
        await look(engine)
        after = await workspace_of(engine).embeddings.status()
        assert after.last is not None
        assert after.last.state == "completed"


async def test_a_schedule_that_cannot_be_read_is_said_before_anything_is_done(
    data_dir: Path, models: dict[str, Changing]
) -> None:
    async with open_engine(settings_of(data_dir, RefreshSettings(every="mensual"))) as engine:
        with pytest.raises(SettingsError, match=r"setting 'embedding\.refresh\.every'.*mensual"):
            engine.worker()


@pytest.mark.req("R-EMB-25", "R-EMB-26")
def test_the_profile_that_asks_for_it_has_it_on() -> None:
    from ragstone.settings.load import load_settings

    refresh = load_settings(overrides={"profile": "ghostwriter"}, environment={}).embedding.refresh
    assert (refresh.every, refresh.when) == ("monthly", ("model", "quality"))
    assert Settings().embedding.refresh == RefreshSettings(every="manual", when=())
