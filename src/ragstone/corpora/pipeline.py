"""How the corpus of a build is read, cut and embedded: as every document is, with what the build asks for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pydantic import ValidationError

from ragstone.core.collections import BuildRequest
from ragstone.core.errors import InputError
from ragstone.core.protocols import LLM, Embedder
from ragstone.core.types import Failure, Item
from ragstone.gate import Gate
from ragstone.models.embedders.pool import EmbedderShelf
from ragstone.settings.tree import ChunkingSettings, LimitSettings, Settings

if TYPE_CHECKING:
    # Only builds need these: whoever looks after files starts the sooner.
    from ragstone.ingest.pipeline import IngestPipeline
    from ragstone.ingest.sources.files.walk import FoundFile
    from ragstone.stores.factory import Stores

SOURCE = "corpus"
MEGABYTE = 1024 * 1024


class BuildPipelines:
    """Makes the pipeline of a build."""

    def __init__(
        self, settings: Settings, stores: Stores, embedders: EmbedderShelf, llm: LLM | None, gate: Gate
    ) -> None:
        self._settings = settings
        self._stores = stores
        self._embedders = embedders
        self._llm = llm
        self._gate = gate

    @asynccontextmanager
    async def opened(self, tenant: str, request: BuildRequest) -> AsyncIterator[IngestPipeline]:
        """A pipeline that cuts and embeds as the request asks; what it leaves open is as in the settings."""
        from ragstone.ingest.embed import ModelChoice
        from ragstone.ingest.pipeline import IngestPipeline
        from ragstone.ingest.verify import Verifier
        from ragstone.making import make_preparer

        settings = _chunking(self._settings, request)
        name = request.embedding_model or (await self._gate.settings_for(tenant)).embedding.model
        embedder, model = await self._embedder(name)
        preparer, close = make_preparer(settings, embedder, self._llm, model)
        try:
            yield IngestPipeline(
                self._stores.ledger,
                preparer,
                embedder,
                Verifier(self._stores.ledger, self._stores.vectors, self._stores.lexical),
                settings.limits,
                settings.extract.scan_command,
                self._gate,
                ModelChoice(model, embedder),
            )
        finally:
            await close()

    async def _embedder(self, name: str) -> tuple[Embedder, str]:
        if name == self._settings.embedding.model:
            return self._embedders.own, self._embedders.configured
        embedder = await self._embedders.named(name)
        return embedder, embedder.model.id


def read_corpus(found: FoundFile, limits: LimitSettings) -> Iterator[Item | Failure]:
    """The documents of a corpus: most often one."""
    from ragstone.ingest.sources.files.reading import read_documents

    origin = Item(SOURCE, found.relative, found.shown, b"", metadata={"source_type": SOURCE})
    return read_documents(found, origin, limits, limits.file_mb * MEGABYTE)


def _chunking(settings: Settings, request: BuildRequest) -> Settings:
    wanted = {"size": request.chunk_size, "overlap": request.chunk_overlap}
    asked = {name: value for name, value in wanted.items() if value is not None}
    present = settings.chunking_by_source.get(SOURCE, settings.chunking)
    try:
        chunking = ChunkingSettings.model_validate({**present.model_dump(), **asked})
    except ValidationError as error:
        first = error.errors()[0]
        what = f"chunk_{first['loc'][0]}: " if first["loc"] else "chunk_size and chunk_overlap: "
        raise InputError(f"{what}{first['msg'].removeprefix('Value error, ')}") from error
    return settings.model_copy(
        update={"chunking_by_source": {**settings.chunking_by_source, SOURCE: chunking}}
    )
