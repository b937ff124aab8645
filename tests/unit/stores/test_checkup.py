"""A look at the stores finds what is wrong with them, and a repair puts exactly that right."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from tests.conformance import postgres_server
from tests.conformance.postgres_server import server

from ragstone.core.clock import canonical, now
from ragstone.core.errors import StoreBusy, StoreCorrupt
from ragstone.core.health import HealthFinding
from ragstone.core.remedies import Action, Remedy
from ragstone.core.vectors import Health, Point, VectorPartition
from ragstone.settings.tree import Adapter, Settings
from ragstone.stores import factory as opening
from ragstone.stores.factory import Stores, open_stores
from ragstone.stores.health.check import check_database, examine
from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.sql.database import Connection
from ragstone.stores.vectors.memory import MemoryProvider
from ragstone.testing.builders import delete, make_version, put, unit_vectors

postgres_databases = postgres_server.postgres_databases


class Engine(MemoryProvider):
    """A provider that is not known to forget."""

    name = "engine"

    def __init__(self, adapter: Adapter, folder: Path, isolation: str) -> None:
        super().__init__(Adapter(kind="memory"), folder, "collection")
        self.down = False

    async def health(self) -> Health:
        if self.down:
            raise StoreBusy("the engine is down", hint="start it")
        return Health("7.1")

    async def delete(self, place: VectorPartition, chunk_ids: Sequence[str]) -> None:
        if self.down:
            raise StoreBusy("the engine is down", hint="start it")
        await super().delete(place, chunk_ids)


@pytest.fixture
async def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stores]:
    """Stores whose vectors are elsewhere, with two documents in them."""
    monkeypatch.setattr(opening, "open_provider", lambda _, adapter: Engine(adapter, tmp_path, ""))
    opened = open_stores(Settings.model_validate({"data_dir": tmp_path, "store": {"vectors": "chroma"}}))
    versions = [make_version(f"d{n}", ["x", "y"], vectors=unit_vectors(2, seed=n)) for n in range(2)]
    await put(opened.ledger, *versions)
    yield opened
    await opened.close()


def engine_of(stores: Stores) -> Engine:
    assert stores.derived is not None
    provider = stores.derived.provider
    assert isinstance(provider, Engine)
    return provider


async def partition_of(stores: Stores) -> VectorPartition:
    tenant_id = await stores.ledger.read("default", lambda _, tenant_id: tenant_id)
    return VectorPartition(tenant_id, "s1", 32)


def troubles(findings: list[HealthFinding]) -> dict[tuple[str, str], str]:
    return {(one.store, one.what): one.detail for one in findings if one.state != "ok"}


def repaired(findings: list[HealthFinding]) -> set[str]:
    return {one.what for one in findings if one.repaired}


async def check_and_repair(stores: Stores, store: str, what: str, detail: str) -> None:
    """Exactly this is found, it stays as long as nobody repairs it, and is gone afterwards."""
    for _ in range(2):
        assert troubles(await examine(stores)) == {(store, what): detail}
    assert repaired(await examine(stores, repair=True)) == {what}
    assert troubles(await examine(stores)) == {}
    assert len(await stores.ledger.of("default").documents((await stores.ledger.of("default").kbs())[0])) == 2


async def test_stores_in_order(stores: Stores) -> None:
    findings = await examine(stores)
    assert troubles(findings) == {}
    assert [(one.store, one.what) for one in findings] == [
        ("sqlite", "reachable"),
        ("sqlite", "ledger"),
        ("sqlite", "deletions"),
        ("sqlite", "reservations"),
        ("sqlite", "leftovers"),
        ("sqlite", "originals"),
        ("sqlite", "encryption"),
        ("engine", "reachable"),
        ("engine", "content"),
        ("collections", "files"),
    ]
    assert findings[7].detail == "7.1"


async def test_nothing_is_made_by_looking(tmp_path: Path) -> None:
    stores = open_stores(Settings(data_dir=tmp_path / "none"))
    assert [one.detail for one in await examine(stores)] == ["nothing has been written yet"]
    await stores.close()
    assert not _has_anything(tmp_path)


async def test_an_engine_that_is_down(stores: Stores) -> None:
    engine_of(stores).down = True
    (found,) = [one for one in await examine(stores, repair=True) if one.state != "ok"]
    assert found == HealthFinding("engine", "reachable", "fail", "the engine is down", "start it")


async def test_orphans(stores: Stores) -> None:
    points = [Point(f"{n:032x}", unit_vectors(1, seed=n)[0], {}) for n in range(3)]
    await engine_of(stores).upsert(await partition_of(stores), points)
    detail = "tenant 'default': 3 vectors of chunks that are gone, in 'default'"
    await check_and_repair(stores, "engine", "orphans", detail)


async def test_missing_vectors(stores: Stores) -> None:
    place = await partition_of(stores)
    ids = [one async for page in engine_of(stores).ids(place) for one in page]
    await engine_of(stores).delete(place, ids[:3])
    detail = "tenant 'default': 3 live chunks of 'default' are not there"
    await check_and_repair(stores, "engine", "missing", detail)
    await engine_of(stores).delete(place, ids[:3])
    (broken,) = [one for one in await examine(stores) if one.state != "ok"]
    assert (broken.state, broken.remedy) == ("fail", Remedy(Action.REPAIR_STORES))
    (done,) = [one for one in await examine(stores, repair=True) if one.repaired]
    assert (done.state, done.repair) == ("ok", "wrote 3 vectors from the ledger")


async def test_an_index_that_is_behind(stores: Stores) -> None:
    await put(stores.ledger, make_version("gone", vectors=unit_vectors(1, seed=9)))
    engine_of(stores).down = True
    await delete(stores.ledger, make_version("gone").document_id)
    engine_of(stores).down = False
    found = troubles(await examine(stores))
    assert found == {
        ("engine", "lag"): "tenant 'default': 1 changes of knowledge base 'default' behind",
        ("engine", "orphans"): "tenant 'default': 1 vectors of chunks that are gone, in 'default'",
    }
    assert "lag" in repaired(await examine(stores, repair=True))
    assert troubles(await examine(stores)) == {}


async def test_a_kb_whose_vectors_are_still_there(stores: Stores) -> None:
    await put(stores.ledger, make_version("b", vectors=unit_vectors(1), kb="old"), kb="old")
    mirrors, stores.ledger.followers = stores.ledger.followers, ()
    async with stores.ledger.transaction("default") as tx:
        await tx.delete_kb("old")
    stores.ledger.followers = mirrors
    detail = "tenant 'default': a Space is gone, and its vectors are not"
    await check_and_repair(stores, "engine", "deletion", detail)


async def test_vectors_of_another_length(stores: Stores) -> None:
    engine = engine_of(stores)
    place = await partition_of(stores)
    await engine.drop(place)
    short = VectorPartition(place.tenant_id, place.space, 8)
    ids = await stores.ledger.read("default", _chunk_ids)
    await engine.upsert(short, [Point(one, unit_vectors(1, 8)[0], {}) for one in ids])
    detail = "tenant 'default': vectors of 8 dimensions where 32 are needed"
    (broken,) = [one for one in await examine(stores) if one.state != "ok"]
    assert (broken.state, broken.detail) == ("fail", detail)
    (done,) = [one for one in await examine(stores, repair=True) if one.repaired]
    assert done.repair == "filled again from the ledger, with 4 vectors"
    assert troubles(await examine(stores)) == {}


async def test_a_store_that_was_left(stores: Stores, tmp_path: Path) -> None:
    others = open_stores(Settings(data_dir=tmp_path))
    left = {("engine", "left"): "tenant 'default' has vectors in it, and it is not in use"}
    for given in ({}, {"repair": True}, {"forget": "engine"}, {"repair": True, "forget": "other"}):
        assert troubles(await examine(others, **given)) == left  # type: ignore[arg-type]
    findings = await examine(others, repair=True, forget="engine")
    assert [one.repair for one in findings if one.repaired] == ["forgotten: what it holds must be removed by hand"]
    assert troubles(await examine(others)) == {}
    await others.close()


async def test_a_tenant_that_is_still_being_deleted(stores: Stores) -> None:
    await put(stores.ledger, make_version("x", tenant="acme"), tenant="acme")
    await stores.ledger.control_write(
        lambda db: db.execute("UPDATE tenants SET state = 'deleting' WHERE name = 'acme'")
    )
    await check_and_repair(stores, "sqlite", "deletions", "tenant 'acme' is being deleted")
    assert [tenant.name for tenant in await stores.tenants.all()] == ["default"]


async def test_reservations_that_have_lapsed(stores: Stores) -> None:
    tenant_id = (await partition_of(stores)).tenant_id
    for name, hours in (("old", -1), ("young", 1)):
        moment = canonical(now() + timedelta(hours=hours))
        values = (name, "documents", tenant_id, 1.0, moment)
        await stores.ledger.control_write(
            lambda db, values=values: db.execute("INSERT INTO reservations VALUES (?, ?, ?, ?, ?)", values)
        )
    await check_and_repair(stores, "sqlite", "reservations", "1 of quotas have lapsed")
    left = await stores.ledger.control_read(lambda db: db.execute("SELECT id FROM reservations").fetchall(), [])
    assert left == [("young",)]


async def test_a_file_that_nobody_needs(stores: Stores, tmp_path: Path) -> None:
    (name,) = await stores.ledger.of("default").keep_originals([("a" * 32, b"left behind")])
    assert troubles(await examine(stores)) == {}  # it may be on its way in
    _make_old(tmp_path, name)
    detail = "tenant 'default': staged versions: 0, files that nobody needs: 1, parts of unfinished documents: 0"
    await check_and_repair(stores, "sqlite", "leftovers", detail)


async def test_versions_that_a_crash_left_staged(stores: Stores) -> None:
    async with stores.ledger.transaction("default") as tx:
        kb = await tx.open_kb("default")
        await tx.stage(kb, make_version("d0", ["new"]))
    old = canonical(now() - timedelta(hours=2))
    await stores.ledger.write(
        "default", lambda db, _: db.execute("UPDATE versions SET created_at = ? WHERE version = 2", (old,))
    )
    detail = "tenant 'default': staged versions: 1, files that nobody needs: 0, parts of unfinished documents: 0"
    await check_and_repair(stores, "sqlite", "leftovers", detail)


async def test_parts_of_documents_that_were_never_stored(stores: Stores) -> None:
    async with stores.ledger.transaction("default") as tx:
        await tx.save_part("a" * 32, "recipe", "pages:1", b"text")
    detail = "tenant 'default': staged versions: 0, files that nobody needs: 0, parts of unfinished documents: 1"
    await check_and_repair(stores, "sqlite", "leftovers", detail)


@pytest.mark.parametrize(
    ("damage", "what", "detail"),
    [
        ("ALTER TABLE ragstone.documents NO FORCE ROW LEVEL SECURITY", "row-level security", "documents"),
        ("DROP EXTENSION vector CASCADE", "extension", "vector is not installed"),
        ("ALTER ROLE app BYPASSRLS", "role", "app sees the rows of all tenants"),
    ],
)
async def test_a_database_that_is_not_safe(tmp_path: Path, damage: str, what: str, detail: str) -> None:
    one = server(18)
    ledger = PostgresLedger(one.database(tmp_path), tmp_path)
    try:
        await put(ledger, make_version("a"))
        before = await ledger.control_read(check_database, [])
        assert [(one.what, one.state) for one in before] == [
            ("reachable", "ok"),
            ("extension", "ok"),
            ("role", "ok"),
            ("row-level security", "ok"),
        ]
        with psycopg.connect(one.admin(one.name_of(tmp_path)), autocommit=True) as admin:
            admin.execute(damage)
        (found,) = [one for one in await ledger.control_read(check_database, []) if one.state != "ok"]
        assert (found.what, found.state) == (what, "fail")
        assert detail in found.detail
        assert found.repair
    finally:
        await ledger.close()
        with psycopg.connect(one.admin(), autocommit=True) as admin:
            admin.execute("ALTER ROLE app NOBYPASSRLS")


def _chunk_ids(connection: Connection, tenant_id: str) -> list[str]:
    rows = connection.execute("SELECT id FROM chunks WHERE tenant_id = ?", (tenant_id,)).fetchall()
    return [one for (one,) in rows]


def _has_anything(folder: Path) -> bool:
    return any(folder.iterdir())


def _make_old(folder: Path, name: str) -> None:
    (place,) = folder.rglob(name)
    os.utime(place, (time.time() - 7200,) * 2)


def remove(ledger: Path) -> None:
    ledger.unlink()


def empty(ledger: Path) -> None:
    ledger.write_bytes(b"")


def zero(ledger: Path) -> None:
    ledger.write_bytes(bytes(ledger.stat().st_size))


def damage_a_page(ledger: Path) -> None:
    content = bytearray(ledger.read_bytes())
    for page in range(4096, len(content), 4096):
        content[page : page + 512] = bytes(512)
    ledger.write_bytes(content)


@pytest.mark.parametrize("harm", [remove, empty, zero, damage_a_page])
async def test_a_lost_ledger_is_a_failure_and_never_made_again(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    before = open_stores(Settings(data_dir=tmp_path))
    await put(before.ledger, make_version("d1", ["x"]))
    await put(before.ledger, make_version("d1", ["x"]), tenant="acme")
    tenant = await before.tenants.get("default")
    assert tenant is not None
    await before.close()
    harm(tmp_path / "tenants" / tenant.id / "ledger.db")
    after = open_stores(Settings(data_dir=tmp_path))
    (finding,) = (finding for finding in await examine(after) if finding.state == "fail")
    assert (finding.what, "delete the tenant and ingest" in finding.advice) == ("ledger", True)
    with pytest.raises(StoreCorrupt):
        await after.ledger.of("default").kbs()
    with pytest.raises(StoreCorrupt):
        await put(after.ledger, make_version("d2", ["y"]))
    assert [kb.name for kb in await after.ledger.of("acme").kbs()] == ["default"]
    await after.tenants.delete("default")
    assert [tenant.name for tenant in await after.tenants.all()] == ["acme"]
    assert {finding.state for finding in await examine(after)} == {"ok"}
    await after.close()
