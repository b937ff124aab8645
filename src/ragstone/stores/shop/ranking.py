"""Finding entries of a catalogue by words: what is written down of an entry, and the order of those that match.

An entry keeps the terms of its fields, those of its name several times: BM25 then weighs fields without knowing them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from ragstone.language.detector import language_of
from ragstone.language.terms import choose_language, terms_asked, terms_of
from ragstone.stores.sql.database import Connection

MOST_ASKED = 24
"""IndexedWords of a query that are looked for."""
LONGEST_QUERY = 1000
"""Characters of a query that are looked at."""
SATURATION, LENGTH_SHARE = 1.2, 0.3
LEAST_SHARE = 0.4
"""The share of the best score that an entry needs: with a name in the query, the rest of its category is not meant."""


class IndexedWords(NamedTuple):
    """The terms of an entry, joined and enclosed by blanks, and the language they are in; "" for English."""

    terms: str
    language: str


def index_words(*fields: tuple[str, int]) -> IndexedWords:
    """Return the words of an entry from its fields, each with its weight."""
    whole = "\n".join(text for text, _ in fields if text)
    language = choose_language(language_of(whole[:LONGEST_QUERY]) or "", whole)
    terms = [term for text, weight in fields for term in terms_of(text, language) * weight if text]
    return IndexedWords(f" {' '.join(terms)} ", language)


def find_ids(connection: Connection, tenant_id: str, table: str, query: str, limit: int) -> list[str]:
    """Return the ids of the entries of a table that a query is about, best first."""
    languages = [
        row[0]
        for row in connection.execute(
            f"SELECT DISTINCT language FROM {table} WHERE tenant_id = ? AND language <> ''", (tenant_id,)
        )
    ]
    asked = terms_asked(query[:LONGEST_QUERY], languages)[:MOST_ASKED]
    if not asked:
        return []
    patterns = [f"% {term} %" for terms in asked for term in terms]
    matching = " OR ".join(["terms LIKE ?"] * len(patterns))
    rows = connection.execute(
        f"SELECT id, terms FROM {table} WHERE tenant_id = ? AND ({matching}) ORDER BY id", (tenant_id, *patterns)
    ).fetchall()
    (total,) = connection.execute(f"SELECT count(*) FROM {table} WHERE tenant_id = ?", (tenant_id,)).fetchone()
    return rank([(row[0], row[1].split()) for row in rows], asked, int(total), limit)


def rank(
    entries: Sequence[tuple[str, Sequence[str]]], asked: Sequence[Collection[str]], total: int, limit: int
) -> list[str]:
    """Return ids of entries by BM25, best first; a word of the query is any of some terms."""
    counts = [(entry_id, Counter(terms), len(terms)) for entry_id, terms in entries]
    if not counts:
        return []
    mean = sum(length for *_, length in counts) / len(counts)
    scores = dict.fromkeys((entry_id for entry_id, *_ in counts), 0.0)
    for terms in asked:
        held = {entry_id: sum(count[term] for term in terms) for entry_id, count, _ in counts}
        having = sum(number > 0 for number in held.values())
        rarity = math.log(1 + (total - having + 0.5) / (having + 0.5))
        for entry_id, _, length in counts:
            damping = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length / mean)
            scores[entry_id] += rarity * held[entry_id] * (SATURATION + 1) / (held[entry_id] + damping)
    ordered = sorted(scores, key=lambda entry_id: (-scores[entry_id], entry_id))
    least = LEAST_SHARE * scores[ordered[0]]
    return [entry_id for entry_id in ordered if scores[entry_id] > 0 and scores[entry_id] >= least][:limit]


def read_in_order(rows: Sequence[Sequence[Any]], ids: Sequence[str]) -> list[Sequence[Any]]:
    """Return rows, whose first column is the id, in the order of some ids."""
    found = {row[0]: row for row in rows}
    return [found[entry_id] for entry_id in ids if entry_id in found]
