"""Rows that are looked up while somebody asks: nothing of them is kept, so prices and stocks are those of now.

A row belongs to the tenant that one of its columns names and is given to no other. Only rows that hold a word of the
query are read.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Annotated, Any

from pydantic import Field, SecretStr, ValidationError, model_validator
from sqlalchemy import Select, String, and_, case, cast, column, func, or_, select, text
from sqlalchemy.sql.expression import ColumnElement

from ragstone.core.analysis import QueryType
from ragstone.core.analyzer import STOP_WORDS, analyze, fold
from ragstone.core.errors import SettingsError, SourceError
from ragstone.core.ids import content_hash
from ragstone.core.record_settings import RecordSettings
from ragstone.core.registry import nearest
from ragstone.core.types import Hit
from ragstone.ingest.sources.database import Columns, DatabaseConfig
from ragstone.ingest.sources.database_rows import Row, RowReader
from ragstone.ingest.sources.database_values import as_metadata, as_text, columns_of, render

MOST_WORDS = 12
"""Words of a query that are looked for."""
LONGEST_TEXT = 4000
"""Characters of a row's text that are given."""
ROW_ID = "row:"
"""How the ids of rows begin; no chunk of a kb has such an id."""
DATABASE = "database"
"""The source that rows name as theirs."""
_WORD = re.compile(r"[^\W_]+(?:[-.'][^\W_]+)*")


class RecordSet(DatabaseConfig):
    """Rows of one kind: which they are, whose, in which columns words are looked for, and how a row reads."""

    tenant: Annotated[str, Field(min_length=1)]
    """The column with the name of the tenant that a row belongs to."""
    words: Annotated[Columns, Field(min_length=1)]
    about: QueryType = "general"
    """Queries of which type are looked for here; `general` means of every type."""

    @model_validator(mode="after")
    def _is_read_anew(self) -> RecordSet:
        if self.cursor is not None:
            raise ValueError("rows that are looked up have no cursor")
        return self


class RecordFinder:
    """Looks for rows in the databases that the settings name."""

    def __init__(self, settings: RecordSettings, databases: Mapping[str, SecretStr]) -> None:
        self._k = settings.k
        self._seconds = settings.seconds
        self._sets = {name: _checked(name, given, databases) for name, given in settings.sets.items()}
        self._databases = databases

    @property
    def about(self) -> frozenset[QueryType]:
        """The types of queries that some rows are for."""
        types = frozenset(one.about for one in self._sets.values())
        return frozenset({"product", "service", "general"}) if "general" in types else types

    async def find(self, tenant: str, query: str, of: QueryType) -> tuple[Hit, ...]:
        """The rows that share most words with the query, best first. Raises `SourceError` when none can be read."""
        words = _words(query)
        sets = [name for name, one in self._sets.items() if one.about in (of, "general")]
        if not words or not sets:
            return ()
        try:
            async with asyncio.timeout(self._seconds):
                lists = await asyncio.gather(
                    *(asyncio.to_thread(self._rows, name, tenant, words) for name in sets)
                )
        except TimeoutError as error:
            raise SourceError(
                f"no rows within {self._seconds:g} s", hint="raise records.seconds, or index the columns"
            ) from error
        hits = [hit for found in lists for hit in found]
        return tuple(sorted(hits, key=lambda hit: -hit.score)[: self._k])

    def _rows(self, name: str, tenant: str, words: Sequence[str]) -> list[Hit]:
        own = self._sets[name]
        reader = RowReader(own.database, self._databases[own.database], self._seconds)
        rows = reader.rows(_statement(own, tenant, words, self._k))
        return [_hit(name, own, row, len(words)) for row in rows]


def _checked(name: str, given: Mapping[str, Any], databases: Mapping[str, SecretStr]) -> RecordSet:
    try:
        found = RecordSet.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(("records.sets", name, *map(str, first["loc"])))
        raise SettingsError(f"setting '{key}': {first['msg'].removeprefix('Value error, ')}") from error
    if found.database not in databases:
        raise SettingsError(
            f"setting 'records.sets.{name}' names the database '{found.database}', which is not there",
            hint=nearest(found.database, databases) or f"put its address under databases.{found.database}",
        )
    return found


def _words(query: str) -> list[str]:
    """What to look for inside columns: each word as far as all its forms are spelt alike."""
    found = [match.group().casefold() for match in _WORD.finditer(fold(query[:1000]))]
    roots = (_root(word) for word in found if len(word) > 1 and word not in STOP_WORDS)
    return list(dict.fromkeys(roots))[:MOST_WORDS]


def _root(word: str) -> str:
    """What a word has in common with its stem: `batteries` and `battery` both hold `batter`."""
    stem = analyze(word)[0]
    return (
        word
        if stem == word
        else "".join(letter for letter, _ in takewhile(_same, zip(word, stem, strict=False)))
    )


def _same(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]


def _statement(own: RecordSet, tenant: str, words: Sequence[str], k: int) -> Select[Any]:
    """The rows of one tenant that hold most of the words; what the caller wrote is only ever a parameter."""
    names = (*own.key, own.tenant, *columns_of(own.text + own.title), *own.metadata, *own.words)
    given = text(f"\n{own.query}\n".replace(":", "\\:"))
    table = given.columns(*(column(name) for name in dict.fromkeys(names))).subquery("record_rows").c
    held = [or_(*(_holds(table[name], word) for name in own.words)) for word in words]
    shared = sum((case((one, 1), else_=0) for one in held[1:]), case((held[0], 1), else_=0))
    return (
        select(*table, shared.label("ragstone_shared"))
        .where(and_(cast(table[own.tenant], String) == tenant, or_(*held)))
        .order_by(shared.desc(), *(table[name] for name in own.key))
        .limit(k)
    )


def _holds(place: ColumnElement[Any], word: str) -> ColumnElement[bool]:
    return func.lower(cast(place, String)).contains(word, autoescape=True)


def _hit(name: str, own: RecordSet, row: Row, asked: int) -> Hit:
    key = ",".join(as_text(row[one]) for one in own.key)
    said = render(own.text, row)[:LONGEST_TEXT]
    row_id = ROW_ID + content_hash(f"{own.database}\n{name}\n{key}")[:32]
    score = round(row["ragstone_shared"] / asked, 6)
    given = {one: as_metadata(row[one]) for one in own.metadata}
    return Hit(
        chunk_id=row_id,
        document_id=row_id,
        title=render(own.title, row) or name,
        uri=f"database:{own.database}/{name}#{key}",
        section="",
        page=None,
        text=said,
        score=score,
        scores={"database": score},
        metadata={**{k: v for k, v in given.items() if v is not None}, "source": DATABASE, "record": name},
        start=0,
        end=len(said),
    )
