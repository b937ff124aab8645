"""An ingest pipeline on a real SQLite store, with a model that tells what it was asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

from ragstone.core.documents import IngestReport
from ragstone.core.model_types import WordTokenizer
from ragstone.core.protocols import Embedder
from ragstone.core.tenants import EMPTY, Stock
from ragstone.core.types import Document, Failure, Item, KnowledgeBase, Parsed
from ragstone.ingest.chunkers import build_chunker
from ragstone.ingest.embed import ModelChoice
from ragstone.ingest.parsers.dispatch import parse
from ragstone.ingest.parsers.draft import ParseOptions
from ragstone.ingest.pipeline import IngestPipeline
from ragstone.ingest.prepare import PrepareOptions, Preparer
from ragstone.ingest.verify import Verifier
from ragstone.ingest.work import Progress, SourceListing
from ragstone.settings.tree import ChunkingSettings, EnrichSettings, LimitSettings
from ragstone.stores.indexes import IndexCache
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer, SqliteLexicalIndex
from ragstone.stores.vectors.sqlite import SqliteVectorIndex
from ragstone.testing.fakes import FakeEmbedder


async def parsed(content: bytes, name: str, options: ParseOptions) -> Parsed:
    return parse(content, name, options)


class Unlimited:
    """Admits everything: for a pipeline without quotas."""

    async def write(self, tenant: str) -> str:
        return ""

    async def seed(self, tenant: str) -> str:
        return tenant

    async def is_limited(self, tenant: str) -> bool:
        return False

    async def expect(self, tenant: str, *, documents: int = 0) -> None: ...

    def taking_in(
        self,
        tenant: str,
        *,
        documents: int = 0,
        chunks: int = 0,
        size: int = 0,
        queued: bool = False,
        waiting: Stock = EMPTY,
    ) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def paying(self, tenant: str) -> AbstractAsyncContextManager[None]:
        return nullcontext()


class Kit:
    """A store, a model, and what is in them."""

    def __init__(self, folder: Path) -> None:
        self.ledger = SqliteLedger(folder, [Fts5Writer()])
        self.embedder = FakeEmbedder()
        self.max_chunks = 1000
        self.enrich = EnrichSettings()

    def pipeline(self, embedder: Embedder | None = None, model: str | None = None) -> IngestPipeline:
        model_in_use = embedder or self.embedder
        chunker = build_chunker(ChunkingSettings(strategy="sentence", size=8, overlap=0), WordTokenizer())
        way = PrepareOptions(lambda kind: chunker, model or model_in_use.model.id, self.max_chunks, enrich=self.enrich)
        verifier = Verifier(
            self.ledger, SqliteVectorIndex(self.ledger, IndexCache(16)), SqliteLexicalIndex(self.ledger, IndexCache(16))
        )
        preparer = Preparer(parsed, way)
        choice = ModelChoice(preparer.model, model_in_use)
        return IngestPipeline(self.ledger, preparer, choice, verifier, LimitSettings(), Unlimited())

    async def run(
        self,
        items: Iterable[Item | Failure],
        *,
        embedder: Embedder | None = None,
        model: str | None = None,
        seen: list[Progress] | None = None,
        listings: Sequence[SourceListing] = (),
    ) -> IngestReport:
        on_progress = seen.append if seen is not None else None
        return await self.pipeline(embedder, model).run("t", "default", items, on_progress, listings=listings)

    async def kb(self) -> KnowledgeBase:
        kb = await self.ledger.of("t").kb("default")
        assert kb is not None
        return kb

    async def document(self, external_id: str) -> Document:
        return (await self.ledger.of("t").find(await self.kb(), "test", [external_id]))[external_id]

    async def names(self) -> list[str]:
        documents = await self.ledger.of("t").documents(await self.kb())
        return sorted(document.external_id for document in documents)

    async def by_word(self, query: str) -> set[str]:
        index = SqliteLexicalIndex(self.ledger, IndexCache(16))
        return await self._owners([one.chunk_id for one in await index.search("t", await self.kb(), query, 50)])

    async def by_meaning(self, query: str) -> set[str]:
        index = SqliteVectorIndex(self.ledger, IndexCache(16))
        vector = (await FakeEmbedder().embed([query], "query")).vectors[0]
        found = await index.search("t", await self.kb(), vector, 50)
        return await self._owners([one.chunk_id for one in found])

    async def _owners(self, chunk_ids: Sequence[str]) -> set[str]:
        live = await self.ledger.of("t").chunks(await self.kb(), chunk_ids)
        found = [await self.ledger.of("t").document(chunk.document_id) for chunk in live.values()]
        return {document.external_id for document in found if document}

    def embedded_texts(self) -> list[str]:
        """Texts that were sent to the model since the last look."""
        texts = [text for call, _ in self.embedder.calls for text in call]
        self.embedder.calls.clear()
        return texts


def item(name: str, content: bytes | str | None = None) -> Item:
    return Item("test", name, f"test/{name}", f"The {name} is here." if content is None else content)


def counts(report: IngestReport) -> tuple[int, int, int, int]:
    return report.added, report.updated, report.unchanged, len(report.failed)
