"""Rows that are looked up while somebody asks: the tenant's own, those with most words, and as they are now."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from ragstone.core.errors import SettingsError, SourceError
from ragstone.core.protocols import RecordFindings
from ragstone.ingest.sources.database.records import LONGEST_TEXT, READERS, RecordFinder
from ragstone.ingest.sources.database.rows import RowReader
from ragstone.settings.load import load_settings
from ragstone.settings.records import RecordSettings

PRODUCTS = {
    "database": "shop",
    "query": "SELECT id, shop, name, note, price, stock FROM products",
    "key": "id",
    "tenant": "shop",
    "words": ["name", "note"],
    "text": "{name} costs {price} USD. {stock} in stock. {note}",
    "title": "{name}",
    "metadata": ["price"],
    "about": "product",
}
ROWS = [
    (1, "acme", "Oriental Spice", "A perfume with oud.", 42, 7),
    (2, "acme", "Rose Water", "A perfume for mornings.", 18, 0),
    (3, "acme", "Batteries", "For lamps. 100% full_power.", 3, 90),
    (4, "globex", "Oriental Spice", "Not acme's.", 1, 1),
    (5, "acme", None, None, None, None),
]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "shop.db", check_same_thread=False)) as database:
        database.execute("CREATE TABLE products (id, shop, name, note, price, stock)")
        database.executemany("INSERT INTO products VALUES (?, ?, ?, ?, ?, ?)", ROWS)
        database.commit()
        yield database


def finder(folder: Path, k: int = 5, **changes: Any) -> RecordFinder:
    settings = RecordSettings(k=k, seconds=20, sets={"products": PRODUCTS | changes})
    return RecordFinder(settings, {"shop": SecretStr(f"sqlite:///{folder / 'shop.db'}")})


@pytest.fixture
def holding() -> set[int]:
    """The threads that a database holds."""
    return set()


@pytest.fixture
def stuck(
    shop: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holding: set[int]
) -> Iterator[RecordFinder]:
    """Looks in a database that does not answer before the test has ended."""
    let_go = threading.Event()

    def hang(self: RowReader, statement: object) -> list[Any]:
        holding.add(threading.get_ident())
        let_go.wait()
        return []

    monkeypatch.setattr(RowReader, "rows", hang)
    settings = RecordSettings(seconds=0.01, sets={"products": PRODUCTS})
    yield RecordFinder(settings, {"shop": SecretStr(f"sqlite:///{tmp_path / 'shop.db'}")})
    let_go.set()


async def found(by: RecordFinder, query: str, tenant: str = "acme") -> list[str]:
    return [hit.title for hit in (await by.find(tenant, query, "product")).rows]


async def test_a_row_is_a_passage_that_says_where_it_stands(shop: sqlite3.Connection, tmp_path: Path) -> None:
    (hit,) = (await finder(tmp_path).find("acme", "oriental spice", "product")).rows
    assert hit.text == "Oriental Spice costs 42 USD. 7 in stock. A perfume with oud."
    assert (hit.title, hit.uri, hit.score) == ("Oriental Spice", "database:shop/products#1", 1.0)
    assert (hit.start, hit.end) == (0, len(hit.text))
    assert hit.metadata == {"price": 42, "source": "database", "record": "products"}
    assert hit.chunk_id.startswith("row:")
    shop.execute("UPDATE products SET price = 40 WHERE id = 1")
    shop.commit()
    (now,) = (await finder(tmp_path).find("acme", "oriental spice", "product")).rows
    assert (now.metadata["price"], now.chunk_id) == (40, hit.chunk_id)


@pytest.mark.req("R-MOD-14", "R-CSA-09")
async def test_customer_service_is_given_the_same_rows_for_a_minute(shop: sqlite3.Connection, tmp_path: Path) -> None:
    tulia = load_settings(overrides={"profile": "tulia"}, environment={}).records
    settings = tulia.model_copy(update={"seconds": 20, "sets": {"products": PRODUCTS}})
    clock = [1000.0]
    by = RecordFinder(settings, {"shop": SecretStr(f"sqlite:///{tmp_path / 'shop.db'}")}, clock=lambda: clock[0])

    async def price(tenant: str = "acme", query: str = "oriental spice") -> object:
        (hit,) = (await by.find(tenant, query, "product")).rows
        return hit.metadata["price"]

    assert await price() == 42
    shop.execute("UPDATE products SET price = price + 1")
    shop.commit()
    clock[0] += 59.9
    assert (await price(), await price("globex"), await price(query="the spice of the orient")) == (42, 2, 43)
    clock[0] += 0.1
    assert await price() == 43


async def test_rows_that_could_not_all_be_read_are_not_kept(tmp_path: Path, shop: sqlite3.Connection) -> None:
    sets = {"products": PRODUCTS, "gone": PRODUCTS | {"query": "SELECT id, shop, name, note, price, stock FROM gone"}}
    settings = RecordSettings(seconds=20, keep_seconds=60, sets=sets)
    by = RecordFinder(settings, {"shop": SecretStr(f"sqlite:///{tmp_path / 'shop.db'}")})
    assert (await by.find("acme", "perfume", "product")).problem
    shop.execute("CREATE TABLE gone (id, shop, name, note, price, stock)")
    shop.commit()
    assert (await by.find("acme", "perfume", "product")).problem == ""


async def test_those_with_most_words_come_first(shop: sqlite3.Connection, tmp_path: Path) -> None:
    assert await found(finder(tmp_path), "which perfumes are for the morning?") == ["Rose Water", "Oriental Spice"]
    assert await found(finder(tmp_path), "a battery") == ["Batteries"]
    assert await found(finder(tmp_path), "submarine") == []
    assert await found(finder(tmp_path), "is it the") == []


async def test_no_tenant_sees_the_rows_of_another(shop: sqlite3.Connection, tmp_path: Path) -> None:
    by = finder(tmp_path)
    assert [hit.text[:25] for hit in (await by.find("globex", "oriental spice", "product")).rows] == [
        "Oriental Spice costs 1 US"
    ]
    for tenant in ("nobody", "", "acme' OR '1'='1", "%", "ACME"):
        assert await found(by, "oriental spice perfume", tenant) == []


@pytest.mark.parametrize("collation", ["NOCASE", "RTRIM", "BINARY"])
async def test_whose_a_row_is_does_not_depend_on_how_the_database_compares(tmp_path: Path, collation: str) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.execute(f"CREATE TABLE products (id, shop TEXT COLLATE {collation}, name, note, price, stock)")
        others = [(n, ("Acme", "acme ")[n % 2], "Perfume", "", 1, 1) for n in range(20)]
        mine = [(99, "acme", "Perfume of mine", "", 1, 1)]
        database.executemany("INSERT INTO products VALUES (?, ?, ?, ?, ?, ?)", others + mine)
        database.commit()
    assert await found(finder(tmp_path), "perfume") == ["Perfume of mine"]


@pytest.mark.parametrize(("written", "titles"), [("acme", ["Oriental Spice"]), ("Acme", []), ("acme ", [])])
async def test_what_a_database_takes_for_the_tenant_is_looked_at_again(
    shop: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, titles: list[str]
) -> None:
    read = RowReader.rows

    def as_written(self: RowReader, statement: Any) -> list[Any]:
        return [{**row, "ragstone_tenant": written} for row in read(self, statement)]

    monkeypatch.setattr(RowReader, "rows", as_written)
    assert await found(finder(tmp_path), "oriental spice") == titles


@pytest.mark.parametrize("query", ["100% oud", "full_power", "x%' OR 1=1 --", "_____", "%%%", ":tenant", "a\ud800b"])
async def test_words_are_only_words(shop: sqlite3.Connection, tmp_path: Path, query: str) -> None:
    titles = await found(finder(tmp_path), query)
    assert titles == {"100% oud": ["Oriental Spice", "Batteries"], "full_power": ["Batteries"]}.get(query, [])


@pytest.mark.req("R-MOD-20")
async def test_a_query_is_given_no_more_rows_than_the_settings_say(shop: sqlite3.Connection, tmp_path: Path) -> None:
    more = [(n, "acme", f"Perfume {n}", "", n, n) for n in range(10, 30)]
    shop.executemany("INSERT INTO products VALUES (?, ?, ?, ?, ?, ?)", more)
    shop.commit()
    tulia = load_settings(overrides={"profile": "tulia"}, environment={})
    assert (tulia.retrieval.candidates, tulia.records.k, tulia.web.k) == (10, 5, 3)
    assert len(await found(finder(tmp_path, tulia.records.k), "perfume")) == 5


async def test_long_rows_are_cut(shop: sqlite3.Connection, tmp_path: Path) -> None:
    shop.execute("INSERT INTO products VALUES (9, 'acme', 'Epic', ?, 1, 1)", ("word " * 9000,))
    shop.commit()
    (hit,) = (await finder(tmp_path).find("acme", "epic", "product")).rows
    assert len(hit.text) == LONGEST_TEXT


async def test_sets_are_asked_for_their_own_type(shop: sqlite3.Connection, tmp_path: Path) -> None:
    assert finder(tmp_path).about == {"product"}
    assert await finder(tmp_path).find("acme", "perfume", "service") == RecordFindings(())
    everything = finder(tmp_path, about="general")
    assert everything.about == {"product", "service", "general"}
    assert len((await everything.find("acme", "perfume", "service")).rows) == 2


@pytest.mark.req("R-REL-02")
async def test_a_database_that_is_gone_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="database 'shop' is a file that does not exist"):
        await finder(tmp_path).find("acme", "perfume", "product")
    (tmp_path / "shop.db").touch()
    with pytest.raises(SourceError, match="no such table: products"):
        await finder(tmp_path).find("acme", "perfume", "product")


@pytest.mark.req("R-MOD-09")
async def test_a_database_has_its_own_time(stuck: RecordFinder) -> None:
    with pytest.raises(SourceError, match=r"^no rows of 'products' within 0.01 s$"):
        await stuck.find("acme", "perfume", "product")


async def test_a_database_that_hangs_holds_few_threads_of_its_own(stuck: RecordFinder, holding: set[int]) -> None:
    refused = False
    while not refused:
        searches = (stuck.find("acme", "perfume", "product") for _ in range(24))
        failed = await asyncio.gather(*searches, return_exceptions=True)
        assert {type(one) for one in failed} == {SourceError}
        refused = str(failed[-1]) == f"{READERS} reads of database 'shop' have not come back"
    assert len(holding) == READERS
    assert await asyncio.to_thread(threading.get_ident) not in holding


@pytest.mark.req("R-REL-02")
async def test_a_set_that_fails_leaves_the_rows_of_the_others(shop: sqlite3.Connection, tmp_path: Path) -> None:
    lost = PRODUCTS | {"query": "SELECT id, shop, name, note, price, stock FROM nowhere"}
    settings = RecordSettings(seconds=20, sets={"lost": lost, "products": PRODUCTS})
    by = RecordFinder(settings, {"shop": SecretStr(f"sqlite:///{tmp_path / 'shop.db'}")})
    findings = await by.find("acme", "oriental spice", "product")
    assert [hit.title for hit in findings.rows] == ["Oriental Spice"]
    assert findings.problem == "database 'shop': no such table: nowhere"


async def test_a_defect_is_no_database_that_is_down(
    shop: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RowReader, "rows", lambda self, statement: [{}])
    with pytest.raises(KeyError):
        await finder(tmp_path).find("acme", "perfume", "product")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query": "DELETE FROM products"}, "setting 'records.sets.products.query': must be a SELECT"),
        ({"tenant": ""}, "setting 'records.sets.products.tenant': String should have at least 1 character"),
        ({"cursor": "id"}, "setting 'records.sets.products': rows that are looked up have no cursor"),
        ({"about": "weather"}, "setting 'records.sets.products.about': Input should be"),
        ({"colour": 1}, "setting 'records.sets.products.colour': Extra inputs are not permitted"),
        ({"database": "shops"}, "names the database 'shops', which is not there"),
    ],
)
def test_wrong_settings_name_the_key(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        finder(tmp_path, **changes)


def test_whose_rows_they_are_must_be_said(tmp_path: Path) -> None:
    given = {key: value for key, value in PRODUCTS.items() if key != "tenant"}
    with pytest.raises(SettingsError, match=r"records\.sets\.products\.tenant': Field required"):
        RecordFinder(RecordSettings(sets={"products": given}), {"shop": SecretStr("sqlite://")})
