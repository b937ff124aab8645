"""A BM25 index in a file: the same answers after a restart, and nothing that the file could make us run."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragstone.core.errors import InputError, NotFoundError, StoreCorrupt, StoreError
from ragstone.core.types import KnowledgeBase
from ragstone.stores.indexes import IndexCache
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.bm25 import ResidentBm25Index
from ragstone.stores.lexical.bm25_file import ARRAYS, DEFAULT_PATH, MAGIC, Origin, build_index, load_index, save_index
from ragstone.testing.builders import delete, make_version, put

CHUNKS = [(7, "a", "server map server"), (8, "b", "map"), (9, "c", ""), (12, "d", "shop map chat")]
QUERIES = (["server"], ["map", "shop"], ["nothing"])


def open_index(folder: Path) -> tuple[SqliteLedger, ResidentBm25Index]:
    ledger = SqliteLedger(folder, ResidentBm25Index.writers())
    return ledger, ResidentBm25Index(ledger, IndexCache(64))


@pytest.mark.req("R-STO-19", "R-STO-20", "R-TST-20")
def test_a_loaded_index_gives_the_same_results(tmp_path: Path) -> None:
    path = tmp_path / "data" / "indices" / DEFAULT_PATH.name
    index = build_index(CHUNKS)
    index.remove([8])
    save_index(index, path, Origin("t", 3, 4))
    loaded, origin = load_index(path)
    assert origin == Origin("t", 3, 4)
    assert [loaded.best([[term] for term in query], 10) for query in QUERIES] == [
        index.best([[term] for term in query], 10) for query in QUERIES
    ]
    for each in (loaded, index):
        each.put([20], ["e"], ["server shop"])
        each.remove([7])
    assert [loaded.best([[term] for term in query], 10) for query in QUERIES] == [
        index.best([[term] for term in query], 10) for query in QUERIES
    ]
    assert loaded.best([["server"]], 1)[0].chunk_id == "e"


def test_an_index_of_nothing_is_kept_too(tmp_path: Path) -> None:
    save_index(build_index([]), tmp_path / "x")
    loaded, origin = load_index(tmp_path / "x")
    assert (len(loaded), loaded.best([["server"]], 10), origin) == (0, [], Origin())


@pytest.mark.req("R-STO-19")
def test_the_path_is_the_one_that_others_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_index(build_index(CHUNKS))
    written = tmp_path / "data" / "indices" / "bm25_index.pkl"
    assert written.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in written.parent.iterdir()] == ["bm25_index.pkl"]
    assert len(load_index()[0]) == 4


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("exploded"),))


@pytest.mark.req("R-STO-21")
def test_a_pickle_is_refused_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "bm25_index.pkl"
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(StoreCorrupt, match="not a BM25 index"):
        load_index(path)
    assert [one.name for one in tmp_path.iterdir()] == ["bm25_index.pkl"]


def rewritten(data: bytes, change: Callable[[dict[str, Any], dict[str, bytes]], None]) -> bytes:
    """A file with a digest that fits, whatever was changed."""
    head, body = data[len(MAGIC) :].split(b"\n", 1)
    facts = json.loads(head)
    parts = {}
    for name in ARRAYS:
        parts[name], body = body[: facts["bytes"][name]], body[facts["bytes"][name] :]
    change(facts, parts)
    body = b"".join(parts.values())
    facts["bytes"] = {name: len(part) for name, part in parts.items()}
    facts["sha256"] = hashlib.sha256(body).hexdigest()
    return MAGIC + json.dumps(facts).encode() + b"\n" + body


def part(name: str, values: list[Any]) -> Callable[[dict[str, Any], dict[str, bytes]], None]:
    def change(_: dict[str, Any], parts: dict[str, bytes]) -> None:
        parts[name] = np.array(values, ARRAYS[name]).tobytes()

    return change


def fact(name: str, value: Any) -> Callable[[dict[str, Any], dict[str, bytes]], None]:
    return lambda facts, _: facts.update({name: value})


HOSTILE = {
    "rows that are not there": part("rows", [0, 1, 2, 3, 3, 99]),
    "rows before the first": part("rows", [-1, 0, 0, 0, 0, 0]),
    "bounds that fall": part("bounds", [0, 5, 3, 5, 6]),
    "bounds beyond the end": part("bounds", [0, 1, 2, 3, 2**60]),
    "no bounds": part("bounds", []),
    "terms out of order": part("terms", [9, 3, 2, 1]),
    "a number twice": part("numbers", [7, 7, 9, 12]),
    "counts that are none": part("counts", [float("nan")] * 6),
    "lengths below zero": part("lengths", [-1, 1, 1, 1]),
    "half a number": lambda _, parts: parts.update(numbers=parts["numbers"][:-1]),
    "ids that are no list": lambda _, parts: parts.update(ids=b'{"a": 1}'),
    "ids that are numbers": lambda _, parts: parts.update(ids=b"[1, 2, 3, 4]"),
    "ids that are not JSON": lambda _, parts: parts.update(ids=b"\xff["),
    "ids without end": lambda _, parts: parts.update(ids=b"[" * 100_000),
    "too few ids": lambda _, parts: parts.update(ids=b'["a"]'),
    "another analyzer": fact("analyzer", "other-1"),
    "no kb": fact("kb", None),
    "a kb by name": fact("kb", "x"),
}


@pytest.mark.req("R-STO-21")
@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_what_does_not_fit_together_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any], dict[str, bytes]], None]
) -> None:
    path = tmp_path / "x"
    save_index(build_index(CHUNKS), path)
    path.write_bytes(rewritten(path.read_bytes(), lambda *_: None))
    assert len(load_index(path)[0]) == 4
    path.write_bytes(rewritten(path.read_bytes(), change))
    with pytest.raises(StoreCorrupt, match="damaged"):
        load_index(path)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    save_index(build_index(CHUNKS), path)
    whole = path.read_bytes()
    damaged = [whole[:-1], whole + b"x", whole[: len(MAGIC)], MAGIC + b"[" * 100_000, MAGIC + b"[]\n"]
    damaged += [MAGIC + b'{"bytes": {"numbers": -8}}\n', whole[:-30] + bytes([whole[-30] ^ 1]) + whole[-29:]]
    for content in (*damaged, b"", whole[:5]):
        path.write_bytes(content)
        with pytest.raises(StoreCorrupt):
            load_index(path)


def test_a_file_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no BM25 index at"):
        load_index(tmp_path / "missing")
    with pytest.raises(StoreError, match="cannot be read"):
        load_index(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be written"):
        save_index(build_index(CHUNKS), tmp_path / "file" / "x")


@pytest.mark.req("R-STO-20")
async def test_a_saved_index_spares_the_reading_and_catches_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, index = open_index(tmp_path / "data")
    kb = await put(ledger, *(make_version(f"d{n}", ("server " * n, "map")) for n in range(1, 6)))
    await index.save_index("default", kb, tmp_path / "x")
    before = await index.search("default", kb, "server", 10)
    await ledger.close()

    ledger, index = open_index(tmp_path / "data")
    await index.load_index("default", kb, tmp_path / "x")
    loaded: list[str] = []
    monkeypatch.setattr("ragstone.stores.lexical.bm25._load_terms", lambda *arguments: loaded.append(arguments[-2]))
    assert await index.search("default", kb, "server", 10) == before
    assert loaded == []
    monkeypatch.undo()
    await delete(ledger, make_version("d1").document_id)
    await put(ledger, make_version("d9", ("server chat",)))
    after = await index.search("default", kb, "server chat", 10)
    assert after == await ResidentBm25Index(ledger, IndexCache(64)).search("default", kb, "server chat", 10)
    assert len(after) == 5
    await ledger.close()


async def test_the_index_of_another_kb_or_ledger_is_refused(tmp_path: Path) -> None:
    ledger, index = open_index(tmp_path / "data")
    kb = await put(ledger, make_version())
    other = await put(ledger, make_version(kb="other"), kb="other")
    await index.save_index("default", kb, tmp_path / "x")
    await put(ledger, make_version(tenant="two"), tenant="two")
    for tenant, scope in (("default", other), ("two", KnowledgeBase(kb.id, "default", None))):
        with pytest.raises(InputError, match="is not the index of knowledge base"):
            await index.load_index(tenant, scope, tmp_path / "x")
    matrix, origin = load_index(tmp_path / "x")
    save_index(matrix, tmp_path / "x", Origin(origin.tenant_id, origin.kb_id, origin.sequence + 100))
    with pytest.raises(InputError, match="as this ledger knows it"):
        await index.load_index("default", kb, tmp_path / "x")
    await ledger.close()
