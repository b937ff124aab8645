"""`ragstone doctor` looks at the stores, and `--repair` puts right what is wrong there."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.serve.cli.conftest import Cli

from ragstone.settings.load import load_settings
from ragstone.stores.factory import open_stores
from ragstone.stores.vectors.partitions import partition_of


def findings(told: Any) -> dict[tuple[str, str], str]:
    return {(one["store"], one["what"]): one["state"] for one in told["stores"]}


def test_stores_in_order(filled: Cli) -> None:
    ran = filled("doctor", "--json")
    assert (ran.code, ran.json["ok"]) == (0, True)
    assert findings(ran.json) == {
        ("sqlite", "reachable"): "ok",
        ("sqlite", "ledger"): "ok",
        ("sqlite", "deletions"): "ok",
        ("sqlite", "reservations"): "ok",
        ("sqlite", "leftovers"): "ok",
        ("sqlite", "originals"): "ok",
        ("sqlite", "encryption"): "ok",
        ("collections", "files"): "ok",
    }
    assert {check["name"] for check in ran.json["checks"]} >= {"python", "model"}


def test_without_data_nothing_is_made(cli: Cli, tmp_path: Path) -> None:
    ran = cli("doctor", "--repair", "--json")
    assert (ran.code, findings(ran.json)) == (0, {("ledger", "reachable"): "ok"})
    assert not (tmp_path / "ragstone-data").exists()


def test_a_file_that_nobody_needs_is_found_and_removed(filled: Cli, tmp_path: Path) -> None:
    (tenant,) = (tmp_path / "ragstone-data" / "tenants").iterdir()
    stray = tmp_path / "ragstone-data" / "documents" / tenant.name / ("a" * 32) / ("b" * 32)
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"left behind")
    os.utime(stray, (time.time() - 7200,) * 2)
    found = filled("doctor")
    assert found.code == 0  # a remark, not a failure
    lines = [line.split() for line in found.out.splitlines()]
    assert ["warn", "sqlite", "leftovers"] in [line[:3] for line in lines]
    assert ["ragstone", "doctor", "--repair"] in lines
    (repaired,) = [one for one in filled("doctor", "--repair", "--json").json["stores"] if one["repaired"]]
    assert (repaired["what"], repaired["state"], repaired["repair"]) == ("leftovers", "ok", "removed")
    assert not stray.exists()
    assert len(filled("documents", "--json").json["documents"]) == 3


def test_a_ledger_that_cannot_be_read_fails(filled: Cli, tmp_path: Path) -> None:
    (tmp_path / "ragstone-data" / "control.db").write_bytes(b"this is no database at all" * 100)
    ran = filled("doctor", "--json")
    assert (ran.code, ran.json["ok"]) == (1, False)
    assert findings(ran.json)["ledger", "reachable"] == "fail"


def test_vectors_that_are_gone_are_a_failure_until_they_are_written_again(
    cli: Cli, pages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGSTONE_STORE__VECTORS", "chroma")
    assert cli("ingest", pages).code == 0
    asyncio.run(lose_a_vector())
    broken = cli("doctor", "--json")
    assert (broken.code, broken.json["ok"]) == (1, False)
    assert findings(broken.json)["chroma", "missing"] == "fail"
    mended = cli("doctor", "--repair", "--json")
    (done,) = [one for one in mended.json["stores"] if one["repaired"]]
    assert (mended.code, done["repair"]) == (0, "wrote 1 vectors from the ledger")
    assert cli("doctor").code == 0


async def lose_a_vector() -> None:
    """What a vector database forgets, as after a restored backup."""
    stores = open_stores(load_settings())
    assert stores.derived is not None
    provider = stores.derived.provider
    tenant_id = await stores.ledger.read("default", lambda _, tenant_id: tenant_id)
    (kb,) = await stores.ledger.of("default").kbs()
    assert kb.space is not None
    place = partition_of(tenant_id, kb.space)
    ids = [one async for page in provider.ids(place) for one in page]
    await provider.delete(place, ids[:1])
    await stores.close()


def test_a_store_that_cannot_be_opened_fails(filled: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGSTONE_STORE__VECTORS", '{"kind": "memory", "url": "http://127.0.0.1:1"}')
    ran = filled("doctor", "--json")
    (found,) = ran.json["stores"]
    assert (ran.code, found["state"]) == (1, "fail")
    assert "takes no address" in found["detail"]


def test_a_tenant_whose_deletion_was_cut_short_is_finished(filled: Cli, tmp_path: Path) -> None:
    filled("tenants", "create", "acme")
    with closing(sqlite3.connect(tmp_path / "ragstone-data" / "control.db")) as database:
        database.execute("UPDATE tenants SET state = 'deleting' WHERE name = 'acme'")
        database.commit()
    assert findings(filled("doctor", "--json").json)["sqlite", "deletions"] == "warn"
    assert filled("doctor", "--repair").code == 0
    assert [one["name"] for one in filled("tenants", "--json").json["tenants"]] == ["default"]
