"""Migrate: build the new store beside the one in use, compare both, and say what to set."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ragstone.core.errors import InputError, SettingsError, TenantGone
from ragstone.core.protocols import VectorIndex
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Candidate, Json, KnowledgeBase, Space, Vector
from ragstone.core.vectors import VectorPartition
from ragstone.settings.tree import LIVES_IN, OWN_INDEXES, Adapter, Settings, StoreSettings
from ragstone.stores.factory import PROVIDERS, VECTORS, Stores, open_own_index, open_provider, open_stores
from ragstone.stores.indexes import IndexCache
from ragstone.stores.ledger import index_feed
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.sources import SecretKeys
from ragstone.stores.ledger.spaces import SqlSpaceBook
from ragstone.stores.sql.database import Connection
from ragstone.stores.vectors.derived.index import DerivedIndex
from ragstone.stores.vectors.partitions import list_partitions, partition_of
from ragstone.transfer.compare.index import compare_index, compare_searches, scan_points
from ragstone.transfer.compare.searches import K, Samples, Search, SearchAgreement, judge
from ragstone.transfer.migrate.copies import find_left, follow_names
from ragstone.transfer.migrate.keys import carry_keys
from ragstone.transfer.migrate.ledger import move_to_ledger
from ragstone.transfer.reports import NONE, MoveReport, OnMove, TenantMove

EXACT = ("sqlite",)
"""Indexes inside a ledger that look at everything."""


async def move_to_provider(
    ledger: SqlLedger, index: DerivedIndex, tenant: str, held: set[VectorPartition], tell: OnMove
) -> TenantMove:
    """Fill a vector database with all that may be searched, let it catch up, and compare.

    `held` is given the partitions of the tenant: its ledger, which knows them, may be deleted.
    """
    kbs = await ledger.of(tenant).kbs()
    written = chunks = removed = 0
    agreement, differences = SearchAgreement(), NONE
    needed = await _searchable(ledger, tenant, kbs)
    name = index.provider.name
    held |= await ledger.read(tenant, _list_partitions, name, [space for _, space in needed])
    for kb, space in needed:
        total = await ledger.read(tenant, index_feed.count_live, kb, space, None)
        report = partial(_report, tell, f"fill {tenant}/{kb.name}", total)
        written += await index.fill(tenant, kb, space, report)
    await index.catch_up(tenant)
    held |= await ledger.read(tenant, _list_partitions, name, [])  # others may have been made in between
    for kb, space in needed:
        compared = await compare_index(ledger, index, tenant, kb, space, tell)
        chunks += compared.chunks
        removed += compared.removed
        agreement += compared.agreement
        differences += compared.differences
    remarks = (f"{removed} points of chunks that are no more were removed",) if removed else ()
    documents = sum([(await ledger.of(tenant).stats(kb)).documents for kb in kbs])
    return TenantMove(
        *(tenant, len(kbs), documents, chunks, chunks, written, agreement.searches),
        *(agreement.share, differences, remarks),
    )


async def move_all_to_provider(
    stores: Stores, index: DerivedIndex, tenants: Sequence[str], tell: OnMove
) -> list[TenantMove]:
    """Move tenants to a vector database, and remove from it those that are deleted during the move.

    Who deletes a tenant does not know of a database that is not in use yet.
    """
    ids = {tenant.name: tenant.id for tenant in await stores.tenants.all()}
    held: dict[str, set[VectorPartition]] = {tenant: set() for tenant in tenants}
    moved: dict[str, TenantMove] = {}
    gone: list[str] = []
    try:
        for tenant in tenants:
            try:
                moved[tenant] = await move_to_provider(stores.ledger, index, tenant, held[tenant], tell)
            except TenantGone:
                if not await _list_deleted(stores, ids, [tenant]):
                    raise
    finally:
        gone = await _list_deleted(stores, ids, tenants)
        for tenant in gone:
            for partition in held[tenant]:
                await index.provider.drop(partition)
    said = ("the tenant was deleted during the move, and its points were removed",)
    moved |= {tenant: TenantMove(tenant, 0, 0, 0, 0, 0, 0, 1.0, NONE, said) for tenant in gone}
    return [moved[tenant] for tenant in tenants]


async def _list_deleted(stores: Stores, ids: Mapping[str, str], tenants: Sequence[str]) -> list[str]:
    """Return those of the tenants that are not there any more, under whatever name."""
    there = {tenant.id for tenant in await stores.tenants.all() if tenant.state != "deleting"}
    return [tenant for tenant in tenants if tenant in ids and ids[tenant] not in there]


def _list_partitions(
    connection: Connection, tenant_id: str, index: str, spaces: Sequence[Space]
) -> set[VectorPartition]:
    """Return the partitions of Spaces, and all that an index may hold something of."""
    made = {partition_of(tenant_id, space) for space in spaces}
    return made.union(list_partitions(connection, tenant_id, index, ()))


async def look_at_own_index(ledger: SqlLedger, index: VectorIndex, kind: str, tenant: str, tell: OnMove) -> TenantMove:
    """Compare searches of the ledger's own index, which holds all vectors already."""
    kbs = await ledger.of(tenant).kbs()
    chunks = 0
    agreement, differences = SearchAgreement(), NONE
    for kb, space in await _searchable(ledger, tenant, kbs):
        samples = Samples()
        async for points in scan_points(ledger, tenant, kb, space):
            for point in points:
                samples.offer("", point.vector)
            tell(f"compare {tenant}/{kb.name}", samples.seen, 0)
        chunks += samples.seen
        found = await compare_searches(ledger, tenant, kb, space, samples, _search(index, tenant, kb, space))
        agreement += found
        differences += judge(found, exact=kind in EXACT, what=f"{kind} in '{kb.name}'")
    documents = sum([(await ledger.of(tenant).stats(kb)).documents for kb in kbs])
    return TenantMove(
        *(tenant, len(kbs), documents, chunks, chunks, 0, agreement.searches, agreement.share, differences)
    )


def _report(tell: OnMove, what: str, total: int, done: int) -> None:
    tell(what, done, total)


def _search(index: VectorIndex, tenant: str, kb: KnowledgeBase, space: Space) -> Search:
    async def search(vector: Vector) -> Sequence[Candidate]:
        return await index.search(tenant, replace(kb, space=space), vector, K)

    return search


async def _searchable(
    ledger: SqlLedger, tenant: str, kbs: Sequence[KnowledgeBase]
) -> list[tuple[KnowledgeBase, Space]]:
    """Return Spaces that are live or may become live, each with its kb."""
    spaces = SqlSpaceBook(ledger).of(tenant)
    found = [(kb, record.space) for kb in kbs for record in await spaces.all(kb)]
    return [(kb, space) for kb, space in found if space.state != "retired"]


SECRETS = ("dsn", "api_key")
BM25 = ("sqlite", "postgres", "bm25")
"""Indexes that give a word the same score."""


async def migrate(
    stores: Stores,
    settings: Settings,
    to: Adapter,
    *,
    tenants: Sequence[str] | None,
    secret_keys: SecretKeys,
    tell: OnMove,
) -> MoveReport:
    """Move tenants, all of them unless some are named, to another vector index or to another ledger."""
    started = time.monotonic()
    names = list(tenants) if tenants is not None else await _all_tenants(stores)
    if not names:
        raise InputError("there is no tenant to move yet", remedy=Remedy(Action.INGEST))
    chosen = _store(settings, to)
    if to.kind in PROVIDERS:
        moved = await _to_provider(stores, settings, to, names, tell)
    elif _is_own(settings, to):
        moved = await _to_own_index(stores, settings, to, names, tell)
    else:
        moved = await _to_ledger(stores, settings, chosen, names, secret_keys, tell, all_tenants=tenants is None)
    which = "vectors" if to.kind in PROVIDERS or _is_own(settings, to) else "ledger"
    given = {name: value for name, value in _settings_of(to).items() if name not in SECRETS}
    return MoveReport(
        to=to.kind,
        tenants=tuple(moved),
        settings=_to_set(which, chosen, given),
        secrets=tuple(f"store.{which}.{name}" for name in SECRETS if getattr(to, name) is not None),
        seconds=round(time.monotonic() - started, 3),
    )


async def _all_tenants(stores: Stores) -> list[str]:
    return [tenant.name for tenant in await stores.tenants.all() if tenant.state != "deleting"]


def _is_own(settings: Settings, to: Adapter) -> bool:
    """Return whether this is the index of the ledger in use, not another ledger."""
    addressed = to.path or to.dsn
    return LIVES_IN.get(to.kind) == settings.store.ledger.kind and not addressed


def _store(settings: Settings, to: Adapter) -> Settings:
    """Return the settings that use the new store; refuse what is not a store."""
    store = settings.store
    kept = {name: getattr(store, name) for name in store.model_fields_set - {"ledger", "vectors", "lexical"}}
    if to.kind in PROVIDERS or _is_own(settings, to):
        own = Adapter(kind=OWN_INDEXES[store.ledger.kind][0], options=to.options)
        vectors = to if to.kind in PROVIDERS else own
        return _with(settings, {**kept, "ledger": store.ledger, "lexical": store.lexical, "vectors": vectors})
    if to.kind not in LIVES_IN:
        VECTORS.load(to.kind)
    kind = LIVES_IN[to.kind]
    _refuse_unused(to, kind)
    dsn = to.dsn or store.ledger.dsn
    ledger = Adapter(kind=kind, dsn=dsn) if kind == "postgres" else Adapter(kind=kind)
    moved = _with(settings, {**kept, "ledger": ledger})
    return moved.model_copy(update={"data_dir": to.path}) if to.path else moved


def _refuse_unused(to: Adapter, ledger: str) -> None:
    """Refuse options that a ledger does not use."""
    used = {"kind", "path", "dsn"} if ledger == "postgres" else {"kind", "path"}
    unused = sorted(_settings_of(to).keys() - used)
    if unused:
        raise SettingsError(
            f"a {ledger} ledger takes no {', '.join(unused)}",
            hint="leave them out; options of its own indexes are settings: store.vectors.options",
        )


def _with(settings: Settings, store: dict[str, Any]) -> Settings:
    return settings.model_copy(update={"store": StoreSettings.model_validate(store)})


def _to_set(which: str, chosen: Settings, given: dict[str, Json]) -> dict[str, Json]:
    if which == "vectors":
        return {"store": {"vectors": {**given, "kind": chosen.store.vectors.kind}}}
    moved: dict[str, Json] = {"store": {"ledger": {"kind": chosen.store.ledger.kind}}}
    return {**moved, "data_dir": given["path"]} if "path" in given else moved


def _settings_of(to: Adapter) -> dict[str, Json]:
    return to.model_dump(mode="json", exclude_defaults=True)


async def _to_provider(
    stores: Stores, settings: Settings, to: Adapter, tenants: Sequence[str], tell: OnMove
) -> list[TenantMove]:
    if stores.derived and to == settings.store.vectors:
        # The one in use is filled and compared: an engine under a folder cannot be opened twice.
        return await move_all_to_provider(stores, stores.derived, tenants, tell)
    index = DerivedIndex(stores.ledger, open_provider(settings, to))
    try:
        return await move_all_to_provider(stores, index, tenants, tell)
    finally:
        await index.close()


async def _to_own_index(
    stores: Stores, settings: Settings, to: Adapter, tenants: Sequence[str], tell: OnMove
) -> list[TenantMove]:
    kind = OWN_INDEXES[settings.store.ledger.kind][0]
    index = open_own_index(stores.ledger, IndexCache(settings.store.memory_mb), to.model_copy(update={"kind": kind}))
    return [await look_at_own_index(stores.ledger, index, kind, tenant, tell) for tenant in tenants]


async def _to_ledger(
    stores: Stores,
    settings: Settings,
    chosen: Settings,
    tenants: Sequence[str],
    secret_keys: SecretKeys,
    tell: OnMove,
    *,
    all_tenants: bool,
) -> list[TenantMove]:
    if chosen.store.ledger == settings.store.ledger and chosen.data_dir == settings.data_dir:
        raise SettingsError("that is the ledger in use", hint="name another with --path or --dsn")
    there = open_stores(chosen, secret_keys)
    by_word = settings.store.lexical.kind in BM25 and chosen.store.lexical.kind in BM25
    exact = chosen.store.vectors.kind in EXACT and settings.store.vectors.kind in EXACT
    try:
        if all_tenants:
            await follow_names(stores, there, tenants)
        moved = [
            await move_to_ledger(stores, there, tenant, by_word=by_word, exact=exact, tell=tell) for tenant in tenants
        ]
        if all_tenants:
            wrong = await carry_keys(stores.ledger, there.ledger, "")
            left, remarks = await find_left(stores, there, tenants)
            last = moved.pop()
            moved += [replace(last, differences=last.differences + wrong, remarks=last.remarks + remarks), *left]
        return moved
    finally:
        await there.close()
