"""What becomes of the earlier members of an archive when some of the newer one cannot be read."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.ingest.kit import Kit
from tests.unit.ingest.test_stages import mail
from tests.unit.ingest.test_worker import T, worker

from ragstone.core.errors import ParserLimit, RagstoneError, RemoteError
from ragstone.core.ids import document_id
from ragstone.core.jobs import Priority
from ragstone.core.types import Item
from ragstone.ingest.extract import extract
from ragstone.ingest.jobs.sync import new_jobs
from ragstone.ingest.work import JobBatch, WorkItem
from ragstone.settings.tree import JobSettings
from ragstone.stores.ledger.queue import SqlQueue
from ragstone.testing.fakes import FakeEmbedder


def packed(members: Mapping[str, str | bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


async def take_in(kit: Kit, content: bytes, ends: str = "completed", uri: str = "all.zip") -> list[str]:
    """Work on an archive whose job ends as expected, and return the names of its live members."""
    identity = document_id(T, "default", "test", "all")
    work = WorkItem(Item("test", "all", uri, content), JobBatch(), document_id=identity)
    (job,) = await new_jobs(kit.ledger, T, [work], Priority.UPLOAD)
    async with kit.ledger.transaction(T) as tx:
        queued = await tx.enqueue(await tx.open_kb("default"), job)
    return await end(kit, queued.id, ends)


async def end(kit: Kit, job_id: str, ends: str = "completed") -> list[str]:
    """Work on a job that is tried once and ends as expected, and return the names of live members."""
    await worker(kit, FakeEmbedder(), JobSettings(attempts=1)).run(until_idle=True)
    ended = await SqlQueue(kit.ledger).of(T).job(job_id)
    assert ended is not None
    assert (ended.state, ended.error) == (ends.partition(": ")[0], ends.partition(": ")[2])
    return [name.removeprefix("all!/") for name in await kit.names()]


async def retry(kit: Kit) -> list[str]:
    """Try the last job again, and return the names of live members."""
    (job, *_) = await SqlQueue(kit.ledger).of(T).jobs()
    assert await SqlQueue(kit.ledger).of(T).retry(job.id)
    return await end(kit, job.id)


def refuse(patch: pytest.MonkeyPatch, name: str, error: RagstoneError) -> None:
    """Have files fail whose names contain this."""

    async def busy(item: Item, *arguments: Any) -> Any:
        if name in item.uri:
            raise error
        return await extract(item, *arguments)

    patch.setattr("ragstone.ingest.prepare.extract", busy)


async def test_a_member_that_fails_once_keeps_its_earlier_text(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    await take_in(kit, packed({"ferry.txt": "The ferry.", "bridge.txt": "The bridge.", "pier.txt": "The pier."}))

    refuse(monkeypatch, "bridge", ParserLimit("it took too long"))
    left = await take_in(kit, packed({"ferry.txt": "A newer ferry.", "bridge.txt": "A newer bridge."}))
    assert left == ["bridge.txt", "ferry.txt"]
    assert await kit.by_word("newer") == {"all!/ferry.txt"}
    assert await kit.by_word("bridge") == {"all!/bridge.txt"}


async def test_a_member_that_fails_for_a_reason_that_passes_is_tried_again(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    await take_in(kit, packed({"pier.txt": "The pier."}))
    whole = packed({"bridge.txt": "The bridge.", "ferry.txt": "The ferry.", "zoo.txt": ""})
    with monkeypatch.context() as outage:
        refuse(outage, "bridge", RemoteError("the service is away"))
        assert await take_in(kit, whole, "failed: the service is away") == ["ferry.txt"]
    assert await retry(kit) == ["bridge.txt", "ferry.txt"]


async def test_an_attachment_that_fails_for_a_reason_that_passes_is_tried_again(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = mail(("bridge.txt", "The bridge."), ("ferry.txt", "The ferry.")).content
    assert isinstance(content, bytes)
    with monkeypatch.context() as outage:
        refuse(outage, "bridge", RemoteError("the service is away"))
        taken = await take_in(kit, content, "failed: the service is away", "all.eml")
        assert taken == ["all", "all#2:ferry.txt"]
    assert await retry(kit) == ["all", "all#1:bridge.txt", "all#2:ferry.txt"]


async def test_what_is_in_a_part_of_an_archive_that_cannot_be_read_stays(kit: Kit) -> None:
    inner = packed({"page.txt": "A page.", "leaf.txt": "A leaf."})
    mail = b"From - Mon Jan  5 10:00:00 2026\nMessage-ID: <1@example.org>\nSubject: One\n\nA letter.\n\n"
    members: dict[str, str | bytes] = {
        "ferry.txt": "The ferry.",
        "pier.txt": "The pier.",
        "in.zip": inner,
        "box.mbox": mail,
    }
    await take_in(kit, packed({**members, "log.txt": "A log."}))
    whole = packed({"ferry.txt": "A newer ferry.", "log.txt": "A newer log.", "in.zip": inner[:-30], "box.mbox": b"-"})
    damaged = whole.replace(b"A newer log.", b"A newer dog.")  # so that its checksum is wrong
    stay = ["box.mbox!/1@example.org", "ferry.txt", "in.zip!/leaf.txt", "in.zip!/page.txt", "log.txt"]
    assert await take_in(kit, damaged) == stay
    assert await take_in(kit, packed({"ferry.txt": "A newer ferry."})) == ["ferry.txt"]


@pytest.mark.parametrize(
    ("members", "ends"),
    [
        ({"photo.png": b"\x89PNG"}, "completed"),
        ({}, "failed: all.zip holds no documents; what it held before was removed"),
    ],
)
async def test_an_archive_that_holds_no_documents_any_more_loses_what_it_held(
    kit: Kit, members: Mapping[str, bytes], ends: str
) -> None:
    await take_in(kit, packed({"ferry.txt": "The ferry."}))
    assert await take_in(kit, packed(members), ends) == []


async def test_an_archive_that_cannot_be_opened_keeps_what_it_held(kit: Kit) -> None:
    whole = packed({"ferry.txt": "The ferry."})
    await take_in(kit, whole)
    error = "failed: all.zip is damaged: File is not a zip file"
    assert await take_in(kit, whole[:-10], error) == ["ferry.txt"]
