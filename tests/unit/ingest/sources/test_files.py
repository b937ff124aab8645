from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from tests.unit.ingest.sources.source_kit import context, entries, failures, items, pages, pages_before_error, write

from ragstone.core.errors import SourceError
from ragstone.core.types import SKIPPED, Failure, Item
from ragstone.ingest.sources.files import read as files_module
from ragstone.ingest.sources.files.read import folder_listings, read_files
from ragstone.ingest.sources.files.source import FilesConfig, FilesSource
from ragstone.ingest.sources.files.walk import real
from ragstone.settings.tree import LimitSettings


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    return folder


def source(path: Path, limits: LimitSettings | None = None, **config: object) -> FilesSource:
    return FilesSource(FilesConfig.model_validate({"path": path, **config}), "handbook", context(limits))


@pytest.mark.req("R-ING-06")
async def test_a_file_is_known_by_its_path_under_the_root(folder: Path) -> None:
    write(folder / "sub" / "plan.txt", "hello")
    os.utime(folder / "sub" / "plan.txt", (0, 1_780_000_000))
    first, second = await pages(source(folder))
    (item,) = second.items
    assert isinstance(item, Item)
    assert (item.source, item.external_id, item.uri) == ("handbook", "sub/plan.txt", "docs/sub/plan.txt")
    assert item.content == b"hello"
    assert item.metadata == {"source_type": "files", "filename": "plan.txt", "modified_date": item.modified_at}
    assert item.modified_at is not None
    assert item.modified_at.isoformat() == "2026-05-28T20:26:40+00:00"
    assert first.items == ()
    assert first.listed == {"sub/plan.txt"}
    assert (first.cursor, second.cursor) == (None, None)


async def test_one_file_is_a_source_too(folder: Path) -> None:
    write(folder / "plan.txt", "hello")
    found = await pages(source(folder / "plan.txt"))
    assert items(found) == {"plan.txt": b"hello"}
    assert found[0].listed == {"plan.txt"}


async def test_the_first_page_lists_all_ids_and_pages_are_small(folder: Path) -> None:
    for number in range(70):
        write(folder / f"{number:02}.txt")
    found = await pages(source(folder))
    assert [len(page.items) for page in found] == [0, 32, 32, 6]
    assert found[0].listed == {f"{number:02}.txt" for number in range(70)}
    assert all(page.listed is None for page in found[1:])


async def test_a_page_holds_no_more_bytes_than_it_may(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragstone.ingest.sources.paging.MAX_BYTES", 10)
    for name, size in (("a", 6), ("b", 5), ("c", 50), ("d", 4), ("e", 6)):
        write(folder / f"{name}.txt", "x" * size)
    found = await pages(source(folder))
    assert [[entry.uri[5] for entry in page.items] for page in found] == [[], ["a"], ["b"], ["c"], ["d", "e"]]


async def test_an_empty_folder_lists_nothing(folder: Path) -> None:
    (only,) = await pages(source(folder))
    assert (only.items, only.listed) == ((), frozenset())


async def test_a_missing_root_is_an_error_and_not_an_empty_list(folder: Path) -> None:
    with pytest.raises(SourceError) as caught:
        await pages(source(folder / "gone"))
    assert str(caught.value) == f"the folder {folder / 'gone'} of source 'handbook' does not exist"
    assert caught.value.hint == "check the path, or whether its disk is mounted; nothing was removed"


async def test_a_folder_that_cannot_be_listed_looks_like_no_deletion(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder / "ok.txt")
    write(folder / "closed" / "a.txt")
    listed = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = await pages(source(folder))
    assert [page.listed for page in found] == [None]
    assert failures(found) == [Failure("docs/closed", "unreadable", "docs/closed cannot be read: Permission denied")]
    assert len(entries(found)) == 2


async def test_a_file_that_cannot_be_read_stays_listed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder / "a.txt")

    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    found = await pages(source(folder))
    assert failures(found) == [Failure("docs/a.txt", "unreadable", "docs/a.txt cannot be read: Permission denied")]
    assert found[0].listed == {"a.txt"}


async def test_an_archive_that_cannot_be_opened_looks_like_no_deletion(folder: Path) -> None:
    write(folder / "a.txt")
    write(folder / "b.zip", b"PK\x03\x04 cut off")
    found = await pages(source(folder))
    assert [page.listed for page in found] == [None]
    assert [failure.uri for failure in failures(found)] == ["docs/b.zip"]


async def test_members_of_an_archive_are_listed_even_those_that_fail(folder: Path) -> None:
    with zipfile.ZipFile(folder / "b.zip", "w") as archive:
        archive.writestr("sub/x.txt", "words")
        archive.writestr("y.txt", "words")
        archive.filelist[1].flag_bits |= 1  # as if it were encrypted
    found = await pages(source(folder))
    assert found[0].listed == {"b.zip", "b.zip!/sub/x.txt", "b.zip!/y.txt"}
    assert [entry.uri for entry in entries(found)] == ["docs/b.zip!/sub/x.txt", "docs/b.zip!/y.txt"]
    assert len(failures(found)) == 1


async def test_an_archive_that_breaks_off_while_it_is_read_is_named_and_the_rest_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(folder / "b.zip", "w") as archive:
        archive.writestr("x.txt", "words")
    write(folder / "c.txt")

    def broken(*_: object) -> object:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("ragstone.ingest.sources.files.archives.read_member", broken)
    seen, error = await pages_before_error(source(folder))
    assert error is None
    assert failures(seen) == [Failure("docs/b.zip", "unreadable", "docs/b.zip cannot be read: Input/output error")]
    assert [failure.external_id for failure in failures(seen)] == ["b.zip"]
    assert [entry.uri for entry in entries(seen)] == ["docs/b.zip", "docs/c.txt"]


@pytest.mark.parametrize(
    ("glob", "exclude", "expected"),
    [
        ((), (), ["a.md", "b.txt", "sub/c.md", "sub/deep/d.md"]),
        ("**/*.md", (), ["a.md", "sub/c.md", "sub/deep/d.md"]),
        ("*.md", (), ["a.md", "sub/c.md", "sub/deep/d.md"]),
        ("sub/*.md", (), ["sub/c.md"]),
        ("sub/**", (), ["sub/c.md", "sub/deep/d.md"]),
        (("*.txt", "sub/**/d.*"), (), ["b.txt", "sub/deep/d.md"]),
        ((), "deep", ["a.md", "b.txt", "sub/c.md"]),
        ((), "sub/deep/", ["a.md", "b.txt", "sub/c.md"]),
        ("**/*.md", ["sub/**"], ["a.md"]),
        ("**/*.md", ["c.md"], ["a.md", "sub/deep/d.md"]),
        ("*.png", (), ["icons/logo.png"]),
        (("**/*", "**/logo.png"), "*.md", ["b.txt", "icons/logo.png"]),
        ("**/*", "*.md", ["b.txt"]),
        (".hidden.md", (), []),
    ],
)
async def test_patterns_say_which_files_are_meant(
    folder: Path, glob: object, exclude: object, expected: list[str]
) -> None:
    for name in ("a.md", "b.txt", "sub/c.md", "sub/deep/d.md", "icons/logo.png", ".hidden.md", ".git/e.md"):
        write(folder / name)
    found = await pages(source(folder, glob=glob, exclude=exclude))
    assert sorted(items(found)) == expected
    assert found[0].listed == set(expected)


@pytest.mark.parametrize(
    ("glob", "exclude", "expected"),
    [((), (), ["docs/icons/logo.png"]), ("*.md", (), []), ("*.png", (), []), ((), "icons", [])],
)
async def test_pictures_that_nobody_named_are_skipped_with_a_reason(
    folder: Path, glob: object, exclude: object, expected: list[str]
) -> None:
    for name in ("a.md", "icons/logo.png", "icons/anim.gif"):
        write(folder / name)
    found = await pages(source(folder, glob=glob, exclude=exclude))
    assert [(one.uri, one.code) for one in failures(found)] == [(uri, SKIPPED) for uri in expected]
    assert found[0].listed is not None


async def test_a_pattern_of_many_stars_ends(folder: Path) -> None:
    deep = folder.joinpath(*["a"] * 60)
    write(deep / ("a" * 200))
    many = "/".join(["**", "a"] * 20 + ["*a" * 50 + "b"])
    assert items(await pages(source(folder, glob=many))) == {}


async def test_a_linked_file_keeps_the_path_it_was_found_under(folder: Path, tmp_path: Path) -> None:
    write(folder / "real.txt", "one")
    (folder / "a-link.txt").symlink_to(folder / "real.txt")
    write(folder / ".data" / "2026" / "two.txt", "two")
    (folder / "two.txt").symlink_to(folder / ".data" / "2026" / "two.txt")
    (folder / "out.txt").symlink_to(write(tmp_path / "secret.txt"))
    found = await pages(source(folder))
    assert items(found) == {"real.txt": b"one", "two.txt": b"two"}


async def test_archives_inside_a_folder_are_opened(folder: Path) -> None:
    with zipfile.ZipFile(folder / "b.zip", "w") as archive:
        archive.writestr("sub/x.txt", "words")
    assert items(await pages(source(folder))) == {"b.zip!/sub/x.txt": b"words"}


def test_an_archive_that_is_named_itself_is_opened(folder: Path) -> None:
    with zipfile.ZipFile(folder / "b.zip", "w") as archive:
        archive.writestr("sub/x.txt", "words")
    (item,) = read_files([folder / "b.zip"])
    assert isinstance(item, Item)
    assert item.external_id == f"{(folder / 'b.zip').as_posix()}!/sub/x.txt"
    assert item.uri == "docs/b.zip!/sub/x.txt"


async def test_limits_bound_single_files(folder: Path) -> None:
    with (folder / "big.txt").open("wb") as file:
        file.truncate(1024 * 1024 + 1)
    found = await pages(source(folder, LimitSettings(file_mb=1)))
    assert failures(found) == [Failure("docs/big.txt", "too_large", "docs/big.txt has 1 MB; limits.file_mb allows 1")]
    assert found[0].listed == {"big.txt"}


def test_nothing_is_read_before_it_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder / "a.txt")
    monkeypatch.setattr(files_module, "read_documents", None)
    read_files([folder])


async def test_a_folder_never_passes_for_the_inside_of_an_archive(folder: Path) -> None:
    with zipfile.ZipFile(folder / "book.zip", "w") as archive:
        archive.writestr("policy.md", "genuine")
        archive.writestr("Inner.ZIP!/a.md", "no archive")
    write(folder / "book.zip!" / "policy.md", "forged")
    write(folder / "box.mbox!" / "id@example.org", "forged mail")
    write(folder / "Important!" / "notes.md", "as ever")
    named = {
        "book.zip!/policy.md": b"genuine",
        "book.zip!/Inner.ZIP//a.md": b"no archive",
        "book.zip//policy.md": b"forged",
        "box.mbox//id@example.org": b"forged mail",
        "Important!/notes.md": b"as ever",
    }
    found = await pages(source(folder))
    assert items(found) == named
    assert found[0].listed == named.keys() | {"book.zip"}
    assert {entry.uri for entry in entries(found)} == {f"docs/{name}" for name in named}
    read = [entry for entry in read_files([folder]) if isinstance(entry, Item)]
    assert {entry.external_id: entry.content for entry in read} == {
        f"{real(folder)}/{name}": content for name, content in named.items()
    }
    (listing,) = folder_listings([folder], LimitSettings())
    assert {entry.external_id for entry in read} < listing.listed
