"""Runs of the article pipeline and their checkpoints, on every ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from tests.conformance import postgres_server

from ragstone.core.agents.articles import WrittenArticle
from ragstone.core.clock import now
from ragstone.core.errors import LeaseLost, NotFoundError, QuotaExceeded
from ragstone.core.jobs import NewJob, Priority
from ragstone.stores.activity import article_runs
from ragstone.stores.activity.article_runs import ArticleRunRepository, put_run, read_runs
from ragstone.stores.control.tenants import SqlTenantBook
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer

postgres_databases = postgres_server.postgres_databases
LEDGERS: dict[str, Callable[[Path], SqlLedger]] = {
    "sqlite": lambda folder: SqliteLedger(folder, [Fts5Writer()]),
    "postgres": lambda folder: PostgresLedger(postgres_server.server(18).database(folder), folder),
}
ARTICLE = WrittenArticle("Gates", "accepted", "# Gates\n", (), (), (), 1, (), (), ("a note",))


@pytest.fixture(params=LEDGERS)
async def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlLedger]:
    opened = LEDGERS[request.param](tmp_path)
    for name in ("acme", "globex"):
        await SqlTenantBook(opened).create(name)
        async with opened.transaction(name) as tx:
            await tx.open_kb("default")
    yield opened
    await opened.close()


@pytest.mark.req("R-ART-08")
async def test_a_run_keeps_its_last_checkpoint_and_what_it_came_to(ledger: SqlLedger) -> None:
    runs, others = ArticleRunRepository(ledger, "acme"), ArticleRunRepository(ledger, "globex")
    oldest = now() - timedelta(days=1)
    run_id = await runs.add("default", "full", "Gates \x00 ☃".replace("\x00", ""), oldest)
    token = await runs.take(run_id)
    assert await runs.checkpoint(run_id) is None
    for step in range(3):
        await runs.save(run_id, token, {"step": step, "text": "☃" * 1000})
    assert (await runs.checkpoint(run_id))["step"] == 2
    assert await others.get(run_id) is await others.checkpoint(run_id) is None
    with pytest.raises(LeaseLost):
        await others.take(run_id)
    await runs.finish(run_id, token, ARTICLE)
    found = await runs.get(run_id)
    assert found is not None
    assert (found.status, found.article) == ("completed", ARTICLE)
    (listed,) = await runs.list("default", 10)
    assert (listed.id, listed.article, listed.topic) == (run_id, None, "Gates  ☃")
    with pytest.raises(NotFoundError, match="no knowledge base 'nowhere'"):
        await runs.add("nowhere", "full", "Gates", oldest)
    await runs.add("default", "writer", "Later", now() + timedelta(days=1))
    assert [run.topic for run in await runs.list("default", 10)] == ["Later"]


async def test_whole_runs_are_carried_also_beside_another_tenant_that_has_them(ledger: SqlLedger) -> None:
    runs, others = ArticleRunRepository(ledger, "acme"), ArticleRunRepository(ledger, "globex")
    run_id = await runs.add("default", "full", "Gates", now() - timedelta(days=1))
    await runs.save(run_id, await runs.take(run_id), {"step": 1})
    (whole,) = await ledger.read("acme", read_runs, "", 10)
    assert (whole.id, whole.checkpoint, whole.article) == (run_id, {"step": 1}, None)
    assert await ledger.read("acme", read_runs, run_id, 10) == []
    await ledger.write("globex", put_run, whole)
    (copied,) = await others.list("default", 10)
    assert await others.checkpoint(copied.id) == {"step": 1}
    await ledger.write("acme", put_run, whole)
    (kept,) = await runs.list("default", 10)
    assert (kept.id, await runs.take(run_id)) == (run_id, 1)


async def queue(ledger: SqlLedger, run_id: str) -> str:
    """Queue a job that writes a run; return its id."""
    wanted = NewJob(
        kind="task",
        source="article",
        external_id=run_id,
        uri="article:default",
        priority=Priority.BATCH,
        document_id=run_id,
        size=0,
        facts={"run": run_id},
        notify=False,
    )
    async with ledger.transaction("acme") as tx:
        return (await tx.enqueue(await tx.open_kb("default"), wanted)).id


async def topics_of(runs: ArticleRunRepository) -> set[str]:
    return {run.topic for run in await runs.list("default", 10)}


async def test_runs_that_a_job_waits_for_are_kept_and_the_oldest_others_go(
    ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(article_runs, "MOST_RUNS", 3)
    monkeypatch.setattr(article_runs, "IDLE_AFTER", timedelta(0))
    runs, oldest = ArticleRunRepository(ledger, "acme"), now() - timedelta(days=1)
    await queue(ledger, await runs.add("default", "full", "waits", oldest))
    again = await runs.add("default", "full", "to be resumed", oldest)
    await runs.finish(again, await runs.take(again), None, "no model")
    await queue(ledger, again)
    await runs.add("default", "full", "killed", oldest)
    await runs.add("default", "full", "new", oldest)
    assert await topics_of(runs) == {"waits", "to be resumed", "new"}
    await runs.add("default", "full", "later", now() + timedelta(days=1))
    assert await topics_of(runs) == {"waits", "to be resumed", "later"}


async def test_where_all_runs_are_under_way_a_new_one_is_refused(
    ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(article_runs, "MOST_RUNS", 2)
    runs, oldest = ArticleRunRepository(ledger, "acme"), now() - timedelta(days=1)
    first = await runs.add("default", "full", "first", oldest)
    await queue(ledger, await runs.add("default", "full", "second", oldest))
    with pytest.raises(QuotaExceeded, match="2 articles are being written or wait already"):
        await runs.add("default", "full", "third", oldest)
    await runs.finish(first, await runs.take(first), ARTICLE)
    await runs.add("default", "full", "third", oldest)
    assert await topics_of(runs) == {"second", "third"}
