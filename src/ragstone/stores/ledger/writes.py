"""Writes of kbs and documents, as functions over a transaction's connection."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime, timedelta

from ragstone.core.clock import canonical, now
from ragstone.core.collections import check_kb_name
from ragstone.core.errors import CollectionExists, ModelMismatch, NotFoundError, StoreBusy, kb_gone
from ragstone.core.jobs import Job, JobProgress, NewJob, Ticket
from ragstone.core.model_types import model_name
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Json, KnowledgeBase, NewVersion
from ragstone.language.terms import languages_of
from ragstone.stores.activity.removal import empty_answers
from ragstone.stores.indexes import TransactionalIndex
from ragstone.stores.ledger.documents import existing, family, read_kb, read_kbs
from ragstone.stores.ledger.jobs import Weigh, complete_held, enqueue, forget_document, forget_notices, forget_unstored
from ragstone.stores.ledger.originals import let_go
from ragstone.stores.ledger.versions import facts_of, next_version, publish, write_bands, write_chunks, write_vectors
from ragstone.stores.sql.database import Connection

Indexes = Sequence[TransactionalIndex]
SETTLED = timedelta(hours=1)
"""A version this old that nobody works on will not go live any more."""


def open_kb(
    connection: Connection, tenant_id: str, indexes: Indexes, name: str, *, draft: bool = False
) -> KnowledgeBase:
    """Return the kb of that name, made if it does not exist."""
    found = read_kb(connection, tenant_id, name)
    if found:
        return found
    if not draft:
        check_kb_name(name)
    inserted = connection.execute(
        "INSERT INTO knowledge_bases (tenant_id, name, created_at) VALUES (?, ?, ?) RETURNING id",
        (tenant_id, name, canonical(now())),
    ).fetchone()
    for index in indexes:
        index.open(connection, inserted[0])
    return KnowledgeBase(inserted[0], name, None)


def open_space(connection: Connection, tenant_id: str, kb: KnowledgeBase, model: str, dimension: int) -> KnowledgeBase:
    """Return the kb with a live Space of this model; refuse when it already has one of another."""
    current = present(connection, tenant_id, kb)
    if current.space:
        if (current.space.model, current.space.dimension) != (model, dimension):
            raise ModelMismatch(
                f"knowledge base '{kb.name}' was built with {current.space.model} "
                f"({current.space.dimension} dimensions), not with {model} ({dimension})",
                remedy=Remedy(
                    Action.REEMBED, model=model_name(model), kb=kb.name, current_model=model_name(current.space.model)
                ),
            )
        return current
    space = connection.execute(
        "INSERT INTO spaces (tenant_id, kb_id, model, dimension, generation, state, created_at) "
        "VALUES (?, ?, ?, ?, 1, 'live', ?) RETURNING id",
        (tenant_id, kb.id, model, dimension, canonical(now())),
    ).fetchone()
    connection.execute(
        "UPDATE knowledge_bases SET live_space = ? WHERE tenant_id = ? AND id = ?", (space[0], tenant_id, kb.id)
    )
    return present(connection, tenant_id, kb)


def stage(connection: Connection, tenant_id: str, kb: KnowledgeBase, version: NewVersion) -> int:
    """Write a version that no reader sees until it is activated; return its number. The kb must be as it is now."""
    moment = canonical(now())
    number = next_version(connection, tenant_id, kb, version, moment)
    connection.execute(
        "INSERT INTO versions (document_id, version, tenant_id, facts, text, created_at) VALUES (?, ?, ?, ?, ?, ?)",
        (
            version.document_id,
            number,
            tenant_id,
            connection.dialect.to_json(facts_of(version, kb)),
            connection.dialect.pack(version.text),
            moment,
        ),
    )
    first = write_chunks(connection, tenant_id, kb, version, number)
    if version.vectors is not None:
        write_vectors(connection, tenant_id, kb, first, version.vectors)
    return number


def activate(
    connection: Connection, tenant_id: str, indexes: Indexes, kb: KnowledgeBase, document_id: str, number: int
) -> None:
    """Make a staged version the live one; everything older goes."""
    row = connection.execute(
        "SELECT v.facts, d.version FROM versions v "
        "JOIN documents d ON d.tenant_id = v.tenant_id AND d.id = v.document_id "
        "WHERE v.document_id = ? AND v.version = ? AND v.tenant_id = ?",
        (document_id, number, tenant_id),
    ).fetchone()
    if row is None:
        raise NotFoundError(f"document {document_id} has no staged version {number}")
    if row[1] == number:
        return
    if row[1]:
        empty_answers(connection, tenant_id, document_id)
    facts = json.loads(row[0])
    fresh = _terms(connection, tenant_id, "document_id = ? AND version = ?", (document_id, number))
    _remove_chunks(connection, tenant_id, indexes, kb.id, "document_id = ? AND version < ?", (document_id, number))
    connection.execute(
        "DELETE FROM versions WHERE tenant_id = ? AND document_id = ? AND version < ?", (tenant_id, document_id, number)
    )
    for index in indexes:
        index.add(connection, kb.id, fresh)
    _note_languages(connection, tenant_id, kb.id, languages_of(text for _, text in fresh))
    arrived = connection.execute(
        "SELECT seq, id FROM chunks WHERE tenant_id = ? AND document_id = ? AND version = ? ORDER BY seq",
        (tenant_id, document_id, number),
    )
    publish(connection, tenant_id, kb.id, "upsert", arrived.fetchall())
    connection.execute(
        "UPDATE documents SET uri = ?, title = ?, content_hash = ?, version = ?, chunk_count = ?, token_count = ?, "
        "media_type = ?, metadata = ?, recipe = ?, embedded = ?, modified_at = ?, updated_at = ?, signature = ? "
        "WHERE id = ? AND tenant_id = ?",
        (
            *(facts["uri"], facts["title"], facts["content_hash"], number, facts["chunks"], facts["tokens"]),
            *(facts["media_type"], connection.dialect.to_json(facts["metadata"]), facts["recipe"]),
            *(_is_embedded(connection, tenant_id, kb, facts), facts["modified_at"], canonical(now())),
            *(bytes.fromhex(facts["signature"]) or None, document_id, tenant_id),
        ),
    )
    write_bands(connection, tenant_id, kb, document_id, facts["bands"])
    connection.execute("DELETE FROM checkpoints WHERE tenant_id = ? AND document_id = ?", (tenant_id, document_id))


def discard(
    connection: Connection, tenant_id: str, indexes: Indexes, kb: KnowledgeBase, document_id: str, number: int
) -> None:
    """Remove a staged version that is not to go live, and its document if that was never anything else."""
    row = connection.execute(
        "SELECT version FROM documents WHERE tenant_id = ? AND id = ?", (tenant_id, document_id)
    ).fetchone()
    if row is None or row[0] == number:
        return
    _remove_chunks(connection, tenant_id, indexes, kb.id, "document_id = ? AND version = ?", (document_id, number))
    connection.execute(
        "DELETE FROM versions WHERE tenant_id = ? AND document_id = ? AND version = ?", (tenant_id, document_id, number)
    )
    # Parts of it that were kept stay: the next try goes on with them.
    connection.execute(
        "DELETE FROM documents AS d WHERE d.tenant_id = ? AND d.id = ? AND d.version = 0 "
        "AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.tenant_id = d.tenant_id AND v.document_id = d.id) "
        "AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.tenant_id = d.tenant_id AND j.document_id = d.id) "
        "AND NOT EXISTS (SELECT 1 FROM documents c WHERE c.tenant_id = d.tenant_id AND c.parent_id = d.id)",
        (tenant_id, document_id),
    )


def delete_document(connection: Connection, tenant_id: str, indexes: Indexes, document_id: str) -> list[str]:
    """Remove a document as `remove_family` does, and all parts of documents that were never stored."""
    gone = remove_family(connection, tenant_id, indexes, document_id)
    if gone:
        forget_unstored(connection, tenant_id)
    return gone


def remove_family(connection: Connection, tenant_id: str, indexes: Indexes, document_id: str) -> list[str]:
    """Remove a document and those that came in with it, with all their versions, postings, vectors and jobs."""
    row = connection.execute(
        "SELECT kb_id FROM documents WHERE id = ? AND tenant_id = ?", (document_id, tenant_id)
    ).fetchone()
    if row is None:
        return []
    gone = family(connection, tenant_id, document_id)
    for identity in gone:
        empty_answers(connection, tenant_id, identity)
        _remove_chunks(connection, tenant_id, indexes, row[0], "document_id = ?", (identity,))
        connection.execute("DELETE FROM documents WHERE tenant_id = ? AND id = ?", (tenant_id, identity))
        forget_document(connection, tenant_id, identity)
    return gone


def withdraw(connection: Connection, tenant_id: str, indexes: Indexes, document_id: str) -> bool:
    """Remove all versions of a document, which stays as one that never went live; False when it is none."""
    row = connection.execute(
        "SELECT kb_id FROM documents WHERE id = ? AND tenant_id = ? AND version > 0", (document_id, tenant_id)
    ).fetchone()
    if row is None:
        return False
    empty_answers(connection, tenant_id, document_id)
    _remove_chunks(connection, tenant_id, indexes, row[0], "document_id = ?", (document_id,))
    for table in ("versions", "resemblances"):
        connection.execute(f"DELETE FROM {table} WHERE tenant_id = ? AND document_id = ?", (tenant_id, document_id))
    connection.execute(
        "UPDATE documents SET version = 0, content_hash = '', recipe = '', chunk_count = 0, token_count = 0, "
        "metadata = '{}', embedded = 0, signature = NULL WHERE tenant_id = ? AND id = ?",
        (tenant_id, document_id),
    )
    return True


def delete_kb(connection: Connection, tenant_id: str, indexes: Indexes, name: str) -> list[str]:
    """Remove a kb with everything in it; the documents that went."""
    kb = read_kb(connection, tenant_id, name)
    if kb is None:
        return []
    found = connection.execute(
        "SELECT id FROM documents WHERE tenant_id = ? AND kb_id = ?", (tenant_id, kb.id)
    ).fetchall()
    gone = [document_id for (document_id,) in found]
    _remove_chunks(connection, tenant_id, (), kb.id, "kb_id = ?", (kb.id,))
    for index in indexes:
        index.drop(connection, kb.id)
    for document_id in gone:
        forget_document(connection, tenant_id, document_id)
    forget_unstored(connection, tenant_id)
    forget_notices(connection, tenant_id, kb.id)
    connection.execute("DELETE FROM knowledge_bases WHERE tenant_id = ? AND id = ?", (tenant_id, kb.id))
    return gone


def _remove_chunks(
    connection: Connection, tenant_id: str, indexes: Indexes, kb_id: int, which: str, parameters: tuple[str | int, ...]
) -> None:
    gone = connection.execute(
        "SELECT c.seq, c.id, c.version = d.version FROM chunks c "
        "JOIN documents d ON d.tenant_id = c.tenant_id AND d.id = c.document_id "
        f"WHERE c.tenant_id = ? AND {_qualify(which)}",
        (tenant_id, *parameters),
    ).fetchall()
    if not gone:
        return
    if indexes:
        live = {seq for seq, _, is_live in gone if is_live}
        indexed = [row for row in _terms(connection, tenant_id, which, parameters) if row[0] in live]
        for index in indexes:
            index.remove(connection, kb_id, indexed)
    chosen = f"tenant_id = ? AND {which}", (tenant_id, *parameters)
    numbers = f"(SELECT seq FROM chunks WHERE {chosen[0]})"
    spaces = "SELECT id FROM spaces WHERE tenant_id = ? AND kb_id = ?"
    for (space,) in connection.execute(spaces, (tenant_id, kb_id)).fetchall():
        connection.execute(
            f"DELETE FROM vectors WHERE tenant_id = ? AND space_id = ? AND chunk_seq IN {numbers}",
            (tenant_id, space, *chosen[1]),
        )
    connection.execute(f"DELETE FROM terms WHERE tenant_id = ? AND chunk_seq IN {numbers}", (tenant_id, *chosen[1]))
    connection.execute(f"DELETE FROM chunks WHERE {chosen[0]}", chosen[1])
    publish(connection, tenant_id, kb_id, "tombstone", [(seq, identity) for seq, identity, _ in gone])


def _note_languages(connection: Connection, tenant_id: str, kb_id: int, languages: AbstractSet[str]) -> None:
    """Add the languages of analysed texts to those that the kb is searched in."""
    if not languages:
        return
    which = "WHERE tenant_id = ? AND id = ?"
    (known,) = connection.execute(f"SELECT languages FROM knowledge_bases {which}", (tenant_id, kb_id)).fetchone()
    if added := sorted(languages - set(known.split())):
        connection.execute(
            f"UPDATE knowledge_bases SET languages = ? {which}", (" ".join([*known.split(), *added]), tenant_id, kb_id)
        )


def _terms(
    connection: Connection, tenant_id: str, which: str, parameters: tuple[str | int, ...]
) -> list[tuple[int, str]]:
    rows = connection.execute(
        "SELECT t.chunk_seq, t.terms FROM chunks c JOIN terms t ON t.tenant_id = c.tenant_id AND t.chunk_seq = c.seq "
        f"WHERE c.tenant_id = ? AND {_qualify(which)}",
        (tenant_id, *parameters),
    )
    return [(seq, connection.dialect.unpack(packed)) for seq, packed in rows]


def _qualify(which: str) -> str:
    # Callers pass one of four constant conditions over the chunk's own columns, never a value.
    return " AND ".join(f"c.{part}" for part in which.split(" AND "))


def present(connection: Connection, tenant_id: str, kb: KnowledgeBase) -> KnowledgeBase:
    """Return the kb as it is now; raise `KbGone` when its name stands for another."""
    found = read_kb(connection, tenant_id, kb.name)
    if found is None or found.id != kb.id:
        row = connection.execute(
            "SELECT name FROM knowledge_bases WHERE tenant_id = ? AND id = ?", (tenant_id, kb.id)
        ).fetchone()
        raise kb_gone(kb.name, row[0] if row else None)
    return found


def _is_embedded(connection: Connection, tenant_id: str, kb: KnowledgeBase, facts: Mapping[str, Json]) -> int:
    """Return 1 if a version has its vectors in the Space that is live now, not only in that of when it was staged."""
    row = connection.execute(
        "SELECT live_space FROM knowledge_bases WHERE tenant_id = ? AND id = ?", (tenant_id, kb.id)
    ).fetchone()
    live = row[0] if row else None
    return int(bool(facts["embedded"]) and facts.get("space", live) == live)


def stage_all(connection: Connection, tenant_id: str, kb: KnowledgeBase, versions: Sequence[NewVersion]) -> list[int]:
    kb = present(connection, tenant_id, kb)
    return [stage(connection, tenant_id, kb, version) for version in versions]


def activate_all(
    connection: Connection, tenant_id: str, indexes: Indexes, kb: KnowledgeBase, versions: Sequence[tuple[str, int]]
) -> None:
    for document_id, number in versions:
        activate(connection, tenant_id, indexes, kb, document_id, number)


def discard_all(
    connection: Connection, tenant_id: str, indexes: Indexes, kb: KnowledgeBase, versions: Sequence[tuple[str, int]]
) -> None:
    # What came in with another one stands behind it, and goes first.
    for document_id, number in reversed(versions):
        discard(connection, tenant_id, indexes, kb, document_id, number)


def enqueue_all(
    connection: Connection, tenant_id: str, kb: KnowledgeBase, jobs: Sequence[NewJob], weigh: Weigh
) -> list[Job]:
    return [enqueue(connection, tenant_id, kb, job, weigh) for job in jobs]


def complete_all(connection: Connection, tenant_id: str, finished: Mapping[Ticket, JobProgress]) -> None:
    ended = [
        complete_held(connection, tenant_id, ticket, progress, "; ".join(progress.remarks[:3]))
        for ticket, progress in finished.items()
    ]
    let_go(connection, tenant_id, [document_id for document_id in ended if document_id])


def rename_kb(connection: Connection, tenant_id: str, kb: KnowledgeBase, name: str) -> KnowledgeBase:
    """Return the kb under its new name; raise `NotFoundError` when it is not the kb that it was."""
    found = present(connection, tenant_id, kb)
    if found.name == name:
        return found
    if read_kb(connection, tenant_id, name):
        raise name_taken(name)
    running = connection.execute(
        "SELECT count(*) FROM jobs WHERE tenant_id = ? AND kb_id = ? AND state = 'running'", (tenant_id, kb.id)
    ).fetchone()[0]
    if running:
        # A worker knows its kb by name, and would make another one of the old name.
        raise StoreBusy(
            f"{running} running jobs work on knowledge base '{kb.name}'",
            hint="try again when they have ended",
            remedy=Remedy(Action.LIST_JOBS),
        )
    connection.execute("UPDATE knowledge_bases SET name = ? WHERE tenant_id = ? AND id = ?", (name, tenant_id, kb.id))
    return replace(found, name=name)


def name_taken(name: str) -> CollectionExists:
    """Return the error for a kb name that is taken."""
    return CollectionExists(
        f"there is a knowledge base '{name}' already",
        hint="choose another name, or",
        remedy=Remedy(Action.DELETE_KB, kb=name),
    )


def save_part(connection: Connection, tenant_id: str, document_id: str, made_from: str, part: str, data: bytes) -> None:
    """Keep a part; parts that were made from other content or in another way are of no use any more."""
    connection.execute(
        "DELETE FROM checkpoints WHERE tenant_id = ? AND document_id = ? AND (made_from <> ? OR part = ?)",
        (tenant_id, document_id, made_from, part),
    )
    connection.execute(
        "INSERT INTO checkpoints (document_id, made_from, part, tenant_id, data) VALUES (?, ?, ?, ?, ?)",
        (document_id, made_from, part, tenant_id, data),
    )


def staged_leftovers(connection: Connection, tenant_id: str, moment: datetime) -> list[tuple[int, str, int]]:
    """Return staged versions that no job works on any more: kb, document and number."""
    rows = connection.execute(
        "SELECT d.kb_id, v.document_id, v.version FROM versions v "
        "JOIN documents d ON d.tenant_id = v.tenant_id AND d.id = v.document_id "
        "WHERE v.tenant_id = ? AND v.version <> d.version AND v.created_at < ? AND NOT EXISTS ("
        "SELECT 1 FROM jobs j WHERE j.tenant_id = v.tenant_id AND j.document_id = v.document_id "
        "AND j.state IN ('pending', 'running')) ORDER BY v.document_id, v.version",
        (tenant_id, canonical(moment - SETTLED)),
    )
    return [(kb_id, document_id, number) for kb_id, document_id, number in rows]


def discard_leftovers(connection: Connection, tenant_id: str, indexes: Indexes, moment: datetime) -> int:
    """Remove them, and documents that were never anything else; return how many versions."""
    found = staged_leftovers(connection, tenant_id, moment)
    kbs = {kb.id: kb for kb in read_kbs(connection, tenant_id)}
    for kb_id, document_id, number in found:
        discard(connection, tenant_id, indexes, kbs[kb_id], document_id, number)
    ids = {document_id for _, document_id, _ in found}
    for document_id in ids - existing(connection, tenant_id, sorted(ids)):
        forget_document(connection, tenant_id, document_id)
    return len(found)
