"""The shop of a tenant and the runs of its agents page by page, as they travel between ledgers and in archives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ragstone.core.clock import canonical
from ragstone.core.shop import Appointment, Product, Service
from ragstone.stores.activity.article_runs import RunSnapshot, put_run, read_runs
from ragstone.stores.shop.agent_settings import AgentDocument, put_agent_settings, read_agent_settings
from ragstone.stores.shop.appointments import MEETING, put_appointments, read_appointments
from ragstone.stores.shop.entries import PRODUCTS, SERVICES
from ragstone.stores.sql.database import Connection, in_parts, marks

Kind = Literal["products", "services", "appointments", "agent_settings", "article_runs"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Entry = Product | Service | Appointment | AgentDocument | RunSnapshot
PAGE = 1000
RUNS_PAGE = 10
"""Runs of articles on a page: each has all that its agents said."""


@dataclass(frozen=True, slots=True)
class AddedEntries:
    """The number of entries that were added, and of those that were left as they are."""

    added: int = 0
    left: int = 0

    def __add__(self, other: AddedEntries) -> AddedEntries:
        return AddedEntries(self.added + other.added, self.left + other.left)


def key_of(entry: Entry) -> str:
    """Return what an entry is known by among those of its kind."""
    return entry.agent if isinstance(entry, AgentDocument) else entry.id


def read_page(connection: Connection, tenant_id: str, kind: Kind, after: str) -> Sequence[Entry]:
    """Return the next entries of a kind behind a key."""
    match kind:
        case "products":
            return PRODUCTS.read_page(connection, tenant_id, after, PAGE)
        case "services":
            return SERVICES.read_page(connection, tenant_id, after, PAGE)
        case "appointments":
            return read_appointments(connection, tenant_id, after, PAGE)
        case "agent_settings":
            return [one for one in read_agent_settings(connection, tenant_id) if one.agent > after]
        case "article_runs":
            return read_runs(connection, tenant_id, after, RUNS_PAGE)


def pages(connection: Connection, tenant_id: str, kind: Kind) -> Iterator[Sequence[Entry]]:
    """Yield all entries of a kind, some at a time."""
    after = ""
    while page := read_page(connection, tenant_id, kind, after):
        yield page
        after = key_of(page[-1])


def empty_shop(connection: Connection, tenant_id: str) -> None:
    """Remove everything of a shop, and the settings and runs of agents."""
    for kind in KINDS:
        connection.execute(f"DELETE FROM {kind} WHERE tenant_id = ?", (tenant_id,))


def put_page(connection: Connection, tenant_id: str, entries: Sequence[Entry]) -> None:
    """Write entries over those with their keys."""
    products = [PRODUCTS.make_row(entry) for entry in entries if isinstance(entry, Product)]
    services = [SERVICES.make_row(entry) for entry in entries if isinstance(entry, Service)]
    PRODUCTS.write(connection, tenant_id, products)
    SERVICES.write(connection, tenant_id, services)
    put_appointments(connection, tenant_id, [one for one in entries if isinstance(one, Appointment)])
    for one in entries:
        if isinstance(one, AgentDocument):
            put_agent_settings(connection, tenant_id, one)
        elif isinstance(one, RunSnapshot):
            put_run(connection, tenant_id, one)


def add_page(
    connection: Connection, tenant_id: str, kind: Kind, entries: Sequence[Entry], *, overwrite: bool
) -> AddedEntries:
    """Write entries of an archive: those that are new or, if they may be overwritten, all; no time is booked twice."""
    known = set() if overwrite else _existing(connection, tenant_id, kind, [key_of(entry) for entry in entries])
    added = 0
    for entry in entries:
        if key_of(entry) in known or (isinstance(entry, Appointment) and _meets(connection, tenant_id, entry)):
            continue
        put_page(connection, tenant_id, [entry])
        added += 1
    return AddedEntries(added, len(entries) - added)


def _existing(connection: Connection, tenant_id: str, kind: Kind, keys: Sequence[str]) -> set[str]:
    column = "agent" if kind == "agent_settings" else "id"
    found: set[str] = set()
    for part in in_parts(keys):
        query = f"SELECT {column} FROM {kind} WHERE tenant_id = ? AND {column} IN ({marks(part)})"
        found.update(row[0] for row in connection.execute(query, (tenant_id, *part)))
    return found


def _meets(connection: Connection, tenant_id: str, entry: Appointment) -> bool:
    """Return whether another booking of the service has some of the time."""
    values: tuple[Any, ...] = (tenant_id, entry.service_id, canonical(entry.ends_at), canonical(entry.starts_at))
    found = connection.execute(f"SELECT 1 {MEETING} AND id <> ?", (*values, entry.id)).fetchone()
    return entry.status == "booked" and found is not None
