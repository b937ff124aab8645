"""Erase a document, a source, a kb or a tenant everywhere, and prove it: count again, and search for it.

In the ledger it is one transaction, which takes articles and tasks that may hold a copy with it. Other stores follow:
files right after the commit, vectors as the index follows the change feed. What a crash or an engine that is down
leaves is finished by the next process that opens the tenant, or by `ragstone doctor --repair`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragstone.core.audit import Auditor, ErasureTarget, Receipt
from ragstone.core.clock import now
from ragstone.core.errors import NotFoundError, RagstoneError, StoreCorrupt
from ragstone.core.remedies import Action, Remedy, advise
from ragstone.core.tenants import Tenant
from ragstone.core.types import Candidate, KnowledgeBase
from ragstone.core.vectors import VectorPartition
from ragstone.stores.activity import removal
from ragstone.stores.activity.removal import Removed
from ragstone.stores.control.replies import SqlReplyBook
from ragstone.stores.health.vectors import list_abandoned_indexes
from ragstone.stores.ledger import erasure
from ragstone.stores.ledger.erasure import Sample, Traces
from ragstone.stores.vectors.partitions import count_points, list_partitions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ragstone.stores.corpus.upkeep import FileUpkeep
    from ragstone.stores.factory import Stores

logger = logging.getLogger(__name__)
LEDGER, FILES, VECTORS, ACTIVITY, CORPORA = "ledger", "files", "vectors", "activity", "corpus files"
LATER = "the next search or change finishes it, or", Remedy(Action.REPAIR_STORES)
ASKED = "what was asked of it may still be in this log"
REWRITTEN = "the next deletion or build writes them"
CACHE = "shared cache"
REPLIES = "stored replies"
QUOTED = "they may quote it, and are removed a day after the request"
EXPIRE = "no search returns them, and Redis removes them when their time is over (cache.search_seconds)"
DEPTH = 100
"""The depth to which a search for a chunk's own words and vector looks for it."""
WORDS = 12
"""The number of a chunk's words that are searched for: its longest, which few others have."""


@dataclass(slots=True)
class _Case:
    """One target, from before it goes until nothing is left of it."""

    target: ErasureTarget
    chunk_ids: Collection[str] | None = None
    """None when all of a partition goes."""
    partitions: list[VectorPartition] = field(default_factory=list)
    before: dict[str, dict[str, int]] = field(default_factory=dict)
    after: dict[str, dict[str, int]] = field(default_factory=dict)
    unfinished: list[str] = field(default_factory=list)
    left_behind: list[str] = field(default_factory=list)
    """Remains that stores which are no longer in use may hold of it."""
    traces: Traces | None = None
    removed: Removed = field(default_factory=Removed)
    task_folders: list[str] = field(default_factory=list)
    """The folders that the files of removed tasks are in."""
    requery: int | None = None
    scrubbed: bool = False

    @contextmanager
    def unless(self, what: str, then: str = "", remedy: Remedy | None = None) -> Iterator[None]:
        """Go on when a part of it cannot be done now, and say why, and what is done or to be done then."""
        try:
            yield
        except RagstoneError as error:
            self.note_unfinished(what, error, then, remedy)

    def note_unfinished(self, what: str, error: RagstoneError, then: str = "", remedy: Remedy | None = None) -> None:
        """Say in the receipt what could not be done now, why, and what is done or to be done then."""
        self.unfinished.append("; ".join(filter(None, (f"{what}: {error}", error.advice, advise(then, remedy)))))

    def receipt(self, tenant: str) -> Receipt:
        removed = {
            store: {what: number - self.after.get(store, {}).get(what, 0) for what, number in counts.items()}
            for store, counts in self.before.items()
        }
        unfinished = tuple(dict.fromkeys([*self.unfinished, *self.left_behind]))
        return Receipt(tenant, self.target, removed, self.after, self.requery, self.scrubbed, unfinished, now())


class Eraser:
    """Removes everything of a target, in every store."""

    def __init__(self, stores: Stores, file_upkeep: FileUpkeep) -> None:
        self._ledger = stores.ledger
        self._vectors = stores.vectors
        self._lexical = stores.lexical
        self._provider = stores.derived.provider if stores.derived else None
        self._tenants = stores.tenants
        self._file_upkeep = file_upkeep
        self._replies = SqlReplyBook(stores.ledger)
        self._shared_cache = stores.shared_cache
        self._audit = Auditor(stores.audit, self._tenant_id)

    async def erase(
        self, tenant: str, targets: Sequence[ErasureTarget], clean_up: Callable[[], Awaitable[None]] | None = None
    ) -> list[Receipt]:
        """Erase documents, sources or kbs of a tenant; return receipts of those that existed.

        `clean_up` removes what tasks that are gone with them have left of their work.
        """
        cases = [case for target in targets if (case := await self._remove(tenant, target))]
        if cases:
            await self._finish(tenant, cases, clean_up)
        receipts = []
        for case in cases:
            await self._verify(tenant, case)
            receipts.append(case.receipt(tenant))
            await self._audit.record_erasure(receipts[-1])
        return receipts

    async def erase_tenant(self, name: str) -> Receipt:
        """Erase a tenant with all it has, or finish a deletion that was begun; `NotFoundError` when there is none."""
        tenant = await self._tenants.get(name)
        if tenant is None:
            raise NotFoundError(f"there is no tenant '{name}'", remedy=Remedy(Action.LIST_TENANTS))
        case, samples = _Case(ErasureTarget("tenant", name)), list[Sample]()
        if tenant.state != "deleting":
            try:
                samples = await self._survey_tenant(tenant, case)
            except StoreCorrupt as error:  # the way out of that is to delete the tenant
                case.unfinished.append(
                    f"{LEDGER}: {error}: what goes with it was not counted, "
                    f"and a vector database may still hold vectors of tenant {tenant.id} ('{name}')"
                )
        case.before[FILES] = {"files": (await self._ledger.remains(tenant.id))["files"]}
        with case.unless(f"tenant '{name}'", remedy=Remedy(Action.FINISH_TENANT_DELETION, tenant=name)):
            await self._tenants.delete(name)
        left = dict(await self._ledger.remains(tenant.id))
        case.after[FILES] = {"files": left.pop("files")}
        case.after[ACTIVITY] = {"rows": left.pop("activity", 0)}
        case.after[LEDGER] = left
        await self._forget_cached(tenant.id, case)
        await self._look_elsewhere(name, case, samples)
        receipt = case.receipt(name)
        await self._audit.record_erasure(receipt, tenant.id)
        return receipt

    async def _survey_tenant(self, tenant: Tenant, case: _Case) -> list[Sample]:
        """Count what every store holds of a tenant, and return what to search for when it is gone."""
        name = tenant.name
        case.before[LEDGER] = await self._ledger.read(name, erasure.count_tenant)
        samples = await self._ledger.read(name, erasure.tenant_samples)
        case.partitions = await self._partitions(name, ())
        case.left_behind = [
            f"{store}: holds vectors of tenant {tenant.id} ('{name}') and is not in use any more: "
            "remove what carries this id there by hand"
            for store in await self._list_abandoned(name, ())
        ]
        with case.unless(VECTORS):
            await self._count_points(case, case.before)
        with suppress(RagstoneError):  # a log that cannot be read is removed all the same
            case.before[ACTIVITY] = {"rows": await self._count_all_activity(name)}
        with case.unless(LEDGER):
            case.scrubbed = await self._ledger.scrub(name, ())
        return samples

    async def _remove(self, tenant: str, target: ErasureTarget) -> _Case | None:
        """Remove a target from the ledger, after counting what other stores hold of it."""
        action = f"{target.kind}.erase"
        try:
            traces = await self._ledger.read(tenant, erasure.survey, target)
        except NotFoundError:
            return None
        if traces is None:
            if target.kind == "document":
                await self._audit.record_denial(tenant, action, target.name)
            return None
        case = _Case(target, None if traces.whole_kb else traces.chunk_ids)
        if traces.space_ids:
            case.partitions = await self._partitions(tenant, traces.space_ids)
            case.left_behind = [
                advise(
                    f"{store}: may still hold it and is not in use any more",
                    Remedy(Action.FINISH_LEFT_STORE, store=store),
                )
                for store in await self._list_abandoned(tenant, traces.space_ids)
            ]
        with case.unless(VECTORS):
            await self._count_points(case, case.before)
        files = await self._count_files(tenant, traces.document_ids)
        logged: int | None = None
        with suppress(RagstoneError):  # said when it is counted again
            logged = await self._count_logged(tenant, traces)
        await self._audit.record_change(tenant, action, target.name, kb=target.kb, outcome="begun")
        # Also before, since nobody finishes this should the process die after the commit.
        await self._replies.forget(await self._tenant_id(tenant))
        async with self._ledger.transaction(tenant) as tx:
            case.task_folders = await tx.run(erasure.forget_copies, traces.kb)
            erased = await tx.erase(target)
        if erased is None:
            return None  # somebody else was faster
        case.traces, case.removed = erased.traces, erased.removed
        files += await self._count_files(tenant, case.task_folders)
        case.before |= {LEDGER: erased.rows, FILES: {"originals": files}}
        if logged is not None:
            case.before[ACTIVITY] = {"rows": erased.activity + logged}
        logger.info("erased %s %s: %d chunks", target.kind, target.name, erased.rows["chunks"])
        return case

    async def _finish(
        self, tenant: str, cases: Sequence[_Case], clean_up: Callable[[], Awaitable[None]] | None
    ) -> None:
        """Do what follows the transaction, once for all targets."""
        kbs = sorted({case.traces.kb.id for case in cases if case.traces})
        ids = [document_id for case in cases if case.traces for document_id in case.traces.document_ids]
        common = _Case(cases[0].target)
        with common.unless(VECTORS, *LATER):
            await self._ledger.catch_up(tenant)
        with common.unless(LEDGER):
            common.scrubbed = await self._ledger.scrub(tenant, kbs)
        with common.unless(FILES, *LATER):
            for folder in [folder for case in cases for folder in case.task_folders]:
                await self._ledger.of(tenant).drop_files(folder)
            if clean_up:
                await clean_up()
            await self._ledger.clean_up(tenant, ids)
        with common.unless(ACTIVITY, ASKED):
            for case in cases:
                await self._ledger.forget_logged(tenant, case.removed)
        for error in await self._file_upkeep.refresh(tenant):
            common.note_unfinished(CORPORA, error, REWRITTEN)
        tenant_id = await self._tenant_id(tenant)
        with common.unless(REPLIES, QUOTED):
            await self._replies.forget(tenant_id)
        await self._forget_cached(tenant_id, common)
        for case in cases:
            # What could not be counted before may be done by now, so that only this is to be told.
            case.unfinished, case.scrubbed = list(common.unfinished), common.scrubbed

    async def _forget_cached(self, tenant_id: str, case: _Case) -> None:
        if self._shared_cache:
            with case.unless(CACHE, EXPIRE):
                await self._shared_cache.forget(tenant_id)

    async def _verify(self, tenant: str, case: _Case) -> None:
        traces = case.traces
        assert traces is not None
        case.after[LEDGER] = await self._ledger.read(tenant, erasure.count, traces)
        files = await self._count_files(tenant, [*traces.document_ids, *case.task_folders])
        case.after[FILES] = {"originals": files}
        with case.unless(ACTIVITY, ASKED):
            case.after[ACTIVITY] = {"rows": await self._count_activity(tenant, traces)}
        if files:
            case.unfinished.append(
                advise(
                    f"{FILES}: {files} may be on the way in, or left by a crash; "
                    "what nobody needs an hour later is removed by a worker, or",
                    Remedy(Action.REPAIR_STORES),
                )
            )
        await self._look_elsewhere(tenant, case, traces.samples)

    async def _look_elsewhere(self, tenant: str, case: _Case, samples: Sequence[Sample]) -> None:
        """Count what the vector database has, and search for what was erased."""
        with case.unless(VECTORS, *LATER):
            if self._provider and self._provider.name in case.before:
                case.after[self._provider.name] = case.before[self._provider.name]  # unless it says otherwise
            await self._count_points(case, case.after)
            found: set[str] = set()
            for sample in samples:
                found |= await self._still_found(tenant, sample, case)
            case.requery = len(found)

    async def _partitions(self, tenant: str, space_ids: Sequence[int]) -> list[VectorPartition]:
        if self._provider is None:
            return []
        return await self._ledger.read(tenant, list_partitions, self._provider.name, space_ids)

    async def _list_abandoned(self, tenant: str, space_ids: Sequence[int]) -> list[str]:
        used = self._provider.name if self._provider else ""
        return await self._ledger.read(tenant, list_abandoned_indexes, used, space_ids)

    async def _count_points(self, case: _Case, counts: dict[str, dict[str, int]]) -> None:
        if self._provider is not None:
            found = [await count_points(self._provider, partition, case.chunk_ids) for partition in case.partitions]
            counts[self._provider.name] = {"points": sum(found)}

    async def _count_files(self, tenant: str, document_ids: Sequence[str]) -> int:
        blobs = await self._ledger.blobs(tenant)
        return await asyncio.to_thread(lambda: sum(len(blobs.names(document_id)) for document_id in document_ids))

    async def _count_activity(self, tenant: str, traces: Traces) -> int:
        kb_id = traces.kb.id if traces.whole_kb else None
        rows = await self._ledger.read(tenant, removal.count_rows, traces.document_ids, kb_id)
        return rows + await self._count_logged(tenant, traces)

    async def _count_logged(self, tenant: str, traces: Traces) -> int:
        kb_id = traces.kb.id if traces.whole_kb else None
        return await self._ledger.count_logged(tenant, traces.document_ids, kb_id)

    async def _count_all_activity(self, tenant: str) -> int:
        """Count conversations, votes, golden queries and logged searches, wherever the log is."""
        rows = await self._ledger.read(tenant, removal.count_tenant_rows)
        return rows + await self._ledger.read_log(tenant, removal.count_tenant_log, 0)

    async def _tenant_id(self, tenant: str) -> str:
        found = await self._tenants.get(tenant)
        return found.id if found else ""

    async def _still_found(self, tenant: str, sample: Sample, case: _Case) -> set[str]:
        """Return the erased chunks that a search for one of them finds, by word, by vector and in the engine itself."""
        found: list[Candidate] = []
        kb, vector = await self._searchable(tenant, sample.kb), sample.vector
        if kb:
            found += await self._lexical.search(tenant, kb, _telling(sample.text), DEPTH)
        if kb and vector is not None:
            found += await self._vectors.search(tenant, kb, vector, DEPTH)
        if self._provider is not None and vector is not None:
            for partition in case.partitions:
                if partition.dimension == len(vector):
                    found += await self._provider.search(partition, vector, DEPTH)
        ids = {candidate.chunk_id for candidate in found}
        return ids if case.chunk_ids is None else ids.intersection(case.chunk_ids)

    async def _searchable(self, tenant: str, kb: KnowledgeBase) -> KnowledgeBase | None:
        """Return the kb if it can still be searched: one of the same name that was made since is another one."""
        try:
            now_there = await self._ledger.of(tenant).kb(kb.name)
        except NotFoundError:
            return None  # the tenant is going
        return now_there if now_there and now_there.id == kb.id else None


def _telling(text: str) -> str:
    """Return the longest words of a text, which few others have."""
    words = sorted(set(text.split()), key=lambda word: (-len(word), word))
    return " ".join(words[:WORDS])
