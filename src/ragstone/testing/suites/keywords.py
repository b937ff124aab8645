"""Conformance tests of every keyword index, whatever its scores mean, to inherit.

    from ragstone.testing.suites.keywords import KeywordSuite

    class TestMyIndex(KeywordSuite):
        async def open(self, folder):
            ledger = MyLedger(folder)
            return ledger, MyIndex(ledger)

Needs pytest-asyncio with `asyncio_mode = "auto"`. Every query is asked twice: an index may answer the first
time from disk and later from memory.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from ragstone.core.filters import Filter, parse_filter
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import LexicalIndex
from ragstone.core.types import KnowledgeBase, NewVersion
from ragstone.testing.builders import delete, make_version, put

Stores = tuple[Ledger, LexicalIndex]
WORDS = ("server", "player", "ban", "module", "hook", "cron", "reward", "shop", "chat", "map", "role", "token")
LANGUAGES = {
    "da": ("Hundene sover, og aftalen er god.", ("hund", "aftaler")),
    "de": ("Die Häuser sind in großer Not.", ("Haus", "Haeuser", "große", "Not")),
    "fi": ("Sopimukset ovat hyllyssä.", ("sopimus", "sopimuksen")),
    "fr": ("L'homme achète de l'or et écoute le son.", ("hommes", "d'homme", "or", "son", "ecouter")),
    "nl": ("De huizen zijn oud en het been is gebroken.", ("huis", "been")),
    "pt": ("As informações estão no jardim.", ("informacao", "jardins")),
    "ru": ("Новый ключ лежит на полке.", ("ключи", "новая", "полки")),
    "sv": ("En man fiskar och läser böckerna.", ("man", "böcker", "bockerna")),
}
"""Texts by their language, with queries that find them."""
HOSTILE = [
    '"',
    "'; DROP TABLE chunks; --",
    '"server" AND "player"',
    "server NEAR/2 player",
    "NEAR(server player)",
    "AND OR NOT",
    "server*",
    "^server",
    "terms:server",
    "{terms} : server",
    "-server +player",
    "(server",
    "server)",
    "\\",
    "%_%",
    "ser\x00ver",
    "?!.,;:()[]{}",
    "the of and is",
    "\N{ZERO WIDTH SPACE}",
    "\N{COMBINING ACUTE ACCENT}" * 200,
    "🙂 🙃",
    "服务器 サーバー",
    "server " * 15_000,
    "x" * 100_000,
    '"' * 100_000,
]


class KeywordSuite:
    """Inherit and say how to open a ledger together with the index that follows it."""

    async def open(self, folder: Path) -> Stores:
        """Return a fresh ledger and its lexical index."""
        raise NotImplementedError

    @pytest.fixture
    async def stores(self, tmp_path: Path) -> AsyncIterator[Stores]:
        opened = await self.open(tmp_path)
        yield opened
        await opened[0].close()

    async def test_any_term_is_enough(self, stores: Stores) -> None:
        ledger, index = stores
        guide = make_version("guide", ("Cronjobs run commands on a schedule.",))
        kb = await put(ledger, guide, make_version("other", ("Nothing of interest.",)))
        assert await self._search(ledger, index, kb, "how do cronjobs work in practice") == ["guide"]

    async def test_words_of_every_language_are_found_in_any_form(self, stores: Stores) -> None:
        ledger, index = stores
        versions = [make_version(name, (text,), metadata={"language": name}) for name, (text, _) in LANGUAGES.items()]
        kb = await put(ledger, *versions, make_version("en", ("The contract ends in war, and many die for a son.",)))
        assert kb.languages == tuple(sorted(LANGUAGES))
        for language, (_, queries) in LANGUAGES.items():
            for query in queries:
                assert language in await self._search(ledger, index, kb, query), query
                where = parse_filter({"language": language})
                assert await self._search(ledger, index, kb, query, where=where) == [language], query
        for query in ("contracts", "son", "wars", "die"):
            assert "en" in await self._search(ledger, index, kb, query), query

    async def test_text_that_was_analysed_before_its_language_was_known_is_still_found(self, stores: Stores) -> None:
        ledger, index = stores
        text = "Die Mieter kündigen den Vertrag."
        old = replace(make_version("old", (text,)), metadata={"language": "de"})
        kb = await put(ledger, old, make_version("new", (text,), metadata={"language": "de"}))
        assert kb.languages == ("de",)
        assert sorted(await self._search(ledger, index, kb, "Vertrag")) == ["new", "old"]
        assert await self._search(ledger, index, kb, "Mietern") == ["new"]

    async def test_no_query_is_an_error(self, stores: Stores) -> None:
        ledger, index = stores
        kb = await put(ledger, *some_documents(10))
        for query in HOSTILE * 2:
            found = await index.search("default", kb, query, 10)
            assert len(found) <= 10, f"{query!r:.80}"
            assert all(candidate.score > 0 for candidate in found), f"{query!r:.80}"

    async def test_operators_are_words(self, stores: Stores) -> None:
        ledger, index = stores
        kb = await put(
            ledger,
            make_version("near", ("a shop near the station",)),
            make_version("server", ("the server",)),
            *(make_version(f"filler{n}", ("nothing to see here",)) for n in range(5)),
        )
        assert sorted(await self._search(ledger, index, kb, "NEAR(server, 2)")) == ["near", "server"]

    async def test_the_filter_acts_before_the_cut(self, stores: Stores) -> None:
        ledger, index = stores
        common = make_version("common", ["server server"] * 500)
        rare = [make_version(f"r{n}", ("server " + "map " * 20,), metadata={"rare": True}) for n in range(5)]
        kb = await put(ledger, common, *rare)
        where = parse_filter({"rare": True})
        expected = sorted(version.external_id for version in rare)
        assert sorted(await self._search(ledger, index, kb, "server", 5, where)) == expected
        assert await self._search(ledger, index, kb, "server", 5, parse_filter({"rare": 1})) == []

    async def test_ties_come_in_order_of_id(self, stores: Stores) -> None:
        ledger, index = stores
        versions = [make_version(f"d{n}", ("server",)) for n in range(30)]
        kb = await put(ledger, *versions, *(make_version(f"f{n}", ("map",)) for n in range(40)))
        ids = sorted([(await ledger.of("default").document_chunks(version.document_id))[0].id for version in versions])
        for k in (1, 10, 30):
            for _ in range(2):
                found = await index.search("default", kb, "server", k)
                assert [candidate.chunk_id for candidate in found] == ids[:k]

    async def test_what_is_live_is_found_at_once_and_nothing_else(self, stores: Stores) -> None:
        ledger, index = stores
        kb = await put(ledger, make_version("a", ("an old server",)), make_version("b", ("a map",)))
        assert await self._search(ledger, index, kb, "server") == ["a"]
        async with ledger.transaction("default") as transaction:
            await transaction.stage(kb, make_version("staged", ("a staged server",)))
        assert await self._search(ledger, index, kb, "server") == ["a"]
        await put(ledger, make_version("a", ("a new shop",)), make_version("b", ("a server", "and a shop")))
        assert await self._search(ledger, index, kb, "server") == ["b"]
        assert sorted(await self._search(ledger, index, kb, "shop")) == ["a", "b"]
        await delete(ledger, make_version("b").document_id)
        assert await self._search(ledger, index, kb, "server") == []
        assert await self._search(ledger, index, kb, "shop") == ["a"]

    async def test_an_empty_or_deleted_kb_has_nothing_to_find(self, stores: Stores) -> None:
        ledger, index = stores
        empty = await put(ledger, kb="empty")
        assert await self._search(ledger, index, empty, "server") == []
        kb = await put(ledger, *some_documents(3))
        async with ledger.transaction("default") as transaction:
            await transaction.delete_kb("default")
        for _ in range(2):
            assert await index.search("default", kb, "server", 10) == []

    async def test_tenants_are_searched_apart(self, stores: Stores) -> None:
        ledger, index = stores
        for tenant in ("one", "two"):
            await put(ledger, make_version(texts=(f"server of {tenant}",), tenant=tenant), tenant=tenant)
        for tenant in ("one", "two"):
            kb = await ledger.of(tenant).kb("default")
            assert kb is not None
            for _ in range(2):
                found = await index.search(tenant, kb, "server one two", 10)
                live = await ledger.of(tenant).chunks(kb, [candidate.chunk_id for candidate in found])
                assert [chunk.chunk.text for chunk in live.values()] == [f"server of {tenant}"]
                assert len(found) == 1

    async def _search(
        self,
        ledger: Ledger,
        index: LexicalIndex,
        kb: KnowledgeBase,
        query: str,
        k: int = 10,
        where: Filter | None = None,
    ) -> list[str]:
        """External ids of what is found, the same the first and the second time."""
        answers = []
        for _ in range(2):
            found = [candidate.chunk_id for candidate in await index.search("default", kb, query, k, where)]
            live = await ledger.of("default").chunks(kb, found)
            answers.append([live[name].title.removeprefix("Title of ") for name in found])
        assert answers[0] == answers[1]
        return answers[0]


def some_documents(count: int, kb: str = "default") -> list[NewVersion]:
    """Texts of different lengths over few words, the same for every run."""
    choose = random.Random(7)  # noqa: S311 - texts to search, not secrets
    return [
        make_version(
            f"d{n}",
            [" ".join(choose.choices(WORDS, k=choose.randint(1, 30))) for _ in range(choose.randint(1, 3))],
            kb=kb,
        )
        for n in range(count)
    ]
