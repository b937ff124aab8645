"""Conformance tests of every BM25 index, to inherit.

    from ragstone.testing.suites.lexical import LexicalSuite

    class TestMyIndex(LexicalSuite):
        async def open(self, folder):
            ledger = MyLedger(folder)
            return ledger, MyIndex(ledger)

Needs pytest-asyncio with `asyncio_mode = "auto"`. What has nothing to do with scores is in `keyword_suite`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ragstone.core.filters import Filter, matches, parse_filter
from ragstone.core.ledger import Ledger
from ragstone.core.types import KnowledgeBase
from ragstone.language.analyzer import analyze, analyze_query
from ragstone.language.terms import terms_of
from ragstone.testing.builders import delete, make_version, put
from ragstone.testing.oracles import bm25, check_ranking
from ragstone.testing.suites.keywords import KeywordSuite, Stores, some_documents

TOLERANCE = 1e-4
QUERIES = ["server", "ban player module", "role chat token nothing", "hook hook hook", "the role of a map"]
IDENTIFIERS = [
    ("moduleControllerCreate", "module"),
    ("modulecontrollercreate", "module"),
    ("controller", "module"),
    ("hook.player.connected", "hook"),
    ("connected", "hook"),
    ("SKU-12345", "sku"),
    ("sku-12345", "sku"),
    ("12345", "sku"),
]


class LexicalSuite(KeywordSuite):
    """Inherit and say how to open a ledger together with the index that follows it."""

    async def test_scores_are_bm25(self, stores: Stores) -> None:
        kb = await put(stores[0], *some_documents(60))
        await self._check(stores, kb, QUERIES, limits=(1, 10, 1000))

    async def test_statistics_are_of_this_kb_and_of_live_chunks(self, stores: Stores) -> None:
        ledger, _ = stores
        versions = some_documents(30)
        kb = await put(ledger, *versions)
        await put(ledger, *some_documents(30, kb="other"), kb="other")
        for version in versions[:10]:
            await delete(ledger, version.document_id)
        await put(ledger, *(make_version(f"d{n}", ("server shop " * n,)) for n in range(10, 15)))
        async with ledger.transaction("default") as transaction:
            await transaction.stage(kb, make_version("staged", ("server token",)))
        await self._check(stores, kb, QUERIES)

    async def test_every_change_is_found_at_once(self, stores: Stores) -> None:
        ledger, _ = stores
        kb = await put(ledger, *some_documents(5))
        for n in range(20):
            await put(ledger, make_version(f"d{n % 7}", (f"server chat {'map ' * n}", "player")))
            await self._check(stores, kb, ["server map player"])
            if n % 3 == 0:
                doomed = make_version(f"d{(n + 1) % 7}")
                await delete(ledger, doomed.document_id)
                await self._check(stores, kb, ["server map player"])

    async def test_identifiers_are_found_whole_and_by_part(self, stores: Stores) -> None:
        ledger, index = stores
        kb = await put(
            ledger,
            make_version("module", ("Call moduleControllerCreate with a body.",)),
            make_version("hook", ("The hook.player.connected event fires once.",)),
            make_version("sku", ("Order SKU-12345 by mail.",)),
            *(make_version(f"filler{n}", ("nothing to see here",)) for n in range(5)),
        )
        for query, document in IDENTIFIERS:
            assert await self._search(ledger, index, kb, query) == [document], query

    async def test_the_whole_identifier_beats_its_parts(self, stores: Stores) -> None:
        ledger, index = stores
        kb = await put(
            ledger,
            make_version("parts", ("The player connected and the hook of the player fired for players.",)),
            make_version("whole", ("Subscribe to hook.player.connected when somebody joins the server.",)),
            *(make_version(f"filler{n}", ("nothing to see here",)) for n in range(5)),
        )
        assert await self._search(ledger, index, kb, "hook.player.connected") == ["whole", "parts"]

    async def test_the_filter_leaves_scores_as_they_are(self, stores: Stores) -> None:
        rare = [make_version(f"r{n}", ("server " + "map " * n,), metadata={"rare": True}) for n in range(5)]
        kb = await put(stores[0], *some_documents(20), *rare)
        await self._check(stores, kb, QUERIES, limits=(5,), where=parse_filter({"rare": True}))

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
            scores = bm25(analyze_query(query), texts)
            expected = {name: score for name, score in scores.items() if name in allowed}
            for k in limits:
                for _ in range(2):
                    check_ranking(await index.search("default", kb, query, k, where), expected, k, TOLERANCE)


class WordWeightSuite(LexicalSuite):
    """For an index that weighs a word by all of its terms; an engine of others weighs each term alone."""

    async def test_the_terms_of_a_word_in_several_languages_are_as_rare_as_one(self, stores: Stores) -> None:
        ledger, index = stores
        texts = ("hook map " * 3, "hook shop und chat", "der hook und die map", "hook und noch ein hook")
        german = [make_version(f"de{n}", (text,), metadata={"language": "de"}) for n, text in enumerate(texts)]
        kb = await put(ledger, *some_documents(20), *german)
        for query in ("hook", "map and hook", "shop hook chat"):
            plain = {
                name: [term.removesuffix("~de") for term in text] for name, text in (await terms_in(ledger, kb)).items()
            }
            expected = bm25(analyze_query(query), plain)
            for _ in range(2):
                check_ranking(await index.search("default", kb, query, 1000), expected, 1000, TOLERANCE)


async def terms_in(ledger: Ledger, kb: KnowledgeBase) -> dict[str, list[str]]:
    """Return the terms of every live chunk by its id, in the language of its document."""
    terms: dict[str, list[str]] = {}
    for document in await ledger.of("default").documents(kb, limit=1000):
        language = str(document.metadata.get("language") or "")
        for chunk in await ledger.of("default").document_chunks(document.id):
            terms[chunk.id] = terms_of(chunk.chunk.contextual, language)
    return terms


async def texts_of(ledger: Ledger, kb: KnowledgeBase, where: Filter | None) -> tuple[dict[str, list[str]], set[str]]:
    """Return the analysed text of every live chunk by its id, and those that a filter lets through."""
    texts: dict[str, list[str]] = {}
    allowed = set()
    for document in await ledger.of("default").documents(kb, limit=1000):
        for chunk in await ledger.of("default").document_chunks(document.id):
            texts[chunk.id] = analyze(chunk.chunk.contextual)
            if matches(where, document.metadata):
                allowed.add(chunk.id)
    return texts, allowed
