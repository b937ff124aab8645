"""Look at every store: can it be reached, does it hold what it should, has a crash left something behind?

Nothing that is live is ever touched. What a repair removes is needed by nobody, and what it writes is in the ledger.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from ragstone.core.clock import canonical, now
from ragstone.core.errors import RagstoneError
from ragstone.core.health import REPAIR, Finding
from ragstone.core.tenants import Tenant
from ragstone.stores.checkup_corpora import check_corpora
from ragstone.stores.checkup_keys import check_encryption
from ragstone.stores.checkup_vectors import check_vectors
from ragstone.stores.database import Connection
from ragstone.stores.ledger import originals
from ragstone.stores.ledger.sqlite.file import SqliteDialect
from ragstone.stores.ledger.unfinished import staged_leftovers
from ragstone.stores.left_stores import check_left_stores

if TYPE_CHECKING:
    from ragstone.stores.opening import Stores

EXPIRED = "FROM reservations WHERE expires_at < ?"


async def examine(stores: Stores, *, repair: bool = False, forget: str = "") -> list[Finding]:
    """All that can be said of the stores; with `repair` also after putting right what is wrong.

    `forget` names a vector database that was left and emptied by hand.
    """
    try:
        kind, findings = await stores.ledger.control_read(_database, _nothing())
        tenants = await stores.tenants.all()
    except RagstoneError as error:
        return [_failed("ledger", "reachable", error)]
    if not findings:
        return [Finding("ledger", "reachable", "ok", "nothing has been written yet")]
    present = [tenant for tenant in tenants if tenant.state != "deleting"]
    checks: list[Callable[[], Awaitable[list[Finding]]]] = [
        lambda: _deletions(stores, kind, tenants, repair),
        lambda: _reservations(stores, kind, repair),
        lambda: _leftovers(stores, kind, present, repair),
        lambda: _originals(stores, kind, present, repair),
        lambda: check_encryption(stores, kind, present),
        lambda: check_vectors(stores, present, repair=repair),
        lambda: check_corpora(stores, present, repair=repair),
        lambda: check_left_stores(stores, present, forget if repair else ""),
    ]
    for check in checks:
        try:
            findings += await check()
        except RagstoneError as error:
            findings.append(_failed(kind, "checked", error))
    return findings


def _nothing() -> tuple[str, list[Finding]]:
    return "ledger", []


def _database(connection: Connection) -> tuple[str, list[Finding]]:
    if isinstance(connection.dialect, SqliteDialect):
        version = connection.execute("SELECT sqlite_version()").fetchone()[0]
        return "sqlite", [Finding("sqlite", "reachable", "ok", f"SQLite {version}")]
    from ragstone.stores.checkup_postgres import check_database

    return "postgres", check_database(connection)


async def _deletions(stores: Stores, store: str, tenants: Sequence[Tenant], repair: bool) -> list[Finding]:
    begun = [tenant.name for tenant in tenants if tenant.state == "deleting"]
    if not begun:
        return [Finding(store, "deletions", "ok", "none is unfinished")]
    finished = await stores.tenants.finish_deletions() if repair else []
    return [
        Finding(store, "deletions", "ok", f"tenant '{name}' was being deleted", "finished", repaired=True)
        if name in finished
        else Finding(store, "deletions", "warn", f"tenant '{name}' is being deleted", REPAIR)
        for name in begun
    ]


async def _reservations(stores: Stores, store: str, repair: bool) -> list[Finding]:
    moment = canonical(now())
    found = await stores.ledger.control_read(
        lambda db: int(db.execute(f"SELECT count(DISTINCT id) {EXPIRED}", (moment,)).fetchone()[0]), 0
    )
    if not found:
        return [Finding(store, "reservations", "ok", "none has lapsed")]
    # They count for nothing, and go with the next one: no more than a remark.
    detail = f"{found} of quotas have lapsed"
    if not repair:
        return [Finding(store, "reservations", "warn", detail, REPAIR)]
    await stores.ledger.control_write(lambda db: db.execute(f"DELETE {EXPIRED}", (moment,)))
    return [Finding(store, "reservations", "ok", detail, "removed", repaired=True)]


async def _leftovers(stores: Stores, store: str, tenants: Sequence[Tenant], repair: bool) -> list[Finding]:
    """What crashes left: staged versions, and files that nobody needs."""
    findings = []
    for tenant in tenants:
        staged = len(await stores.ledger.read(tenant.name, staged_leftovers, now()))
        files = sum(len(names) for names in (await stores.ledger.strays(tenant.name)).values())
        if not staged and not files:
            continue
        detail = f"tenant '{tenant.name}': staged versions: {staged}, files that nobody needs: {files}"
        if repair:
            await stores.ledger.sweep(tenant.name)
            findings.append(Finding(store, "leftovers", "ok", detail, "removed", repaired=True))
        else:
            findings.append(Finding(store, "leftovers", "warn", detail, REPAIR))
    return findings or [Finding(store, "leftovers", "ok", "no crash has left anything")]


async def _originals(stores: Stores, store: str, tenants: Sequence[Tenant], repair: bool) -> list[Finding]:
    """Whether quotas count original files with the sizes they have."""
    findings = []
    for tenant in tenants:
        wrong = await stores.ledger.miscounted(tenant.name)
        if not wrong:
            continue
        gone = sum(not size for _, size in wrong)
        detail = (
            f"tenant '{tenant.name}': counted with another size: {len(wrong)} files, of them gone: {gone}"
        )
        if repair:
            await stores.ledger.write(tenant.name, originals.correct, wrong)
            findings.append(Finding(store, "originals", "ok", detail, "counted anew", repaired=True))
        else:
            findings.append(Finding(store, "originals", "warn", detail, REPAIR))
    return findings or [Finding(store, "originals", "ok", "counted as they are")]


def _failed(store: str, what: str, error: RagstoneError) -> Finding:
    return Finding(store, what, "fail", str(error), error.hint)
