"""kill -9 at a random moment: what was acknowledged is there, what was not is whole or absent.

`RAGSTONE_KILL_ROUNDS=200 pytest tests/faults/test_kill.py -s` is the long run; 100 rounds share one folder.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.faults.crash_writer import open_ledger, vectors_of, version_of, word_of
from tests.warm import warm_python

from ragstone.core.ids import document_id
from ragstone.core.types import KnowledgeBase
from ragstone.stores.indexes import IndexCache
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import SqliteLexicalIndex
from ragstone.stores.vectors.sqlite import SqliteVectorIndex

ROUNDS = int(os.environ.get("RAGSTONE_KILL_ROUNDS", "8"))
SAMPLE = 20
"""How many of the documents that a round did not touch are searched for again after it."""
OF_ONE_FOLDER = 100
"""Rounds after which a new folder begins: every round reads all that the folder has."""
LIVE = "FROM chunks c JOIN documents d ON d.id = c.document_id AND d.version = c.version"
CONTRADICTIONS = {
    "a live document lacks chunks, or has too many": (
        "SELECT d.id FROM documents d WHERE d.version > 0 AND d.chunk_count <> "
        "(SELECT count(*) FROM chunks c WHERE c.document_id = d.id AND c.version = d.version)"
    ),
    "a live document has no text": (
        "SELECT d.id FROM documents d LEFT JOIN versions v ON v.document_id = d.id AND v.version = d.version "
        "WHERE d.version > 0 AND v.version IS NULL"
    ),
    "a version older than the live one is left": (
        "SELECT v.document_id FROM versions v JOIN documents d ON d.id = v.document_id WHERE v.version < d.version "
        "UNION SELECT c.id FROM chunks c JOIN documents d ON d.id = c.document_id WHERE c.version < d.version"
    ),
    "a chunk has no document": (
        "SELECT c.id FROM chunks c LEFT JOIN documents d ON d.id = c.document_id WHERE d.id IS NULL"
    ),
    "a chunk has no vector": (
        "SELECT c.id FROM chunks c LEFT JOIN vectors v ON v.chunk_seq = c.seq WHERE v.chunk_seq IS NULL"
    ),
    "a chunk has no terms": (
        "SELECT c.id FROM chunks c LEFT JOIN terms t ON t.chunk_seq = c.seq WHERE t.chunk_seq IS NULL"
    ),
    "a vector has no chunk": (
        "SELECT v.chunk_seq FROM vectors v LEFT JOIN chunks c ON c.seq = v.chunk_seq WHERE c.seq IS NULL"
    ),
    "terms have no chunk": (
        "SELECT t.chunk_seq FROM terms t LEFT JOIN chunks c ON c.seq = t.chunk_seq WHERE c.seq IS NULL"
    ),
    "a live chunk is not in FTS5": f"SELECT c.seq {LIVE} EXCEPT SELECT id FROM lexical_1_docsize",
    "FTS5 holds a chunk that is not live": f"SELECT id FROM lexical_1_docsize EXCEPT SELECT c.seq {LIVE}",
}


@dataclass
class Expected:
    """What the acknowledgements say is there."""

    live: dict[str, int] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)
    acknowledged: int = 0

    def take(self, lines: list[str]) -> tuple[str, int] | None:
        """Follow a process's lines; the change that was under way when it ended, if any."""
        under_way = None
        for line in lines:
            word, change, name, revision = line.split()
            self.touched.add(name)
            if word == "try":
                under_way = (name, int(revision))
                continue
            under_way = None
            self.acknowledged += 1
            self.set(name, int(revision) if change == "put" else 0)
        return under_way

    def set(self, name: str, revision: int) -> None:
        if revision:
            self.live[name] = revision
            self.gone.discard(name)
        else:
            self.live.pop(name, None)
            self.gone.add(name)


@pytest.mark.req("R-REL-25")
async def test_nothing_acknowledged_is_lost(
    tmp_path: Path, record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    choose = random.Random(seed)
    acknowledged = 0
    for first in range(0, ROUNDS, OF_ONE_FOLDER):
        (folder := tmp_path / str(first)).mkdir()
        acknowledged += await _kill_and_check(folder, range(first, min(first + OF_ONE_FOLDER, ROUNDS)), seed, choose)
    record_property("injected", ROUNDS)
    record_property("noted", f"{acknowledged} acknowledged changes, none lost")
    assert acknowledged >= ROUNDS
    with capsys.disabled():
        print(f" [{ROUNDS} kills, {acknowledged} acknowledged changes]", end="")


async def _kill_and_check(folder: Path, turns: range, seed: int, choose: random.Random) -> int:
    """Kill a writer of one folder again and again; return how many changes it acknowledged."""
    expected = Expected()
    for turn in turns:
        expected.touched.clear()
        moment = choose.uniform(0.005, 0.3)
        under_way = expected.take(await asyncio.to_thread(_killed_writer, folder, seed + turn, moment))
        ledger = open_ledger(folder)
        await _settle(ledger, expected, under_way)
        await asyncio.to_thread(_check_file, await _path(ledger))
        assert await _revisions(ledger) == expected.live
        others = sorted((expected.live.keys() | expected.gone) - expected.touched)
        some = others if turn == turns[-1] else choose.sample(others, min(SAMPLE, len(others)))
        await _check_searches(ledger, expected, sorted(expected.touched) + some)
        await ledger.close()
    return expected.acknowledged


def _killed_writer(folder: Path, seed: int, seconds: float) -> list[str]:
    """Let a writer run until some time after its first acknowledgement, kill it; its whole lines."""
    child = subprocess.Popen(
        [*warm_python(), "-m", "tests.faults.crash_writer", str(folder), "random", str(seed)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    lines: list[bytes] = []
    while not lines or not lines[-1].startswith(b"ok"):
        lines.append(child.stdout.readline())
        assert lines[-1], child.stderr.read().decode()
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(seconds)
    child.send_signal(signal.SIGKILL)
    lines += child.stdout.readlines()
    assert child.stderr.read() == b""
    assert child.wait() == -signal.SIGKILL
    child.stdout.close()
    child.stderr.close()
    return [line.decode() for line in lines if line.endswith(b"\n")]


async def _settle(ledger: SqliteLedger, expected: Expected, under_way: tuple[str, int] | None) -> None:
    """What was under way may have happened or not; from now on it is what is found."""
    if under_way is None:
        return
    name, revision = under_way
    found = (await _revisions(ledger)).get(name, 0)
    assert found in (revision, expected.live.get(name, 0))
    expected.set(name, found)


async def _revisions(ledger: SqliteLedger) -> dict[str, int]:
    kb = await _kb(ledger)
    documents = await ledger.of("default").documents(kb, limit=1_000_000)
    assert (await ledger.of("default").stats(kb)).documents == len(documents)
    return {one.external_id: one.metadata["revision"] for one in documents}


def _check_file(path: Path) -> None:
    """The tables agree with each other."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.execute("INSERT INTO lexical_1 (lexical_1) VALUES ('integrity-check')")
        for contradiction, query in CONTRADICTIONS.items():
            assert connection.execute(query).fetchall() == [], contradiction


async def _check_searches(ledger: SqliteLedger, expected: Expected, names: list[str]) -> None:
    """Live ones are found whole by id, by word and by vector; those that are gone by none."""
    kb = await _kb(ledger)
    residents = IndexCache(256)
    vectors = SqliteVectorIndex(ledger, residents)
    for name in names:
        revision = expected.live.get(name, 0)
        version = version_of(name, revision or 1)
        document = document_id("default", "default", "test", name)
        chunks = await ledger.of("default").document_chunks(document)
        assert tuple(one.chunk for one in chunks) == (version.chunks if revision else ())
        for number in range(len(version.chunks)):
            own = [chunks[number].id] if revision else []
            # A new index answers from FTS5 first, then from memory.
            lexical = SqliteLexicalIndex(ledger, residents)
            for _ in range(2):
                found = await lexical.search("default", kb, word_of(name, revision or 1, number), 10)
                assert [one.chunk_id for one in found] == own
            vector = vectors_of(name, revision or 1, len(version.chunks))[number]
            near = await vectors.search("default", kb, vector, 1)
            assert [one.chunk_id for one in near if one.score > 0.999] == own
        if revision:
            assert await ledger.of("default").text(document) == version.text


async def _kb(ledger: SqliteLedger) -> KnowledgeBase:
    kb = await ledger.of("default").kb("default")
    assert kb is not None
    return kb


async def _path(ledger: SqliteLedger) -> Path:
    async with ledger.file("default") as file:
        return file.path
