"""Runs of articles go with their tenant: into archives and out of them, to another ledger, and away."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_article_runs import ARTICLE
from tests.unit.moves.sites import Site, contents, site, stock
from tests.unit.moves.test_hostile_archives import members_of, signed, write
from tests.unit.moves.test_shop_moves import files_with

from ragstone.core.agents.articles import ArticleRun
from ragstone.core.clock import now
from ragstone.core.errors import InputError
from ragstone.settings.tree import Adapter
from ragstone.stores.activity.article_runs import ArticleRunRepository

TOPIC = "The gate of Ada Brook"
CHECKPOINT = {"checkpoint": {"id": "1", "channel_values": {"draft": "It opens.", "claims": [{"start": 0}]}}}


def runs_of(one: Site, tenant: str = "default") -> ArticleRunRepository:
    return ArticleRunRepository(one.stores.ledger, tenant)


async def write_runs(one: Site, tenant: str = "default") -> tuple[str, str]:
    """Leave a tenant a run that is complete and one that is not."""
    await stock(one, 2, tenant=tenant)
    runs, oldest = runs_of(one, tenant), now() - timedelta(days=1)
    done, open_ = [await runs.add("default", "full", TOPIC, oldest) for _ in range(2)]
    await runs.finish(done, await runs.take(done), ARTICLE)
    await runs.save(open_, await runs.take(open_), CHECKPOINT)
    return done, open_


async def read_runs(one: Site, *ids: str) -> list[tuple[ArticleRun | None, Any]]:
    return [(await runs_of(one).get(run_id), await runs_of(one).checkpoint(run_id)) for run_id in ids]


async def test_an_archive_brings_the_runs_back(tmp_path: Path) -> None:
    async with site(tmp_path / "a") as here, site(tmp_path / "b") as there:
        ids = await write_runs(here)
        await here.mover.export_archive(tmp_path / "x.zip")
        report = await there.mover.import_archive(tmp_path / "x.zip")
        assert "2 article runs were taken in, and 0 left as they are here" in report.remarks
        assert await read_runs(there, *ids) == await read_runs(here, *ids)
        assert (await read_runs(there, ids[1]))[0][1] == CHECKPOINT
        again = await there.mover.import_archive(tmp_path / "x.zip")
        assert "0 article runs were taken in, and 2 left as they are here" in again.remarks
        await there.mover.export_archive(tmp_path / "y.zip")
        assert contents(tmp_path / "x.zip") == contents(tmp_path / "y.zip")


async def test_a_move_to_another_ledger_takes_the_runs_along(tmp_path: Path) -> None:
    async with site(tmp_path / "a") as here:
        ids = await write_runs(here)
        for _ in range(2):
            assert (await here.mover.migrate(Adapter(kind="sqlite", path=tmp_path / "b"))).is_equal
        async with site(tmp_path / "b") as there:
            assert await read_runs(there, *ids) == await read_runs(here, *ids)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"id": "x"}, "'id'"),
    ({"kb": "../x"}, "not a valid name"),
    ({"status": "running"}, "has an article"),
    ({"article": None}, "has no article"),
    ({"article": {"topic": 1}}, "cannot be read: topic"),
    ({"checkpoint": [1]}, "not a JSON object"),
]


async def test_a_wrong_run_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    async with site(tmp_path / "a") as here, site(tmp_path / "b") as there:
        done, _ = await write_runs(here)
        await here.mover.export_archive(tmp_path / "x.zip")
        members = members_of(tmp_path / "x.zip")
        name = "articles/article_runs-000000.jsonl"
        lines = [json.loads(line) for line in members[name].splitlines()]
        (whole,) = [line for line in lines if line["id"] == done]
        for change, said in WRONG:
            members[name] = json.dumps({**whole, **change}).encode() + b"\n"
            hostile = write(tmp_path / "hostile.zip", signed(members))
            with pytest.raises(InputError, match=said):
                await there.mover.import_archive(hostile)
        assert await there.stores.tenants.get("default") is None


async def test_a_tenant_that_is_deleted_leaves_no_run(tmp_path: Path) -> None:
    async with site(tmp_path / "a") as here:
        await write_runs(here, "acme")
        tenant = await here.stores.tenants.get("acme")
        assert tenant is not None
        assert files_with(tmp_path, TOPIC.encode())
        await here.stores.tenants.delete("acme")
        assert set((await here.stores.ledger.remains(tenant.id)).values()) == {0}
        assert not files_with(tmp_path, TOPIC.encode())
