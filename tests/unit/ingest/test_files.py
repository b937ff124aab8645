from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ragstone.core.errors import InputError
from ragstone.core.types import SKIPPED, Failure, Item
from ragstone.ingest.parsers.images import ocr
from ragstone.ingest.sources.files.read import read_files, survey_files
from ragstone.settings.tree import LimitSettings

MEGABYTE = 1024 * 1024


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "docs"
    folder.mkdir()
    return folder


def write(path: Path, text: str = "words") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def read(*paths: Path, file_mb: int = 1) -> Sequence[Item | Failure]:
    entries = list(read_files(paths, LimitSettings(file_mb=file_mb)))
    assert survey_files(paths)[0] == len(entries)
    return entries


def items(*paths: Path) -> list[Item]:
    entries = read(*paths)
    assert all(isinstance(entry, Item) for entry in entries)
    return [entry for entry in entries if isinstance(entry, Item)]


def failure(*paths: Path) -> Failure:
    (entry,) = read(*paths)
    assert isinstance(entry, Failure)
    return entry


@pytest.mark.req("R-ING-06")
@pytest.mark.parametrize("name", ["report.pdf", "plan.docx", "notes.txt"])
def test_a_file_carries_its_name_and_when_it_was_modified(folder: Path, name: str) -> None:
    file = write(folder / name, "hello")
    os.utime(file, (0, 1_780_000_000.75))
    moment = datetime(2026, 5, 28, 20, 26, 40, tzinfo=UTC)
    (item,) = items(folder)
    assert item == Item(
        source="files",
        external_id=file.as_posix(),
        uri=f"docs/{name}",
        content=b"hello",
        metadata={"source_type": "files", "filename": name, "modified_date": moment},
        modified_at=moment,
    )


def test_files_come_in_order_of_path_each_folder_s_own_first(folder: Path) -> None:
    for name in ("b.txt", "a.txt", "sub/z.txt", "sub/deep/y.txt", "Also/x.txt"):
        write(folder / name)
    shown = [item.uri for item in items(folder)]
    assert shown == ["docs/a.txt", "docs/b.txt", "docs/Also/x.txt", "docs/sub/z.txt", "docs/sub/deep/y.txt"]


def test_several_paths_come_in_the_order_they_were_named(folder: Path, tmp_path: Path) -> None:
    single = write(tmp_path / "single.md")
    write(folder / "a.txt")
    assert [item.uri for item in items(single, folder)] == ["single.md", "docs/a.txt"]


@pytest.mark.parametrize("path", ["docs", "./docs/", "docs/sub/..", "link", "{here}/docs", "docs/sub/a.txt", "."])
def test_a_file_is_shown_by_its_path_from_the_working_folder_however_it_is_named(folder: Path, path: str) -> None:
    write(folder / "sub" / "a.txt")
    (folder.parent / "link").symlink_to(folder)
    (item,) = items(Path(path.format(here=folder.parent)))
    assert (item.uri, item.external_id) == ("docs/sub/a.txt", (folder / "sub" / "a.txt").as_posix())


@pytest.mark.parametrize("here", ["docs/sub", "/"])
def test_a_file_outside_of_the_working_folder_is_shown_by_its_absolute_path(
    folder: Path, here: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(folder / "a.txt")
    (folder / "sub").mkdir()
    monkeypatch.chdir(here)
    assert [item.uri for item in items(folder)] == [file.as_posix()]


def test_a_file_named_alone_is_the_same_document_as_through_its_folder(folder: Path) -> None:
    file = write(folder / "a.txt")
    (alone,), (found,) = items(file), items(folder)
    assert alone.external_id == found.external_id
    assert (alone.uri, found.uri) == ("docs/a.txt", "docs/a.txt")


def test_a_file_that_is_named_twice_comes_once(folder: Path) -> None:
    file = write(folder / "a.txt")
    write(folder / "b.txt")
    assert [item.uri for item in items(file, folder, folder)] == ["docs/a.txt", "docs/b.txt"]


@pytest.mark.parametrize("name", [".hidden.txt", ".git/config.txt", "sub/.cache/page.html"])
def test_hidden_files_and_folders_are_passed_over(folder: Path, name: str) -> None:
    write(folder / name)
    assert read(folder) == []


@pytest.mark.parametrize("name", ["site.css", "poetry.lock", "a.pyc", "font.woff2", "anim.gif"])
def test_kinds_that_are_never_documents_are_passed_over(folder: Path, name: str) -> None:
    write(folder / name)
    assert read(folder) == []


@pytest.mark.parametrize("name", ["logo.png", "sub/PHOTO.JPG"])
@pytest.mark.parametrize("is_installed", [True, False])
def test_pictures_in_a_folder_are_skipped_and_it_is_said_how_they_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_installed: bool
) -> None:
    monkeypatch.setattr(ocr, "is_installed", lambda: is_installed)
    write(folder / name)
    found = failure(folder)
    assert (found.uri, found.code) == (f"docs/{name}", SKIPPED)
    assert found.error.startswith("pictures are read if they are named")
    assert ("pip install 'ragstone[ocr]'" in found.error) != is_installed


@pytest.mark.parametrize("name", ["logo.png", ".hidden.txt"])
def test_what_is_named_itself_is_read_whatever_it_is(folder: Path, name: str) -> None:
    assert [item.uri for item in items(write(folder / name))] == [f"docs/{name}"]


@pytest.mark.parametrize("name", ["data.csv", "archive.zip", "no_suffix"])
def test_kinds_that_cannot_be_parsed_are_offered_so_that_they_are_reported(folder: Path, name: str) -> None:
    write(folder / name)
    assert [item.uri for item in items(folder)] == [f"docs/{name}"]


def test_links_out_of_the_folder_are_passed_over(folder: Path, tmp_path: Path) -> None:
    secret = write(tmp_path / "outside" / "secret.txt")
    (folder / "file.txt").symlink_to(secret)
    (folder / "folder").symlink_to(secret.parent)
    assert read(folder) == []


def test_a_link_beside_the_file_it_leads_to_is_no_second_document(folder: Path) -> None:
    write(folder / "real.txt")
    (folder / "other.txt").symlink_to(folder / "real.txt")
    (item,) = items(folder)
    assert item.external_id == (folder / "real.txt").as_posix()


def test_links_that_lead_nowhere_are_reported(folder: Path) -> None:
    (folder / "gone.txt").symlink_to(folder / "deleted.txt")
    (folder / "loop.txt").symlink_to(folder / "loop.txt")
    write(folder / "ok.txt")
    gone, loop, ok = read(folder)
    assert gone == Failure("docs/gone.txt", "invalid_input", "docs/gone.txt is a link that leads to no file")
    assert loop == Failure("docs/loop.txt", "invalid_input", "docs/loop.txt is a link that leads to no file")
    assert isinstance(ok, Item)


def test_a_file_that_goes_while_the_others_are_read_is_said_to_be_gone(folder: Path) -> None:
    write(folder / "first.txt")
    late = write(folder / "late.txt")
    entries = read_files([folder], LimitSettings())
    next(entries)
    late.rename(folder / "renamed.txt")
    reason = "docs/late.txt is not there any more: it was removed or renamed just now"
    assert list(entries) == [Failure("docs/late.txt", "invalid_input", reason, external_id=late.as_posix())]


def test_a_pipe_is_reported_and_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe.txt")
    assert failure(folder) == Failure("docs/pipe.txt", "invalid_input", "docs/pipe.txt is not a regular file")


@pytest.mark.parametrize(("size", "taken"), [(2 * MEGABYTE, True), (2 * MEGABYTE + 1, False)])
def test_a_file_over_the_limit_is_reported_unread(folder: Path, size: int, taken: bool) -> None:
    with (folder / "big.txt").open("wb") as file:
        file.truncate(size)
    (entry,) = read(folder, file_mb=2)
    if taken:
        assert isinstance(entry, Item)
    else:
        message = "docs/big.txt has 2 MB; limits.file_mb allows 2"
        assert entry == Failure("docs/big.txt", "too_large", message)


def test_a_file_that_cannot_be_read_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder / "a.txt")

    def refuse(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    message = "docs/a.txt cannot be read: Permission denied"
    assert failure(folder) == Failure("docs/a.txt", "unreadable", message)


def test_a_folder_that_cannot_be_listed_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder / "ok.txt")
    write(folder / "closed" / "a.txt")
    listed = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", refuse)
    taken, closed = read(folder)
    assert isinstance(taken, Item)
    assert closed == Failure("docs/closed", "unreadable", "docs/closed cannot be read: Permission denied")


def test_a_name_that_is_not_utf_8_is_written_out(folder: Path) -> None:
    with open(os.fsencode(folder) + b"/caf\xe9.txt", "wb") as file:  # noqa: PTH123
        file.write(b"words")
    (item,) = items(folder)
    assert item.uri == "docs/caf\\xe9.txt"
    assert item.external_id == f"{folder.as_posix()}/caf\\xe9.txt"
    assert item.metadata["filename"] == "caf\\xe9.txt"


def test_a_path_that_does_not_exist_is_refused_before_anything_is_read(folder: Path) -> None:
    write(folder / "a.txt")
    with pytest.raises(InputError) as caught:
        read_files([folder, folder / "missing"])
    assert str(caught.value) == f"{folder / 'missing'} does not exist"
    assert caught.value.hint == "check the spelling; nothing was ingested"


def test_an_empty_folder_has_nothing(folder: Path) -> None:
    assert read(folder) == []
    assert read() == []


def test_the_store_in_a_folder_is_not_a_document(tmp_path: Path) -> None:
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm", "note.txt"):
        (tmp_path / name).write_text("words")
    assert survey_files([tmp_path])[0] == 1


def test_short_files_come_first_and_those_of_like_size_in_the_order_of_their_paths(tmp_path: Path) -> None:
    for name, size in {"a.txt": 300_000, "b.txt": 20, "c.txt": 70_000, "d.txt": 10, "e.txt": 5_000}.items():
        (tmp_path / name).write_text("x" * size)
    names = [Path(entry.uri).name for entry in read_files([tmp_path])]
    assert names == ["b.txt", "d.txt", "e.txt", "c.txt", "a.txt"]
    assert survey_files([tmp_path]) == (5, 375_030)
