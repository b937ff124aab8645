"""What comes out of an archive is what went in, to the bit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.moves.sites import contents, site, stock

from ragstone.core.errors import InputError
from ragstone.core.ids import document_id
from ragstone.core.types import NewVersion
from ragstone.language.analyzer import analyze
from ragstone.testing.builders import make_version, put, unit_vectors

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS
METADATA = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True),
    SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.just("inner"), SCALARS),
    max_size=4,
)


@st.composite
def versions(draw: st.DrawFn) -> list[NewVersion]:
    """Documents with text, titles, sections and metadata of any kind; some chunks and documents have no vector."""
    made = []
    for name in draw(st.lists(WORDS, min_size=1, max_size=4, unique=True)):
        texts = draw(st.lists(WORDS, min_size=1, max_size=4))
        vectors = unit_vectors(len(texts), seed=len(made))
        vectors[draw(st.lists(st.integers(0, len(texts) - 1), max_size=2))] = 0
        given_metadata = draw(METADATA)
        base = make_version(name, texts, metadata=given_metadata, context=draw(st.just("") | WORDS))
        chunks = tuple(
            replace(chunk, section=tuple(draw(st.lists(WORDS, max_size=2))), metadata={"score": 0.25}, level=at)
            for at, chunk in enumerate(base.chunks)
        )
        made.append(
            replace(
                base,
                title=draw(WORDS),
                chunks=chunks,
                terms=tuple(" ".join(analyze(chunk.contextual)) for chunk in chunks),
                vectors=draw(st.sampled_from([vectors, None])),
                signature=draw(st.binary(max_size=16)),
                bands=tuple(draw(st.lists(st.integers(-(2**62), 2**62), max_size=3, unique=True))),
            )
        )
    return made


class Pair:
    """Two installations for all examples: making one takes longer than moving what an example puts into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self.examples = 0
        self.here = self.runner.run(self._stack.enter_async_context(site(folder / "a")))
        self.there = self.runner.run(self._stack.enter_async_context(site(folder / "b")))

    def close(self) -> None:
        self.runner.run(self._stack.aclose())
        self.runner.close()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("pair"))
    yield made
    made.close()


@settings(max_examples=40, deadline=None)
@given(made=versions())
def test_an_archive_imported_and_exported_again_is_the_same(pair: Pair, made: list[NewVersion]) -> None:
    pair.examples += 1
    kb = f"kb{pair.examples}"
    first, second = pair.folder / f"{kb}.zip", pair.folder / f"{kb}-again.zip"
    placed = [replace(one, document_id=document_id("t", kb, "test", one.external_id)) for one in made]

    async def run() -> None:
        await put(pair.here.stores.ledger, *placed, kb=kb)
        await pair.here.mover.export_archive(first, kbs=[kb])
        taken = await pair.there.mover.import_archive(first)
        assert (taken.added, taken.chunks) == (len(made), sum(len(one.chunks) for one in made))
        await pair.there.mover.export_archive(second, kbs=[kb])

    pair.runner.run(run())
    assert contents(first) == contents(second)


@pytest.mark.req("R-STO-16")
async def test_documents_chunks_vectors_and_answers_are_the_same_afterwards(tmp_path: Path) -> None:
    async with site(tmp_path / "a") as here, site(tmp_path / "b") as there:
        await stock(here, 40)
        await stock(here, 3, kb="other")
        await here.mover.export_archive(tmp_path / "x.zip")
        report = await there.mover.import_archive(tmp_path / "x.zip")
        assert (report.kbs, report.added, report.chunks) == (("default", "other"), 43, 129)
        ours, theirs = await here.kb(), await there.kb()
        documents = await here.stores.ledger.of("default").documents(ours)
        assert await there.stores.ledger.of("default").documents(theirs) == documents
        for document in documents[:5]:
            assert await there.stores.ledger.of("default").text(document.id) == await here.stores.ledger.of(
                "default"
            ).text(document.id)
            assert await there.stores.ledger.of("default").document_chunks(document.id) == await here.stores.ledger.of(
                "default"
            ).document_chunks(document.id)
        query = unit_vectors(1, seed=4711)[0]
        found = await here.stores.vectors.search("default", ours, query, 10)
        assert len(found) == 10
        assert await there.stores.vectors.search("default", theirs, query, 10) == found
        words = await here.stores.lexical.search("default", ours, "ferry document4", 10)
        assert len(words) == 10
        assert await there.stores.lexical.search("default", theirs, "ferry document4", 10) == words


async def test_a_part_ends_when_there_is_enough_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.transfer.compare.ledger.CHUNKS", 7)
    async with site(tmp_path / "a") as here, site(tmp_path / "b") as there:
        await stock(here, 10)
        seen: list[tuple[Any, ...]] = []
        await here.mover.export_archive(tmp_path / "x.zip", on_progress=lambda *told: seen.append(told))
        parts = [name for name in contents(tmp_path / "x.zip") if name.endswith("documents.jsonl")]
        assert parts == [f"kbs/default/{number:06d}.documents.jsonl" for number in range(4)]
        assert seen == [("export default", done, 30) for done in (9, 18, 27, 30)]
        await there.mover.import_archive(tmp_path / "x.zip")
        assert await there.uris() == await here.uris()


async def test_a_manifest_may_list_all_members_that_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.transfer.compare.ledger.CHUNKS", 1)
    for name, most in (("LONG", 0), ("MOST_QUOTES", 200), ("MOST_MARKS", 500)):
        monkeypatch.setattr(f"ragstone.transfer.archive.format.{name}", most)
    async with site(tmp_path / "a") as here, site(tmp_path / "b") as there:
        await stock(here, 40)
        await here.mover.export_archive(tmp_path / "x.zip")
        assert len(contents(tmp_path / "x.zip")) == 120
        assert (await there.mover.import_archive(tmp_path / "x.zip")).added == 40


async def test_vectors_are_plain_little_endian_rows(tmp_path: Path) -> None:
    async with site(tmp_path / "a") as here:
        made = make_version("a", ["one", "two"], vectors=unit_vectors(2, seed=1))
        await put(here.stores.ledger, made)
        await here.mover.export_archive(tmp_path / "x.zip")
    stored = np.frombuffer(contents(tmp_path / "x.zip")["kbs/default/000000.vectors-0.f16"], "<f2")
    assert made.vectors is not None
    assert np.array_equal(stored.reshape(2, -1), made.vectors.astype(np.float16))


async def test_an_export_does_not_touch_another_file_unless_told_to(tmp_path: Path) -> None:
    async with site(tmp_path / "a") as here:
        await stock(here, 1)
        target = tmp_path / "x.zip"
        target.write_text("mine")
        with pytest.raises(Exception, match="exists already"):
            await here.mover.export_archive(target)
        assert target.read_text() == "mine"
        await here.mover.export_archive(target, overwrite=True)
        assert target.stat().st_mode & 0o777 == 0o600
        assert not (tmp_path / "x.zip.part").exists()


@pytest.mark.parametrize("overwrite", [False, True])
async def test_an_export_does_not_replace_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    async with site(tmp_path / "a") as here:
        await stock(here, 1)
        for folder in (Path(), tmp_path):
            with pytest.raises(InputError, match="is a folder"):
                await here.mover.export_archive(folder, overwrite=overwrite)


async def test_a_kb_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with site(tmp_path / "a") as here, site(tmp_path / "b") as there:
        await stock(here, 1)
        with pytest.raises(Exception, match="there is no knowledge base 'notes'"):
            await here.mover.export_archive(tmp_path / "x.zip", kbs=["notes"])
        assert not (tmp_path / "x.zip").exists()
        await here.mover.export_archive(tmp_path / "x.zip", kbs=["default"])
        with pytest.raises(Exception, match="holds no knowledge base 'notes'"):
            await there.mover.import_archive(tmp_path / "x.zip", kbs=["notes"])
