"""The easy way in for scripts and notebooks: a workspace of the default tenant, without async."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from ragstone.core.answers import Answer, AnswerEvent
from ragstone.core.audit import Receipt, TargetKind
from ragstone.core.background import Blocking, BlockingPart, LoopThread, RunOnLoop, wait_for_each
from ragstone.core.errors import InputError
from ragstone.core.search import Explanation, Question, QuestionOptions, SearchOptions, SearchQuery, SearchResult
from ragstone.engine.archive import Archive
from ragstone.engine.audit import Audit
from ragstone.engine.collections import Collections
from ragstone.engine.conversations import Conversations
from ragstone.engine.documents import Documents
from ragstone.engine.embeddings.embeddings import KbEmbeddings
from ragstone.engine.engine import Engine, open_engine
from ragstone.engine.feedback import Feedback
from ragstone.engine.jobs import Jobs
from ragstone.engine.knowledge_bases import KnowledgeBases
from ragstone.engine.receipts import Receipts
from ragstone.engine.shop.shop import TenantShop
from ragstone.engine.sources import Sources
from ragstone.engine.workspace import Workspace
from ragstone.query.session import SearchSession
from ragstone.settings.load import load_settings
from ragstone.settings.tree import Adapter, Settings
from ragstone.stores.control.tenants import SqlTenantBook

if TYPE_CHECKING:
    from ragstone.transfer.reports import MoveReport, OnMove


class BlockingSources(BlockingPart[Sources]):
    """Configured connectors."""

    add = Blocking(Sources.add)
    list = Blocking(Sources.list)
    get = Blocking(Sources.get)
    sync = Blocking(Sources.sync)
    sync_all = Blocking(Sources.sync_all)
    pause = Blocking(Sources.pause)
    resume = Blocking(Sources.resume)
    remove = Blocking(Sources.remove)
    overlaps = Blocking(Sources.overlaps)


class BlockingJobs(BlockingPart[Jobs]):
    """Jobs that workers do in the background, and notices of how they ended."""

    list = Blocking(Jobs.list)
    get = Blocking(Jobs.get)
    cancel = Blocking(Jobs.cancel)
    retry = Blocking(Jobs.retry)
    counts = Blocking(Jobs.counts)
    notices = Blocking(Jobs.notices)
    mark_read = Blocking(Jobs.mark_read)


class BlockingConversations(BlockingPart[Conversations]):
    """Conversations and their turns."""

    list = Blocking(Conversations.list)
    turns = Blocking(Conversations.turns)
    forget = Blocking(Conversations.forget)


class BlockingFeedback(BlockingPart[Feedback]):
    """The searches that were made, votes on what they found, and golden queries."""

    vote = Blocking(Feedback.vote)
    last_passages = Blocking(Feedback.last_passages)
    votes = Blocking(Feedback.votes)
    searches = Blocking(Feedback.searches)
    report = Blocking(Feedback.report)
    relevance = Blocking(Feedback.relevance)
    gaps = Blocking(Feedback.gaps)
    judged = Blocking(Feedback.judged)
    learnt_terms = Blocking(Feedback.learnt_terms)
    golden = Blocking(Feedback.golden)
    golden_dataset = Blocking(Feedback.golden_dataset)
    make_golden = Blocking(Feedback.make_golden)
    add_golden = Blocking(Feedback.add_golden)
    remove_golden = Blocking(Feedback.remove_golden)


class BlockingCollections(BlockingPart[Collections]):
    """Knowledge bases that are built from one corpus file as a whole."""

    build = Blocking(Collections.build)
    health = Blocking(Collections.health)
    chunk = Blocking(Collections.chunk)


class BlockingShop(BlockingPart[TenantShop]):
    """Products, services and appointments of a shop."""

    find_products = Blocking(TenantShop.find_products)
    find_services = Blocking(TenantShop.find_services)
    get_product_context = Blocking(TenantShop.get_product_context)
    get_service_context = Blocking(TenantShop.get_service_context)
    get_appointment_availability = Blocking(TenantShop.get_appointment_availability)
    product = Blocking(TenantShop.product)
    service = Blocking(TenantShop.service)
    list_products = Blocking(TenantShop.list_products)
    list_services = Blocking(TenantShop.list_services)
    put_product = Blocking(TenantShop.put_product)
    put_products = Blocking(TenantShop.put_products)
    put_service = Blocking(TenantShop.put_service)
    put_services = Blocking(TenantShop.put_services)
    remove_product = Blocking(TenantShop.remove_product)
    remove_service = Blocking(TenantShop.remove_service)
    import_table = Blocking(TenantShop.import_table)
    free_slots = Blocking(TenantShop.free_slots)
    book = Blocking(TenantShop.book)
    cancel = Blocking(TenantShop.cancel)
    appointment = Blocking(TenantShop.appointment)
    appointments = Blocking(TenantShop.appointments)


class BlockingTenants(BlockingPart[SqlTenantBook]):
    """The tenants that there are, what they may use and what they have used."""

    create = Blocking(SqlTenantBook.create)
    get = Blocking(SqlTenantBook.get)
    all = Blocking(SqlTenantBook.all)
    rename = Blocking(SqlTenantBook.rename)
    suspend = Blocking(SqlTenantBook.suspend)
    resume = Blocking(SqlTenantBook.resume)
    delete = Blocking(SqlTenantBook.delete)
    set_quotas = Blocking(SqlTenantBook.set_quotas)
    set_retention = Blocking(SqlTenantBook.set_retention)
    set_settings = Blocking(SqlTenantBook.set_settings)
    usage = Blocking(SqlTenantBook.usage)


class BlockingSession(BlockingPart[SearchSession]):
    """Searches that remember: none is made twice while the kb stays as it is."""

    def search(self, query: str, **options: Unpack[SearchOptions]) -> SearchResult:
        """Search as `Ragstone.search` does; an equal query is answered from memory."""
        return self._run(self.part.search(SearchQuery(query, **options)))


class BlockingMoves(BlockingPart[Archive]):
    """Archives out and in, and moves to other stores."""

    def __init__(self, archive: Archive, engine: Engine, run: RunOnLoop) -> None:
        super().__init__(archive, run)
        self.engine = engine

    export_archive = Blocking(Archive.export)
    import_archive = Blocking(Archive.restore)

    def migrate(
        self, to: Adapter, *, tenants: Sequence[str] | None = None, on_progress: OnMove | None = None
    ) -> MoveReport:
        """Build another vector index or another ledger from what is here, and compare every chunk of it."""
        return self._run(self.engine.migrate(to, tenants=tenants, on_progress=on_progress))


class BlockingWorkspace(BlockingPart[Workspace]):
    """A workspace without async: the same methods, flat where scripts need them most."""

    def __init__(self, engine: Engine, workspace: Workspace, run: RunOnLoop, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(workspace, run)
        self.engine = engine
        self.loop = loop
        """The loop of the engine, for `asyncio.run_coroutine_threadsafe`."""

    def _holder(self, name: str) -> Any:
        return self.part if name == "workspace" else getattr(self.part, name)

    def search(self, query: str, **options: Unpack[SearchOptions]) -> SearchResult:
        """Return the passages that matter for a query, best first; the keywords are those of `SearchQuery`."""
        return self._run(self.part.search(SearchQuery(query, **options)))

    def ask(self, question: str, **options: Unpack[QuestionOptions]) -> Answer:
        """Return an answer with its sources; the keywords are those of `Question`."""
        return self._run(self.part.ask(Question(question, **options)))

    def stream(self, question: str, **options: Unpack[QuestionOptions]) -> Iterator[AnswerEvent]:
        """Yield what `ask` returns while it is made; ending the loop early ends the work."""
        return wait_for_each(self.part.stream(Question(question, **options)), self._run)

    def explain(self, query: str, document_id: str, **options: Unpack[SearchOptions]) -> Explanation:
        """Explain why a document is in the result of a query, or at which stage it was lost."""
        return self._run(self.part.explain(SearchQuery(query, **options), document_id))

    def session(self, *, kb: str | None = None) -> BlockingSession:
        """Return searches that remember: none is made twice while the kb stays as it is."""
        return BlockingSession(self.part.session(kb=kb), self._run)

    verify = Blocking(Workspace.verify)
    verify_web = Blocking(Workspace.verify_web)
    verify_text = Blocking(Workspace.verify_text)
    verify_file = Blocking(Workspace.verify_file)
    embed = Blocking(Workspace.embed)
    research = Blocking(Workspace.research)
    web = Blocking(Workspace.web)
    confidence = Blocking(Workspace.confidence)
    usage = Blocking(Workspace.usage)
    is_on = Blocking(Workspace.is_on)

    ingest = Blocking(Documents.ingest)
    ingest_items = Blocking(Documents.ingest_items)
    ingest_urls = Blocking(Documents.ingest_urls)
    preview = Blocking(Documents.dry_run)
    upload = Blocking(Documents.upload)
    queue = Blocking(Documents.queue)
    documents = Blocking(Documents.list)
    document = Blocking(Documents.get)
    text = Blocking(Documents.text)
    chunks = Blocking(Documents.chunks)
    chunk_records = Blocking(Documents.chunk_records)
    status = Blocking(Documents.status)
    original = Blocking(Documents.original)
    versions = Blocking(Documents.versions)
    delete = Blocking(Documents.delete)
    delete_many = Blocking(Documents.delete_many)

    kbs = Blocking(KnowledgeBases.list)
    kb = Blocking(KnowledgeBases.get)
    stats = Blocking(KnowledgeBases.stats)
    collections = Blocking(KnowledgeBases.source_types)
    rename_kb = Blocking(KnowledgeBases.rename)
    reindex = Blocking(KnowledgeBases.reindex)
    delete_kb = Blocking(KnowledgeBases.delete)

    reembed = Blocking(KbEmbeddings.reembed)
    queue_reembed = Blocking(KbEmbeddings.queue)
    resync = Blocking(KbEmbeddings.resync)
    refresh = Blocking(KbEmbeddings.refresh)
    refresh_status = Blocking(KbEmbeddings.status)
    rollback_space = Blocking(KbEmbeddings.rollback)
    spaces = Blocking(KbEmbeddings.spaces)
    clean_spaces = Blocking(KbEmbeddings.clean)

    receipt = Blocking(Receipts.make)
    check_receipt = Blocking(Receipts.check)
    audit = Blocking(Audit.list)
    feedback = Blocking(Feedback.vote)

    def erase(self, kind: TargetKind, *names: str, kb: str | None = None) -> list[Receipt]:
        """Remove documents by id, or sources, kbs or tenants by name, everywhere; return receipts of those there were.

        Slower than `delete`: what is removed is overwritten, and looked for in every store afterwards.
        """
        if kind == "tenant":
            return [self._run(self.engine.erase_tenant(name)) for name in names]
        return self._run(self.part.erase(kind, *names, kb=kb))

    def warm(self) -> None:
        """Load the local models and have vector stores catch up now, rather than with the first question."""
        self._run(self.engine.warm(self.part.tenant, answers=True))

    def work(self, *, only: str | None = None) -> None:
        """Do what is queued for all tenants, or only for one, until nothing is left that could be done now."""
        self._run(_work(self.engine, only))

    @property
    def sources(self) -> BlockingSources:
        """Configured connectors."""
        return BlockingSources(self.part.sources, self._run)

    @property
    def jobs(self) -> BlockingJobs:
        """Jobs that are done in the background; `work()` does them."""
        return BlockingJobs(self.part.jobs, self._run)

    @property
    def conversations(self) -> BlockingConversations:
        """Conversations and their turns."""
        return BlockingConversations(self.part.conversations, self._run)

    @property
    def activity(self) -> BlockingFeedback:
        """The searches that were made, votes on what they found, and golden queries."""
        return BlockingFeedback(self.part.feedback, self._run)

    @property
    def corpora(self) -> BlockingCollections:
        """Collections that are built from one corpus file as a whole."""
        return BlockingCollections(self.part.collections, self._run)

    @property
    def shop(self) -> BlockingShop:
        """Products, services and appointments of a shop."""
        return BlockingShop(self.part.shop, self._run)

    @property
    def moves(self) -> BlockingMoves:
        """Archives out and in, and moves to other stores."""
        return BlockingMoves(self.part.archive, self.engine, self._run)


class Ragstone(BlockingWorkspace):
    """An engine on a thread of its own, so that it also works inside a notebook, and its default tenant."""

    def __init__(self, settings: Settings | None = None, **overrides: Any) -> None:
        """Open an engine. Keywords are settings: `Ragstone(data_dir="kb", retrieval={"k": 5})`."""
        if settings and overrides:
            raise InputError("give Settings or keywords, not both", hint="put the keywords into the Settings")
        chosen = settings or load_settings(overrides=overrides)
        self._thread = LoopThread("Ragstone")
        try:
            engine = self._thread.run(_open(chosen))
        except BaseException:
            self._thread.stop()
            raise
        super().__init__(engine, engine.workspace(chosen.tenant), self._thread.run, self._thread.loop)

    @property
    def tenants(self) -> BlockingTenants:
        """The tenants that there are, what they may use and what they have used."""
        return BlockingTenants(self.engine.tenants, self._run)

    def workspace(self, tenant: str, *, actor: str = "", request_id: str = "") -> BlockingWorkspace:
        """Return the same for another tenant, or under the name of an actor."""
        bound = self.engine.workspace(tenant, actor=actor, request_id=request_id)
        return BlockingWorkspace(self.engine, bound, self._run, self.loop)

    def close(self) -> None:
        """Close models, child processes and files."""
        if self.loop.is_closed():
            return
        try:
            self._run(self.engine.close())
        finally:
            self._thread.stop()

    def __enter__(self) -> Ragstone:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


async def _open(settings: Settings) -> Engine:
    return open_engine(settings)


async def _work(engine: Engine, only: str | None) -> None:
    # What a worker is made of belongs to the loop: it is made there too.
    await engine.worker(only=only).run(until_idle=True)
