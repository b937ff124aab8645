"""A tenant whose ledger is lost can be deleted, as the error about it advises; the receipt says what is not known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ragstone import Engine, Item, Settings, open_engine
from ragstone.core.errors import StoreCorrupt
from ragstone.testing.fakes import FakeEmbedder

DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": lambda file: file.unlink(),
    "empty": lambda file: file.write_bytes(b""),
    "overwritten": lambda file: file.write_bytes(b"\x07" * file.stat().st_size),
    "overwritten behind its head": lambda file: file.write_bytes(
        file.read_bytes()[:4096] + b"\x07" * (file.stat().st_size - 4096)
    ),
}


async def make_tenants(data_dir: Path) -> Path:
    """Make two tenants and return the folder of the first."""
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        for tenant in ("acme", "kept"):
            documents = engine.workspace(tenant).documents
            await documents.ingest_items([Item("test", "ferry", "ferry", "All about the ferry.")])
            await documents.upload(b"The harbour opens at nine.", "harbour.md")
        acme = await engine.tenants.get("acme")
        assert acme is not None
        return data_dir / "tenants" / acme.id


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
async def test_a_tenant_that_cannot_be_read_is_erased(
    data_dir: Path, fake_model: FakeEmbedder, damage: Callable[[Path], object]
) -> None:
    folder = await make_tenants(data_dir)
    damage(folder / "ledger.db")
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        with pytest.raises(StoreCorrupt) as lost:
            await search(engine, "acme")
        assert "or delete the tenant" in lost.value.hint
        receipt = await engine.erase_tenant("acme")
        assert [tenant.name for tenant in await engine.tenants.all()] == ["kept"]
        assert await search(engine, "kept") == 1
    assert (receipt.complete, receipt.removed["files"]["files"] > 0) == (False, True)
    assert sum(sum(counts.values()) for counts in receipt.remaining.values()) == 0
    (said,) = receipt.unfinished
    assert said.endswith(f"a vector database may still hold vectors of tenant {folder.name} ('acme')")
    assert not folder.exists()
    assert not (data_dir / "documents" / folder.name).exists()


async def search(engine: Engine, tenant: str) -> int:
    return len((await engine.workspace(tenant).search("ferry harbour")).hits)
