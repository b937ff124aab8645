"""Tasks: exports, imports, evaluations, tunings and articles that workers do in the background, and what they make.

The file of a task is kept as originals of documents are: sealed where there is a key, counted, and removed with the
tenant. A task that is done again after a crash starts from the beginning and ends the same; an article goes on.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ragstone.core.agents.articles import GraphName
from ragstone.core.clock import now
from ragstone.core.errors import InputError, JobNotDone, LeaseLost, NotFoundError, RagstoneError, TenantGone, unknown_kb
from ragstone.core.ids import opaque_id
from ragstone.core.jobs import Job, JobProgress, Labels, NewJob, Priority, TaskFile, TaskResult
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Json, KnowledgeBase
from ragstone.engine.access import TenantScope, WorkspacePart, record_caller, within_kbs
from ragstone.stores.ledger.jobs import read_job
from ragstone.stores.ledger.sqlite.file import TASKS, remove_folder, translate_errors

if TYPE_CHECKING:
    from ragstone.core.documents import IngestReport
    from ragstone.engine.components import Components
    from ragstone.engine.experiments import Experiment
    from ragstone.evaluate.dataset import Dataset
    from ragstone.schemas.schema import Schema
    from ragstone.settings.tree import Settings
    from ragstone.stores.sql.database import Connection

logger = logging.getLogger(__name__)
TaskName = Literal["export", "import", "evaluation", "tuning", "article"]
Tell = Callable[[JobProgress], None]
ARTICLE: TaskName = "article"
"""Done by agents, which stand above the engine: they add how it is done."""
TaskRun = Callable[["TenantScope", Job, Path, Tell], Awaitable[tuple[str, bytes]]]
KEPT_TASKS = 10
KEPT_DAYS = 7
MB = 1024 * 1024
SYSTEMS = ("lexical", "dense", "hybrid", "reranked", "fast", "balanced", "thorough")


@record_caller
class Tasks(WorkspacePart):
    """Queues tasks of a tenant and returns what they made. The newest ten are kept, for a week."""

    async def export(self, *, kbs: Sequence[str] | None = None, files: bool = True) -> Job:
        """Queue the writing of all kbs, or some, into an archive."""
        tenant = await self._scope.admit()
        known = {kb.name: kb for kb in await self._components.ledger.of(tenant).kbs()}
        wanted = list(known) if kbs is None else list(dict.fromkeys(kbs))
        for name in wanted:
            if name not in known:
                raise unknown_kb(name, tenant)
        if not wanted:
            raise unknown_kb(self._scope.settings.kb, tenant)
        return await self._enqueue("export", known[wanted[0]], {"kbs": wanted, "files": files})

    async def import_archive(self, content: bytes, *, kbs: Sequence[str] | None = None, overwrite: bool = False) -> Job:
        """Queue the import of an archive; what is there already stays unless it is to be overwritten."""
        from ragstone.transfer.archive.format import not_an_archive

        tenant = await self._scope.write()
        if not content.startswith(b"PK"):
            raise not_an_archive()
        async with self._components.ledger.transaction(tenant) as tx:
            kb = await tx.open_kb(self._scope.settings.kb)
        facts = {"kbs": None if kbs is None else list(kbs), "overwrite": overwrite}
        return await self._enqueue("import", kb, facts, content)

    async def evaluate(
        self, labels: Labels = "golden", *, systems: Sequence[str] = (), limit: int | None = None, kb: str | None = None
    ) -> Job:
        """Queue a measurement of search on the golden queries of a kb, or on its votes."""
        for name in systems:
            if name not in SYSTEMS:
                raise InputError(f"there is no system {name!r:.40}", hint=f"choose from: {', '.join(SYSTEMS)}")
        if "reranked" in systems and self._scope.settings.reranking.kind == "none":
            raise InputError("the system 'reranked' needs a reranker", hint="set reranking.kind")
        facts = {"labels": labels, "systems": list(systems), "limit": limit}
        return await self._enqueue("evaluation", await self._labelled_kb(labels, kb), facts)

    async def tune(
        self,
        labels: Labels = "golden",
        *,
        budget_ms: float | None = None,
        limit: int | None = None,
        kb: str | None = None,
    ) -> Job:
        """Queue a search for better settings; what it finds is in its result and applied by nobody."""
        facts = {"labels": labels, "budget_ms": budget_ms, "limit": limit}
        return await self._enqueue("tuning", await self._labelled_kb(labels, kb), facts)

    @within_kbs
    async def write_article(
        self, topic: str = "", *, graph: GraphName = "full", run_id: str | None = None, kb: str | None = None
    ) -> Job:
        """Queue the writing of an article on a topic, or the rest of one that a run has begun."""
        from ragstone.engine.articles import Articles

        articles = Articles(self._scope)
        run = await articles.get(run_id) if run_id else await articles.start(topic, graph=graph, kb=kb)
        return await self._enqueue(ARTICLE, await self._scope.kb(run.kb), {"run": run.id})

    async def result(self, job_id: str) -> TaskFile:
        """Return what a task has made, or raise `NotFoundError`."""
        tenant = await self._scope.admit()
        job = await self._components.stores.queue.of(tenant).job(job_id)
        if job is None or job.kind != "task":
            await self._components.audit.record_denial(tenant, "job.read", job_id)
            raise NotFoundError(f"no job {job_id} with a result", remedy=Remedy(Action.LIST_JOBS))
        if job.state != "completed":
            raise JobNotDone(f"job {job_id} is {job.state} and has no result", hint=f"wait until {job_id} is completed")
        named = [(job.document_id, str(job.facts["original"]))]
        (content,) = await self._components.ledger.of(tenant).originals(named)
        if content is None:
            raise NotFoundError(f"the result of job {job_id} is gone", remedy=Remedy(Action.LIST_JOBS))
        await self._components.audit.record_read(tenant, "job.result", target=job_id)
        if job.source == "export":
            return TaskFile(f"{tenant}-{job.created_at:%Y-%m-%d}.ragstone.zip", "application/zip", content)
        return TaskFile(f"{job.source}.json", "application/json", content)

    async def _enqueue(self, name: TaskName, kb: KnowledgeBase, facts: Mapping[str, Json], content: bytes = b"") -> Job:
        tenant, components, folder = self._scope.tenant, self._components, opaque_id()
        ledger = components.ledger
        async with components.access.taking_in(tenant, size=len(content), queued=True):
            named = await ledger.of(tenant).keep_originals([(folder, content)]) if content else [None]
            wanted = NewJob(
                kind="task",
                source=name,
                external_id=folder,
                uri=f"{name}:{kb.name}",
                priority=Priority.BATCH,
                document_id=folder,
                size=len(content),
                facts={
                    **facts,
                    "original": named[0],
                    "keep": False,
                    "actor": self._scope.actor,
                    "request_id": self._scope.request_id,
                },
                notify=True,
            )
            async with ledger.transaction(tenant) as tx:
                job = await tx.enqueue(kb, wanted)
        await components.stores.queue.signal_work(tenant)
        return job

    async def _labelled_kb(self, labels: Labels, kb: str | None) -> KnowledgeBase:
        await self._scope.write()
        scope = await self._scope.kb(kb)
        await _load_labels(self._scope, labels, scope.name)
        return scope


async def forget_tasks(components: Components, tenant: str) -> None:
    """Remove old tasks of a tenant with their files, and what crashes have left of any."""
    queue = components.stores.queue.of(tenant)
    for folder in await queue.forget_tasks(keep=KEPT_TASKS, before=now() - timedelta(days=KEPT_DAYS)):
        await components.ledger.of(tenant).drop_files(folder)
    await _remove_left_of(components, tenant)


async def remove_left_folders(components: Components) -> None:
    """Remove what tasks that no longer run have left in the data folder, of every tenant and of earlier versions."""
    place = components.settings.data_dir / TASKS
    names = await asyncio.to_thread(_list_folders, place)
    tenants = {tenant.id: tenant.name for tenant in await components.stores.tenants.all()} if names else {}
    for name in names:
        try:
            if name in tenants:
                await _remove_left_of(components, tenants[name])
            # Of a tenant that was deleted on another machine, or of a job: earlier versions had no folders of tenants.
            elif not await _runs_anywhere(components, tenants.values(), name):
                await asyncio.to_thread(remove_folder, place / name)
        except TenantGone:
            continue  # the deletion removes it
        except RagstoneError as error:
            logger.warning("cannot remove what a task has left in %s, trying again later: %s", place / name, error)


async def _remove_left_of(components: Components, tenant: str) -> None:
    tenant_id = (await components.ledger.blobs(tenant)).tenant_id
    place = components.settings.data_dir / TASKS / tenant_id
    # Listed before the jobs are read: no attempt that begins later can lose its folder.
    if names := await asyncio.to_thread(_list_folders, place):
        for name in await components.ledger.read(tenant, _choose_left, place.name, names):
            await asyncio.to_thread(remove_folder, place / name)
    await asyncio.to_thread(_drop_if_empty, place)


def _choose_left(connection: Connection, tenant_id: str, listed: str, names: Sequence[str]) -> list[str]:
    """Return the folders whose attempts do not hold their jobs any more; none if the name has changed hands."""
    jobs = {name: read_job(connection, tenant_id, name.partition(".")[0]) for name in names}
    running = {_name_folder(job) for job in jobs.values() if job and job.state == "running"}
    return [name for name in names if name not in running] if tenant_id == listed else []


async def _runs_anywhere(components: Components, tenants: Iterable[str], job_id: str) -> bool:
    found = [await components.stores.queue.of(tenant).job(job_id) for tenant in tenants]
    return any(job and job.state == "running" for job in found)


async def run_task(components: Components, tenant: str, job: Job, tell: Tell) -> tuple[str, TaskResult]:
    """Do a task; return what it came to, and the file that it made."""
    facts = job.facts
    # It may have been queued over the network.
    scope = TenantScope(components, tenant, str(facts.get("actor", "")), str(facts.get("request_id", "")), remote=True)
    await forget_tasks(components, tenant)
    tenant_id = (await components.ledger.blobs(tenant)).tenant_id
    place = components.settings.data_dir / TASKS
    shutil.rmtree(place / job.id, ignore_errors=True)  # of an attempt of an earlier version that a crash ended
    folder = place / tenant_id / _name_folder(job)
    _make_folder(folder)
    try:
        message, content = await _find_run(components, job.source)(scope, job, folder, tell)
    except Exception as error:
        if folder.exists():
            raise
        raise LeaseLost(f"task {job.id} was forgotten while it ran") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _drop_if_empty(folder.parent)
    async with components.access.taking_in(tenant, size=len(content)):
        (name,) = await components.ledger.of(tenant).keep_originals([(job.document_id, content)])
    return message, TaskResult(name, len(content))


def _name_folder(job: Job) -> str:
    """Return a name that no other attempt of a job has: what a crash left is known, whoever runs the job now."""
    return f"{job.id}.{job.token}"


def _make_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # of the same attempt, before the jobs came back from a backup
    with translate_errors(folder):
        while True:
            folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with suppress(FileNotFoundError):  # the tenant's folder went with its last task just now
                folder.mkdir(mode=0o700)
                return


def _drop_if_empty(folder: Path) -> None:
    with suppress(OSError):  # another task runs, or there was none
        folder.rmdir()


def _list_folders(place: Path) -> list[str]:
    with translate_errors(place), suppress(FileNotFoundError):
        return [entry.name for entry in place.iterdir() if entry.is_dir()]
    return []


async def _export(scope: TenantScope, job: Job, folder: Path, tell: Tell) -> tuple[str, bytes]:
    from ragstone.engine.archive import Archive

    path, most = folder / "archive.zip", scope.settings.limits.file_mb * MB
    kbs, files = job.facts["kbs"], bool(job.facts["files"])
    report = await Archive(scope).export(path, kbs=kbs, files=files, on_progress=_tell_move(tell))
    if report.bytes > most:
        raise InputError(
            f"the archive has {report.bytes} bytes; at most {most} can be downloaded",
            hint="export fewer knowledge bases at a time or without files, or have it exported on the machine",
        )
    return f"{report.documents} documents were exported", path.read_bytes()


async def _import(scope: TenantScope, job: Job, folder: Path, tell: Tell) -> tuple[str, bytes]:
    from ragstone.engine.archive import Archive
    from ragstone.schemas.transfer import ImportSchema

    named = [(job.document_id, str(job.facts["original"]))]
    (content,) = await scope.components.ledger.of(scope.tenant).originals(named)
    if content is None:
        raise NotFoundError("the archive is gone")
    path = folder / "archive.zip"
    path.write_bytes(content)
    report = await Archive(scope).restore(
        path, kbs=job.facts["kbs"], overwrite=bool(job.facts["overwrite"]), on_progress=_tell_move(tell)
    )
    done = f"{report.added} documents were added, {report.replaced} replaced, {report.unchanged} were there"
    return done, _pack(ImportSchema.of(replace(report, path=path.name)))


async def _evaluate(scope: TenantScope, job: Job, folder: Path, tell: Tell) -> tuple[str, bytes]:
    from ragstone.evaluate.report import machine
    from ragstone.schemas.evaluation import EvaluationSchema

    experiment = await _open_experiment(scope, job, tell)
    reranks = scope.settings.reranking.kind != "none"
    systems = job.facts["systems"] or [name for name in SYSTEMS if reranks or name != "reranked"]
    report, _ = await experiment.run(systems, {})
    best = max(report.rows, key=lambda row: row.scores["ndcg@10"])
    done = f"{best.system} finds best: nDCG@10 {best.scores['ndcg@10']:.3f} on {report.queries} queries"
    return done, _pack(EvaluationSchema.of(report, machine=machine(), failed=()))


async def _tune(scope: TenantScope, job: Job, folder: Path, tell: Tell) -> tuple[str, bytes]:
    from ragstone.evaluate.tune import MODE_MS, knobs_for, tune
    from ragstone.schemas.evaluation import TuningSchema

    experiment = await _open_experiment(scope, job, tell)
    settings = experiment.settings()
    budget = job.facts["budget_ms"] or MODE_MS[settings.retrieval.mode]
    tuning = await tune(experiment.try_changes, experiment.dataset, knobs_for(settings), budget)
    found = ", ".join(f"{key}={value}" for key, value in tuning.changes.items())
    done = f"better settings: {found}" if tuning.is_better else "no settings are certainly better than yours"
    return done, _pack(TuningSchema.of(tuning, written=None))


RUNS: dict[str, TaskRun] = {"export": _export, "import": _import, "evaluation": _evaluate, "tuning": _tune}


def _find_run(components: Components, name: str) -> TaskRun:
    run = RUNS.get(name) or components.more_tasks.get(name)
    if run is None:
        raise InputError(
            f"this worker does not know the task '{name}'", hint="agents' tasks need the worker of a service"
        )
    return run


async def _load_labels(scope: TenantScope, labels: Labels, kb: str) -> Dataset:
    from ragstone.engine.feedback import Feedback

    feedback = Feedback(scope)
    found = await feedback.golden_dataset(kb=kb) if labels == "golden" else await feedback.judged(kb=kb)
    if found is None:
        missing = "golden queries" if labels == "golden" else "passages that were voted up or used"
        remedy = Remedy(Action.MAKE_GOLDEN if labels == "golden" else Action.ADD_FEEDBACK)
        raise InputError(f"there are no {missing} of knowledge base '{kb}'", remedy=remedy)
    return found


async def _open_experiment(scope: TenantScope, job: Job, tell: Tell) -> Experiment:
    from ragstone.engine.engine import open_engine
    from ragstone.engine.experiments import Experiment

    dataset = await _load_labels(scope, job.facts["labels"], job.kb)
    if limit := job.facts["limit"]:
        dataset = replace(dataset, queries=dataset.queries[:limit])
    own = scope.settings.model_copy(update={"tenant": scope.tenant, "kb": job.kb})
    return Experiment(
        dataset,
        uses_own_kb=True,
        load_settings=lambda changes: _change_settings(own, changes),
        # An engine of its own: what is measured is neither cached nor recorded as a search of the tenant.
        open_engine=open_engine,
        watcher=_TellingWatcher(tell),
        kb=job.kb,
    )


def _change_settings(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    for key, value in changes.items():
        section, _, name = key.partition(".")
        changed = getattr(settings, section).model_copy(update={name: value}) if name else value
        settings = settings.model_copy(update={section: changed})
    return settings


@dataclass(frozen=True, slots=True)
class _TellingWatcher:
    """Reports the progress of an experiment as that of a job. Implements `Watcher`."""

    tell: Tell

    def watch_ingest(self, total: int) -> AbstractContextManager[None]:
        return nullcontext()

    def watch_queries(self, label: str) -> AbstractContextManager[Callable[[int, int], None]]:
        return nullcontext(lambda done, total: _tell_move(self.tell)(label, done, total))

    def report_ingest(self, report: IngestReport) -> None:
        pass


def _tell_move(tell: Tell) -> Callable[[str, int, int], None]:
    return lambda what, done, total: tell(JobProgress(stage=what, percent=int(done * 99 / total) if total else 0))


def _pack(shape: Schema) -> bytes:
    return json.dumps(shape.as_json()).encode()
