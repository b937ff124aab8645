"""What a mail brought ends with it, and finishes no other version of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.ingest.kit import Kit, item

from ragstone.core.ids import content_hash
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
