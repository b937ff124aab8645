"""Settings → stores: the only place that knows which adapter a name stands for."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ragstone.core.audit import Auditor
from ragstone.core.errors import NotFoundError, SettingsError, StoreError, StoreFull, TenantGone
from ragstone.core.protocols import LexicalIndex, Queue, VectorIndex
from ragstone.core.registry import Registry
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import KnowledgeBase
from ragstone.core.vectors import Isolation, VectorProvider
from ragstone.settings.tree import Adapter, Settings
from ragstone.stores.control.audit import SqlAuditTrail
from ragstone.stores.control.keys import SqlKeyBook
from ragstone.stores.control.tenants import SqlTenantBook
from ragstone.stores.corpus.files import CorpusFiles
from ragstone.stores.indexes import IndexCache
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.queue import SqlQueue
from ragstone.stores.ledger.sources import SecretKeys, SqlSourceBook
from ragstone.stores.ledger.spaces import SqlSpaceBook
from ragstone.stores.redis_cache import RedisCache, open_redis_cache
from ragstone.stores.vault import Vault

if TYPE_CHECKING:
    from ragstone.stores.vectors.derived.index import DerivedIndex


LEDGERS = Registry(
    "ledger", {"sqlite": "ragstone.stores.factory:open_sqlite", "postgres": "ragstone.stores.factory:open_postgres"}
)
BUILTIN = {
    "sqlite": "ragstone.stores.vectors.sqlite:SqliteVectorIndex",
    "pgvector": "ragstone.stores.vectors.pgvector.index:PgVectorIndex",
}
PROVIDERS = {
    "chroma": "ragstone.stores.vectors.chroma.provider:ChromaProvider",
    "qdrant": "ragstone.stores.vectors.qdrant.provider:QdrantProvider",
    "milvus": "ragstone.stores.vectors.milvus.provider:MilvusProvider",
    "weaviate": "ragstone.stores.vectors.weaviate.provider:WeaviateProvider",
    "pinecone": "ragstone.stores.vectors.pinecone.provider:PineconeProvider",
    "memory": "ragstone.stores.vectors.memory:MemoryProvider",
}
EMBEDDED = ("chroma", "qdrant", "milvus", "memory")
"""Providers that run in this process when they have no address."""
FOLDERS = {"chroma": "vector_db"}
"""The folder of a provider's files in the data folder, when that is not `vectors/KIND`."""
STRICTEST: dict[str, Isolation] = {"pinecone": "namespace"}
"""The separation of tenants where a collection each cannot be had."""
VECTORS = Registry("vector DB", BUILTIN | PROVIDERS, unknown="Unsupported {what} provider: {name}")
LEXICAL = Registry(
    "lexical index",
    {
        "sqlite": "ragstone.stores.lexical.sqlite:SqliteLexicalIndex",
        "postgres": "ragstone.stores.lexical.postgres:PostgresLexicalIndex",
        "postgres_fts": "ragstone.stores.lexical.postgres_fts:PostgresFtsIndex",
        "bm25": "ragstone.stores.lexical.bm25:ResidentBm25Index",
        "qdrant": "ragstone.stores.lexical.qdrant:QdrantLexicalIndex",
    },
)
WORDS = "qdrant"
"""The lexical index that lies in the points of the vector database of the same name."""
MEANT: dict[tuple[str, str], set[str]] = {
    ("ledger", "sqlite"): set(),
    ("ledger", "postgres"): {"dsn"},
    ("vectors", "sqlite"): set(),
    ("vectors", "pgvector"): {"options"},
    **{("lexical", kind): set() for kind in ("sqlite", "postgres", "postgres_fts", "bm25", WORDS)},
}
"""Further settings of a store that lives with the ledger; the others check their own."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The ledger, the two indexes that are derived from it, and what is queued in it."""

    ledger: SqlLedger
    vectors: VectorIndex
    lexical: LexicalIndex
    queue: Queue
    sources: SqlSourceBook
    tenants: SqlTenantBook
    spaces: SqlSpaceBook
    derived: DerivedIndex | None
    """The vector index, when it lives outside the ledger."""
    audit: SqlAuditTrail
    corpora: CorpusFiles
    keys: SqlKeyBook
    shared_cache: RedisCache | None = None

    async def identity(self, tenant: str) -> str:
        """Return the id of the tenant of a name; empty when there is none."""
        found = await self.tenants.get(tenant)
        return found.id if found else ""

    async def close(self) -> None:
        """Close the engines; one that fails to close keeps none of the others open."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.ledger.close)
            if self.shared_cache:
                stack.push_async_callback(self.shared_cache.close)
            if self.derived:
                stack.push_async_callback(self.derived.close)


def open_stores(settings: Settings, secret_keys: SecretKeys = lambda _: ()) -> Stores:
    """Return the stores that the settings name. Nothing is created or connected to until a tenant is first used.

    `secret_keys` says which settings of a kind of source are secrets.
    """
    store = settings.store
    vault = Vault.load(settings.security.key, settings.security.old_keys)
    open_ledger = LEDGERS.load(store.ledger.kind)
    lexical_type = LEXICAL.load(store.lexical.kind)
    vectors_type = VECTORS.load(store.vectors.kind)
    _refuse_unused(settings)
    cache = IndexCache(store.memory_mb)
    writers = [*lexical_type.writers(), *(getattr(vectors_type, "writers", tuple)())]
    ledger: SqlLedger = open_ledger(settings, writers, vault)
    derived: DerivedIndex | None = None
    if store.vectors.kind in PROVIDERS:
        from ragstone.stores.vectors.derived.index import DerivedIndex

        derived = DerivedIndex(ledger, open_provider(settings, store.vectors))
        ledger.followers = (derived,)
        ledger.largest_dimension = derived.provider.capabilities.max_dimension
        vectors: Any = derived
    else:
        vectors = open_own_index(ledger, cache, store.vectors)
        if store.vectors.kind == "pgvector":
            vectors.serve()
    sources = SqlSourceBook(ledger, vault, secret_keys)
    corpora = CorpusFiles(settings)
    tenants = SqlTenantBook(ledger, [derived.erase] if derived else [], files=[corpora.forget])
    audit = SqlAuditTrail(ledger, settings.security.audit_days)
    beside = {"derived": derived} if store.lexical.kind == WORDS else {}
    lexical = lexical_type(ledger, cache, **beside)
    spaces = SqlSpaceBook(ledger)
    shared = open_redis_cache(settings, vault)
    queue, keys = SqlQueue(ledger), SqlKeyBook(ledger)
    return Stores(ledger, vectors, lexical, queue, sources, tenants, spaces, derived, audit, corpora, keys, shared)


def open_own_index(ledger: SqlLedger, cache: IndexCache, adapter: Adapter) -> Any:
    """Return the vector index in the ledger's own database."""
    options = {"options": adapter.options} if adapter.options else {}
    return VECTORS.load(adapter.kind)(ledger, cache, **options)


@dataclass(frozen=True, slots=True)
class Renewal:
    """Counts of files and secrets brought under the present key, and those that could not be."""

    files: int
    sources: int
    failed: tuple[str, ...]


async def renew_encryption(stores: Stores, tenant: str) -> Renewal:
    """Seal a tenant's files and the secrets of its sources with the present key; what cannot be opened is named."""
    files, sources, failed = 0, 0, []
    try:
        rotation = await asyncio.to_thread((await stores.ledger.blobs(tenant)).rotate)
        files, failed = rotation.renewed, [*rotation.failed]
        sources = await stores.sources.of(tenant).renew()
    except StoreFull:
        raise  # nothing behind it could be written either
    except StoreError as error:
        failed.append(str(error))
    return Renewal(files, sources, tuple(failed))


async def rotate_keys(stores: Stores) -> dict[str, Renewal]:
    """Bring the files and secrets of all tenants under the present key, and return what was done for each."""
    audit = Auditor(stores.audit, stores.identity)
    done = {}
    for tenant in await stores.tenants.all():
        if tenant.state == "deleting":
            continue
        with suppress(TenantGone):  # deleted since
            done[tenant.name] = await renew_encryption(stores, tenant.name)
            await audit.record_change(tenant.name, "keys.rotate", count=done[tenant.name].files)
    return done


def open_provider(settings: Settings, adapter: Adapter) -> VectorProvider:
    """Open a vector database of its own; without an address, or with a relative path, it lives in the data folder."""
    if adapter.kind not in PROVIDERS:
        VECTORS.load(adapter.kind)
        raise SettingsError(f"{adapter.kind} is part of a ledger, not a vector database of its own")
    if adapter.dsn or (adapter.api_key and not adapter.url and adapter.kind in EMBEDDED):
        unused = "dsn" if adapter.dsn else "api_key"
        raise SettingsError(
            f"store.vectors.{unused} means nothing to {adapter.kind} as it is set", hint="set store.vectors.url"
        )
    if adapter.path:
        adapter = adapter.model_copy(update={"path": settings.data_dir / adapter.path})
    folder = settings.data_dir / FOLDERS.get(adapter.kind, f"vectors/{adapter.kind}")
    isolation = settings.store.isolation or STRICTEST.get(adapter.kind, "collection")
    words = {"words": True} if adapter.kind == settings.store.lexical.kind == WORDS else {}
    opened: VectorProvider = VECTORS.load(adapter.kind)(adapter, folder, isolation, **words)
    if settings.store.collections == "space":
        return opened
    if words:
        raise SettingsError(
            f"store.lexical: {WORDS} keeps the words of a Space in one collection",
            hint="set store.collections: space, or another store.lexical",
        )
    from ragstone.stores.vectors.source_types import CollectionsBySourceType

    return CollectionsBySourceType(opened)


def open_sqlite(settings: Settings, writers: list[Any], vault: Vault) -> SqlLedger:
    """Open a ledger of one file per tenant under the data folder."""
    from ragstone.stores.ledger.sqlite.ledger import SqliteLedger

    return SqliteLedger(settings.data_dir, writers, settings.store.open_tenants, vault)


def open_postgres(settings: Settings, writers: list[Any], vault: Vault) -> SqlLedger:
    """Open a ledger of one database for all tenants; original files stay under the data folder."""
    from ragstone.stores.ledger.postgres.ledger import PostgresLedger

    dsn = settings.store.ledger.dsn
    if dsn is None:
        raise SettingsError(
            "store.ledger.dsn is needed for the postgres ledger",
            hint="set RAGSTONE_STORE__LEDGER__DSN=postgresql://user:password@host/database",
        )
    return PostgresLedger(dsn.get_secret_value(), settings.data_dir, writers, vault=vault)


def _refuse_unused(settings: Settings) -> None:
    """Refuse settings without effect: a store that lives with the ledger has no address of its own."""
    store = settings.store
    chosen = {"ledger": store.ledger, "vectors": store.vectors, "lexical": store.lexical}
    for name, adapter in chosen.items():
        meant = MEANT.get((name, adapter.kind), adapter.model_fields_set)
        unused = sorted(_changed_fields(adapter) - meant - {"kind"})
        if unused:
            raise SettingsError(
                f"store.{name}.{unused[0]} means nothing to the {adapter.kind} store",
                hint=f"it lives where the {'vectors do' if adapter.kind == WORDS else 'ledger does'}"
                if name != "ledger"
                else "leave it out",
            )
    if store.lexical.kind == WORDS != store.vectors.kind:
        raise SettingsError(
            f"store.lexical: {WORDS} lies in the points of store.vectors: {WORDS}, and that is {store.vectors.kind}",
            hint=f"set store.vectors: {WORDS}, or another store.lexical",
        )


def _changed_fields(adapter: Adapter) -> set[str]:
    """Return the fields that were given another value than they have by themselves."""
    fields, given = type(adapter).model_fields, adapter.model_fields_set
    usual = {name: fields[name].get_default(call_default_factory=True) for name in given & set(fields)}
    return {name for name in given if name not in usual or getattr(adapter, name) != usual[name]}


@runtime_checkable
class Rebuildable(Protocol):
    """An index that can be rebuilt from the ledger while it answers."""

    async def rebuild(self, tenant: str, kb: KnowledgeBase) -> Any:
        """Return something true if there was something to rebuild."""
        ...


async def reindex(stores: Stores, tenant: str, name: str) -> list[str]:
    """Rebuild a kb's indexes; return which of `vectors` and `lexical` there was something to rebuild of."""
    kb = await stores.ledger.of(tenant).kb(name)
    if kb is None:
        raise NotFoundError(f"there is no knowledge base '{name}'", remedy=Remedy(Action.LIST_KBS))
    rebuilt = []
    for part, index in (("vectors", stores.vectors), ("lexical", stores.lexical)):
        if isinstance(index, Rebuildable) and await index.rebuild(tenant, kb):
            rebuilt.append(part)
    return rebuilt
