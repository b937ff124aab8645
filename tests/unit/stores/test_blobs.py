"""Originals: whole or absent, in their own folder, gone when they should be."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from ragstone.core.errors import NotFoundError, StoreFull
from ragstone.stores import blobs as module
from ragstone.stores.blobs import Blobs

DOCUMENT = "ab" * 16


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "documents" / "tenant")


def test_what_was_put_is_read_back_by_its_name(blobs: Blobs, tmp_path: Path) -> None:
    first, second = blobs.put(DOCUMENT, b"one"), blobs.put(DOCUMENT, b"one")
    assert first != second
    assert blobs.get(DOCUMENT, first) == b"one"
    assert sorted(blobs.names(DOCUMENT)) == sorted([first, second])
    file = tmp_path / "documents" / "tenant" / DOCUMENT / first
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_removing_what_was_there_leaves_what_came_since(blobs: Blobs) -> None:
    old = blobs.put(DOCUMENT, b"old")
    there = blobs.names(DOCUMENT)
    new = blobs.put(DOCUMENT, b"new")
    blobs.remove(DOCUMENT, there)
    assert blobs.names(DOCUMENT) == [new]
    with pytest.raises(NotFoundError, match="is gone"):
        blobs.get(DOCUMENT, old)


def test_the_folder_goes_with_its_last_file(blobs: Blobs, tmp_path: Path) -> None:
    blobs.remove(DOCUMENT, [blobs.put(DOCUMENT, b"x")])
    assert list((tmp_path / "documents" / "tenant").iterdir()) == []


@pytest.mark.parametrize("name", ["", "..", "../x", "/etc/passwd", "a/b", "a\0", "XYZ", "."])
def test_only_our_own_names_become_paths(blobs: Blobs, name: str) -> None:
    """FAULTS 30."""
    for call in (
        lambda: blobs.put(name, b"x"),
        lambda: blobs.get(name, "ab"),
        lambda: blobs.get(DOCUMENT, name),
        lambda: blobs.remove(DOCUMENT, [name]),
        lambda: blobs.names(name),
    ):
        with pytest.raises(NotFoundError):
            call()


def test_a_full_disk_leaves_nothing_half_written(blobs: Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    """FAULTS 11."""

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(StoreFull, match="No space left"):
        blobs.put(DOCUMENT, b"x" * 1000)
    monkeypatch.undo()
    assert blobs.names(DOCUMENT) == []
    assert blobs.get(DOCUMENT, blobs.put(DOCUMENT, b"space again")) == b"space again"


def test_only_what_has_settled_is_swept(blobs: Blobs, tmp_path: Path) -> None:
    """FAULTS 16: what a crash left is found; what is on its way in is not touched."""
    blobs.put(DOCUMENT, b"on its way")
    blobs.put("cd" * 16, b"left behind")
    (left,) = (tmp_path / "documents" / "tenant" / ("cd" * 16)).iterdir()
    os.utime(left, (0, 0))
    assert blobs.list_old() == {"cd" * 16: [left.name]}
    assert Blobs(tmp_path / "nowhere").list_old() == {}
