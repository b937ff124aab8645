"""BM25 in Qdrant's sparse vectors: the shipped suites on every way that Qdrant runs, and how near it is to our own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.qdrant_grpc import grpc_in_front_of
from tests.doubles.qdrant import QdrantDouble

from ragstone.core.filters import Filter
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import LexicalIndex
from ragstone.core.types import KnowledgeBase
from ragstone.language.analyzer import analyze_query
from ragstone.settings.tree import Adapter
from ragstone.stores.indexes import IndexCache
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.ledger.transaction import SqlTransaction
from ragstone.stores.lexical.qdrant import QdrantLexicalIndex
from ragstone.stores.vectors.derived.index import DerivedIndex
from ragstone.stores.vectors.qdrant.provider import QdrantProvider
from ragstone.testing.builders import DIMENSION, MODEL
from ragstone.testing.oracles import K1, B, bm25
from ragstone.testing.suites.keywords import Stores
from ragstone.testing.suites.lexical import LexicalSuite, texts_of

OVERLAP = 0.9


@pytest.fixture(autouse=True)
def _wait_for_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the index may take longer than a search would wait."""
    monkeypatch.setattr("ragstone.stores.vectors.derived.index.CATCH_UP_SECONDS", 60)


class SpacedLedger(SqliteLedger):
    """Every kb has a Space from the start, so that its chunks are written to Qdrant although none has a vector."""

    @asynccontextmanager
    async def transaction(self, tenant: str) -> AsyncIterator[SqlTransaction]:
        async with super().transaction(tenant) as transaction:
            open_kb = transaction.open_kb

            async def opened(name: str) -> KnowledgeBase:
                return await transaction.open_space(await open_kb(name), MODEL, DIMENSION)

            transaction.open_kb = opened  # type: ignore[method-assign]
            yield transaction

    async def close(self) -> None:
        for derived in self.followers:
            assert isinstance(derived, DerivedIndex)
            await derived.close()
        await super().close()


def open_words(folder: Path, adapter: Adapter) -> tuple[Ledger, LexicalIndex]:
    """A ledger whose every commit reaches Qdrant, and the words there; nobody else may answer."""
    ledger = SpacedLedger(folder, QdrantLexicalIndex.writers())
    derived = DerivedIndex(ledger, QdrantProvider(adapter, folder / "qdrant", "collection", words=True))
    ledger.followers = (derived,)
    return ledger, _Strict(ledger, IndexCache(16), derived)


class _Strict(QdrantLexicalIndex):
    async def search(
        self, tenant: str, kb: KnowledgeBase, query: str, k: int, where: Filter | None = None
    ) -> list[Any]:
        if kb.space is not None and await self._ledger.of(tenant).kb(kb.name) is not None:
            assert await self._derived.ready(tenant, kb.space) is not None, "the ledger would answer"
        return await super().search(tenant, kb, query, k, where)


class WordsSuite(LexicalSuite):
    """The suite of every BM25 index, but for the scores: how rare a word is, Qdrant says in its own way."""

    async def _check(
        self,
        stores: Stores,
        kb: KnowledgeBase,
        queries: Sequence[str],
        *,
        limits: Sequence[int] = (1000,),
        where: Filter | None = None,
    ) -> None:
        ledger, index = stores
        texts, allowed = await texts_of(ledger, kb, where)
        for query in queries:
            ours = {name for name in bm25(analyze_query(query), texts) if name in allowed}
            near = {name: score for name, score in plus_one(analyze_query(query), texts).items() if name in ours}
            for k in limits:
                found = [one.chunk_id for one in await index.search("default", kb, query, k, where)]
                assert len(found) == len(set(found)) == min(k, len(ours))
                assert set(found) <= ours
                if found:
                    least = sorted(near.values(), reverse=True)[len(found) - 1]
                    good = [name for name in found if near[name] >= least * (1 - 1e-4)]
                    assert len(good) >= OVERLAP * len(found), f"{query!r}: {len(good)} of {len(found)}"


def plus_one(query: Sequence[str], texts: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """BM25 with the rarity that Qdrant gives a word: never below zero, as one is added inside the logarithm."""
    average = sum(map(len, texts.values())) / max(len(texts), 1)
    counts = {key: Counter(terms) for key, terms in texts.items()}
    scores: dict[str, float] = {}
    for term in dict.fromkeys(query):
        holders = [key for key in texts if counts[key][term]]
        rarity = math.log(1 + (len(texts) - len(holders) + 0.5) / (len(holders) + 0.5))
        for key in holders:
            norm = K1 * (1 - B + B * len(texts[key]) / average)
            gain = rarity * counts[key][term] * (K1 + 1) / (counts[key][term] + norm)
            scores[key] = scores.get(key, 0.0) + gain
    return scores


class TestWordsInQdrantLocal(WordsSuite):
    async def open(self, folder: Path) -> tuple[Ledger, LexicalIndex]:
        return open_words(folder, Adapter(kind="qdrant"))


class TestWordsInQdrantEdge(WordsSuite):
    async def open(self, folder: Path) -> tuple[Ledger, LexicalIndex]:
        return open_words(folder, Adapter(kind="qdrant", options={"engine": "edge"}))


class TestWordsOnAQdrantServer(WordsSuite):
    @pytest.fixture(autouse=True)
    def served(self) -> Iterator[None]:
        with QdrantDouble() as self.double:
            yield
        assert self.double.violations == []

    async def open(self, folder: Path) -> tuple[Ledger, LexicalIndex]:
        return open_words(folder, Adapter(kind="qdrant", url=self.double.url))


class TestWordsOverGrpc(WordsSuite):
    @pytest.fixture(autouse=True)
    def served(self) -> Iterator[None]:
        with QdrantDouble() as self.double, grpc_in_front_of(self.double) as self.port:
            yield
        assert self.double.violations == []

    async def open(self, folder: Path) -> tuple[Ledger, LexicalIndex]:
        options: dict[str, Any] = {"prefer_grpc": True, "grpc_port": self.port}
        return open_words(folder, Adapter(kind="qdrant", url=self.double.url, options=options))
