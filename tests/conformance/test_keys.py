"""The book of API keys on every ledger."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.conformance import postgres_server

from ragstone.core.audit import acting_as
from ragstone.core.errors import InputError, NotFoundError, QuotaExceeded, TenantSuspended
from ragstone.core.keys import NewApiKey, RequestAllowance
from ragstone.stores.control import keys
from ragstone.stores.control.audit import SqlAuditTrail
from ragstone.stores.control.keys import SqlKeyBook, read_keys, write_keys
from ragstone.stores.control.tenants import SqlTenantBook
from ragstone.stores.ledger.ledger import SqlLedger
from ragstone.stores.ledger.postgres.ledger import PostgresLedger
from ragstone.stores.ledger.sqlite.ledger import SqliteLedger
from ragstone.stores.lexical.sqlite import Fts5Writer

postgres_databases = postgres_server.postgres_databases
LEDGERS: dict[str, Callable[[Path], SqlLedger]] = {
    "sqlite": lambda folder: SqliteLedger(folder, [Fts5Writer()]),
    "postgres": lambda folder: PostgresLedger(postgres_server.server(18).database(folder), folder),
}
START = datetime(2026, 1, 31, 9, tzinfo=UTC)
READER = NewApiKey("acme", ("read",), "robot", ("docs",))


@pytest.fixture(params=LEDGERS)
async def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlLedger]:
    opened = LEDGERS[request.param](tmp_path)
    await SqlTenantBook(opened).create("acme")
    await SqlTenantBook(opened).create("globex")
    yield opened
    await opened.close()


class Time:
    """A clock that is moved by hand."""

    moment = START

    def __call__(self) -> datetime:
        return self.moment


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def book(ledger: SqlLedger, time: Time) -> SqlKeyBook:
    return SqlKeyBook(ledger, time)


@pytest.mark.req("R-SEC-20")
async def test_a_key_is_found_by_its_text_alone_and_that_is_not_stored(book: SqlKeyBook, ledger: SqlLedger) -> None:
    issued = await book.create(READER)
    assert await book.find(issued.token) == issued.key
    assert (issued.key.scopes, issued.key.kbs, issued.key.tenant) == (("read",), ("docs",), "acme")
    secret = issued.token.split("_", 2)[2]
    rows = await ledger.control_read(lambda rows: rows.execute("SELECT * FROM api_keys").fetchall(), [])
    assert secret not in str(rows)
    other = (await book.create(READER)).token.split("_", 2)[2]
    for wrong in (
        f"rgs_{issued.key.id}_{other}",
        f"rgs_{'0' * 16}_{secret}",
        issued.key.id,
        "",
        "rgs__",
        f"{issued.token}x",
    ):
        assert await book.find(wrong) is None


async def test_a_key_ends_when_it_expires_is_revoked_or_its_tenant_goes(
    book: SqlKeyBook, ledger: SqlLedger, time: Time
) -> None:
    short = await book.create(NewApiKey("acme", ("read",), expires_at=START + timedelta(hours=1)))
    revoked, long = await book.create(READER), await book.create(READER)
    operator = await book.create(NewApiKey("", ("admin",)))
    assert (await book.revoke(revoked.key.id, tenant=None)).revoked_at == START
    assert await book.find(revoked.token) is None
    time.moment += timedelta(hours=1)
    assert await book.find(short.token) is None
    assert await book.find(long.token) == long.key
    assert len(await book.all("acme")) == 3
    assert await book.all("") == [operator.key]
    await SqlTenantBook(ledger).delete("acme")
    assert await book.find(long.token) is None
    assert await book.all(None) == [operator.key]


async def test_a_key_goes_with_its_tenants_new_name(book: SqlKeyBook, ledger: SqlLedger) -> None:
    issued = await book.create(READER)
    await SqlTenantBook(ledger).rename("acme", "apex")
    found = await book.find(issued.token)
    assert found is not None
    assert found.tenant == "apex"


async def test_a_rotated_key_works_until_its_grace_is_over(book: SqlKeyBook, time: Time) -> None:
    old = await book.create(READER)
    new = await book.rotate(old.key.id, tenant="acme", grace=timedelta(hours=2))
    assert (new.key.scopes, new.key.kbs, new.key.name, new.key.expires_at) == (("read",), ("docs",), "robot", None)
    assert await book.find(old.token) is not None
    time.moment += timedelta(hours=2)
    assert await book.find(old.token) is None
    assert await book.find(new.token) == new.key


async def test_a_tenant_reaches_only_its_own_keys(book: SqlKeyBook) -> None:
    key_id = (await book.create(READER)).key.id
    for change in (book.revoke, book.rotate):
        with pytest.raises(NotFoundError, match=f"there is no key '{key_id}'"):
            await change(key_id, tenant="globex")
        with pytest.raises(NotFoundError, match="there is no key '0000000000000000'"):
            await change("0" * 16, tenant="globex")
    assert (await book.all("globex"), len(await book.all("acme"))) == ([], 1)


async def test_a_suspended_tenant_gets_no_keys(book: SqlKeyBook, ledger: SqlLedger) -> None:
    key_id = (await book.create(READER)).key.id
    await SqlTenantBook(ledger).suspend("acme")
    for refused in (book.create(READER), book.rotate(key_id, tenant="acme")):
        with pytest.raises(TenantSuspended, match="tenant 'acme' is suspended"):
            await refused
    assert (await book.revoke(key_id, tenant="acme")).revoked_at == START


async def test_only_valid_keys_count_towards_the_most_of_a_tenant(
    book: SqlKeyBook, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "MOST_KEYS", 2)
    await book.create(replace(READER, expires_at=START + timedelta(hours=1)))
    revoked = await book.create(READER)
    for refused in (book.create(READER), book.rotate(revoked.key.id, tenant="acme")):
        with pytest.raises(QuotaExceeded, match="tenant 'acme' has 2 valid keys, and may have no more"):
            await refused
    await book.create(replace(READER, tenant="globex"))
    await book.create(NewApiKey("", ("admin",)))
    await book.revoke(revoked.key.id, tenant="acme")
    await book.create(READER)
    time.moment += timedelta(hours=2)
    assert (await book.create(READER)).key.tenant == "acme"


async def test_the_first_keys_are_made_once(book: SqlKeyBook) -> None:
    first = await book.create_first([READER, NewApiKey("", ("admin",))])
    assert [issued.key.tenant for issued in first] == ["acme", ""]
    assert await book.create_first([READER]) == []


async def test_a_key_that_could_never_be_used_is_not_made(book: SqlKeyBook) -> None:
    for wrong in (
        NewApiKey("acme", ()),
        NewApiKey("", ("read",)),
        NewApiKey("acme", ("read",), "n" * 64),
        NewApiKey("acme", ("read",), "line\nbreak"),
        NewApiKey("acme", ("read",), kbs=("No Name",)),
        NewApiKey("acme", ("read",), expires_at=START),
    ):
        with pytest.raises(InputError):
            await book.create(wrong)
    with pytest.raises(NotFoundError):
        await book.create(NewApiKey("nobody", ("read",)))
    assert await book.all(None) == []


async def test_keys_are_in_the_audit_record(book: SqlKeyBook, ledger: SqlLedger) -> None:
    with acting_as("ada"):
        issued = await book.create(READER)
        await book.revoke(issued.key.id, tenant=None)
        await book.revoke(issued.key.id, tenant=None)
    entries = await SqlAuditTrail(ledger, 30).entries(tenant_id=None, tenant="acme", action="key")
    assert [(entry.action, entry.actor, entry.target) for entry in entries] == [
        ("key.revoke", "ada", issued.key.id),
        ("key.create", "ada", issued.key.id),
    ]


@pytest.mark.req("R-SEC-10")
async def test_requests_that_race_for_the_last_place_of_a_key(
    book: SqlKeyBook, request: pytest.FixtureRequest, tmp_path: Path, time: Time
) -> None:
    """FAULTS 19, with a second process that has the same key."""
    key = (await book.create(NewApiKey("acme", ("read",), per_minute=3))).key
    assert key.per_minute == 3
    other = LEDGERS[request.node.callspec.params["ledger"]](tmp_path)
    try:
        books = (book, SqlKeyBook(other, time))
        for _ in range(2):
            assert await book.spend(key) is not None
        spent = await asyncio.gather(*(books[n % 2].spend(key) for n in range(50)), return_exceptions=True)
    finally:
        await other.close()
    (last,) = [one for one in spent if not isinstance(one, BaseException)]
    assert last == RequestAllowance(limit=3, left=0, seconds=60)
    refused = [one for one in spent if isinstance(one, QuotaExceeded)]
    assert (len(refused), refused[0].retry_after, refused[0].limit) == (49, 60, 3)
    time.moment = START + timedelta(minutes=1, seconds=20)
    assert await book.spend(key) == RequestAllowance(limit=3, left=2, seconds=40)


async def test_a_key_without_a_limit_is_not_counted(book: SqlKeyBook, ledger: SqlLedger) -> None:
    key = (await book.create(READER)).key
    assert await book.spend(key) is None
    rows = await ledger.control_read(lambda rows: rows.execute("SELECT minute, used FROM api_keys").fetchall(), [])
    assert [tuple(row) for row in rows] == [(None, 0)]


async def test_a_key_that_is_rotated_keeps_its_limit(book: SqlKeyBook) -> None:
    old = (await book.create(NewApiKey("acme", ("read",), per_minute=3))).key
    assert (await book.rotate(old.id, tenant="acme")).key.per_minute == 3
    with pytest.raises(InputError, match="cannot have 0 requests per minute"):
        await book.create(NewApiKey("acme", ("read",), per_minute=0))


async def test_keys_of_another_ledger_are_written_as_they_are(book: SqlKeyBook, ledger: SqlLedger) -> None:
    issued, operator = await book.create(READER), await book.create(NewApiKey("", ("admin",), per_minute=3))
    kept = {
        tenant: await ledger.control_read(lambda rows, of=tenant: read_keys(rows, of), []) for tenant in ("acme", "")
    }
    assert {tenant: [key.id for key in keys] for tenant, keys in kept.items()} == {
        "acme": [issued.key.id],
        "": [operator.key.id],
    }
    await ledger.control_write(lambda rows: rows.execute("DELETE FROM api_keys") and None)
    for tenant in ("acme", "", "acme", ""):
        await ledger.control_write(lambda rows, of=tenant: write_keys(rows, of, kept[of]))
    assert await book.find(issued.token) == issued.key
    assert await book.find(operator.token) == operator.key
    await book.revoke(issued.key.id, tenant=None)
    await book.create(READER)
    await ledger.control_write(lambda rows: write_keys(rows, "acme", kept["acme"]))
    (left,) = await book.all("acme")
    assert (left.id, left.revoked_at) == (issued.key.id, START)
    await ledger.control_write(lambda rows: write_keys(rows, "globex", kept["acme"]))
    assert (await book.all("acme"), [key.id for key in await book.all("globex")]) == ([], [issued.key.id])
