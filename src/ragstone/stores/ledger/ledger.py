"""The ledger in SQL: the same on every database, which an adapter opens."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Concatenate, ParamSpec, TypeVar

from ragstone.core.clock import now
from ragstone.core.errors import RagstoneError, SettingsError, StoreError, TenantGone
from ragstone.core.ledger import LedgerFollower
from ragstone.core.types import KnowledgeBase
from ragstone.stores.activity.removal import (
    Removed,
    count_logged,
    has_old_searches,
    remove_old_rows,
    remove_old_searches,
)
from ragstone.stores.blobs import Blobs
from ragstone.stores.ledger import originals, writes
from ragstone.stores.ledger.originals import Weighed
from ragstone.stores.ledger.tenant_ledger import SqlTenantLedger
from ragstone.stores.ledger.transaction import SqlTransaction, UnitOfWork
from ragstone.stores.sql.database import Connection
from ragstone.stores.vault import Vault

logger = logging.getLogger(__name__)
P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
erasing: ContextVar[str] = ContextVar("ragstone_erasing", default="")
"""The id of the tenant that this task deletes: it alone may still read and write there."""
Work = Callable[Concatenate[Connection, str, P], T]
"""Reads or writes rows of one tenant: given a connection and the tenant's id."""


class SqlLedger(ABC):
    """Implements `core.ledger.Ledger` over rows; a database adds how to reach them."""

    _vault: Vault
    followers: Sequence[LedgerFollower] = ()
    """Indexes elsewhere that follow this ledger."""
    largest_dimension: int | None = None
    """The longest vectors that this ledger's own index can hold; None when any will do."""
    tending: Sequence[Callable[[str], Awaitable[object]]] = ()
    """Periodic work of this ledger's own indexes for a tenant."""

    @abstractmethod
    async def read(self, tenant: str, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `work` reads in one snapshot; raise `UnknownTenant` when nothing was ever written."""

    @abstractmethod
    async def write(self, tenant: str, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work` as a transaction of its own on a tenant that exists."""

    @abstractmethod
    async def read_log(self, tenant: str, work: Work[[], T], otherwise: T) -> T:
        """Return what `work` reads in the retrieval log and the ledger, or `otherwise` when there is no log yet."""

    @abstractmethod
    async def write_log(self, tenant: str, work: Work[[], T]) -> T:
        """Run `work` as a transaction on the retrieval log that waits for no disk: a crash may cost the last ones."""

    @abstractmethod
    async def forget_logged(self, tenant: str, removed: Removed) -> None:
        """Remove from the retrieval log what tells of removed documents and kbs, where no foreign key does."""

    @abstractmethod
    async def clean_up_log(self, tenant: str) -> None:
        """Remove from the retrieval log what tells of documents and kbs that are gone, where no foreign key does."""

    @abstractmethod
    def unit(self, tenant: str) -> AbstractAsyncContextManager[UnitOfWork]:
        """Begin a unit of work; the tenant is made if it does not exist."""

    @abstractmethod
    async def blobs(self, tenant: str, *, make: bool = False) -> Blobs:
        """Return the tenant's original files."""

    @abstractmethod
    async def work_signals(self) -> Mapping[str, int]:
        """Return the active tenants, each with a number that changes when there is new work for it."""

    @abstractmethod
    async def signal_work(self, tenant: str) -> None:
        """Signal that there is new work."""

    @abstractmethod
    async def control_read(self, work: Callable[[Connection], T], otherwise: T) -> T:
        """Return what `work` reads in the control tables, or `otherwise` when nothing was ever written."""

    @abstractmethod
    async def control_write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` as a transaction on those tables: one at a time, on any number of machines."""

    @abstractmethod
    async def admit(self, tenant: str, measure: Work[[], S], decide: Callable[[Connection, S], T]) -> T:
        """Do as `control_write`, given what `measure` reads in the tenant's rows while no other process can decide.

        A process that commits to the tenant's rows and then releases a reservation counts in one of them or both.
        """

    @abstractmethod
    async def forget(self, tenant: str, tenant_id: str) -> None:
        """Remove everything of a tenant that is being deleted but its name; again if it was cut short."""

    @abstractmethod
    async def remains(self, tenant_id: str) -> Mapping[str, int]:
        """Return what is left of a tenant that was deleted: rows by table, and files."""

    @abstractmethod
    async def close(self) -> None: ...

    def of(self, tenant: str) -> SqlTenantLedger:
        """Return the ledger of one tenant."""
        return SqlTenantLedger(self, tenant)

    @asynccontextmanager
    async def transaction(self, tenant: str) -> AsyncIterator[SqlTransaction]:
        async with self.unit(tenant) as unit, SqlTransaction(unit, self.check_dimension, self._vault) as transaction:
            yield transaction
        if transaction.changed:
            await self._try_catch_up(tenant)
        if transaction.removed:
            try:
                await self.forget_logged(tenant, transaction.removed)
            except RagstoneError as error:
                # The rows name ids alone; the next sweep removes them.
                logger.warning("cannot remove deleted documents from the retrieval log: %s", error)

    async def count_logged(self, tenant: str, document_ids: Sequence[str], kb_id: int | None) -> int:
        """Count what the retrieval log has of documents, and of a whole kb if one is named."""
        return await self.read_log(
            tenant, lambda rows, tenant_id: count_logged(rows, tenant_id, document_ids, kb_id), 0
        )

    def check_dimension(self, dimension: int) -> None:
        """Refuse vectors that the index could not hold, before there is a Space of them."""
        if self.largest_dimension is not None and dimension > self.largest_dimension:
            raise SettingsError(
                f"the index holds vectors of {self.largest_dimension:,} dimensions at most, "
                f"and the model gives {dimension:,}",
                hint="choose another model, fewer embedding.dimensions or another vector store",
            )

    async def clean_up(self, tenant: str, document_ids: Sequence[str] | None = None) -> None:
        """Remove what crashes left behind: files that no job needs, and versions that will not go live any more.

        Of some documents, only the files are looked at; else the indexes are maintained, and catch up, as well.
        """
        blobs = await self.blobs(tenant)
        staged = await self.read(tenant, writes.staged_leftovers, now()) if document_ids is None else []
        if staged:
            async with self.transaction(tenant) as tx:
                await tx.discard_leftovers(now())
        for document_id, names in (await self.strays(tenant, document_ids)).items():
            await asyncio.to_thread(blobs.remove, document_id, names)
        if document_ids is None and (wrong := await self.find_miscounted(tenant)):
            await self.write(tenant, originals.correct, wrong)
        for tend in (*self.tending, self.clean_up_log) if document_ids is None else ():
            try:
                await tend(tenant)
            except StoreError as error:
                # Searches are right without it, only slower.
                logger.warning("cannot maintain an index or the retrieval log: %s", error)
        if document_ids is None:
            await self._try_catch_up(tenant)

    async def forget_outdated(self, tenant: str, oldest: datetime) -> None:
        """Remove conversations, searches and article runs from before a moment, and outdated web results."""
        await self.write(tenant, remove_old_rows, oldest)
        try:
            if await self.read_log(tenant, lambda rows, own: has_old_searches(rows, own, oldest), False):
                await self.write_log(tenant, lambda rows, own: remove_old_searches(rows, own, oldest))
        except StoreError as error:
            # Whoever calls this has more to do, and comes back.
            logger.warning("cannot remove old searches from the retrieval log, trying again later: %s", error)

    async def strays(self, tenant: str, document_ids: Sequence[str] | None = None) -> dict[str, list[str]]:
        """Return files that no job needs, by document: of all documents, or of some; also empty folders."""
        blobs = await self.blobs(tenant)
        found = {}
        for document_id, names in (await asyncio.to_thread(blobs.list_old, document_ids)).items():
            needed = await self.read(tenant, originals.list_needed, document_id)
            left = [name for name in names if name not in needed]
            if left or not names:
                found[document_id] = left
        return found

    async def find_miscounted(self, tenant: str) -> list[tuple[Weighed, int]]:
        """Return originals that are counted with another size than they have, and that size: sealing changes it."""
        blobs = await self.blobs(tenant)
        counted = await self.read(tenant, originals.list_weighed)

        def differing() -> list[tuple[Weighed, int]]:
            found = [
                (original, blobs.size(original.document_id, original.name) if original.name else 0)
                for original in counted
            ]
            return [(original, size) for original, size in found if size != original.stored]

        return await asyncio.to_thread(differing)

    @property
    def has_followers(self) -> bool:
        return bool(self.followers)

    async def prepare(self, tenant: str, kb: KnowledgeBase, staged: Sequence[tuple[str, int]]) -> None:
        for follower in self.followers:
            await follower.prepare(tenant, kb, staged)

    async def catch_up(self, tenant: str) -> None:
        """Have every index elsewhere catch up now, or say why it cannot."""
        for follower in self.followers:
            await follower.catch_up(tenant)

    async def scrub(self, tenant: str, kb_ids: Sequence[int]) -> bool:
        """Overwrite what the files keep of removed chunks; False where a server does that in its own time."""
        return False

    async def _try_catch_up(self, tenant: str) -> None:
        for follower in self.followers:
            try:
                await follower.catch_up(tenant)
            except TenantGone:
                continue  # the deletion removes it from the index
            except RagstoneError as error:
                # What it still holds is not found in searches, and its mark says what it has yet to remove.
                logger.warning("cannot catch up an index, trying again later: %s", error)
