"""The archive's format: a ZIP of JSON lines and plain arrays that any program can read.

kbs/{kb}/{part}.documents.jsonl      documents with their text, in order of source and external id
kbs/{kb}/{part}.chunks.jsonl         their chunks, in the same order
kbs/{kb}/{part}.vectors-{n}.f16      a little-endian float16 row per chunk for the n-th Space of the kb;
                                     a row of zeros means that the chunk has no vector
kbs/{kb}/sources.jsonl               configured sources, without their secrets
originals/{document}                 the file that a document was uploaded as
manifest.json                        written last: what there is, with the SHA-256 and size of every other member
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import get_args

from ragstone.core.errors import RagstoneError
from ragstone.core.ids import check_name
from ragstone.core.types import Json, SpaceState
from ragstone.moves.checking import Facts, refused
from ragstone.stores.ledger.whole import KbFacts, SpaceFacts

FORMAT = "ragstone-archive"
VERSION = 1
MANIFEST = "manifest.json"
ORIGINALS = "originals/"
HEX = re.compile(r"[0-9a-f]{64}")
MOST_DIMENSIONS = 65_536


@dataclass(frozen=True, slots=True)
class Member:
    """What a member has to be."""

    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class ArchivedKb:
    """A kb in an archive."""

    facts: KbFacts
    documents: int
    chunks: int
    parts: int
    sources: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an archive holds."""

    ragstone: str
    """The version that wrote it."""
    created_at: str
    tenant: str
    kbs: tuple[ArchivedKb, ...]
    members: Mapping[str, Member]
    remarks: tuple[str, ...]


def part_member(kb: str, part: int, what: str) -> str:
    """The name of a part of a kb."""
    return f"kbs/{kb}/{part:06d}.{what}"


def sources_member(kb: str) -> str:
    return f"kbs/{kb}/sources.jsonl"


def original_member(document_id: str) -> str:
    return f"{ORIGINALS}{document_id}"


def packed_manifest(manifest: Manifest) -> bytes:
    """The manifest as its member holds it."""
    value = {"format": FORMAT, "version": VERSION, **asdict(manifest)}
    return json.dumps(value, ensure_ascii=False, indent=1).encode()


def read_manifest(content: bytes) -> Manifest:
    """The manifest of what claims to be an archive; `InputError` when it is none that can be read here."""
    facts = Facts.parsed(content, "its manifest")
    if facts.value.get("format") != FORMAT:
        raise refused("it is not a Ragstone archive", hint="make one with: ragstone export FILE")
    version = facts.number("version", most=2**31)
    if version > VERSION:
        raise refused(
            f"it was written in version {version} of the format; this Ragstone reads up to {VERSION}",
            hint="update Ragstone, then import it again",
        )
    kbs = tuple(_kb(one) for one in facts.objects("kbs"))
    names = [kb.facts.name for kb in kbs]
    if len(set(names)) != len(names):
        raise refused("its manifest names a knowledge base twice")
    return Manifest(
        ragstone=facts.text("ragstone"),
        created_at=facts.text("created_at"),
        tenant=facts.text("tenant"),
        kbs=kbs,
        members=_members(facts),
        remarks=tuple(facts.texts("remarks")),
    )


def _kb(entry: Facts) -> ArchivedKb:
    facts = entry.object("facts")
    spaces = tuple(_space(one) for one in facts.objects("spaces"))
    if sum(space.state == "live" for space in spaces) > 1:
        raise refused("a knowledge base of it has two live Spaces")
    try:
        name = check_name(facts.text("name"), "knowledge base")
    except RagstoneError as error:
        raise refused(str(error)) from error
    return ArchivedKb(
        facts=KbFacts(name, facts.moment("created_at"), spaces),
        documents=entry.number("documents"),
        chunks=entry.number("chunks"),
        parts=entry.number("parts", most=999_999),
        sources=entry.number("sources"),
    )


def _space(facts: Facts) -> SpaceFacts:
    return SpaceFacts(
        model=facts.text("model", most=255),
        dimension=facts.number("dimension", least=1, most=MOST_DIMENSIONS),
        generation=facts.number("generation", least=1, most=2**31 - 1),
        state=facts.choice("state", get_args(SpaceState)),
        created_at=facts.moment("created_at"),
        retired_at=facts.optional_moment("retired_at"),
        keep_until=facts.optional_moment("keep_until"),
    )


def _members(facts: Facts) -> dict[str, Member]:
    found: dict[str, Member] = {}
    given: Json = facts.value.get("members")
    if not isinstance(given, dict):
        raise refused("its manifest lists no members")
    for name in given:
        member = Facts(given[name], f"the entry of {name!r:.80} in its manifest")
        digest = member.text("sha256")
        if not HEX.fullmatch(digest):
            raise refused(f"{member.what} has no checksum")
        found[name] = Member(digest, member.number("bytes"))
    return found
