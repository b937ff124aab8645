"""What a mail brought ends with it, and finishes no other version of it; what does not fit is refused."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.unit.ingest.kit import Kit, Unlimited, item
from tests.unit.ingest.test_prepare import NoParts

from ragstone.core.errors import QuotaExceeded
from ragstone.core.ids import content_hash
from ragstone.core.types import Failure
from ragstone.ingest.room import reserve_room
from ragstone.ingest.stage_times import StageTimes
from ragstone.ingest.store import Outcomes
from ragstone.ingest.work import JobBatch, ParentDocument, RunReport, WorkItem


@pytest.mark.parametrize(("content", "finished"), [("The mail is here.", True), ("It was another.", False)])
async def test_what_came_in_with_one_version_does_not_finish_the_next(
    data_dir: Path, content: str, finished: bool
) -> None:
    kit = Kit(data_dir)
    await kit.run([item("mail")])
    mail = await kit.document("mail")
    family = ParentDocument(mail.id, content_hash(content), "all of it", waiting=1)
    last = WorkItem(item("attachment"), JobBatch(), parent_id=mail.id, pending_parents=(family,))

    async def nobody(_group: JobBatch) -> None: ...

    await Outcomes(kit.ledger, "t", RunReport(), nobody).record_unchanged(last)
    assert (await kit.document("mail")).recipe == ("all of it" if finished else mail.recipe)
    await kit.ledger.close()


class FullUntilStored(Unlimited):
    """Has room for one wave at a time, and counts the one before until it has given its room back."""

    def __init__(self, before: asyncio.Task[None]) -> None:
        self._before = before

    async def is_limited(self, tenant: str) -> bool:
        return True

    def taking_in(self, tenant: str, **_amounts: Any) -> AbstractAsyncContextManager[None]:
        if not self._before.done():
            raise QuotaExceeded("it counts twice")
        return nullcontext()


async def test_nothing_is_refused_while_the_wave_before_may_count_twice(kit: Kit) -> None:
    refused: list[str] = []

    async def refuse(work: WorkItem, _failure: Failure) -> None:
        refused.append(work.item.uri)

    async def store_before() -> None:
        await asyncio.sleep(0)

    document = await kit.pipeline()._preparer.prepare(WorkItem(item("b"), JobBatch()), NoParts(), StageTimes())
    before = asyncio.create_task(store_before())
    async with reserve_room(FullUntilStored(before), kit.ledger, "t", [document], refuse, before) as fitting:
        assert (fitting, refused) == ([document], [])
