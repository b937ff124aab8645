from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ragstone.models.weights import artefacts


def test_what_was_stored_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / artefacts.file_name("org/model name@1", "openvino")
    assert path.name == "org_model_name_1-openvino.artefact"
    assert artefacts.store(path, b"content" * 1000)
    loaded = artefacts.load(path)
    assert loaded is not None
    assert loaded.tobytes() == b"content" * 1000
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_nothing_stored_nothing_loaded(tmp_path: Path) -> None:
    assert artefacts.load(tmp_path / "none.artefact") is None


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "foreign", "headless"])
def test_damage_is_noticed(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "one.artefact"
    artefacts.store(path, b"content" * 1000)
    whole = path.read_bytes()
    flipped = whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:]
    ways = {"flip": flipped, "cut": whole[:-10], "empty": b"", "foreign": b"x" * 9000, "headless": whole[:100]}
    path.write_bytes(ways[damage])
    assert artefacts.load(path) is None
    assert "made again" in caplog.text


def test_a_reader_keeps_its_view_while_it_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "one.artefact"
    artefacts.store(path, b"old" * 5000)
    view = artefacts.load(path)
    artefacts.store(path, b"new" * 5000)
    assert view is not None
    assert view.tobytes() == b"old" * 5000


def test_a_disk_that_refuses_is_not_fatal(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    assert not artefacts.store(tmp_path / "file" / "one.artefact", b"content")
    assert "made again next time" in caplog.text


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    old, new = tmp_path / "old.partial", tmp_path / "new.partial"
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    os.utime(old, (1, 1))
    artefacts.store(tmp_path / "one.artefact", b"content")
    assert not old.exists()
    assert new.exists()


def test_writers_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from ragstone.models.weights import artefacts\n"
        "for _ in range(20): artefacts.store(Path(sys.argv[1]), sys.argv[2].encode() * 50_000)"
    )
    path = tmp_path / "one.artefact"
    writers = [subprocess.Popen([sys.executable, "-c", script, str(path), letter]) for letter in "ab"]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        if path.exists():
            loaded = artefacts.load(path)
            assert loaded is not None
            seen.add(loaded.tobytes()[:1])
            assert len(set(loaded.tobytes())) == 1
    assert [writer.wait() for writer in writers] == [0, 0]
    assert seen <= {b"a", b"b"}
    assert list(tmp_path.iterdir()) == [path]


def test_the_folder_is_chosen_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("RAGSTONE_CACHE_DIR", raising=False)
    assert artefacts.cache_folder() == tmp_path / "xdg" / "ragstone"
    monkeypatch.setenv("RAGSTONE_CACHE_DIR", str(tmp_path / "own"))
    assert artefacts.cache_folder() == tmp_path / "own"
    assert artefacts.cache_folder(tmp_path / "given") == tmp_path / "given"


def test_a_folder_that_cannot_be_written_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setattr(artefacts.tempfile, "gettempdir", lambda: str(tmp_path))
    spare = artefacts.cache_folder(tmp_path / "file" / "cache")
    assert spare.parent == tmp_path
    assert spare.stat().st_mode & 0o777 == 0o700
