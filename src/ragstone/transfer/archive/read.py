"""Read an archive and import it."""

from __future__ import annotations

import asyncio
import hashlib
import io
import os
import time
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, BinaryIO, cast

import numpy as np

from ragstone.core.errors import InputError, NotFoundError, ParseError
from ragstone.core.jobs import SourceRecord
from ragstone.core.remedies import Action, Remedy
from ragstone.core.tenants import Admission
from ragstone.ingest.sources.files.archives import check_member, name_damage, open_zip
from ragstone.settings.tree import LimitSettings
from ragstone.stores.factory import Stores
from ragstone.stores.ledger.snapshots import DocumentSnapshot, Halves
from ragstone.stores.ledger.sources import SecretKeys
from ragstone.stores.ledger.sqlite.file import translate_errors
from ragstone.stores.shop.carry import AddedEntries, Entry, Kind, add_page
from ragstone.transfer.archive.format import (
    AGAIN,
    MANIFEST,
    ORIGINALS,
    ArchivedKb,
    Facts,
    Manifest,
    not_an_archive,
    original_member,
    part_member,
    read_manifest,
    refusal,
    sources_member,
)
from ragstone.transfer.archive.records import read_document, read_source
from ragstone.transfer.archive.shop import kind_of_member, read_entry
from ragstone.transfer.migrate.restore import OpenedKb, Restorer, add_sources
from ragstone.transfer.reports import ImportReport, OnMove

STEP = 1 << 20
MOST_MEMBERS = 2_000_000
SMALLEST_ENTRY = 46
"""Bytes that a member takes in a ZIP's list of them, at least."""
MOST_ORIGINAL = 1 << 31
"""Bytes of a file that was uploaded."""
EXPANDS = 100
"""The factor of its own size that an archive may unpack to, once that is more than `FREELY`."""
FREELY = 1 << 28
PART_EXPANDS = 32
"""The same for what is in memory at once: the manifest, or a part. Two thousand chunks with their vectors are less than
`PART_FREELY`; one long document is more, but no text packs so well."""
PART_FREELY = 1 << 25
Checked = Callable[[int, int], None]
"""Hears how many bytes have been looked at, of how many."""


class ArchiveReader:
    """An archive that was found to be whole."""

    def __init__(self, archive: zipfile.ZipFile, manifest: Manifest, name: str) -> None:
        self._archive = archive
        self.manifest = manifest
        self._name = name

    def parts(self, kb: ArchivedKb) -> Iterator[list[DocumentSnapshot]]:
        """Yield the documents of a kb, some at a time."""
        last = None
        documents = chunks = 0
        for number in range(kb.parts):
            part = self._part(kb, number, kb.documents - documents, kb.chunks - chunks)
            for document in part:
                if last is not None and document.key <= last:
                    raise refusal(f"document {document.id} of '{kb.facts.name}' is out of order")
                last = document.key
            documents += len(part)
            chunks += sum(len(document.chunks) for document in part)
            yield part
        if (documents, chunks) != (kb.documents, kb.chunks):
            raise refusal(f"'{kb.facts.name}' has other counts than its manifest says")

    def sources(self, kb: ArchivedKb) -> list[tuple[SourceRecord, list[str]]]:
        """Return the configured sources of a kb, each with the names of the secrets it lacks."""
        if not kb.sources:
            return []
        lines = islice(self._lines(sources_member(kb.facts.name)), kb.sources + 1)
        return [read_source(line, kb.facts.name) for line in lines]

    def shop(self) -> Iterator[tuple[Kind, list[Entry]]]:
        """Yield the entries of the shop and the runs of agents, a page at a time, each page with its kind."""
        for name in sorted(self.manifest.members):
            if kind := kind_of_member(name):
                yield kind, [read_entry(line, kind) for line in self._lines(name)]

    def original(self, document: DocumentSnapshot) -> bytes | None:
        """Return the file that a document was uploaded as, if the archive has it."""
        name = original_member(document.id)
        return self._content(name) if document.file and name in self.manifest.members else None

    def _part(self, kb: ArchivedKb, number: int, documents: int, chunks_left: int) -> list[DocumentSnapshot]:
        """Return a part, which holds no more than what is left of the counts in the manifest."""
        heads = list(islice(self._lines(part_member(kb.facts.name, number, "documents.jsonl")), documents + 1))
        lines = self._lines(part_member(kb.facts.name, number, "chunks.jsonl"))
        counts = [head.number("chunks") for head in heads]
        if len(heads) > documents or sum(counts) > chunks_left:
            raise refusal(f"'{kb.facts.name}' has other counts than its manifest says")
        matrices = [self._vectors(kb, number, place, sum(counts)) for place in range(len(kb.facts.spaces))]
        part, start = [], 0
        for head, count in zip(heads, counts, strict=True):
            chunks = list(islice(lines, count))
            if len(chunks) != count:
                raise refusal(f"{head.what} lacks chunks")
            rows = {place: matrix[start : start + count] for place, matrix in enumerate(matrices)}
            vectors = {place: matrix for place, matrix in rows.items() if matrix.any()}
            part.append(read_document(head, chunks, vectors))
            start += count
        if next(lines, None) is not None:
            raise refusal(f"part {number} of '{kb.facts.name}' has chunks that are no document's")
        return part

    def _vectors(self, kb: ArchivedKb, number: int, place: int, count: int) -> Halves:
        name = part_member(kb.facts.name, number, f"vectors-{place}.f16")
        dimension = kb.facts.spaces[place].dimension
        content = self._content(name)
        if len(content) != count * dimension * 2:
            raise refusal(f"{name} does not hold {count} vectors of {dimension} dimensions")
        matrix: Halves = np.frombuffer(content, "<f2").reshape(count, dimension).astype(np.float16)
        if not np.isfinite(matrix).all():
            raise refusal(f"{name} holds vectors that are not finite")
        return matrix

    def _lines(self, name: str) -> Iterator[Facts]:
        """Yield lines one at a time, so that a bad one is found before the next is read."""
        with self._open(name) as stream, io.BufferedReader(cast("io.RawIOBase", stream), STEP) as lines:
            for at, line in enumerate(lines, start=1):
                yield Facts.parse(line, f"line {at} of {name}")

    def _content(self, name: str) -> bytes:
        with self._open(name) as stream:
            return b"".join(iter(lambda: stream.read(STEP), b""))

    @contextmanager
    def _open(self, name: str) -> Iterator[IO[bytes]]:
        if name not in self.manifest.members:
            raise refusal(f"{name} is missing")
        with name_damage(self._name), self._archive.open(name) as stream:
            yield stream


@contextmanager
def open_archive(path: Path, on_checked: Checked | None = None) -> Iterator[ArchiveReader]:
    """Open an archive after checking all of it. Whatever is wrong with it is an `InputError` that names it."""
    if not path.is_file():
        raise InputError(
            f"there is no file {path}" if not path.exists() else f"{path} is not a file", remedy=Remedy(Action.EXPORT)
        )
    with translate_errors(path), _name_archive(path), path.open("rb") as file:
        fit = os.fstat(file.fileno()).st_size // SMALLEST_ENTRY + 1
        limits = LimitSettings(archive_entries=min(MOST_MEMBERS, fit))
        with open_zip(file, str(path), limits) as archive:
            reader = ArchiveReader(archive, _checked_manifest(archive, file, path), str(path))
            _check_members(archive, reader.manifest, on_checked)
            for kb in reader.manifest.kbs:
                for _ in reader.parts(kb):
                    pass  # reading is what checks them
                if len(reader.sources(kb)) != kb.sources:
                    raise refusal(f"'{kb.facts.name}' has other sources than its manifest says")
            for _ in reader.shop():
                pass
            yield reader


@contextmanager
def _name_archive(path: Path) -> Iterator[None]:
    try:
        yield
    except _Named:
        raise
    except (InputError, ParseError) as error:
        message = str(error)
        if str(path) not in message:
            message = f"{path} cannot be imported: {message}"
        hint = error.hint or ("" if error.remedy else AGAIN)
        raise _Named(message, hint=hint, remedy=error.remedy) from error


class _Named(InputError):
    """Says already which archive it is about."""


def _checked_manifest(archive: zipfile.ZipFile, file: BinaryIO, path: Path) -> Manifest:
    """Return the manifest, once the list of members is known to be harmless."""
    entries = {}
    for entry in archive.infolist():
        check_member(entry, str(path))
        if entry.filename in entries:
            raise refusal(f"it holds {entry.filename!r:.80} twice")
        entries[entry.filename] = entry
    size = os.fstat(file.fileno()).st_size
    _check_sizes(entries, size)
    unpacked = sum(entry.file_size for entry in entries.values())
    if unpacked > max(FREELY, EXPANDS * size):
        raise refusal(f"it unpacks to {unpacked} bytes, which is more than an archive of its size can hold")
    if MANIFEST not in entries:
        raise not_an_archive()
    with name_damage(str(path)):
        manifest = read_manifest(archive.read(MANIFEST), len(entries))
    listed = {name: member.bytes for name, member in manifest.members.items()}
    held = {name: entry.file_size for name, entry in entries.items() if name != MANIFEST}
    for name in listed.keys() ^ held.keys():
        state = "is missing" if name in listed else "is in it and not in its manifest"
        raise refusal(f"{name!r:.80} {state}")
    for name, size in listed.items():
        if held[name] != size:
            raise refusal(f"{name!r:.80} has {held[name]} bytes instead of {size}")
    return manifest


def _check_sizes(entries: Mapping[str, zipfile.ZipInfo], size: int) -> None:
    """Refuse what would take more memory than any archive of that size needs."""
    together: defaultdict[str, list[zipfile.ZipInfo]] = defaultdict(list)
    for name, entry in entries.items():
        if name.startswith(ORIGINALS):
            if entry.file_size > MOST_ORIGINAL:
                raise refusal(f"{name!r:.80} in it unpacks to more than {MOST_ORIGINAL} bytes")
        else:
            together[name.partition(".")[0] if name != MANIFEST else name].append(entry)
    for name, members in together.items():
        packed = min(size, sum(member.compress_size for member in members))
        most = max(PART_FREELY, PART_EXPANDS * packed)
        if sum(member.file_size for member in members) > most:
            raise refusal(f"{name!r:.80} in it unpacks to more than {most} bytes")


def _check_members(archive: zipfile.ZipFile, manifest: Manifest, on_checked: Checked | None) -> None:
    total = sum(member.bytes for member in manifest.members.values())
    done = 0
    for name, member in manifest.members.items():
        digest = hashlib.sha256()
        with name_damage(name), archive.open(name) as stream:
            while step := stream.read(STEP):
                digest.update(step)
                done += len(step)
        if digest.hexdigest() != member.sha256:
            raise refusal(f"{name!r:.80} is not what was written: its checksum is wrong")
        if on_checked:
            on_checked(done, total)


async def import_archive(
    stores: Stores,
    tenant: str,
    path: Path,
    *,
    kbs: Sequence[str] | None,
    overwrite: bool,
    admission: Admission,
    secret_keys: SecretKeys,
    on_progress: OnMove | None,
    remote: bool = False,
) -> ImportReport:
    """Take in an archive after all of it was checked; one of a `remote` caller brings no sources of this machine."""
    started = time.monotonic()
    tell = on_progress or (lambda _what, _done, _total: None)
    with ExitStack() as stack:
        opening = open_archive(path, lambda done, total: tell("check", done, total))
        reader = await asyncio.to_thread(stack.enter_context, opening)
        chosen = _choose_kbs(reader, kbs, path)
        restorer = Restorer(stores.ledger, tenant, admission, overwrite=overwrite)
        sources, remarks = 0, list(reader.manifest.remarks)
        for kb in chosen:
            opened, said = await _import_kb(restorer, reader, kb, tell)
            added, more = await add_sources(stores, tenant, opened, reader.sources(kb), secret_keys, remote)
            sources += added
            remarks += [*said, *more]
        if kbs is None:
            remarks += await _import_shop(stores, tenant, reader, overwrite=overwrite)
    done = restorer.done
    return ImportReport(
        path=str(path),
        tenant=tenant,
        kbs=tuple(kb.facts.name for kb in chosen),
        added=done.added,
        replaced=done.replaced,
        unchanged=done.unchanged,
        differing=tuple(done.differing),
        left=done.left,
        chunks=done.chunks,
        files=done.files,
        sources=sources,
        remarks=tuple(remarks),
        seconds=round(time.monotonic() - started, 3),
    )


def _choose_kbs(reader: ArchiveReader, names: Sequence[str] | None, path: Path) -> list[ArchivedKb]:
    held = {kb.facts.name: kb for kb in reader.manifest.kbs}
    missing = [name for name in names or () if name not in held]
    if missing:
        raise NotFoundError(
            f"{path} holds no knowledge base '{missing[0]}'", hint=f"it holds: {', '.join(held) or 'none'}"
        )
    return [kb for name, kb in held.items() if names is None or name in names]


async def _import_shop(stores: Stores, tenant: str, reader: ArchiveReader, *, overwrite: bool) -> list[str]:
    """Take in the shop, and the settings and runs of agents; return a remark for each kind that there is some of."""
    done: dict[Kind, AddedEntries] = {}
    parts = reader.shop()
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        kind, entries = part
        await stores.ledger.blobs(tenant, make=True)  # an archive without kbs has made no tenant yet
        added = await stores.ledger.write(tenant, add_page, kind, entries, overwrite=overwrite)
        done[kind] = done.get(kind, AddedEntries()) + added
    return [
        f"{added.added} {kind.replace('_', ' ')} were taken in, and {added.left} left as they are here"
        for kind, added in done.items()
    ]


async def _import_kb(
    restorer: Restorer, reader: ArchiveReader, kb: ArchivedKb, tell: OnMove
) -> tuple[OpenedKb, list[str]]:
    opened = await restorer.open(kb.facts)
    left_out = [
        f"vectors of {space.model} (generation {space.generation}) were left out of '{kb.facts.name}'"
        for space, known in zip(kb.facts.spaces, opened.spaces, strict=True)
        if known is None
    ]
    parts = reader.parts(kb)
    seen = 0
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        await restorer.take(opened, part, reader.original)
        seen += len(part)
        tell(f"import {kb.facts.name}", seen, kb.documents)
    await restorer.look_around()
    return opened, left_out
