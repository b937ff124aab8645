"""What `ragstone eval` and `ragstone tune` measure: ways to search, over labelled queries, with given settings."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ragstone.core.errors import InputError
from ragstone.serve.cli.ingest_report import remarks
from ragstone.serve.cli.options import Arms, Mode
from ragstone.serve.cli.progress import ingest_progress, query_progress
from ragstone.serve.cli.session import Session

if TYPE_CHECKING:
    from ragstone.core.types import IngestReport, SearchResult
    from ragstone.engine import Engine
    from ragstone.evaluate.dataset import Dataset
    from ragstone.evaluate.runner import Row
    from ragstone.settings.tree import Settings

PAGE = 1000
INGEST_KEYS = ("chunking", "chunking_by_source", "embedding", "enrich", "extract")
"""Settings that show only in what is ingested with them."""
VALUES = re.compile(r",(?=[a-z_0-9.]+=)")
"""A comma before the next key, unlike one inside a list."""


@dataclass(frozen=True, slots=True)
class System:
    """One way to search, that gets a row of its own."""

    arms: Arms | None = None
    mode: Mode | None = None
    reranks: bool = False


SYSTEMS = {
    "lexical": System(arms="lexical"),
    "dense": System(arms="dense"),
    "hybrid": System(arms="hybrid"),
    "reranked": System(arms="hybrid", mode="thorough", reranks=True),
    "fast": System(mode="fast", reranks=True),
    "balanced": System(mode="balanced", reranks=True),
    "thorough": System(mode="thorough", reranks=True),
}
ARMS = ("lexical", "dense", "hybrid")
MODES = ("fast", "balanced", "thorough")


@dataclass(frozen=True, slots=True)
class EngineRetriever:
    """An engine as the `Retriever` that the runner measures."""

    engine: Engine
    system: System
    by_document: bool = False
    """Whether judgements are about documents of this kb, by their ids, rather than those of a data set."""

    async def retrieve(self, query: str, k: int) -> SearchResult:
        """Search in the way of the system."""
        found = await self.engine.search(query, k=k, arms=self.system.arms, mode=self.system.mode)
        if not self.by_document:
            return found
        hits = (replace(hit, metadata={"dataset_id": hit.document_id}) for hit in found.hits)
        return replace(found, hits=tuple(hits))


@dataclass(frozen=True, slots=True)
class Measuring:
    """Labelled queries, and where the documents are that they are about."""

    session: Session
    dataset: Dataset
    own_kb: bool
    """Whether the kb is one that somebody uses, and not made for this data set."""

    def settings(self, changes: Mapping[str, Any] | None = None) -> Settings:
        """The settings in force with some of them changed; what is measured is neither logged nor remembered."""
        changed = dict(changes or {})
        given = {**changed, "activity.searches": False, "cache.search_seconds": 0}
        if self.own_kb:
            if any(_is_of_ingest(key) for key in changed):
                raise InputError(
                    f"{next(filter(_is_of_ingest, changed))} shows only in documents that are ingested with it",
                    hint="name a data set folder: its documents are ingested once more",
                )
            return self.session.settings(**given)
        made_so = {key: value for key, value in changed.items() if _is_of_ingest(key)}
        kb = self.session.options.kb or kb_name(self.dataset.name)
        return self.session.settings(**{"kb": kb_name_for(kb, made_so), **given})

    async def ingest(self, settings: Settings) -> IngestReport | None:
        """Make the kb hold exactly the data set's corpus; None when the documents are there already."""
        if self.own_kb:
            return None
        return await ingest_corpus(self.session, settings, self.dataset)

    async def row(
        self, settings: Settings, name: str, label: str = "", dataset: Dataset | None = None
    ) -> Row:
        """Measure one system with an engine of its own: what another has cached must not make it look fast."""
        from ragstone.evaluate.runner import evaluate
        from ragstone.settings.retrieval import RerankingSettings

        system = SYSTEMS[name]
        own = settings if system.reranks else settings.model_copy(update={"reranking": RerankingSettings()})
        async with self.session.engine(own) as engine:
            if system.arms != "lexical":
                await engine.warm()
            with query_progress(self.session, label or name) as on_progress:
                return await evaluate(
                    EngineRetriever(engine, system, by_document=self.own_kb),
                    dataset or self.dataset,
                    system=label or name,
                    on_progress=on_progress,
                )


def read_changes(text: str) -> dict[str, Any]:
    """`KEY=VALUE[,KEY=VALUE]` as settings; a value is read as it would be in a settings file."""
    import yaml

    changes: dict[str, Any] = {}
    for part in VALUES.split(text):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise InputError(
                f"{part!r:.80} is not a setting and its value", hint="such as retrieval.fusion=rrf"
            )
        try:
            changes[key.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise InputError(f"{part!r:.80} has no value that can be read", hint="quote it") from error
    return changes


def kb_name(dataset: str) -> str:
    """A valid kb name out of a folder's name."""
    return f"eval-{re.sub(r'[^a-z0-9_-]+', '-', dataset.lower()).strip('-')}"[:63]


def kb_name_for(kb: str, changes: Mapping[str, Any]) -> str:
    """Another kb for documents that are ingested in another way."""
    if not changes:
        return kb
    digest = hashlib.sha256(json.dumps(changes, sort_keys=True, default=str).encode()).hexdigest()[:8]
    return f"{kb[:54]}-{digest}"


def _is_of_ingest(key: str) -> bool:
    return key.partition(".")[0] in INGEST_KEYS


async def ingest_corpus(session: Session, settings: Settings, dataset: Dataset) -> IngestReport:
    """Take in the data set's corpus, and remove what an earlier one of the same name has left."""
    from ragstone.evaluate.dataset import documents_as_items

    ids = {document.id for document in dataset.documents()}
    async with session.engine(settings, create=True) as engine:
        others = await _others(engine, ids)
        with ingest_progress(session, len(ids)) as on_progress:
            report = await engine.ingest_items(documents_as_items(dataset), on_progress=on_progress)
        for document_id in others:
            await engine.delete(document_id)
        session.warn(remarks(report))
        session.warn(f"{failure.uri}: {failure.error}" for failure in report.failed)
        return replace(report, documents=report.documents - len(others))


async def _others(engine: Engine, ids: set[str]) -> list[str]:
    """What an earlier data set of the same name left in the kb; a kb with anything else in it is refused."""
    from ragstone.evaluate.dataset import SOURCE

    if engine.settings.kb not in {kb.name for kb in await engine.kbs()}:
        return []
    others, after = [], ""
    while page := await engine.documents(after=after, limit=PAGE):
        after = page[-1].id
        if any(document.source != SOURCE for document in page):
            raise InputError(
                f"knowledge base '{engine.settings.kb}' holds documents of your own",
                hint="leave out --kb: a data set gets a knowledge base of its own",
            )
        others += [document.id for document in page if document.external_id not in ids]
    return others
