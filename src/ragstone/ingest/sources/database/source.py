"""Rows of a database as documents, from any database that the settings name."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from ragstone.core.errors import SourceError
from ragstone.core.filters import FIELD
from ragstone.core.ids import content_hash
from ragstone.core.registry import nearest
from ragstone.core.types import Failure, Item, Json, Page
from ragstone.ingest.sources.config import SourceContext, StatelessSource
from ragstone.ingest.sources.database.rows import (
    Row,
    RowQuery,
    RowReader,
    Template,
    Undecoded,
    as_metadata,
    as_text,
    columns_of,
    find_furthest,
    from_cursor,
    render,
    same_place,
    step_back,
    to_cursor,
)
from ragstone.ingest.sources.files.archives import MEGABYTE
from ragstone.ingest.sources.files.walk import as_tuple
from ragstone.ingest.sources.paging import split
from ragstone.settings.base import SettingsModel

SOURCE_TYPE = "database"
_READS = re.compile(r"\s*(?:select|with|values|table)\b", re.IGNORECASE)
Columns = Annotated[tuple[str, ...], BeforeValidator(as_tuple)]


def _check_name(database: str) -> str:
    if ":" in database or "/" in database:
        raise ValueError("must be the name of a database, not its address; put the address under 'databases'")
    return database


def one_select(query: str) -> str:
    """Return a query without its end, if it is one SELECT."""
    bare = query.strip().rstrip(";")
    if not _READS.match(bare):
        raise ValueError("must be a SELECT")
    if ";" in bare:
        raise ValueError("must be one statement, without ';'")
    return bare


def _fields(columns: tuple[str, ...]) -> tuple[str, ...]:
    for name in columns:
        if not FIELD.fullmatch(name):
            raise ValueError(f"'{name}' cannot be a metadata field; give the column another name with AS")
    return columns


class DatabaseConfig(SettingsModel):
    """The rows to read, and the parts of them that make a document."""

    database: Annotated[str, AfterValidator(_check_name)]
    """A name from the setting `databases`."""
    query: Annotated[str, AfterValidator(one_select)]
    key: Annotated[Columns, Field(min_length=1)]
    """The columns that tell a row from every other."""
    text: Template
    """Such as `{question}\\n\\n{answer}`."""
    title: Template = ""
    metadata: Annotated[Columns, AfterValidator(_fields)] = ()
    cursor: str | None = None
    """A column that grows with every change. With it only new rows are read, and rows that went are not noticed."""
    page_size: int = Field(default=500, ge=1, le=10_000)
    """Rows that the database is asked for at once."""
    seconds: float = Field(default=60.0, gt=0, le=3600)
    """The time that the database may take for one page."""


class DatabaseSource(StatelessSource):
    """The rows of one query, known by their key."""

    def __init__(self, config: DatabaseConfig, name: str, context: SourceContext) -> None:
        if config.database not in context.databases:
            known = context.databases
            raise SourceError(
                f"source '{name}' reads from '{config.database}', which the settings do not name",
                hint=nearest(config.database, known) or f"put its address under databases.{config.database}",
            )
        self._config = config
        self._name = name
        self._address = context.databases[config.database]
        self._max_bytes = context.limits.file_mb * MEGABYTE
        wanted = (*config.key, *columns_of(config.text + config.title), *config.metadata)
        wanted += (config.cursor,) if config.cursor else ()
        self._query = RowQuery(config.query, tuple(dict.fromkeys(wanted)), config.key, config.cursor)

    async def fetch(self, cursor: Json) -> AsyncIterator[Page]:
        """Yield rows since the cursor, or all of them with a list where no cursor column is configured."""
        pages = self._since(cursor) if self._config.cursor else self._all()
        while page := await asyncio.to_thread(next, pages, None):
            yield page

    def _all(self) -> Iterator[Page]:
        listed: set[str] = set()
        unreadable: set[str] = set()
        for rows in self._reader().stream(self._query.everything(), self._config.page_size):
            # They are there: a document that an earlier version made of one is not gone.
            unreadable.update(self._id(row) for row in rows if not self._is_readable(row))
            for entries in split(self._entry(row, listed) for row in rows):
                yield Page(entries)
        yield Page((), listed=frozenset(listed | unreadable))

    def _since(self, cursor: Json) -> Iterator[Page]:
        """Yield rows by cursor and key.

        A run begins with those that share the last value, or are of the minutes before it: some may have come since.
        """
        reader, fingerprint = self._reader(), self._fingerprint()
        kept = cursor["after"] if isinstance(cursor, dict) and cursor.get("query") == fingerprint else None
        if unplaced := reader.number(self._query.count_unplaced()):
            yield Page((self._report_unplaced(unplaced),), cursor)
        after: Sequence[object] | None = None
        while rows := reader.rows(self._query.page(step_back(from_cursor(kept)), after, self._config.page_size)):
            before, after = after, self._query.place(rows[-1])
            if same_place(before, after):
                raise SourceError(
                    f"{self._uri} gives the row {self._id(rows[-1])} again and again",
                    hint=f"its place in the order of {', '.join(self._query.order())} is not what it reads as",
                )
            seen: set[str] = set()
            done = 0
            for entries in split(self._entry(row, seen) for row in rows):
                done += len(entries)
                reached = self._query.place(rows[done - 1])[0]
                if not isinstance(reached, Undecoded):
                    kept = to_cursor(find_furthest(from_cursor(kept), reached), str(self._config.cursor))
                yield Page(entries, {"query": fingerprint, "after": kept})

    def _report_unplaced(self, count: int) -> Failure:
        columns = ", ".join(dict.fromkeys((str(self._config.cursor), *self._config.key)))
        message = f"{count} rows of {self._uri} have no value in one of {columns} and are not read"
        return Failure(self._uri, "invalid_input", message)

    def _reader(self) -> RowReader:
        return RowReader(self._config.database, self._address, self._config.seconds)

    def _fingerprint(self) -> str:
        """Return a name for query and template: others mean other documents, for which the cursor starts again."""
        return content_hash(self._config.model_dump_json(exclude={"page_size", "seconds"}))[:16]

    @property
    def _uri(self) -> str:
        return f"database:{self._config.database}/{self._name}"

    def _id(self, row: Row) -> str:
        return json.dumps([row[name] for name in self._config.key], ensure_ascii=False, default=str)

    def _is_readable(self, row: Row) -> bool:
        """Return whether its key is one that no other row can seem to have."""
        key = (row[name] for name in self._config.key)
        return not any(value is None or isinstance(value, bytes | Undecoded) for value in key)

    def _entry(self, row: Row, seen: set[str]) -> Item | Failure:
        key = [row[name] for name in self._config.key]
        uri = f"{self._uri}#{','.join(as_text(value) for value in key)}"
        if not self._is_readable(row):
            return Failure(uri, "invalid_input", f"a row of {self._uri} has no readable key")
        external_id = self._id(row)
        if external_id in seen:
            return Failure(uri, "invalid_input", f"two rows of {self._uri} have the key {external_id}")
        seen.add(external_id)
        content = render(self._config.text, row)
        if len(content) > self._max_bytes:
            return Failure(uri, "too_large", f"{uri} is larger than limits.file_mb allows")
        given = {name: as_metadata(row[name]) for name in self._config.metadata}
        return Item(
            source=self._name,
            external_id=external_id,
            uri=uri,
            content=content,
            title=render(self._config.title, row),
            metadata={**{k: v for k, v in given.items() if v is not None}, "source_type": SOURCE_TYPE},
        )
