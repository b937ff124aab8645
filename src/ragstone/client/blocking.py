"""The client without async."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

from ragstone.client.activity import RemoteAudit, RemoteConversations, RemoteFeedback, RemoteReceipts
from ragstone.client.client import DEFAULT_TIMEOUTS, RETRIES, AsyncClient
from ragstone.client.connection import Timeouts
from ragstone.client.documents import RemoteDocuments
from ragstone.client.management import RemoteEmbeddings, RemoteJobs, RemoteKnowledgeBases, RemoteSources
from ragstone.client.shop import RemoteShop
from ragstone.client.tasks import RemoteArticles, RemoteTasks
from ragstone.core.agents.replies import ReplyEvent
from ragstone.core.answers import AnswerEvent
from ragstone.core.background import Blocking, BlockingPart, LoopThread, wait_for_each
from ragstone.core.jobs import Job
from ragstone.core.search import Question


class BlockingRemoteDocuments(BlockingPart[RemoteDocuments]):
    """Documents: uploaded, listed, read, deleted."""

    upload = Blocking(RemoteDocuments.upload)
    ingest_urls = Blocking(RemoteDocuments.ingest_urls)
    list = Blocking(RemoteDocuments.list)
    original = Blocking(RemoteDocuments.original)
    versions = Blocking(RemoteDocuments.versions)
    text = Blocking(RemoteDocuments.text)
    chunk_records = Blocking(RemoteDocuments.chunk_records)
    status = Blocking(RemoteDocuments.status)
    delete = Blocking(RemoteDocuments.delete)
    delete_many = Blocking(RemoteDocuments.delete_many)


class BlockingRemoteKnowledgeBases(BlockingPart[RemoteKnowledgeBases]):
    """Knowledge bases: listed, counted, renamed, deleted."""

    list = Blocking(RemoteKnowledgeBases.list)
    stats = Blocking(RemoteKnowledgeBases.stats)
    delete = Blocking(RemoteKnowledgeBases.delete)
    rename = Blocking(RemoteKnowledgeBases.rename)


class BlockingRemoteSources(BlockingPart[RemoteSources]):
    """Configured connectors."""

    add = Blocking(RemoteSources.add)
    list = Blocking(RemoteSources.list)
    get = Blocking(RemoteSources.get)
    sync = Blocking(RemoteSources.sync)
    pause = Blocking(RemoteSources.pause)
    resume = Blocking(RemoteSources.resume)
    remove = Blocking(RemoteSources.remove)


class BlockingRemoteJobs(BlockingPart[RemoteJobs]):
    """Jobs that workers do in the background, and notices of how they ended."""

    list = Blocking(RemoteJobs.list)
    get = Blocking(RemoteJobs.get)
    cancel = Blocking(RemoteJobs.cancel)
    retry = Blocking(RemoteJobs.retry)
    counts = Blocking(RemoteJobs.counts)
    notices = Blocking(RemoteJobs.notices)
    mark_read = Blocking(RemoteJobs.mark_read)

    def follow(self, job_id: str) -> Iterator[Job]:
        """Yield a job each time it has changed, until it has ended."""
        return wait_for_each(self.part.follow(job_id), self._run)


class BlockingRemoteFeedback(BlockingPart[RemoteFeedback]):
    """Votes on what searches found, and golden queries."""

    vote = Blocking(RemoteFeedback.vote)
    votes = Blocking(RemoteFeedback.votes)
    golden = Blocking(RemoteFeedback.golden)
    make_golden = Blocking(RemoteFeedback.make_golden)
    add_golden = Blocking(RemoteFeedback.add_golden)
    remove_golden = Blocking(RemoteFeedback.remove_golden)


class BlockingRemoteEmbeddings(BlockingPart[RemoteEmbeddings]):
    """The models and vectors of a kb."""

    queue = Blocking(RemoteEmbeddings.queue)
    spaces = Blocking(RemoteEmbeddings.spaces)


class BlockingRemoteReceipts(BlockingPart[RemoteReceipts]):
    """Receipts of answers."""

    ask = Blocking(RemoteReceipts.ask)
    check = Blocking(RemoteReceipts.check)


class BlockingRemoteConversations(BlockingPart[RemoteConversations]):
    """Conversations and their turns."""

    list = Blocking(RemoteConversations.list)
    turns = Blocking(RemoteConversations.turns)
    forget = Blocking(RemoteConversations.forget)


class BlockingRemoteShop(BlockingPart[RemoteShop]):
    """Products, services and appointments of a shop."""

    find_products = Blocking(RemoteShop.find_products)
    find_services = Blocking(RemoteShop.find_services)
    product = Blocking(RemoteShop.product)
    service = Blocking(RemoteShop.service)
    list_products = Blocking(RemoteShop.list_products)
    list_services = Blocking(RemoteShop.list_services)
    put_product = Blocking(RemoteShop.put_product)
    put_service = Blocking(RemoteShop.put_service)
    remove_product = Blocking(RemoteShop.remove_product)
    remove_service = Blocking(RemoteShop.remove_service)
    import_table = Blocking(RemoteShop.import_table)
    free_slots = Blocking(RemoteShop.free_slots)
    book = Blocking(RemoteShop.book)
    cancel = Blocking(RemoteShop.cancel)
    appointment = Blocking(RemoteShop.appointment)
    appointments = Blocking(RemoteShop.appointments)


class BlockingRemoteTasks(BlockingPart[RemoteTasks]):
    """Queues tasks of a tenant and returns what they made."""

    export = Blocking(RemoteTasks.export)
    import_archive = Blocking(RemoteTasks.import_archive)
    evaluate = Blocking(RemoteTasks.evaluate)
    tune = Blocking(RemoteTasks.tune)
    write_article = Blocking(RemoteTasks.write_article)
    result = Blocking(RemoteTasks.result)


class BlockingRemoteArticles(BlockingPart[RemoteArticles]):
    """Runs of the article pipeline."""

    get = Blocking(RemoteArticles.get)
    list = Blocking(RemoteArticles.list)


class BlockingRemoteAudit(BlockingPart[RemoteAudit]):
    """The audit record."""

    list = Blocking(RemoteAudit.list)


class Client(BlockingPart[AsyncClient]):
    """Does what a `Workspace` does by calling a service, without async: `Client("http://127.0.0.1:8000", key)`."""

    def __init__(self, url: str, key: str, *, timeouts: Timeouts = DEFAULT_TIMEOUTS, retries: int = RETRIES) -> None:
        made = AsyncClient(url, key, timeouts=timeouts, retries=retries)
        self._thread = LoopThread("Client")
        super().__init__(made, self._thread.run)
        self.documents = BlockingRemoteDocuments(made.documents, self._run)
        """Documents: uploaded, listed, read, deleted."""
        self.knowledge_bases = BlockingRemoteKnowledgeBases(made.knowledge_bases, self._run)
        """Knowledge bases: listed, counted, renamed, deleted."""
        self.sources = BlockingRemoteSources(made.sources, self._run)
        """Configured connectors."""
        self.jobs = BlockingRemoteJobs(made.jobs, self._run)
        """Jobs that workers do in the background, and notices of how they ended."""
        self.feedback = BlockingRemoteFeedback(made.feedback, self._run)
        """Votes on what searches found, and golden queries."""
        self.conversations = BlockingRemoteConversations(made.conversations, self._run)
        """Conversations and their turns."""
        self.embeddings = BlockingRemoteEmbeddings(made.embeddings, self._run)
        """The models and vectors of a kb."""
        self.receipts = BlockingRemoteReceipts(made.receipts, self._run)
        """Receipts of answers."""
        self.shop = BlockingRemoteShop(made.shop, self._run)
        """Products, services and appointments of a shop."""
        self.tasks = BlockingRemoteTasks(made.tasks, self._run)
        """Exports, imports, evaluations, tunings and articles, by jobs."""
        self.articles = BlockingRemoteArticles(made.articles, self._run)
        """Runs of the article pipeline, with their articles."""
        self.audit = BlockingRemoteAudit(made.audit, self._run)
        """The audit record."""

    search = Blocking(AsyncClient.search)
    ask = Blocking(AsyncClient.ask)
    chat = Blocking(AsyncClient.chat)
    verify = Blocking(AsyncClient.verify)
    verify_text = Blocking(AsyncClient.verify_text)
    research = Blocking(AsyncClient.research)
    explain = Blocking(AsyncClient.explain)
    erase = Blocking(AsyncClient.erase)
    usage = Blocking(AsyncClient.usage)

    def stream(self, question: Question | str) -> Iterator[AnswerEvent]:
        """Yield what `ask` returns while it is made; ending the loop early ends the work."""
        return wait_for_each(self.part.stream(question), self._run)

    def stream_chat(
        self, message: str, conversation: str | None = None, *, kb: str | None = None
    ) -> Iterator[ReplyEvent]:
        """Yield each sentence of a reply once it is checked, then the reply that `chat` returns."""
        return wait_for_each(self.part.stream_chat(message, conversation, kb=kb), self._run)

    def close(self) -> None:
        """Close the connections."""
        if self._thread.loop.is_closed():
            return
        try:
            self._run(self.part.close())
        finally:
            self._thread.stop()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
