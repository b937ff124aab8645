"""Look at a vector database outside the ledger: does it follow, and does it hold exactly what it should?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ragstone.core.errors import RagstoneError
from ragstone.core.health import FindingState, HealthFinding, failure_finding, repair_finding
from ragstone.core.remedies import Action, Remedy
from ragstone.core.tenants import Tenant
from ragstone.core.types import KnowledgeBase, Space
from ragstone.core.vectors import VectorPartition, VectorProvider, WordProvider
from ragstone.stores.ledger import index_feed
from ragstone.stores.ledger.documents import read_kbs
from ragstone.stores.sql.database import Connection
from ragstone.stores.vectors.partitions import partition_of, partition_of_mark

if TYPE_CHECKING:
    from ragstone.stores.factory import Stores
    from ragstone.stores.vectors.derived.index import DerivedIndex
    from ragstone.stores.vectors.derived.reconcile import Difference


class _HeldSpace(NamedTuple):
    """A Space that an index has to hold, or holds."""

    partition: VectorPartition
    kb: KnowledgeBase | None
    space: Space | None
    """None when the Space is gone."""
    behind: int | None
    """Changes that the index has not seen; None when it holds nothing of this Space yet."""


class _Misfit(NamedTuple):
    """Why a partition cannot hold what belongs there, as it was made."""

    what: str
    detail: str


class _Trouble(NamedTuple):
    """Something about one partition that is not as it should be."""

    what: str
    detail: str
    done: str
    """The repair that was made."""
    breaks: bool = False
    """True when searches miss something because of it; the rest only takes up room, or heals by itself."""

    def finding(self, store: str, tenant: str, *, repaired: bool) -> HealthFinding:
        state: FindingState = "fail" if self.breaks else "warn"
        return repair_finding(
            store, self.what, f"tenant '{tenant}': {self.detail}", self.done, repaired=repaired, state=state
        )


async def check_vectors(stores: Stores, tenants: Sequence[Tenant], *, repair: bool) -> list[HealthFinding]:
    """Return the findings about the vector database, if there is one."""
    derived = stores.derived
    if derived is None:
        return []
    provider = derived.provider
    try:
        health = await provider.health()
    except RagstoneError as error:
        return [failure_finding(provider.name, "reachable", error)]
    said = f"{health.version}, {health.detail}" if health.detail else health.version
    findings = [HealthFinding(provider.name, "reachable", "ok", said)]
    if provider.name == "memory":
        # Every process has its own, built by its first search.
        return findings
    troubles: list[HealthFinding] = []
    for tenant in tenants:
        try:
            troubles += await _check_tenant(stores, derived, tenant.name, repair=repair)
            if held := await derived.count_collections(tenant.name):
                counts = ", ".join(f"{name} {count:,}" for name, count in sorted(held.items()))
                findings.append(HealthFinding(provider.name, "collections", "ok", f"tenant '{tenant.name}': {counts}"))
        except RagstoneError as error:
            troubles.append(failure_finding(provider.name, "checked", error))
    return findings + (troubles or [HealthFinding(provider.name, "content", "ok", "exactly what the ledger has")])


async def _check_tenant(stores: Stores, derived: DerivedIndex, tenant: str, *, repair: bool) -> list[HealthFinding]:
    ledger, provider = stores.ledger, derived.provider
    held = await ledger.read(tenant, _list_spaces, provider.name)
    wrong = {expected.partition: said for expected in held if (said := await _misfit(provider, expected.partition))}
    # Looked at before anything is repaired: catching up may already bring back what was missing.
    differences = [
        trouble
        for expected in held
        if expected.partition not in wrong
        for trouble in await _differences(stores, derived, tenant, expected)
    ]
    if repair:
        await _rebuild(derived, tenant, [expected for expected in held if expected.partition in wrong])
        await derived.catch_up(tenant)
        for expected in held:
            if expected.kb and expected.space:
                await _reconcile(stores, derived, tenant, expected, repair=True)
    found = [
        trouble
        for expected in held
        if (trouble := await _trouble(provider, expected, wrong.get(expected.partition), repair=repair))
    ]
    return [trouble.finding(provider.name, tenant, repaired=repair) for trouble in found + differences]


async def _trouble(
    provider: VectorProvider, held: _HeldSpace, misfit: _Misfit | None, *, repair: bool
) -> _Trouble | None:
    if not misfit and held.kb and held.behind == 0:
        return None
    if held.kb is None or held.space is None:
        return _Trouble("deletion", "a Space is gone, and its vectors are not", "removed")
    now_there = await provider.count(held.partition) if repair else 0
    filled = f"filled again from the ledger, with {now_there:,} vectors"
    if misfit:
        return _Trouble(misfit.what, misfit.detail, filled, breaks=True)
    if held.behind is None:
        return _Trouble("lag", f"nothing of knowledge base '{held.kb.name}' is there yet", filled)
    return _Trouble("lag", f"{held.behind} changes of knowledge base '{held.kb.name}' behind", "caught up")


async def _differences(stores: Stores, derived: DerivedIndex, tenant: str, held: _HeldSpace) -> list[_Trouble]:
    if held.kb is None or held.space is None or held.behind is None:
        return []
    difference = await _reconcile(stores, derived, tenant, held, repair=False)
    orphans, missing = difference.orphans, difference.missing
    found = []
    if orphans:
        detail = f"{orphans} vectors of chunks that are gone, in '{held.kb.name}'"
        found.append(_Trouble("orphans", detail, f"removed {orphans:,} vectors"))
    if missing:
        detail = f"{missing} live chunks of '{held.kb.name}' are not there"
        found.append(_Trouble("missing", detail, f"wrote {missing:,} vectors from the ledger", breaks=True))
    return found


async def _reconcile(
    stores: Stores, derived: DerivedIndex, tenant: str, held: _HeldSpace, *, repair: bool
) -> Difference:
    from ragstone.stores.vectors.derived.reconcile import PartitionWriter, reconcile

    assert held.kb is not None
    assert held.space is not None
    writer = PartitionWriter(stores.ledger, derived.provider, tenant, held.kb.id, held.space, held.partition)
    return await reconcile(writer, repair=repair)


async def _misfit(provider: VectorProvider, partition: VectorPartition) -> _Misfit | None:
    if isinstance(provider, WordProvider) and (said := await provider.misfit(partition)):
        return _Misfit("words", said)
    async for page in provider.ids(partition):
        for point in await provider.read(partition, list(page[:1])):
            if len(point.vector) not in (0, partition.dimension):
                detail = f"vectors of {len(point.vector)} dimensions where {partition.dimension} are needed"
                return _Misfit("dimension", detail)
        break
    return None


async def _rebuild(derived: DerivedIndex, tenant: str, wrong: Sequence[_HeldSpace]) -> None:
    for expected in wrong:
        await derived.provider.drop(expected.partition)
        if expected.kb and expected.space:
            await derived.fill(tenant, expected.kb, expected.space)


def _list_spaces(connection: Connection, tenant_id: str, index: str) -> list[_HeldSpace]:
    kbs = {kb.id: kb for kb in read_kbs(connection, tenant_id)}
    rows = connection.execute(
        "SELECT kb_id, id, model, dimension, generation, state FROM spaces WHERE tenant_id = ?", (tenant_id,)
    )
    spaces = {row[1]: (kbs[row[0]], Space(*row[1:])) for row in rows if row[0] in kbs}
    found = []
    for mark in index_feed.marks(connection, tenant_id, index):
        kb, space = spaces.pop(mark.space_id, (None, None))
        partition = partition_of_mark(tenant_id, mark)
        behind = _changes(connection, tenant_id, kb.id, mark.sequence) if kb else 0
        found.append(_HeldSpace(partition, kb, space, behind))
    needed = [(kb, space) for kb, space in spaces.values() if space.state != "retired"]
    return found + [_HeldSpace(partition_of(tenant_id, space), kb, space, None) for kb, space in needed]


def _changes(connection: Connection, tenant_id: str, kb_id: int, after: int) -> int:
    row = connection.execute(
        "SELECT count(*) FROM changes WHERE tenant_id = ? AND kb_id = ? AND seq > ?", (tenant_id, kb_id, after)
    ).fetchone()
    return int(row[0])


FLEETING = "memory"
"""Ends with its process, and takes along what it was given."""


def list_abandoned_indexes(
    connection: Connection, tenant_id: str, used: str, space_ids: Sequence[int] = ()
) -> list[str]:
    """Return the indexes that hold something of the named Spaces, or of any, and are not the one in use."""
    rows = connection.execute(
        "SELECT DISTINCT index_name, space_id FROM watermarks WHERE tenant_id = ? AND index_name NOT IN (?, ?)",
        (tenant_id, used, FLEETING),
    )
    return sorted({name for name, space_id in rows if not space_ids or space_id in space_ids})


def forget_index(connection: Connection, tenant_id: str, name: str) -> None:
    """Record that a store holds nothing of a tenant any more."""
    connection.execute("DELETE FROM watermarks WHERE tenant_id = ? AND index_name = ?", (tenant_id, name))


async def check_abandoned_indexes(stores: Stores, tenants: Sequence[Tenant], forget: str) -> list[HealthFinding]:
    """Report vector databases that were abandoned with content; `forget` names one that is emptied by now."""
    used = stores.derived.provider.name if stores.derived else ""
    found = []
    for tenant in tenants:
        for name in await stores.ledger.read(tenant.name, list_abandoned_indexes, used):
            detail = f"tenant '{tenant.name}' has vectors in it, and it is not in use"
            if name == forget:
                await stores.ledger.write(tenant.name, forget_index, name)
                done = "forgotten: what it holds must be removed by hand"
                found.append(HealthFinding(name, "left", "ok", detail, done, repaired=True))
            else:
                found.append(
                    HealthFinding(name, "left", "warn", detail, remedy=Remedy(Action.FINISH_LEFT_STORE, store=name))
                )
    return found
