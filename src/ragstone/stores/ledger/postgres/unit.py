"""A unit of work on PostgreSQL, and tenants: registered with their partitions, removed with everything of theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from ragstone.core.audit import Caller, caller
from ragstone.core.errors import StoreError
from ragstone.stores.activity.removal import count_tenant_log, count_tenant_rows
from ragstone.stores.blobs import Blobs
from ragstone.stores.control import tenant_rows
from ragstone.stores.indexes import TransactionalIndex
from ragstone.stores.ledger.erasure import count_tenant
from ragstone.stores.ledger.postgres.pool import ConnectionThread
from ragstone.stores.ledger.postgres.session import Session
from ragstone.stores.ledger.repository import UnknownTenant
from ragstone.stores.sql.database import Connection

T = TypeVar("T")
GUARDED = (
    "SELECT relname FROM pg_class WHERE relnamespace = 'ragstone'::regnamespace AND relkind = 'r' "
    "AND relrowsecurity AND NOT relispartition ORDER BY relname"
)


def forget_tenant(connection: Connection, tenant_id: str) -> None:
    """Remove a tenant's partitions and rows; its name stays until the last of it is gone."""
    connection.execute("SELECT set_config('ragstone.tenant', ?, true)", (tenant_id,))
    connection.execute("SELECT drop_partitions(?)", (tenant_id,))
    for (table,) in connection.execute(GUARDED).fetchall():
        connection.execute(f'DELETE FROM "{table}" WHERE tenant_id = ?', (tenant_id,))


def left_of_tenant(connection: Connection, tenant_id: str) -> dict[str, int]:
    """Count the remaining rows of a tenant whose name is gone."""
    connection.execute("SELECT set_config('ragstone.tenant', ?, true)", (tenant_id,))
    activity = count_tenant_rows(connection, tenant_id) + count_tenant_log(connection, tenant_id)
    return {**count_tenant(connection, tenant_id), "activity": activity}


class PostgresUnit:
    """Implements `UnitOfWork` on a borrowed connection. The tenant's lock is taken by the first call."""

    def __init__(
        self,
        thread: ConnectionThread,
        tenant: str,
        indexes: Sequence[TransactionalIndex],
        blobs: Callable[[str], Blobs],
        clock: Callable[[], datetime],
        erased: str = "",
    ) -> None:
        self._thread = thread
        self._tenant = tenant
        self._blobs = blobs
        self._clock = clock
        self._erased = erased
        self._caller = caller()
        self._session: Session | None = None
        self._asked = False
        self.indexes = indexes
        self.tenant_id = ""
        """Known once something has been run."""

    @property
    def blobs(self) -> Blobs:
        return self._blobs(self.tenant_id)

    async def run(self, work: Callable[[Connection], T]) -> T:
        def begin_and_work(thread: ConnectionThread) -> T:
            if self._session is None:
                self._session, self.tenant_id = self._begin(thread)
            elif not self._session.is_open:
                raise StoreError("the transaction was undone by an earlier failure", hint="begin another")
            return work(self._session.rows)

        self._asked = True
        return await self._thread.run(begin_and_work)

    async def end(self, *, commit: bool) -> None:
        def end_session(_: ConnectionThread) -> None:
            if self._session:
                self._session.commit() if commit else self._session.rollback()

        if self._asked:
            await self._thread.run(end_session)

    def _begin(self, thread: ConnectionThread) -> tuple[Session, str]:
        try:
            return thread.begin(lambda session: session.write(self._tenant, self._erased))
        except UnknownTenant:
            register(thread, self._tenant, self._clock(), self._caller)
            return thread.begin(lambda session: session.write(self._tenant, self._erased))


def register(thread: ConnectionThread, tenant: str, moment: datetime, who: Caller) -> str:
    """Return the id of the tenant of that name, which is made with its partitions if there is none."""
    return thread.transact_patiently(
        Session.write_control, lambda session, _: tenant_rows.register(session.rows, tenant, moment, who)
    )
