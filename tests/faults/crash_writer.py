"""A process that writes to a ledger and says so: `crash_writer.py FOLDER random SEED` or `… FOLDER obey`.

It prints `try put NAME REVISION` before a change and `ok put NAME REVISION` once it is committed; for `delete`
likewise. `random` goes on until it is killed, `obey` does what it reads from standard input.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import sys
from pathlib import Path

import numpy as np

from ragstone.core.ids import document_id
from ragstone.core.types import Matrix, NewVersion
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer
from ragstone.testing.builders import DIMENSION, MODEL, make_version

MAX_CHUNKS = 8
# Letters only, or the analyzer would take the word apart.
LETTERS = str.maketrans("0123456789abcdef", "bcdfghjklmnpqrst")


def open_ledger(folder: Path) -> SqliteLedger:
    return SqliteLedger(folder, [Fts5Writer()])


def version_of(name: str, revision: int) -> NewVersion:
    """All of a revision follows from its name and number, so that a reader can tell what should be there."""
    count = 1 + _seed(name, revision) % MAX_CHUNKS
    texts = [f"{word_of(name, revision, n)} filler {'more ' * n}of {name}" for n in range(count)]
    return make_version(name, texts, vectors=vectors_of(name, revision, count), metadata={"revision": revision})


def word_of(name: str, revision: int, chunk: int) -> str:
    """A word that only this chunk holds."""
    return f"{_seed(name, revision, chunk):012x}".translate(LETTERS) + "z"


def vectors_of(name: str, revision: int, count: int) -> Matrix:
    rows = np.random.default_rng(_seed(name, revision)).standard_normal((count, DIMENSION))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


async def put(ledger: SqliteLedger, name: str, revision: int, *, in_two_steps: bool = False) -> None:
    version = version_of(name, revision)
    say("try", "put", name, revision)
    async with ledger.transaction("default") as transaction:
        kb = await transaction.open_space(await transaction.open_kb("default"), MODEL, DIMENSION)
        number = await transaction.stage(kb, version)
        if not in_two_steps:
            await transaction.activate(kb, version.document_id, number)
    if in_two_steps:
        async with ledger.transaction("default") as transaction:
            await transaction.activate(kb, version.document_id, number)
    say("ok", "put", name, revision)


async def delete(ledger: SqliteLedger, name: str) -> None:
    say("try", "delete", name, 0)
    async with ledger.transaction("default") as transaction:
        await transaction.delete(document_id("default", "default", "test", name))
    say("ok", "delete", name, 0)


def say(*words: object) -> None:
    print(*words, flush=True)


async def write_at_random(folder: Path, seed: int) -> None:
    choose = random.Random(seed)
    ledger = open_ledger(folder)
    kb = await ledger.of("default").kb("default")
    known = {}
    if kb:
        for document in await ledger.of("default").documents(kb, limit=1_000_000):
            known[document.external_id] = int(document.metadata["revision"])
    made = 0
    while True:
        step = choose.random()
        if known and step < 0.25:
            name = choose.choice(sorted(known))
            await delete(ledger, name)
            del known[name]
        else:
            made += 1
            name = choose.choice(sorted(known)) if known and step < 0.55 else f"r{seed}n{made}"
            known[name] = known.get(name, 0) + 1
            await put(ledger, name, known[name], in_two_steps=choose.random() < 0.3)


async def obey(folder: Path) -> None:
    ledger = open_ledger(folder)
    say("ready")
    while line := await asyncio.to_thread(sys.stdin.readline):
        order, name = line.split()
        await (put(ledger, name, 1) if order == "put" else delete(ledger, name))
    await ledger.close()


def _seed(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6], "big")


if __name__ == "__main__":
    if sys.argv[2] == "random":
        asyncio.run(write_at_random(Path(sys.argv[1]), int(sys.argv[3])))
    else:
        asyncio.run(obey(Path(sys.argv[1])))
