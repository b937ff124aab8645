"""Repositories: the rows of one tenant, and methods on them that hold their SQL.

A method is written for a connection and the tenant's id, and marked with what it runs in. Callers await it without
these two arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from ragstone.core.errors import TenantGone
from ragstone.core.remedies import Action, Remedy
from ragstone.stores.sql.database import Connection

if TYPE_CHECKING:
    from ragstone.stores.ledger.ledger import SqlLedger


class UnknownTenant(TenantGone):
    """A tenant that nothing has been written for, or that was deleted."""

    def __init__(self, tenant: str) -> None:
        named = {} if tenant == "default" else {"tenant": tenant}
        super().__init__(f"there is no tenant '{tenant}'", remedy=Remedy(Action.CREATE_TENANT, **named))


class TenantRepository:
    """The rows of one tenant."""

    def __init__(self, ledger: SqlLedger, tenant: str) -> None:
        self._ledger = ledger
        self._tenant = tenant


P = ParamSpec("P")
R = TypeVar("R", bound=TenantRepository)
T = TypeVar("T")
Method = Callable[Concatenate[R, Connection, str, P], T]
AsyncMethod = Callable[Concatenate[R, P], Coroutine[Any, Any, T]]


def in_snapshot(method: Method[R, P, T]) -> AsyncMethod[R, P, T]:
    """Run a method on one snapshot of the tenant's rows; `UnknownTenant` when nothing was ever written."""

    @wraps(method)
    async def read(self: R, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._ledger.read(
            self._tenant, lambda connection, tenant_id: method(self, connection, tenant_id, *args, **kwargs)
        )

    return read


def in_snapshot_or(empty: Callable[[], Any]) -> Callable[[Method[R, P, T]], AsyncMethod[R, P, T]]:
    """Run a method on one snapshot of the tenant's rows; a tenant that nothing was written for gets `empty()`."""

    def decorate(method: Method[R, P, T]) -> AsyncMethod[R, P, T]:
        strict = in_snapshot(method)

        @wraps(method)
        async def read(self: R, /, *args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return await strict(self, *args, **kwargs)
            except UnknownTenant:
                answer: T = empty()
                return answer

        return read

    return decorate


def in_transaction(method: Method[R, P, T]) -> AsyncMethod[R, P, T]:
    """Run a method as a transaction of its own on a tenant that exists."""

    @wraps(method)
    async def write(self: R, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._ledger.write(
            self._tenant, lambda connection, tenant_id: method(self, connection, tenant_id, *args, **kwargs)
        )

    return write


def in_log_or(empty: Callable[[], Any]) -> Callable[[Method[R, P, T]], AsyncMethod[R, P, T]]:
    """Run a method on the retrieval log and the ledger; a tenant without one of them gets `empty()`."""

    def decorate(method: Method[R, P, T]) -> AsyncMethod[R, P, T]:
        @wraps(method)
        async def read(self: R, /, *args: P.args, **kwargs: P.kwargs) -> T:
            answer: T = empty()
            try:
                return await self._ledger.read_log(
                    self._tenant,
                    lambda connection, tenant_id: method(self, connection, tenant_id, *args, **kwargs),
                    answer,
                )
            except UnknownTenant:
                return answer

        return read

    return decorate


def in_log(method: Method[R, P, T]) -> AsyncMethod[R, P, T]:
    """Run a method as a transaction on the retrieval log that waits for no disk: a crash may cost the last ones."""

    @wraps(method)
    async def write(self: R, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._ledger.write_log(
            self._tenant, lambda connection, tenant_id: method(self, connection, tenant_id, *args, **kwargs)
        )

    return write
