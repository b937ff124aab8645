"""The engine: one set of stores and models, and the operator's side of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from ragstone.core.audit import Receipt
from ragstone.core.errors import RagstoneError
from ragstone.engine.access import TenantScope
from ragstone.engine.components import Components, secret_keys
from ragstone.engine.workspace import Workspace
from ragstone.settings.load import load_settings
from ragstone.settings.tree import Adapter, Settings
from ragstone.stores.control.tenants import SqlTenantBook

if TYPE_CHECKING:
    from ragstone.core.health import HealthFinding
    from ragstone.engine.monitoring.health import Readiness
    from ragstone.engine.monitoring.metrics import Metrics
    from ragstone.engine.tasks import TaskRun
    from ragstone.ingest.jobs.worker import OnEnd, Worker
    from ragstone.stores.control.alerts import Alert
    from ragstone.stores.control.keys import SqlKeyBook
    from ragstone.stores.control.replies import SqlReplyBook
    from ragstone.transfer.reports import MoveReport, OnMove

logger = logging.getLogger(__name__)


def open_engine(settings: Settings | None = None) -> Engine:
    """Return an engine of these settings. Nothing is loaded, started or written until it is needed."""
    return Engine(Components(settings or load_settings()))


class Engine:
    """The stores and models of some settings: `async with open_engine(settings) as engine`.

    What is done for a tenant is done in a workspace: `engine.workspace("acme", actor="key:7f3a")`. What is here
    is for the operator, and out of a workspace's reach.
    """

    def __init__(self, components: Components) -> None:
        self._components = components

    @property
    def settings(self) -> Settings:
        """The settings that the engine was opened with."""
        return self._components.settings

    def workspace(
        self, tenant: str, *, actor: str = "", request_id: str = "", kbs: Sequence[str] = (), remote: bool = False
    ) -> Workspace:
        """Return the engine as one tenant sees it; every audit record of it carries the actor and the request id.

        With `kbs` it is limited to these knowledge bases: others do not exist for it. `remote` is for a caller over the
        network, who may set up no source that reads files, databases or variables of this machine.
        """
        return Workspace(TenantScope(self._components, tenant, actor, request_id, tuple(kbs), remote=remote))

    @property
    def tenants(self) -> SqlTenantBook:
        """The tenants that there are, what they may use and what they have used."""
        return self._components.stores.tenants

    @property
    def keys(self) -> SqlKeyBook:
        """The keys of callers over the network."""
        return self._components.stores.keys

    @property
    def metrics(self) -> Metrics:
        """Measurements of the engine since it was opened."""
        return self._components.metrics

    async def measure(self) -> str:
        """Return the metrics in the text format of Prometheus, with the depth of the queue as it is now."""
        components = self._components
        components.access.require_open()
        if components.web:
            self.metrics.cache_lookups.set("web", "hit", value=components.web.hits)
            self.metrics.cache_lookups.set("web", "miss", value=components.web.misses)
        await components.queue_meter.measure()
        return self.metrics.render()

    @property
    def replies(self) -> SqlReplyBook:
        """The replies to requests over the network that carry an idempotency key."""
        from ragstone.stores.control.replies import SqlReplyBook

        return SqlReplyBook(self._components.ledger)

    async def readiness(self) -> Readiness:
        """Return the state of each part that requests need, as it was found at most two seconds ago."""
        self._components.access.require_open()
        return await self._components.readiness.check()

    async def alerts(self) -> list[Alert]:
        """Return the alerts of all tenants and of the service; those that fire come first."""
        return await self._components.alert_book.all()

    async def alerts_of(self, tenant: str) -> list[Alert]:
        """Return the alerts of a tenant; those that fire come first."""
        identity = await self._components.access.identity(tenant)
        return await self._components.alert_book.all(identity) if identity else []

    async def keep_watch(self) -> None:
        """Look at the alert rules until cancelled."""
        while True:
            await self._components.alert_watch.tick()
            await asyncio.sleep(min(1.0, self.settings.alerts.every_seconds))

    def worker(self, *, only: str | None = None, on_end: OnEnd | None = None) -> Worker:
        """Return a worker for the jobs of all tenants, or only of one; `on_end` hears of each that has ended."""
        from ragstone.ingest.jobs.leases import WorkerRegistry
        from ragstone.ingest.jobs.worker import Worker

        components = self._components
        components.access.require_open()
        maintenance, jobs = components.maintenance, self.settings.jobs
        return Worker(
            components.stores.queue,
            components.ledger,
            components.pipeline,
            jobs,
            run_sync=maintenance.run_sync,
            maintain=maintenance.maintain,
            only=only,
            on_end=on_end,
            housekeeping=components.keep_house,
            registry=WorkerRegistry(self.settings.data_dir / "workers"),
            run_refresh=components.run_refresh,
            run_task=components.run_task,
        )

    def add_task(self, name: str, run: TaskRun) -> None:
        """Have the workers of this engine do tasks of a name that the engine itself does not know."""
        self._components.more_tasks[name] = run

    async def erase_tenant(self, name: str) -> Receipt:
        """Remove a tenant everywhere; return the receipt, or raise `NotFoundError` when there is none."""
        self._components.access.require_open()
        await self._components.search_log.flush()  # what is still on its way to the disk is to go, too
        return await self._components.eraser.erase_tenant(name)

    async def migrate(
        self, to: Adapter, *, tenants: Sequence[str] | None = None, on_progress: OnMove | None = None
    ) -> MoveReport:
        """Build another vector index or another ledger from what is here, and compare every chunk of it."""
        from ragstone.transfer.migrate.migrate import migrate

        self._components.access.require_open()
        return await migrate(
            self._components.stores,
            self.settings,
            to,
            tenants=tenants,
            secret_keys=secret_keys,
            tell=on_progress or (lambda _what, _done, _total: None),
        )

    async def health(self, *, repair: bool = False) -> list[HealthFinding]:
        """Examine every store: reachable, complete, free of leftovers; `repair` puts right what is wrong."""
        from ragstone.stores.health.check import examine

        self._components.access.require_open()
        return await examine(self._components.stores, repair=repair)

    async def warm(self, tenant: str, *, answers: bool = False) -> None:
        """Load the embedding model and have vector stores catch up now, rather than with a tenant's first query.

        With `answers`, the model that helps to choose what is quoted is loaded as well, where it will be needed.
        """
        components = self._components
        components.access.require_open()
        await components.access.read(tenant)
        embedded = await components.embedder.embed(["warm"], "query")
        try:
            await components.ledger.catch_up(tenant)
        except RagstoneError as error:
            logger.warning("cannot bring a vector store up to date, searches go on without it: %s", error)
        if answers and components.llm is None:
            await components.reader.load(embedded.model)

    async def check_stores(self) -> None:
        """Raise what keeps the ledger or the vector store from answering."""
        stores = self._components.stores
        await stores.tenants.get(self.settings.tenant)
        if stores.derived:
            await stores.derived.provider.health()

    async def close(self) -> None:
        """Close models, child processes and files."""
        await self._components.close()

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
