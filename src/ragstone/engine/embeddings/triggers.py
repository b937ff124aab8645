"""When a kb is refreshed: its schedule says so, the settings name another model, or people find too little.

Workers ask about once an hour. The queue is the only memory: what is due has a name, and a kb has each once, however
many workers find it due.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ragstone.core.activity import SearchReport
from ragstone.core.clock import canonical, now
from ragstone.core.errors import (
    CollectionBusy,
    InputError,
    ModelError,
    QuotaExceeded,
    SettingsError,
    TenantSuspended,
    unknown_kb,
)
from ragstone.core.ids import opaque_id
from ragstone.core.jobs import ACTIVE, Job, NewJob, Priority
from ragstone.core.ledger import Ledger
from ragstone.core.protocols import Queue, SpaceBook
from ragstone.core.remedies import Action, Remedy, advise
from ragstone.core.types import KnowledgeBase, Space
from ragstone.engine.access import TenantAccess
from ragstone.ingest.jobs.schedule import next_run
from ragstone.models.embedders.pool import EmbedderPool
from ragstone.settings.targets import Target
from ragstone.settings.tree import RefreshSettings, Settings

logger = logging.getLogger(__name__)
Report = Callable[[str, str, int], Awaitable[SearchReport]]
"""Reports how searches of a tenant's kb did in some days."""
QUALITY_DAYS = 30
"""The period whose searches count."""
FEWEST_JUDGED = 20
"""Judged searches below which a figure says nothing."""
QUIET = timedelta(days=7)
"""The period in which the same kb's quality is not reported or acted on again."""
JUDGE_SECONDS = 24 * 3600.0
ALARMING = {"recall@10": Target(above=0.8, alert=0.6)}
"""Alarming values where the settings' `targets` say nothing."""


@dataclass(frozen=True, slots=True)
class DueRefresh:
    """A refresh that is due. A kb has one of the same name once."""

    name: str
    because: str
    model: str = ""
    """The name of what to move to; empty to refresh what there is."""
    model_id: str = ""
    sources: bool = False
    full: bool = False
    """Re-embed everything, also what looks fresh."""


@dataclass(frozen=True, slots=True)
class RefreshStatus:
    """The schedule of a kb's refreshes, the last one and the next."""

    kb: str
    settings: RefreshSettings
    last: Job | None
    next_at: datetime | None
    """When the schedule is due; None when there is none, or nothing is embedded."""


class Triggers:
    """Queues refreshes that are due."""

    def __init__(
        self,
        ledger: Ledger,
        queue: Queue,
        book: SpaceBook,
        embedders: EmbedderPool,
        access: TenantAccess,
        report: Report,
        settings: Settings,
    ) -> None:
        self._ledger = ledger
        self._queue = queue
        self._book = book
        self._embedders = embedders
        self._access = access
        self._report = report
        self._settings = settings
        self._refresh = settings.embedding.refresh
        self._judged: dict[str, float] = {}
        try:
            next_run(self._refresh.every, now())
        except SettingsError as error:
            raise SettingsError(f"setting 'embedding.refresh.every': {error}", hint=error.hint) from error

    async def start_due(self, tenant: str) -> None:
        """Queue what is due for a tenant, and warn of what is not looked after."""
        try:
            await self._access.write(tenant)
        except (TenantSuspended, QuotaExceeded):
            return  # nothing is embedded for it now
        judges = time.monotonic() - self._judged.get(tenant, float("-inf")) >= JUDGE_SECONDS
        if judges:
            self._judged[tenant] = time.monotonic()
        for kb in await self._ledger.of(tenant).kbs():
            if kb.space is None:
                continue
            due = await self._upgrade(tenant, kb, kb.space)
            if due and await self._queue_due(tenant, kb, due):
                continue
            due = await self._due_by_schedule(tenant, kb)
            if due and await self._queue_due(tenant, kb, due):
                continue
            due = await self._poor(tenant, kb) if judges else None
            if due:
                await self._queue_due(tenant, kb, due)

    async def status(self, tenant: str, kb_name: str) -> RefreshStatus:
        """Return the schedule of a kb's refreshes, the last one and the next."""
        kb = await self._ledger.of(tenant).kb(kb_name)
        if kb is None:
            raise unknown_kb(kb_name, tenant)
        last = await self._queue.of(tenant).newest(kb, "reembed")
        return RefreshStatus(kb_name, self._refresh, last, await self._next_at(tenant, kb, last))

    async def request(self, tenant: str, kb_name: str, model: str | None, actor: str) -> Job:
        """Queue the making of all vectors of a kb, by another model or by the same; return the job of one under way.

        Raises `CollectionBusy` while the kb has a job that does something else.
        """
        kb = await self._ledger.of(tenant).kb(kb_name)
        if kb is None:
            raise unknown_kb(kb_name, tenant)
        because = f"asked for by {actor}" if actor else "asked for"
        due = DueRefresh(f"request {opaque_id()}", because, full=True)
        if model:
            try:
                found = (await self._embedders.get(model)).model
            except (ModelError, SettingsError) as error:
                raise InputError(f"'{model}' cannot be used: {error}", hint=error.hint, remedy=error.remedy) from error
            if kb.space is None or not found.fits(kb.space):
                due = replace(due, model=model, model_id=found.id)
        queued = await self._enqueue(tenant, kb, due)
        if queued.facts["model_id"] != due.model_id or not (due.model or queued.facts.get("full")):
            wanted = f"move knowledge base '{kb_name}' to {model}"
            if not due.model:
                wanted = f"embed all of knowledge base '{kb_name}' again"
            raise CollectionBusy(
                f"cannot {wanted}: job {queued.id} of it is {queued.state} ({queued.facts['because']})",
                hint="wait until it has ended, or cancel it",
                remedy=Remedy(Action.LIST_JOBS),
            )
        await self._queue.signal_work(tenant)
        return queued

    async def _queue_due(self, tenant: str, kb: KnowledgeBase, due: DueRefresh) -> bool:
        """Queue a refresh and return whether it was queued: not if the kb has had this one, however that ended."""
        queued = await self._enqueue(tenant, kb, due)
        if queued.state not in ACTIVE:
            return False
        await self._queue.signal_work(tenant)
        return True

    async def _enqueue(self, tenant: str, kb: KnowledgeBase, due: DueRefresh) -> Job:
        generations = [space.generation for space, _ in await self._book.of(tenant).outline(kb)]
        job = NewJob(
            kind="reembed",
            source="",
            external_id=due.name,
            uri=f"reembed:{kb.name}",
            priority=Priority.BATCH,
            facts={
                "because": due.because,
                "model": due.model,
                "model_id": due.model_id,
                "sources": due.sources,
                "full": due.full,
                # What is begun later is of this job, which may have been interrupted.
                "after": max(generations, default=0),
            },
            notify=True,
        )
        async with self._ledger.transaction(tenant) as tx:
            return await tx.enqueue(kb, job)

    async def _due_by_schedule(self, tenant: str, kb: KnowledgeBase) -> DueRefresh | None:
        last = await self._queue.of(tenant).newest(kb, "reembed")
        moment = await self._next_at(tenant, kb, last)
        if moment is None or moment > now():
            return None
        because = f"due since {canonical(moment)} ({self._refresh.every})"
        return DueRefresh(f"schedule {canonical(moment)}", because, sources=self._refresh.sources, full=True)

    async def _next_at(self, tenant: str, kb: KnowledgeBase, last: Job | None) -> datetime | None:
        """Return the first time that the schedule names after the last refresh, or after the live Space was made."""
        if kb.space is None or next_run(self._refresh.every, now()) is None:
            return None
        made = [moment for space, moment in await self._book.of(tenant).outline(kb) if space.id == kb.space.id]
        since = [*made, *([last.created_at] if last else [])]
        return next_run(self._refresh.every, max(since)) if since else None

    async def _upgrade(self, tenant: str, kb: KnowledgeBase, live: Space) -> DueRefresh | None:
        """Once to each model: two workers with different settings must not move a kb to and fro."""
        if "model" not in self._refresh.when:
            return None
        try:
            name, wanted = await self._wanted_model(tenant)
        except (ModelError, SettingsError) as error:
            logger.warning("'%s' is not moved to the configured model: %s", kb.name, error)
            return None
        if live.model in (wanted, self._embedders.default.model.id):
            return None  # a fallback that has taken its model's place is as good
        if wanted in {space.model for space, _ in await self._book.of(tenant).outline(kb) if space != live}:
            return None  # somebody has built it already, or has gone back from it
        because = f"the settings name {wanted} instead of {live.model}"
        return DueRefresh(f"model {wanted}", because, model=name, model_id=wanted)

    async def _wanted_model(self, tenant: str) -> tuple[str, str]:
        """Return the name and the id of the model that a tenant's settings ask for."""
        name = (await self._access.settings_for(tenant)).embedding.model
        if name == self._settings.embedding.model:
            return name, self._embedders.default_id
        return name, (await self._embedders.get(name)).model.id

    async def _poor(self, tenant: str, kb: KnowledgeBase) -> DueRefresh | None:
        report = await self._report(tenant, kb.name, QUALITY_DAYS)
        problem = poor_quality(report, self._settings.targets)
        if not problem:
            return None
        if "quality" in self._refresh.when:
            last = await self._queue.of(tenant).newest(kb, "reembed")
            if last and last.created_at > now() - QUIET:
                return None
            return DueRefresh(f"quality {canonical(now())[:10]}", problem)
        warning = advise(problem, Remedy(Action.IMPROVE_SEARCH, kb=kb.name))
        await self._queue.of(tenant).warn(f"quality:{kb.name}", warning, quiet_since=now() - QUIET)
        return None


def poor_quality(report: SearchReport, targets: Mapping[str, Target]) -> str:
    """Return which figures of a kb's searches are alarming; empty when none is, or when too few were judged to say."""
    if report.judged < FEWEST_JUDGED:
        return ""
    figures = {"recall@10": report.recall_at_10, "p@5": report.precision_at_5}
    bounds = {**ALARMING, **targets}
    said = [
        f"{name} is {figure:.2f} (wanted {bounds[name]}, alarming at {bounds[name].alert:g})"
        for name, figure in figures.items()
        if figure is not None and name in bounds and bounds[name].alarms(figure)
    ]
    return f"{' and '.join(said)} on {report.judged} judged searches" if said else ""
