"""What a source gives is queued, and an item that cannot be queued keeps no other from it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from tests.unit.ingest.kit import Kit, item

from ragstone.core.types import Json, Page
from ragstone.ingest.jobs.sync import Sync
from ragstone.stores.ledger.sources import SqlSourceBook


class OnePage:
    """A source that gives these items once."""

    def __init__(self, page: Page) -> None:
        self._page = page

    async def fetch(self, cursor: Json) -> AsyncIterator[Page]:
        yield self._page

    async def close(self) -> None: ...


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
async def test_metadata_that_is_not_json_fails_its_own_item_alone(kit: Kit, number: float) -> None:
    async with kit.ledger.transaction("t") as tx:
        kb = await tx.open_kb("default")
    record = await SqlSourceBook(kit.ledger).of("t").add(kb, "test", "test", {}, "manual", None)
    bad = replace(item("bridge"), metadata={"score": number})
    sync = Sync(kit.ledger, kit.pipeline()._preparer, "t", kb, record)
    report = await sync.run(OnePage(Page((bad, item("ferry")))))
    assert report.queued == 1
    (failure,) = report.unread
    assert (failure.uri, failure.code, failure.external_id) == ("test/bridge", "invalid_input", "bridge")
    assert failure.error.startswith("the metadata of 'test/bridge' cannot be stored: ")
