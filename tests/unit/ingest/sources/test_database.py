from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError
from sqlalchemy import text
from tests.unit.ingest.sources.source_kit import context, entries, failures, items, pages, pages_before_error

from ragstone.core.errors import SourceError
from ragstone.core.types import Failure, Item, Json, Page
from ragstone.ingest.sources.database.rows import RowQuery, RowReader
from ragstone.ingest.sources.database.source import DatabaseConfig, DatabaseSource
from ragstone.settings.tree import LimitSettings

ALL = {
    "database": "shop",
    "query": "SELECT * FROM faq",
    "key": "id",
    "title": "{question}",
    "text": "{question}\n\n{answer}",
    "metadata": ["topic", "price"],
}
NEW = {**ALL, "cursor": "changed"}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as connection:
        connection.execute(
            "CREATE TABLE faq (id INTEGER, question TEXT, answer TEXT, topic TEXT, price REAL, changed TEXT)"
        )
        yield connection


def add(shop: sqlite3.Connection, *rows: tuple[Any, ...]) -> None:
    shop.executemany("INSERT INTO faq VALUES (?, ?, ?, ?, ?, ?)", rows)


def row(number: Any, changed: str | None = "2026-01-01") -> tuple[Any, ...]:
    return (number, f"Q{number}?", f"A{number}.", "returns", 9.5, changed)


def source(tmp_path: Path, config: dict[str, Any], **changed: object) -> DatabaseSource:
    databases = {"shop": SecretStr(f"sqlite:///{tmp_path / 'shop.db'}")}
    checked = DatabaseConfig.model_validate({**config, **changed})
    return DatabaseSource(checked, "faq", context(LimitSettings(file_mb=1), databases))


def ids(found: list[Page]) -> list[str]:
    return [entry.external_id for entry in entries(found) if isinstance(entry, Item)]


async def test_a_row_is_a_document(shop: sqlite3.Connection, tmp_path: Path) -> None:
    add(shop, row(7))
    first, last = await pages(source(tmp_path, ALL))
    assert first.items == (
        Item(
            source="faq",
            external_id="[7]",
            uri="database:shop/faq#7",
            content="Q7?\n\nA7.",
            title="Q7?",
            metadata={"topic": "returns", "price": 9.5, "source_type": "database"},
        ),
    )
    assert (last.items, last.listed, last.cursor) == ((), frozenset({"[7]"}), None)


async def test_without_a_cursor_everything_is_read_and_listed(shop: sqlite3.Connection, tmp_path: Path) -> None:
    add(shop, *(row(number) for number in range(100)))
    found = await pages(source(tmp_path, ALL, page_size=40))
    assert ids(found) == [f"[{number}]" for number in range(100)]
    assert max(len(page.items) for page in found) == 32
    assert found[-1].listed == set(ids(found))
    assert all(page.listed is None for page in found[:-1])


async def test_an_empty_result_lists_nothing(shop: sqlite3.Connection, tmp_path: Path) -> None:
    (only,) = await pages(source(tmp_path, ALL))
    assert (only.items, only.listed) == ((), frozenset())


async def test_with_a_cursor_only_new_rows_are_read(shop: sqlite3.Connection, tmp_path: Path) -> None:
    add(shop, row(1, "2026-01-01"), row(2, "2026-01-03"), row(3, "2026-01-02"))
    found = await pages(source(tmp_path, NEW))
    assert ids(found) == ["[1]", "[3]", "[2]"]
    assert all(page.listed is None for page in found)
    add(shop, row(4, "2026-01-04"))
    shop.execute("UPDATE faq SET answer = 'new', changed = '2026-01-05' WHERE id = 1")
    again = await pages(source(tmp_path, NEW), found[-1].cursor)
    assert ids(again) == ["[2]", "[4]", "[1]"]
    assert items(again)["[1]"] == "Q1?\n\nnew"


async def test_rows_that_share_the_cursor_s_value_are_never_lost(shop: sqlite3.Connection, tmp_path: Path) -> None:
    add(shop, *(row(number, "2026-01-01") for number in range(1, 101)))
    found = await pages(source(tmp_path, NEW, page_size=7))
    assert ids(found) == [f"[{number}]" for number in range(1, 101)]
    add(shop, row(0, "2026-01-01"))
    again = await pages(source(tmp_path, NEW, page_size=7), found[-1].cursor)
    assert ids(again)[:2] == ["[0]", "[1]"]


async def test_a_run_that_breaks_off_goes_on_at_any_page(shop: sqlite3.Connection, tmp_path: Path) -> None:
    add(shop, *(row(number, f"2026-01-{number // 3 + 1:02}") for number in range(60)))
    whole = await pages(source(tmp_path, NEW, page_size=10))
    for number, page in enumerate(whole):
        rest = await pages(source(tmp_path, NEW, page_size=10), page.cursor)
        assert set(ids(whole[number + 1 :])) <= set(ids(rest))


@pytest.fixture
def edits(shop: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> sqlite3.Connection:
    """A table whose cursor column is read as a time, as other databases give it."""
    monkeypatch.setitem(sqlite3.converters, "MOMENT", lambda raw: datetime.fromisoformat(raw.decode()))
    shop.execute("CREATE TABLE edits (id INTEGER, body TEXT, changed MOMENT)")
    return shop


def edited(edits: sqlite3.Connection, *times: str) -> None:
    """Commit rows that were changed at these times of one day; their ids go on."""
    known = edits.execute("SELECT count(*) FROM edits").fetchone()[0]
    for number, time in enumerate(times, known + 1):
        edits.execute("INSERT INTO edits VALUES (?, 'words', ?)", (number, f"2026-01-01 {time}.000000"))


def edits_source(tmp_path: Path, page_size: int = 500) -> DatabaseSource:
    config = {"database": "shop", "query": "SELECT * FROM edits", "key": "id", "text": "{body}", "cursor": "changed"}
    databases = {"shop": SecretStr(f"sqlite:///{tmp_path / 'shop.db'}?detect_types={sqlite3.PARSE_DECLTYPES}")}
    checked = DatabaseConfig.model_validate({**config, "page_size": page_size})
    return DatabaseSource(checked, "edits", context(databases=databases))


async def test_a_row_that_is_committed_late_is_read(edits: sqlite3.Connection, tmp_path: Path) -> None:
    """As where a transaction stamps its rows when it begins, and ends behind later ones."""
    edited(edits, "09:50:00", "10:00:01")
    found = await pages(edits_source(tmp_path))
    edited(edits, "10:00:00")
    again = await pages(edits_source(tmp_path), found[-1].cursor)
    assert ids(again) == ["[3]", "[2]"]
    assert again[-1].cursor == found[-1].cursor


async def test_reading_rows_again_does_not_set_the_cursor_back(edits: sqlite3.Connection, tmp_path: Path) -> None:
    """Else runs that break off early would go back further each time."""
    edited(edits, "09:55:00", "10:00:00")
    found = await pages(edits_source(tmp_path))
    edited(edits, "10:05:00")
    again = await pages(edits_source(tmp_path, page_size=1), found[-1].cursor)
    assert ids(again) == ["[1]", "[2]", "[3]"]
    reached = ["2026-01-01T10:00:00", "2026-01-01T10:00:00", "2026-01-01T10:05:00"]
    assert [page.cursor["after"]["datetime"] for page in again] == reached


async def test_several_key_columns_make_one_id(shop: sqlite3.Connection, tmp_path: Path) -> None:
    add(shop, row(1), (1, "other?", "A", 'a "b", c', None, "2026-01-01"))
    for config in (ALL, NEW):
        found = await pages(source(tmp_path, config, key=["id", "topic"], page_size=1))
        assert sorted(ids(found)) == ['[1, "a \\"b\\", c"]', '[1, "returns"]']


async def test_another_query_starts_anew(shop: sqlite3.Connection, tmp_path: Path) -> None:
    add(shop, row(1), row(2, "2026-02-01"))
    found = await pages(source(tmp_path, NEW))
    changed = await pages(source(tmp_path, NEW, text="{answer}"), found[-1].cursor)
    assert ids(changed) == ["[1]", "[2]"]
    other_size = await pages(source(tmp_path, NEW, page_size=3), found[-1].cursor)
    assert ids(other_size) == ["[2]"]


async def test_rows_without_a_place_are_reported(shop: sqlite3.Connection, tmp_path: Path) -> None:
    add(shop, row(1), row(2, None), row(None))
    found = await pages(source(tmp_path, NEW))
    assert ids(found) == ["[1]"]
    message = "2 rows of database:shop/faq have no value in one of changed, id and are not read"
    assert failures(found) == [Failure("database:shop/faq", "invalid_input", message)]


async def test_rows_that_cannot_be_told_apart_are_reported(shop: sqlite3.Connection, tmp_path: Path) -> None:
    add(shop, row(1), row(1), row(None), row(b"\x00"))
    found = await pages(source(tmp_path, ALL))
    assert ids(found) == ["[1]"]
    assert [failure.error for failure in failures(found)] == [
        "two rows of database:shop/faq have the key [1]",
        "a row of database:shop/faq has no readable key",
        "a row of database:shop/faq has no readable key",
    ]


async def test_values_that_are_no_text_are_left_out(shop: sqlite3.Connection, tmp_path: Path) -> None:
    add(shop, (1, "Q?", b"\x00\x01", None, None, "2026-01-01"))
    ((entry,), _) = [page.items for page in await pages(source(tmp_path, ALL))]
    assert isinstance(entry, Item)
    assert entry.content == "Q?\n\n"
    assert entry.metadata == {"source_type": "database"}


async def test_text_that_is_not_utf_8_does_not_stop_the_rest(shop: sqlite3.Connection, tmp_path: Path) -> None:
    shop.execute("INSERT INTO faq (id, question, answer) VALUES (1, CAST(x'636166e9' AS TEXT), 'A')")
    assert items(await pages(source(tmp_path, ALL))) == {"[1]": "caf\ufffd\n\nA"}


@pytest.fixture
def names(shop: sqlite3.Connection) -> sqlite3.Connection:
    """Keys that are not UTF-8, which SQLite keeps as text all the same, among some that are."""
    shop.execute("CREATE TABLE names (name TEXT, body TEXT, changed)")
    for name in (b"alice", b"m\xfe", b"m\xff", "m\ufffd".encode(), b"zoe"):
        shop.execute("INSERT INTO names VALUES (CAST(? AS TEXT), 'words', 1)", (name,))
    return shop


NAMES = {"database": "shop", "query": "SELECT * FROM names", "key": "name", "text": "{body}"}
READ = ['["alice"]', '["m\ufffd"]', '["zoe"]']


@pytest.mark.timeout(60)
@pytest.mark.parametrize("size", [1, 2, 500])
async def test_a_key_that_is_not_utf_8_is_reported_once_and_passed(
    names: sqlite3.Connection, tmp_path: Path, size: int
) -> None:
    found = await pages(source(tmp_path, NAMES, cursor="changed", page_size=size))
    assert sorted(ids(found)) == READ
    assert [failure.error for failure in failures(found)] == [
        "a row of database:shop/faq has no readable key",
        "a row of database:shop/faq has no readable key",
    ]
    assert found[-1].cursor["after"] == 1


async def test_a_document_of_a_row_whose_key_cannot_be_read_stays(names: sqlite3.Connection, tmp_path: Path) -> None:
    names.execute("DELETE FROM names WHERE name = 'm\ufffd'")
    found = await pages(source(tmp_path, NAMES))
    assert ids(found) == ['["alice"]', '["zoe"]']
    assert len(failures(found)) == 2
    assert found[-1].listed == frozenset(READ)


@pytest.mark.timeout(60)
async def test_a_cursor_that_is_not_utf_8_is_not_gone_on_from(names: sqlite3.Connection, tmp_path: Path) -> None:
    names.execute("UPDATE names SET changed = name, name = hex(name)")
    whole = await pages(source(tmp_path, NAMES, cursor="changed", page_size=1))
    assert len(ids(whole)) == 5
    assert [page.cursor["after"] for page in whole] == ["alice", *["m\ufffd"] * 3, "zoe"]
    for page in whole:
        rest = await pages(source(tmp_path, NAMES, cursor="changed"), page.cursor)
        later = whole[whole.index(page) + 1 :]
        assert set(ids(later)) <= set(ids(rest))


@pytest.mark.timeout(60)
async def test_rows_that_do_not_come_to_an_end_are_an_error(
    names: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a database does that rounds what it is asked for."""
    monkeypatch.setattr(RowQuery, "page", lambda query, at_least, after, size: query.everything())
    found, error = await pages_before_error(source(tmp_path, NAMES, cursor="changed"))
    assert len(found) == 1
    assert "again and again" in str(error)


async def test_values_are_never_read_as_templates(shop: sqlite3.Connection, tmp_path: Path) -> None:
    add(shop, (1, "{answer}", "{0.__class__}", None, None, None))
    found = await pages(source(tmp_path, ALL, text="{{{question}}} {answer}"))
    assert items(found) == {"[1]": "{{answer}} {0.__class__}"}


async def test_a_row_over_the_limit_is_reported(shop: sqlite3.Connection, tmp_path: Path) -> None:
    add(shop, (1, "x" * (1024 * 1024 + 1), "", None, None, None), row(2))
    found = await pages(source(tmp_path, ALL))
    assert [failure.code for failure in failures(found)] == ["too_large"]
    assert ids(found) == ["[2]"]
    assert found[-1].listed == {"[1]", "[2]"}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM faq WHERE question <> ':name' AND question NOT LIKE '%:x%' -- a comment",
        "WITH some AS (SELECT * FROM faq) SELECT * FROM some",
        "  select * from faq ;\n",
    ],
)
async def test_queries_are_taken_as_they_are_written(shop: sqlite3.Connection, tmp_path: Path, query: str) -> None:
    add(shop, row(1))
    for config in (ALL, NEW):
        assert ids(await pages(source(tmp_path, config, query=query))) == ["[1]"]


def test_the_connection_itself_refuses_to_write(shop: sqlite3.Connection, tmp_path: Path) -> None:
    add(shop, row(1))
    reader = RowReader("shop", SecretStr(f"sqlite:///{tmp_path / 'shop.db'}"), 5)
    statement: Any = text("DELETE FROM faq RETURNING id")
    with pytest.raises(SourceError, match="attempt to write a readonly database"):
        reader.rows(statement)
    assert shop.execute("SELECT count(*) FROM faq").fetchone() == (1,)


async def test_a_query_that_never_ends_is_ended(shop: sqlite3.Connection, tmp_path: Path) -> None:
    endless = (
        "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) "
        "SELECT max(id) AS id, '' AS question, '' AS answer, '' AS topic, 1 AS price FROM n"
    )
    with pytest.raises(SourceError, match="database 'shop': interrupted"):
        await pages(source(tmp_path, ALL, query=endless, seconds=0.05))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"database": "postgresql://u:secret@host/db"}, "must be the name of a database, not its address"),
        ({"query": "DELETE FROM faq"}, "must be a SELECT"),
        ({"query": "PRAGMA query_only = OFF"}, "must be a SELECT"),
        ({"query": "SELECT 1; DROP TABLE faq"}, "must be one statement"),
        ({"text": "{question.__class__}"}, "must be a column's name"),
        ({"text": "{question[0]}"}, "must be a column's name"),
        ({"text": "{question!r}"}, "must be a column's name"),
        ({"text": "{question:>999999999}"}, "must be a column's name"),
        ({"text": "{}"}, "must be a column's name"),
        ({"text": "{question"}, "expected '}'"),
        ({"title": "{a.b}"}, "must be a column's name"),
        ({"metadata": ["a b"]}, "cannot be a metadata field"),
        ({"key": []}, "at least 1 item"),
        ({"page_size": 0}, "greater than or equal to 1"),
        ({"address": "x"}, "Extra inputs"),
    ],
)
def test_a_configuration_that_is_unsafe_or_wrong_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message) as caught:
        DatabaseConfig.model_validate({**ALL, **change})
    assert "secret" not in caught.value.errors()[0]["msg"]


def test_a_database_that_the_settings_do_not_name_is_refused() -> None:
    with pytest.raises(SourceError) as caught:
        DatabaseSource(DatabaseConfig.model_validate(ALL), "faq", context(databases={"shopp": SecretStr("x")}))
    assert str(caught.value) == "source 'faq' reads from 'shop', which the settings do not name"
    assert caught.value.hint == "did you mean 'shopp'?"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("no address s3cret", "the address of database 'shop' cannot be read"),
        ("sqlite:///missing-s3cret.db", "database 'shop' is a file that does not exist: missing-s3cret.db"),
        ("sqlite://", "database 'shop' is a file that does not exist"),
        ("postgresql+asyncpg://u:s3cret@localhost/x", "database 'shop' n"),
        ("nonsense://u:s3cret@localhost/x", "database 'shop' needs a driver for nonsense"),
        ("postgresql+pg8000://u:s3cret@localhost/x", "database 'shop' needs a driver for postgresql+pg8000"),
    ],
)
async def test_an_address_that_cannot_be_used_is_said_so_without_its_password(
    address: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = DatabaseSource(DatabaseConfig.model_validate(ALL), "faq", context(databases={"shop": SecretStr(address)}))
    with pytest.raises(SourceError) as caught:
        await pages(made)
    assert str(caught.value).startswith(message)
    assert ":s3cret" not in str(caught.value) + caught.value.hint
    assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240


@pytest.mark.parametrize("config", [ALL, NEW], ids=["stream", "cursor"])
@pytest.mark.parametrize("change", [{"query": "SELECT * FROM missing"}, {"text": "{unheard}"}], ids=str)
async def test_a_query_that_fails_names_the_database(
    shop: sqlite3.Connection, tmp_path: Path, config: dict[str, Any], change: Json
) -> None:
    add(shop, row(1))
    with pytest.raises(SourceError, match=r"database 'shop': no such (table|column)"):
        await pages(source(tmp_path, {**config, **change}))


async def test_a_cursor_of_a_kind_without_order_is_refused(shop: sqlite3.Connection, tmp_path: Path) -> None:
    add(shop, row(1, b"\x01"))  # type: ignore[arg-type]
    with pytest.raises(SourceError, match="the cursor column 'changed' holds bytes"):
        await pages(source(tmp_path, NEW))
