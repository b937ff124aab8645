"""What is in an archive or a mailbox stays while that cannot be read, and goes once it was read without it."""

from __future__ import annotations

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from ragstone import Engine, Settings, open_engine
from ragstone.ingest.sources.mail import mailboxes
from ragstone.ingest.sources.mail.mailboxes import MboxMessage
from ragstone.settings.tree import JobSettings
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

BROKEN = (
    "box.mbox!/1@example.org",
    "bad.mbox!/1@example.org",
    "bad.mbox!/2@example.org",
    "Sent!/1@example.org",
    "Sent!/2@example.org",
    "no.zip!/page.txt",
    "all.zip!/in/bad.mbox!/1@example.org",
    "all.zip!/in/bad.zip!/page.txt",
    "all.zip!/in/deep.zip!/one.zip",
    "all.zip!/in/deep.zip!/page.txt",
)
GOOD = ("good.mbox!/1@example.org", "good.zip!/in.zip!/page.txt")
GONE = ("gone.txt", "gone.mbox!/1@example.org", "good.mbox!/2@example.org", "good.zip!/in.zip!/gone.txt")


def mailbox(place: str, *numbers: int) -> bytes:
    return b"".join(
        (
            f"From - Mon Jan  5 10:00:00 2026\nFrom: a@example.org\nDate: Mon, 5 Jan 2026 10:00:00 +0000\n"
            f"Message-ID: <{number}@example.org>\nSubject: Letter {number}\n\nThe letter {number} of {place}.\n\n"
        ).encode()
        for number in numbers
    )


def packed(**members: str | bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "gone.txt").write_text("This file is gone.")
    (folder / "gone.mbox").write_bytes(mailbox("a box that is gone", 1))
    (folder / "box.mbox").write_bytes(mailbox("a box that breaks off", 1))
    (folder / "bad.mbox").write_bytes(mailbox("a box that is overwritten", 1, 2))
    (folder / "Sent").write_bytes(mailbox("a box without a suffix", 1, 2))
    (folder / "good.mbox").write_bytes(mailbox("a good box", 1, 2))
    (folder / "no.zip").write_bytes(packed(**{"page.txt": "In an archive."}))
    pages = {"page.txt": "In a good archive.", "gone.txt": "In a good archive, and gone."}
    (folder / "good.zip").write_bytes(packed(**{"in.zip": packed(**pages)}))
    write_nested(
        folder,
        {
            "in/bad.mbox": mailbox("a box in an archive", 1),
            "in/bad.zip": packed(**{"page.txt": "In an archive in an archive."}),
            "in/deep.zip": packed(**{"page.txt": "In another archive.", "one.zip": "One page."}),
        },
    )
    return folder


def write_nested(folder: Path, members: dict[str, bytes]) -> None:
    (folder / "all.zip").write_bytes(packed(**members))


def break_containers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Damage all of BROKEN and take away all of GONE."""
    (folder / "gone.txt").unlink()
    (folder / "gone.mbox").unlink()
    (folder / "good.mbox").write_bytes(mailbox("a good box", 1))
    (folder / "good.zip").write_bytes(packed(**{"in.zip": packed(**{"page.txt": "In a good archive."})}))
    (folder / "bad.mbox").write_bytes(b"just words\n")
    (folder / "no.zip").write_bytes(b"\x01 no archive")
    cut = packed(**{"page.txt": "In another archive.", "one.zip": "One page."})[:-30]
    write_nested(folder, {"in/bad.mbox": b"just words\n", "in/bad.zip": b"\x01 no archive", "in/deep.zip": cut})
    read = mailboxes.read_mbox

    def break_off(file: BinaryIO, max_bytes: int, start: int = 0) -> Iterator[MboxMessage]:
        for message in read(file, max_bytes, start):
            if b" breaks off." in (message.content or b"") or b" without a suffix." in (message.content or b""):
                raise OSError(5, "Input/output error")
            yield message

    monkeypatch.setattr(mailboxes, "read_mbox", break_off)


@pytest.fixture
async def engine(data_dir: Path, fake_model: FakeEmbedder) -> AsyncIterator[Engine]:
    async with open_engine(Settings(data_dir=data_dir, jobs=JobSettings(retry_seconds=0))) as opened:
        yield opened


async def read_folder(engine: Engine, folder: Path, way: str) -> None:
    mine = workspace_of(engine)
    if way == "ingest":
        await mine.documents.ingest(folder)
        return
    if way == "queue":
        await mine.documents.queue(folder)
    else:
        if not await mine.sources.list():
            await mine.sources.add("files", "docs", {"path": str(folder)})
        await mine.sources.sync("docs")
    await asyncio.wait_for(engine.worker().run(until_idle=True), 240)


async def names(engine: Engine, folder: Path) -> set[str]:
    """Return which documents are live, by their paths under the folder."""
    documents = await workspace_of(engine).documents.list()
    return {document.external_id.removeprefix(f"{folder.as_posix()}/") for document in documents if document.version}


@pytest.mark.parametrize("way", ["ingest", "queue", "source"])
async def test_what_is_in_a_container_goes_only_if_the_container_was_read_without_it(
    engine: Engine, folder: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await read_folder(engine, folder, way)
    assert await names(engine, folder) == {*BROKEN, *GOOD, *GONE}
    break_containers(folder, monkeypatch)
    if way == "ingest":
        assert (await workspace_of(engine).documents.dry_run(folder)).removed == len(GONE)
    await read_folder(engine, folder, way)
    assert await names(engine, folder) == {*BROKEN, *GOOD}
