"""Check that what is stored is whole: files, keys, corpora, PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from ragstone.core.clock import canonical, now
from ragstone.core.collections import is_draft
from ragstone.core.errors import RagstoneError, StoreBusy, StoreCorrupt, TenantGone
from ragstone.core.health import REPAIR, HealthFinding, failure_finding, repair_finding
from ragstone.core.remedies import Action, Remedy
from ragstone.core.tenants import Tenant
from ragstone.stores.corpus.upkeep import FileUpkeep, live_chunk_ids
from ragstone.stores.health.vectors import check_abandoned_indexes, check_vectors
from ragstone.stores.indexes import IndexCache
from ragstone.stores.ledger import originals
from ragstone.stores.ledger.jobs import forget_unstored, list_unstored
from ragstone.stores.ledger.sqlite.file import RECOVER, SqliteDialect
from ragstone.stores.ledger.writes import staged_leftovers
from ragstone.stores.lexical.bm25 import ResidentBm25Index
from ragstone.stores.migrations import list_tables
from ragstone.stores.sql.database import Connection

if TYPE_CHECKING:
    from ragstone.settings.tree import Settings
    from ragstone.stores.factory import Stores
    from ragstone.stores.ledger.sources import SecretKeys


MEMORY_MB = 64


async def check_corpora(stores: Stores, tenants: Sequence[Tenant], *, repair: bool) -> list[HealthFinding]:
    """Return the findings about collections that were built from a corpus."""
    upkeep = FileUpkeep(stores.ledger, stores.corpora, ResidentBm25Index(stores.ledger, IndexCache(MEMORY_MB)))
    findings = []
    built = 0
    for tenant in tenants:
        pairs = await asyncio.to_thread(stores.corpora.all_of, tenant.name, tenant.id)
        built += len(pairs)
        untrue = await _untrue(stores, tenant)
        left = untrue
        if repair:
            await upkeep.refresh(tenant.name, drafts=True)
            left = await _untrue(stores, tenant)
        findings += [
            repair_finding(
                "collections",
                "files",
                f"tenant '{tenant.name}': those of collection '{collection}' are not what is live",
                "written anew",
                repaired=collection not in left,
            )
            for collection in untrue
        ]
        findings += [
            HealthFinding(
                "collections",
                "builds",
                "warn",
                f"tenant '{tenant.name}': '{kb.name}' is being built, or its build was cut short",
                "the next build of its collection removes it, or",
                remedy=Remedy(Action.DELETE_KB, kb=kb.name),
            )
            for kb in await stores.ledger.of(tenant.name).kbs()
            if is_draft(kb.name)
        ]
    said = f"{built} built from a corpus, files as they should be" if built else "none was built from a corpus"
    return findings or [HealthFinding("collections", "files", "ok", said)]


async def _untrue(stores: Stores, tenant: Tenant) -> list[str]:
    """Return the collections whose files differ from what is live."""
    found = []
    for pair in await asyncio.to_thread(stores.corpora.all_of, tenant.name, tenant.id):
        kb = await stores.ledger.of(tenant.name).kb(pair.collection)
        live = await stores.ledger.read(tenant.name, live_chunk_ids, kb) if kb else None
        if live is None or await asyncio.to_thread(pair.ids) != (live, live):
            found.append(pair.collection)
    return found


WHAT = "encryption"
MISSING_KEY = "set that key as security.key, or add it to security.old_keys"


async def check_encryption(stores: Stores, store: str, tenants: Sequence[Tenant]) -> list[HealthFinding]:
    """Find files and secrets under a key that is not configured. Of files only the beginning is read."""
    findings: list[HealthFinding] = []
    for tenant in tenants:
        blobs = await stores.ledger.blobs(tenant.name)
        missing = await asyncio.to_thread(blobs.missing_keys)
        findings += [
            HealthFinding(
                store,
                WHAT,
                "fail",
                f"tenant '{tenant.name}': original files under key {key_id}, which is not configured: {files}",
                MISSING_KEY,
            )
            for key_id, files in sorted(missing.items())
        ]
        damaged: list[RagstoneError] = []
        try:
            damaged += [record.damage for record in await stores.sources.of(tenant.name).all() if record.damage]
        except RagstoneError as error:
            damaged.append(error)
        findings += [
            HealthFinding(
                store, WHAT, "fail", f"tenant '{tenant.name}': secrets of {error}", error.hint, remedy=error.remedy
            )
            for error in damaged
        ]
    return findings or [HealthFinding(store, WHAT, "ok", "everything stored can be opened")]


STORE = "postgres"
UNGUARDED = (
    "SELECT c.relname FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid "
    "LEFT JOIN pg_class p ON p.oid = i.inhparent WHERE c.relnamespace = 'ragstone'::regnamespace "
    "AND c.relkind IN ('r', 'p') AND coalesce(p.relname, c.relname) <> ALL(?) "
    "AND NOT (c.relrowsecurity AND c.relforcerowsecurity) ORDER BY c.relname"
)


def check_database(connection: Connection) -> list[HealthFinding]:
    """Check version, extension, role and row-level security."""
    (version,) = connection.execute("SELECT current_setting('server_version')").fetchone()
    return [
        HealthFinding(STORE, "reachable", "ok", f"PostgreSQL {version}"),
        _extension(connection),
        _role(connection),
        _security(connection),
    ]


def _extension(connection: Connection) -> HealthFinding:
    row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    if row is None:
        repair = "CREATE EXTENSION vector; as the owner of the database, or as a superuser"
        return HealthFinding(STORE, "extension", "fail", "vector is not installed", repair)
    return HealthFinding(STORE, "extension", "ok", f"vector {row[0]}")


def _role(connection: Connection) -> HealthFinding:
    name, is_above = connection.execute(
        "SELECT rolname, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    if is_above:
        repair = "connect as a role with NOSUPERUSER NOBYPASSRLS"
        return HealthFinding(STORE, "role", "fail", f"{name} sees the rows of all tenants", repair)
    return HealthFinding(STORE, "role", "ok", f"{name} is under row-level security")


def _security(connection: Connection) -> HealthFinding:
    of_all_tenants = [*list_tables("control"), "alembic_version_control", "alembic_version_tenant"]
    open_tables = [name for (name,) in connection.execute(UNGUARDED, (of_all_tenants,)).fetchall()]
    if open_tables:
        repair = f"ALTER TABLE ragstone.{open_tables[0]} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
        return HealthFinding(STORE, "row-level security", "fail", f"not forced on {', '.join(open_tables)}", repair)
    return HealthFinding(STORE, "row-level security", "ok", "forced on every table of tenants")


EXPIRED = "FROM reservations WHERE expires_at < ?"


async def examine(stores: Stores, *, repair: bool = False, forget: str = "") -> list[HealthFinding]:
    """Return all findings about the stores; with `repair` also after putting right what is wrong.

    `forget` names a vector database that was left and emptied by hand.
    """
    try:
        kind, findings = await stores.ledger.control_read(_database, _nothing())
        tenants = await stores.tenants.all()
    except RagstoneError as error:
        return [failure_finding("ledger", "reachable", error)]
    if not findings:
        return [HealthFinding("ledger", "reachable", "ok", "nothing has been written yet")]
    lost = {}
    for tenant in tenants:
        if tenant.state != "deleting" and (damage := await _find_damage(stores, tenant)):
            lost[tenant.name] = damage
            findings.append(failure_finding(kind, "ledger", damage))
    if not lost:
        findings.append(HealthFinding(kind, "ledger", "ok", "that of every tenant is whole"))
    present = [tenant for tenant in tenants if tenant.state != "deleting" and tenant.name not in lost]
    checks: list[Callable[[], Awaitable[list[HealthFinding]]]] = [
        lambda: _deletions(stores, kind, tenants, repair),
        lambda: _reservations(stores, kind, repair),
        lambda: _leftovers(stores, kind, present, repair),
        lambda: _originals(stores, kind, present, repair),
        lambda: check_encryption(stores, kind, present),
        lambda: check_vectors(stores, present, repair=repair),
        lambda: check_corpora(stores, present, repair=repair),
        lambda: check_abandoned_indexes(stores, present, forget if repair else ""),
        lambda: _shared_cache(stores),
    ]
    for check in checks:
        try:
            findings += await check()
        except RagstoneError as error:
            findings.append(failure_finding(kind, "checked", error))
    return findings


async def _find_damage(stores: Stores, tenant: Tenant) -> RagstoneError | None:
    """Return why a tenant's ledger cannot be read, or None."""
    try:
        problem = await stores.ledger.read(tenant.name, _check_pages)
    except TenantGone:
        return None  # deleted since
    except RagstoneError as error:
        return error
    damaged = f"the documents of tenant '{tenant.name}' are damaged: {problem:.200}"
    return StoreCorrupt(damaged, hint=RECOVER) if problem else None


def _check_pages(connection: Connection, tenant_id: str) -> str:
    """Return the first problem that SQLite finds in its file, or ""; a PostgreSQL server checks its own."""
    if not isinstance(connection.dialect, SqliteDialect):
        return ""
    (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    return "" if said == "ok" else str(said)


def _nothing() -> tuple[str, list[HealthFinding]]:
    return "ledger", []


def _database(connection: Connection) -> tuple[str, list[HealthFinding]]:
    if isinstance(connection.dialect, SqliteDialect):
        version = connection.execute("SELECT sqlite_version()").fetchone()[0]
        return "sqlite", [HealthFinding("sqlite", "reachable", "ok", f"SQLite {version}")]

    return "postgres", check_database(connection)


async def _shared_cache(stores: Stores) -> list[HealthFinding]:
    """Check that Redis answers; without it searches only cost more, so its absence is a warning."""
    if stores.shared_cache is None:
        return []
    try:
        return [HealthFinding("redis", "reachable", "ok", f"Redis {await stores.shared_cache.check()}")]
    except StoreBusy as error:
        return [HealthFinding("redis", "reachable", "warn", str(error), error.hint)]


async def _deletions(stores: Stores, store: str, tenants: Sequence[Tenant], repair: bool) -> list[HealthFinding]:
    begun = [tenant.name for tenant in tenants if tenant.state == "deleting"]
    if not begun:
        return [HealthFinding(store, "deletions", "ok", "none is unfinished")]
    finished = await stores.tenants.finish_deletions() if repair else []
    return [
        HealthFinding(store, "deletions", "ok", f"tenant '{name}' was being deleted", "finished", repaired=True)
        if name in finished
        else HealthFinding(store, "deletions", "warn", f"tenant '{name}' is being deleted", remedy=REPAIR)
        for name in begun
    ]


async def _reservations(stores: Stores, store: str, repair: bool) -> list[HealthFinding]:
    moment = canonical(now())
    found = await stores.ledger.control_read(
        lambda db: int(db.execute(f"SELECT count(DISTINCT id) {EXPIRED}", (moment,)).fetchone()[0]), 0
    )
    if not found:
        return [HealthFinding(store, "reservations", "ok", "none has lapsed")]
    # They count for nothing, and go with the next one: no more than a remark.
    detail = f"{found} of quotas have lapsed"
    if repair:
        await stores.ledger.control_write(lambda db: db.execute(f"DELETE {EXPIRED}", (moment,)))
    return [repair_finding(store, "reservations", detail, "removed", repaired=repair)]


async def _leftovers(stores: Stores, store: str, tenants: Sequence[Tenant], repair: bool) -> list[HealthFinding]:
    """Check for leftovers of crashes: staged versions, unneeded files, and parts of documents never stored."""
    findings = []
    for tenant in tenants:
        staged = len(await stores.ledger.read(tenant.name, staged_leftovers, now()))
        files = sum(len(names) for names in (await stores.ledger.strays(tenant.name)).values())
        parts = len(await stores.ledger.read(tenant.name, list_unstored))
        if not staged and not files and not parts:
            continue
        detail = (
            f"tenant '{tenant.name}': staged versions: {staged}, files that nobody needs: {files}, "
            f"parts of unfinished documents: {parts}"
        )
        if repair:
            await stores.ledger.clean_up(tenant.name)
            await stores.ledger.write(tenant.name, forget_unstored)
        findings.append(repair_finding(store, "leftovers", detail, "removed", repaired=repair))
    return findings or [HealthFinding(store, "leftovers", "ok", "no crash has left anything")]


async def _originals(stores: Stores, store: str, tenants: Sequence[Tenant], repair: bool) -> list[HealthFinding]:
    """Check that quotas count original files with their actual sizes."""
    findings = []
    for tenant in tenants:
        wrong = await stores.ledger.find_miscounted(tenant.name)
        if not wrong:
            continue
        gone = sum(not size for _, size in wrong)
        detail = f"tenant '{tenant.name}': counted with another size: {len(wrong)} files, of them gone: {gone}"
        if repair:
            await stores.ledger.write(tenant.name, originals.correct, wrong)
        findings.append(repair_finding(store, "originals", detail, "counted anew", repaired=repair))
    return findings or [HealthFinding(store, "originals", "ok", "counted as they are")]


async def examine_configured(
    settings: Settings, secret_keys: SecretKeys, *, repair: bool = False, forget: str = ""
) -> list[HealthFinding]:
    """Open the stores that the settings name, examine them and close them again."""
    from ragstone.stores.factory import open_stores

    if settings.store.ledger.kind == "sqlite" and not settings.data_dir.exists():
        return [HealthFinding("ledger", "reachable", "ok", "nothing has been written yet")]
    try:
        stores = await asyncio.to_thread(open_stores, settings, secret_keys)
    except RagstoneError as error:
        return [failure_finding("stores", "opened", error)]
    try:
        return await examine(stores, repair=repair, forget=forget)
    finally:
        await stores.close()
