"""An archive that is not whole, or not what it says, is refused by name before anything of it is written."""

from __future__ import annotations

import asyncio
import hashlib
import json
import stat
import tracemalloc
import zipfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.moves.sites import Site, site, stock

from ragstone.core.errors import InputError
from ragstone.testing.builders import make_version, put, unit_vectors

Members = dict[str, bytes]
DOCUMENTS = "kbs/default/000000.documents.jsonl"
CHUNKS = "kbs/default/000000.chunks.jsonl"
VECTORS = "kbs/default/000000.vectors-0.f16"


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of three documents."""
    folder = tmp_path_factory.mktemp("honest")

    async def make() -> None:
        async with site(folder / "a") as here:
            await stock(here, 3)
            await here.mover.export_archive(folder / "x.zip")

    asyncio.run(make())
    return folder / "x.zip"


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[Site]:
    async with site(tmp_path / "b") as opened:
        yield opened


def members_of(archive: Path) -> Members:
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def write(target: Path, members: Members) -> Path:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return target


def signed(members: Members) -> Members:
    """The members under checksums that are right: whoever forges an archive can forge its manifest."""
    manifest = json.loads(members["manifest.json"])
    manifest["members"] = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name, content in members.items()
        if name != "manifest.json"
    }
    return {**members, "manifest.json": json.dumps(manifest).encode()}


def in_line(member: str, line: int, **changes: Any) -> Callable[[Members], None]:
    """Change fields of one line."""

    def change(members: Members) -> None:
        lines = members[member].splitlines()
        lines[line] = json.dumps({**json.loads(lines[line]), **changes}).encode()
        members[member] = b"\n".join(lines) + b"\n"

    return change


def in_manifest(**changes: Any) -> Callable[[Members], None]:
    def change(members: Members) -> None:
        members["manifest.json"] = json.dumps({**json.loads(members["manifest.json"]), **changes}).encode()

    return change


def in_kb(path: str, value: Any) -> Callable[[Members], None]:
    """Change something in what the manifest says of the kb, by a dotted path."""

    def change(members: Members) -> None:
        manifest = json.loads(members["manifest.json"])
        *parents, last = path.split(".")
        branch: Any = manifest["kbs"][0]
        for parent in parents:
            branch = branch[int(parent)] if parent.isdigit() else branch[parent]
        branch[last] = value
        members["manifest.json"] = json.dumps(manifest).encode()

    return change


def raw_line(member: str, line: bytes) -> Callable[[Members], None]:
    def change(members: Members) -> None:
        members[member] = b"\n".join([line, *members[member].splitlines()[1:]]) + b"\n"

    return change


def not_finite(members: Members) -> None:
    vectors = np.frombuffer(members[VECTORS], "<f2").copy()
    vectors[5] = np.nan
    members[VECTORS] = vectors.tobytes()


def twice(members: Members) -> None:
    lines = members[DOCUMENTS].splitlines()
    members[DOCUMENTS] = b"\n".join([lines[0], lines[0], lines[2]]) + b"\n"


def without_last_chunk(members: Members) -> None:
    members[CHUNKS] = b"\n".join(members[CHUNKS].splitlines()[:-1]) + b"\n"


def with_another_chunk(members: Members) -> None:
    members[CHUNKS] += members[CHUNKS].splitlines()[-1] + b"\n"


def deep(members: Members) -> None:
    raw_line(DOCUMENTS, b"[" * 100_000)(members)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


FORGED = {
    "another format": (in_manifest(format="backup"), "is not a Ragstone archive"),
    "a newer version": (in_manifest(version=2), "version 2 of the format; this Ragstone reads up to 1"),
    "a version that is none": (in_manifest(version="1"), "'version' of its manifest is not a whole number"),
    "no list of kbs": (in_manifest(kbs=None), "'kbs' of its manifest is not a list"),
    "a kb that leads out": (in_kb("facts.name", "../../etc"), "is not a valid name"),
    "a dimension that is not that of the vectors": (
        in_kb("facts.spaces.0.dimension", 31),
        "does not hold 9 vectors of 31 dimensions",
    ),
    "a dimension beyond measure": (in_kb("facts.spaces.0.dimension", 10**9), "'dimension' of an entry of 'spaces'"),
    "a state that no Space has": (in_kb("facts.spaces.0.state", "gone"), "is not one of building, live, retired"),
    "other counts": (in_kb("documents", 4), "has other counts than its manifest says"),
    "a part too many": (in_kb("parts", 2), "000001.documents.jsonl is missing"),
    "a sources file that is not there": (in_kb("sources", 1), "sources.jsonl is missing"),
    "vectors that are not finite": (not_finite, "holds vectors that are not finite"),
    "a line that is not JSON": (raw_line(DOCUMENTS, b"{"), "line 1 of .* is not JSON"),
    "a line that is no object": (raw_line(DOCUMENTS, b"[1]"), "line 1 of .* is not a JSON object"),
    "a line of brackets": (deep, "line 1 of .* is not JSON"),
    "metadata of any depth": (in_line(DOCUMENTS, 0, metadata={"a": nested(80)}), "nested more than 64 deep"),
    "metadata with a key that is none": (in_line(DOCUMENTS, 0, metadata={"a b'": 1}), "is not a field name"),
    "a number without end": (in_line(DOCUMENTS, 0, version=10**30), "a number that is too large"),
    "a number that is none": (in_line(DOCUMENTS, 0, metadata={"a": float("nan")}), "is not JSON"),
    "a version that leaves no room for the next": (
        in_line(DOCUMENTS, 0, version=2**30 + 1),
        "'version' of line 1 .* is not a whole number from 1 to 1073741824",
    ),
    "fewer documents than there are": (in_kb("documents", 2), "has other counts than its manifest says"),
    "fewer chunks than there are": (in_kb("chunks", 8), "has other counts than its manifest says"),
    "a chunk beyond count": (in_line(DOCUMENTS, 0, chunks=2**60), "has other counts than its manifest says"),
    "half a character": (in_line(DOCUMENTS, 0, title="\ud800"), "not valid Unicode"),
    "an id that leads out": (in_line(DOCUMENTS, 0, id="../../../../etc/passwd"), "'id' of line 1 .* is not an id"),
    "a parent that leads out": (in_line(DOCUMENTS, 0, parent_id="../x"), "'parent_id' of line 1"),
    "a time that is none": (in_line(DOCUMENTS, 0, created_at="yesterday"), "'created_at' of line 1"),
    "a document twice": (twice, "is not the chunk that stands in its place|is out of order"),
    "a chunk missing": (without_last_chunk, "lacks chunks"),
    "a chunk too many": (with_another_chunk, "has chunks that are no document's"),
    "a chunk of another document": (in_line(CHUNKS, 0, document_id="0" * 32), "not the chunk that stands in its place"),
    "a chunk out of its place": (in_line(CHUNKS, 0, index=1), "not the chunk that stands in its place"),
    "a chunk with other words": (in_line(CHUNKS, 0, text="planted"), "is not what its document says there"),
    "a chunk beyond its document": (in_line(CHUNKS, 0, end=10**6), "'end' of line 1"),
    "a kind that no chunk has": (in_line(CHUNKS, 0, kind="script"), "'kind' of line 1"),
    "a parent that no chunk is": (in_line(CHUNKS, 0, parent=99), "'parent' of line 1"),
}


@pytest.mark.parametrize("case", FORGED)
async def test_a_forged_archive_is_refused_although_its_checksums_are_right(
    honest: Path, there: Site, tmp_path: Path, case: str
) -> None:
    change, reason = FORGED[case]
    members = members_of(honest)
    change(members)
    with pytest.raises(InputError, match=reason) as refusal:
        await there.mover.import_archive(write(tmp_path / "forged.zip", signed(members)))
    assert "forged.zip" in str(refusal.value)
    assert refusal.value.advice
    assert await there.stores.ledger.of("default").kbs() == []


@pytest.mark.parametrize("member", [DOCUMENTS, CHUNKS, VECTORS])
async def test_what_was_changed_is_known_by_its_checksum(
    honest: Path, there: Site, tmp_path: Path, member: str
) -> None:
    members = members_of(honest)
    members[member] = members[member][:-2] + bytes([members[member][-2] ^ 1]) + members[member][-1:]
    with pytest.raises(InputError, match="its checksum is wrong"):
        await there.mover.import_archive(write(tmp_path / "x.zip", members))
    assert await there.stores.ledger.of("default").kbs() == []


async def test_a_file_that_was_cut_short_is_refused_wherever_it_ends(honest: Path, there: Site, tmp_path: Path) -> None:
    content, damaged = await asyncio.to_thread(honest.read_bytes), tmp_path / "x.zip"
    for at in range(1, len(content), len(content) // 12):
        damaged.write_bytes(content[:at])
        with pytest.raises(InputError, match=r"x\.zip"):
            await there.mover.import_archive(damaged)
    assert await there.stores.ledger.of("default").kbs() == []


async def test_members_have_to_be_those_of_the_manifest(honest: Path, there: Site, tmp_path: Path) -> None:
    members = members_of(honest)
    with pytest.raises(InputError, match=r"'more\.txt' is in it and not in its manifest"):
        await there.mover.import_archive(write(tmp_path / "a.zip", {**members, "more.txt": b"x"}))
    without = {name: content for name, content in members.items() if name != VECTORS}
    with pytest.raises(InputError, match=r"vectors-0\.f16' is missing"):
        await there.mover.import_archive(write(tmp_path / "b.zip", without))
    longer = {**members, CHUNKS: members[CHUNKS] + b"\n"}
    with pytest.raises(InputError, match=r"chunks\.jsonl' has \d+ bytes instead of \d+"):
        await there.mover.import_archive(write(tmp_path / "c.zip", longer))
    nothing = {name: content for name, content in members.items() if name != "manifest.json"}
    with pytest.raises(InputError, match="is not a Ragstone archive"):
        await there.mover.import_archive(write(tmp_path / "d.zip", nothing))


@pytest.mark.parametrize("name", ["../../evil", "/etc/evil", "C:\\evil", "kbs/../../evil"])
async def test_a_name_that_leads_out_is_refused(honest: Path, there: Site, tmp_path: Path, name: str) -> None:
    members = {**members_of(honest), name: b"x"}
    with pytest.raises(InputError, match="a name that leads out of it"):
        await there.mover.import_archive(write(tmp_path / "x.zip", signed(members)))


async def test_a_link_a_double_and_a_method_that_cannot_be_bounded_are_refused(
    honest: Path, there: Site, tmp_path: Path
) -> None:
    members = members_of(honest)
    with zipfile.ZipFile(write(tmp_path / "link.zip", members), "a") as opened:
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        opened.writestr(link, "/etc/passwd")
    with pytest.raises(InputError, match="which is a link or no regular file"):
        await there.mover.import_archive(tmp_path / "link.zip")
    with (
        zipfile.ZipFile(write(tmp_path / "twice.zip", members), "a") as opened,
        pytest.warns(UserWarning, match="Duplicate name"),
    ):
        opened.writestr(DOCUMENTS, members[DOCUMENTS])
    with pytest.raises(InputError, match="twice"):
        await there.mover.import_archive(tmp_path / "twice.zip")
    with zipfile.ZipFile(tmp_path / "lzma.zip", "w", zipfile.ZIP_LZMA) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    with pytest.raises(InputError, match="packed by a method that is not read"):
        await there.mover.import_archive(tmp_path / "lzma.zip")


async def test_a_bomb_is_known_by_what_it_says_it_unpacks_to(
    honest: Path, there: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragstone.transfer.archive.read.FREELY", 1 << 20)
    members = {**members_of(honest), VECTORS: bytes(8 << 20)}
    with pytest.raises(InputError, match="which is more than an archive of its size can hold"):
        await there.mover.import_archive(write(tmp_path / "x.zip", signed(members)))
    original = {**members_of(honest), f"originals/{'0' * 32}": bytes(8 << 20)}
    monkeypatch.setattr("ragstone.transfer.archive.read.MOST_ORIGINAL", 1 << 20)
    with pytest.raises(InputError, match="unpacks to more than 1048576 bytes"):
        await there.mover.import_archive(write(tmp_path / "y.zip", signed(original)))


@pytest.mark.parametrize(
    "bomb",
    [
        {DOCUMENTS: bytes(33 << 20)},
        {CHUNKS: bytes(17 << 20), VECTORS: bytes(17 << 20)},
        {"manifest.json": bytes(33 << 20)},
        {"kbs/default/sources.jsonl": bytes(33 << 20)},
    ],
    ids=["a member", "members of one part together", "the manifest", "sources"],
)
async def test_what_is_held_in_memory_at_once_may_not_unpack_to_much_more_than_it_is(
    honest: Path, there: Site, tmp_path: Path, bomb: Members
) -> None:
    held = members_of(honest)
    members = signed({**held, **bomb, "manifest.json": held["manifest.json"]})
    archive = write(tmp_path / "x.zip", {**members, **bomb})
    assert archive.stat().st_size < 1 << 17
    with pytest.raises(InputError, match="unpacks to more than 33554432 bytes"):
        await there.mover.import_archive(archive)


@pytest.mark.parametrize(
    "line",
    [b'{"a":[' + b"[]," * (2 << 20) + b"[]]}", b'{"a":[' + b'"",' * (1 << 20) + b'""]}'],
    ids=["brackets", "quotation marks"],
)
async def test_a_line_of_values_is_refused_before_it_is_read(
    honest: Path, there: Site, tmp_path: Path, line: bytes
) -> None:
    members = members_of(honest)
    raw_line(DOCUMENTS, line)(members)
    with pytest.raises(InputError, match=r"line 1 of .* holds more values than anything of its kind"):
        await there.mover.import_archive(write(tmp_path / "x.zip", signed(members)))


async def test_a_manifest_of_more_values_than_its_members_need_is_refused(
    honest: Path, there: Site, tmp_path: Path
) -> None:
    members = members_of(honest)
    in_manifest(remarks=[""] * (1 << 19))(members)
    with pytest.raises(InputError, match="its manifest holds more values than anything of its kind"):
        await there.mover.import_archive(write(tmp_path / "x.zip", members))


async def test_lines_are_read_one_at_a_time(honest: Path, there: Site, tmp_path: Path) -> None:
    members = {**members_of(honest), DOCUMENTS: b"\n" * (16 << 20)}
    archive = await asyncio.to_thread(write, tmp_path / "x.zip", signed(members))
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"line 1 of .* is not JSON"):
            await there.mover.import_archive(archive)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 16 << 20


async def test_a_document_that_is_mostly_text_may_be_as_long_as_it_is(tmp_path: Path) -> None:
    text = '\\ "[{,}]" ' * 400_000
    async with site(tmp_path / "a") as here:
        await put(here.stores.ledger, make_version("long", [text], vectors=unit_vectors(1)))
        await here.mover.export_archive(tmp_path / "x.zip")
    async with site(tmp_path / "b") as there:
        assert (await there.mover.import_archive(tmp_path / "x.zip")).added == 1


@pytest.mark.parametrize("content", [b"", b"no archive at all", b"PK\x05\x06" + bytes(18), bytes(5000)])
async def test_what_is_no_archive_is_said_to_be_none(there: Site, tmp_path: Path, content: bytes) -> None:
    other = tmp_path / "x.zip"
    other.write_bytes(content)
    with pytest.raises(InputError, match=r"x\.zip"):
        await there.mover.import_archive(other)
    with pytest.raises(InputError, match="there is no file"):
        await there.mover.import_archive(tmp_path / "missing.zip")
    assert await there.stores.ledger.of("default").kbs() == []
