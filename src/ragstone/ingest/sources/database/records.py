"""Rows that are looked up for a question: prices and stocks are those of now, or of a moment ago if settings say so.

A row belongs to the tenant that one of its columns names and is given to no other. Only rows that hold a word of the
query are read.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Annotated, Any

from pydantic import Field, SecretStr, ValidationError, model_validator
from sqlalchemy import Select, String, and_, case, cast, column, func, or_, select, text
from sqlalchemy.sql.expression import ColumnElement

from ragstone.core.background import ReaderPool
from ragstone.core.errors import SettingsError, SourceError, StoreBusy
from ragstone.core.ids import content_hash
from ragstone.core.protocols import RecordFindings
from ragstone.core.registry import nearest
from ragstone.core.search import QueryType
from ragstone.core.types import Hit
from ragstone.ingest.sources.database.rows import Row, RowReader, as_metadata, as_text, columns_of, render
from ragstone.ingest.sources.database.source import Columns, DatabaseConfig
from ragstone.language.analyzer import STOP_WORDS, analyze, fold
from ragstone.settings.records import RecordSettings

MOST_WORDS = 12
"""Words of a query that are looked for."""
READERS = 4
"""Threads that read one database at once; one that hangs keeps neither other databases nor the engine waiting."""
LONGEST_TEXT = 4000
"""Characters of a row's text that are given."""
ROW_ID = "row:"
"""The beginning of the ids of rows; no chunk of a kb has such an id."""
DATABASE = "database"
"""The source that rows name as theirs."""
MOST_KEPT = 1000
"""Queries whose rows are kept at once."""
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

    def __init__(
        self,
        settings: RecordSettings,
        databases: Mapping[str, SecretStr],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keep_seconds = settings.keep_seconds
        self._clock = clock
        self._kept: OrderedDict[tuple[str, QueryType, tuple[str, ...]], tuple[float, RecordFindings]] = OrderedDict()
        self._k = settings.k
        self._seconds = settings.seconds
        self._sets = {name: _check_set(name, given, databases) for name, given in settings.sets.items()}
        self._databases = databases
        self._readers = {
            name: ReaderPool(READERS, f"database '{name}'") for name in {own.database for own in self._sets.values()}
        }

    @property
    def about(self) -> frozenset[QueryType]:
        """Return the types of queries that some rows are for."""
        types = frozenset(own.about for own in self._sets.values())
        return frozenset({"product", "service", "general"}) if "general" in types else types

    async def find(self, tenant: str, query: str, of: QueryType) -> RecordFindings:
        """Return the rows that share most words with the query. Raises `SourceError` when no set could be read."""
        words = find_words(query)
        sets = [name for name, own in self._sets.items() if own.about in (of, "general")]
        if not words or not sets:
            return RecordFindings(())
        key = tenant, of, tuple(words)
        until, kept = self._kept.get(key, (0.0, None))
        if kept is not None and self._clock() < until:
            return kept
        findings = await self._find(sets, tenant, words)
        if self._keep_seconds and not findings.problem:
            self._kept[key] = self._clock() + self._keep_seconds, findings
            self._kept.move_to_end(key)
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return findings

    async def _find(self, sets: Sequence[str], tenant: str, words: Sequence[str]) -> RecordFindings:
        results = await asyncio.gather(*(self._read(name, tenant, words) for name in sets), return_exceptions=True)
        hits: list[Hit] = []
        failed: list[SourceError] = []
        for result in results:
            if isinstance(result, SourceError):
                failed.append(result)
            elif isinstance(result, BaseException):
                raise result
            else:
                hits += result
        problem = "; ".join(dict.fromkeys(map(str, failed)))
        if len(failed) == len(sets):
            raise SourceError(problem, hint=failed[0].hint) from failed[0]
        best = sorted(hits, key=lambda hit: -hit.score)[: self._k]
        return RecordFindings(tuple(best), problem)

    async def _read(self, name: str, tenant: str, words: Sequence[str]) -> list[Hit]:
        """Return the rows of one set, within the time that each set has."""
        readers = self._readers[self._sets[name].database]
        try:
            async with asyncio.timeout(self._seconds):
                return await readers.run(partial(self._rows, name, tenant, words))
        except TimeoutError as error:
            raise SourceError(
                f"no rows of '{name}' within {self._seconds:g} s", hint="raise records.seconds, or index the columns"
            ) from error
        except StoreBusy as error:
            raise SourceError(str(error), hint="see what locks it; there are rows again once they have") from error

    def _rows(self, name: str, tenant: str, words: Sequence[str]) -> list[Hit]:
        own = self._sets[name]
        reader = RowReader(own.database, self._databases[own.database], self._seconds)
        rows = reader.rows(_statement(own, tenant, words, self._k))
        # A database may compare without regard to case, accents or trailing spaces: names of tenants are exact.
        return [_hit(name, own, row, len(words)) for row in rows if row["ragstone_tenant"] == tenant]


def _check_set(name: str, given: Mapping[str, Any], databases: Mapping[str, SecretStr]) -> RecordSet:
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


def find_words(query: str) -> list[str]:
    """Return the words to look for inside columns, each as far as all its forms are spelt alike."""
    found = [match.group().casefold() for match in _WORD.finditer(fold(query[:1000]))]
    roots = (_root(word) for word in found if len(word) > 1 and word not in STOP_WORDS)
    return list(dict.fromkeys(roots))[:MOST_WORDS]


def _root(word: str) -> str:
    """Return what a word has in common with its stem: `batteries` and `battery` both hold `batter`."""
    stem = analyze(word)[0]
    return word if stem == word else "".join(letter for letter, _ in takewhile(_same, zip(word, stem, strict=False)))


def _same(pair: tuple[str, str]) -> bool:
    return pair[0] == pair[1]


def _statement(own: RecordSet, tenant: str, words: Sequence[str], k: int) -> Select[Any]:
    """Return the rows of one tenant that hold most of the words; what the caller wrote is only ever a parameter."""
    names = (*own.key, own.tenant, *columns_of(own.text + own.title), *own.metadata, *own.words)
    given = text(f"\n{own.query}\n".replace(":", "\\:"))
    table = given.columns(*(column(name) for name in dict.fromkeys(names))).subquery("record_rows").c
    held = [or_(*(holds_word(table[name], word) for name in own.words)) for word in words]
    shared = sum((case((condition, 1), else_=0) for condition in held[1:]), case((held[0], 1), else_=0))
    # Joined with nothing, a column of SQLite loses its own way of comparing: rows of "Acme" take no place of "acme"'s.
    whose = cast(table[own.tenant], String).concat("")
    return (
        select(*table, shared.label("ragstone_shared"), whose.label("ragstone_tenant"))
        .where(and_(whose == tenant, or_(*held)))
        .order_by(shared.desc(), *(table[name] for name in own.key))
        .limit(k)
    )


def holds_word(place: ColumnElement[Any], word: str) -> ColumnElement[bool]:
    """Return the condition that a column holds a word of a query."""
    return func.lower(cast(place, String)).contains(word, autoescape=True)


def _hit(name: str, own: RecordSet, row: Row, asked: int) -> Hit:
    key = ",".join(as_text(row[column_name]) for column_name in own.key)
    said = render(own.text, row)[:LONGEST_TEXT]
    row_id = ROW_ID + content_hash(f"{own.database}\n{name}\n{key}")[:32]
    score = round(row["ragstone_shared"] / asked, 6)
    given = {column_name: as_metadata(row[column_name]) for column_name in own.metadata}
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
