"""Export everything of a tenant, as it was at one moment, to one file.

All of it is read in one snapshot, a part at a time. The file appears under its name when it is whole.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
import zipfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path

import numpy as np

from ragstone.core.clock import canonical, now
from ragstone.core.errors import InputError, NotFoundError
from ragstone.core.jobs import SourceRecord
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import KnowledgeBase
from ragstone.stores.blobs import Blobs
from ragstone.stores.corpus.atomic_file import write_aside
from ragstone.stores.factory import Stores
from ragstone.stores.ledger.documents import read_kbs, read_stats
from ragstone.stores.ledger.snapshots import DocumentSnapshot, KbFacts, read_kb_facts
from ragstone.stores.ledger.sqlite.file import translate_errors
from ragstone.stores.shop.carry import KINDS, pages
from ragstone.stores.sql.database import Connection
from ragstone.transfer.archive.format import (
    MANIFEST,
    ArchivedKb,
    Manifest,
    Member,
    original_member,
    packed_manifest,
    part_member,
    sources_member,
)
from ragstone.transfer.archive.records import chunk_line, document_line, secrets_of, source_line
from ragstone.transfer.archive.shop import entry_line, shop_member
from ragstone.transfer.compare.ledger import parts_of
from ragstone.transfer.reports import ExportReport, OnMove

LEVEL = 1
"""Text packs nearly as well as with more, in a fraction of the time."""
Secrets = Callable[[str], Collection[str]]


class Stopped(Exception):
    """The export was cancelled."""


@dataclass(frozen=True, slots=True)
class _Order:
    """The content to export, and the callback for progress."""

    tenant: str
    kbs: Sequence[str] | None
    sources: Sequence[SourceRecord]
    blobs: Blobs | None
    """None when files are not wanted."""
    secret_keys: Secrets
    on_progress: OnMove | None
    stop: threading.Event = field(default_factory=threading.Event)


@dataclass(slots=True)
class _Draft:
    """An archive while it is written."""

    file: zipfile.ZipFile
    members: dict[str, Member] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    kbs: list[ArchivedKb] = field(default_factory=list)
    vectors: int = 0
    files: int = 0

    def add(self, name: str, content: bytes, *, packs: bool = True) -> None:
        entry = zipfile.ZipInfo(name)
        entry.external_attr = 0o600 << 16
        self.file.writestr(entry, content, zipfile.ZIP_DEFLATED if packs else zipfile.ZIP_STORED, LEVEL)
        self.members[name] = Member(hashlib.sha256(content).hexdigest(), len(content))


async def export_archive(
    stores: Stores,
    tenant: str,
    path: Path,
    *,
    kbs: Sequence[str] | None,
    files: bool,
    overwrite: bool,
    secret_keys: Secrets,
    on_progress: OnMove | None,
) -> ExportReport:
    """Write the archive; another file of that name is left alone unless it may be overwritten."""
    started = time.monotonic()
    blobs = await stores.ledger.blobs(tenant) if files else None
    order = _Order(tenant, kbs, await stores.sources.of(tenant).all(), blobs, secret_keys, on_progress)
    try:
        draft, size = await stores.ledger.read(tenant, partial(_write, path, order, overwrite))
    except asyncio.CancelledError:
        order.stop.set()
        raise
    return ExportReport(
        path=str(path),
        tenant=tenant,
        kbs=tuple(kb.facts.name for kb in draft.kbs),
        documents=sum(kb.documents for kb in draft.kbs),
        chunks=sum(kb.chunks for kb in draft.kbs),
        vectors=draft.vectors,
        files=draft.files,
        sources=sum(kb.sources for kb in draft.kbs),
        bytes=size,
        remarks=tuple(draft.remarks),
        seconds=round(time.monotonic() - started, 3),
    )


def _write(path: Path, order: _Order, overwrite: bool, connection: Connection, tenant_id: str) -> tuple[_Draft, int]:
    if path.is_dir():
        raise InputError(f"{path} is a folder", hint="name a file in it")
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already", hint="give another name, or --overwrite")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}", hint=f"make it with: mkdir -p {path.parent}")
    kbs = _choose_kbs(connection, tenant_id, order.kbs)
    with translate_errors(path), write_aside(path) as file:
        with zipfile.ZipFile(file, "w") as archive:
            draft = _Draft(archive)
            for kb in kbs:
                _write_kb(draft, order, connection, tenant_id, kb)
            if order.kbs is None:
                _write_shop(draft, order, connection, tenant_id)
            _write_manifest(draft, order.tenant)
        size = file.tell()
    return draft, size


def _choose_kbs(connection: Connection, tenant_id: str, names: Sequence[str] | None) -> list[KnowledgeBase]:
    there = {kb.name: kb for kb in read_kbs(connection, tenant_id)}
    missing = [name for name in names or () if name not in there]
    if missing:
        raise NotFoundError(f"there is no knowledge base '{missing[0]}'", remedy=Remedy(Action.LIST_KBS))
    return [kb for name, kb in there.items() if names is None or name in names]


def _write_kb(draft: _Draft, order: _Order, connection: Connection, tenant_id: str, kb: KnowledgeBase) -> None:
    facts, spaces = read_kb_facts(connection, tenant_id, kb)
    total = read_stats(connection, tenant_id, kb).chunks
    parts = documents = chunks = 0
    for part in parts_of(connection, tenant_id, kb, spaces):
        if order.stop.is_set():
            raise Stopped
        _write_part(draft, facts, parts, part)
        if order.blobs:
            _write_originals(draft, part, order.blobs)
        parts += 1
        documents += len(part)
        chunks += sum(len(document.chunks) for document in part)
        if order.on_progress:
            order.on_progress(f"export {kb.name}", chunks, total)
    sources = [source for source in order.sources if source.kb == kb.name]
    if sources:
        _write_sources(draft, kb.name, sources, order.secret_keys)
    draft.kbs.append(ArchivedKb(facts, documents, chunks, parts, len(sources)))


def _write_part(draft: _Draft, facts: KbFacts, number: int, part: Sequence[DocumentSnapshot]) -> None:
    name = partial(part_member, facts.name, number)
    draft.add(name("documents.jsonl"), b"".join(document_line(document) for document in part))
    lines = (chunk_line(document.id, chunk) for document in part for chunk in document.chunks)
    draft.add(name("chunks.jsonl"), b"".join(lines))
    for place, space in enumerate(facts.spaces):
        rows = [
            document.vectors.get(place, np.zeros((len(document.chunks), space.dimension), np.float16))
            for document in part
        ]
        matrix = np.concatenate(rows).astype("<f2")
        draft.vectors += int(np.count_nonzero(matrix.any(axis=1)))
        draft.add(name(f"vectors-{place}.f16"), matrix.tobytes(), packs=False)


def _write_originals(draft: _Draft, part: Sequence[DocumentSnapshot], blobs: Blobs) -> None:
    for document in part:
        if document.file:
            try:
                draft.add(original_member(document.id), blobs.get(document.id, document.file.name))
                draft.files += 1
            except NotFoundError:
                draft.remarks.append(f"the original of {document.uri} is gone")


def _write_sources(draft: _Draft, kb: str, sources: Sequence[SourceRecord], secret_keys: Secrets) -> None:
    lines = []
    for source in sources:
        secrets = secrets_of(source, secret_keys(source.kind))
        if secrets:
            draft.remarks.append(f"source '{source.name}' is in it without its {', '.join(secrets)}")
        lines.append(source_line(source, secrets))
    draft.add(sources_member(kb), b"".join(lines))


def _write_shop(draft: _Draft, order: _Order, connection: Connection, tenant_id: str) -> None:
    """Write what the tenant has besides its kbs: its shop, and the settings and runs of its agents."""
    for kind in KINDS:
        for number, page in enumerate(pages(connection, tenant_id, kind)):
            if order.stop.is_set():
                raise Stopped
            draft.add(shop_member(kind, number), b"".join(entry_line(entry) for entry in page))


def _write_manifest(draft: _Draft, tenant: str) -> None:
    manifest = Manifest(
        ragstone=metadata.version("ragstone"),
        created_at=canonical(now()),
        tenant=tenant,
        kbs=tuple(draft.kbs),
        members=dict(draft.members),
        remarks=tuple(draft.remarks),
    )
    draft.add(MANIFEST, packed_manifest(manifest))
