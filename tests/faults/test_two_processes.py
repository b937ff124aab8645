"""Two processes on one folder: no error, and what one has committed the other sees at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.faults import crash_writer
from tests.faults.crash_writer import open_ledger, vectors_of, word_of
from tests.warm import warm_python

from ragstone.core.ids import document_id
from ragstone.stores.indexes import IndexCache
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import SqliteLexicalIndex
from ragstone.stores.vectors.sqlite import SqliteVectorIndex

DOCUMENTS = 12


class Peer:
    """Another process that does what it is told and says when it is done."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def order(self, *orders: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{order}\n" for order in orders).encode())

    async def acknowledged(self) -> tuple[str, str]:
        """The next change that it has committed."""
        assert self.process.stdout is not None
        while True:
            line = (await self.process.stdout.readline()).decode()
            assert line, "the other process has ended"
            word, *rest = line.split()
            if word == "ok":
                return rest[0], rest[1]

    async def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        _, errors = await self.process.communicate()
        assert errors == b""
        assert self.process.returncode == 0


@pytest.fixture
async def peer(tmp_path: Path) -> AsyncIterator[Peer]:
    pipe = asyncio.subprocess.PIPE
    command = [*warm_python(), "-m", crash_writer.__name__, str(tmp_path), "obey"]
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    started = Peer(process)
    yield started
    await started.end()


class Reader:
    """This process's view of the folder, through both arms and by id."""

    def __init__(self, ledger: SqliteLedger) -> None:
        residents = IndexCache(64)
        self.ledger = ledger
        self.vectors = SqliteVectorIndex(ledger, residents)
        self.lexical = SqliteLexicalIndex(ledger, residents)

    async def sees(self, name: str) -> set[str]:
        """How the first chunk of a document is found."""
        kb = await self.ledger.of("default").kb("default")
        assert kb is not None
        ways = set()
        document = document_id("default", "default", "test", name)
        if await self.ledger.of("default").document(document):
            ways.add("id")
        by_word = await self.lexical.search("default", kb, word_of(name, 1, 0), 5)
        if await self.ledger.of("default").chunks(kb, [one.chunk_id for one in by_word]):
            ways.add("word")
        near = await self.vectors.search("default", kb, vectors_of(name, 1, 1)[0], 5)
        close = [one.chunk_id for one in near if one.score > 0.999]
        if await self.ledger.of("default").chunks(kb, close):
            ways.add("vector")
        assert len(by_word) <= 1
        return ways


async def test_each_sees_what_the_other_has_committed(peer: Peer, tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    reader = Reader(ledger)
    theirs = [f"theirs{n}" for n in range(DOCUMENTS)]
    mine = [f"mine{n}" for n in range(DOCUMENTS)]

    async def write() -> None:
        for name in mine:
            await crash_writer.put(ledger, name, 1)
            assert await reader.sees(name) == {"id", "word", "vector"}

    writing = asyncio.create_task(write())
    peer.order(*(f"put {name}" for name in theirs))
    for name in theirs:
        assert await peer.acknowledged() == ("put", name)
        assert await reader.sees(name) == {"id", "word", "vector"}
    await writing
    kb = await ledger.of("default").kb("default")
    assert kb is not None
    assert (await ledger.of("default").stats(kb)).documents == 2 * DOCUMENTS

    async def remove() -> None:
        for name in mine[::2]:
            await crash_writer.delete(ledger, name)
            assert await reader.sees(name) == set()

    removing = asyncio.create_task(remove())
    peer.order(*(f"delete {name}" for name in theirs))
    for name in theirs:
        assert await peer.acknowledged() == ("delete", name)
        assert await reader.sees(name) == set()
    await removing
    for name in mine[1::2]:
        assert await reader.sees(name) == {"id", "word", "vector"}
    await ledger.close()


async def test_both_may_write_the_same_document(peer: Peer, tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    reader = Reader(ledger)
    peer.order(*["put same"] * DOCUMENTS)
    for _ in range(DOCUMENTS):
        await crash_writer.put(ledger, "same", 1)
    for _ in range(DOCUMENTS):
        assert await peer.acknowledged() == ("put", "same")
    kb = await ledger.of("default").kb("default")
    assert kb is not None
    (document,) = await ledger.of("default").documents(kb)
    assert document.version == 2 * DOCUMENTS
    version = crash_writer.version_of("same", 1)
    chunks = await ledger.of("default").document_chunks(document.id)
    assert tuple(one.chunk for one in chunks) == version.chunks
    assert await reader.sees("same") == {"id", "word", "vector"}
    assert (await ledger.of("default").stats(kb)).chunks == len(version.chunks)
    await ledger.close()
