"""What the runtimes compute, against the same encoders in float64."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tests.unit.models.reference import granite_vector, reference_logits, reference_states
from tests.unit.models.tiny import write_tiny_model

from ragstone.models.runtime import openvino as openvino_runtime
from ragstone.models.runtime.inference import open_runtime, pad_rows
from ragstone.models.weights.folder import ModelFolder
from ragstone.models.weights.packages import GRANITE, GranitePack, installed_file

RUNTIMES = ["openvino", "onnxruntime"]
ROWS = [[1, 9, 14, 20, 33, 8, 2], [1, 40, 2], [1, *range(5, 65)[:58], 2]]

GRANITE_ROWS = ((0, 713, 2335, 15, 5, 7821, 2), (0, *range(1000, 1040), 2), (0, 50, 2))


@cache
def expected_granite_vector(pack: Path, ids: tuple[int, ...]) -> np.ndarray:
    return granite_vector(pack, list(ids))


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "mpnet"])
def test_an_encoder_of_each_family(tmp_path: Path, family: str, pooling: str, runtime: str) -> None:
    folder = write_tiny_model(tmp_path / "model", family, pooling=pooling)
    loaded = open_runtime(runtime, "tiny", ModelFolder(folder).encoder, threads=1, cache=tmp_path)
    made = loaded.run(*pad_rows(ROWS, padding=0))
    for row, ids in zip(made, ROWS, strict=True):
        states = reference_states(folder, ids)
        expected = states[0] if pooling == "cls" else states.mean(axis=0)
        assert cosine(row, expected) > 0.9999
        # bf16, where the processor has it, keeps about three digits.
        np.testing.assert_allclose(row, expected, atol=0.05)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
def test_a_classifier_of_each_family(tmp_path: Path, family: str, runtime: str) -> None:
    folder = write_tiny_model(tmp_path / "model", family, labels=3)
    types = [[0, 0, 0, 1, 1, 1, 1], [0, 0, 1], [0] * 30 + [1] * 30]
    loaded = open_runtime(runtime, "tiny", ModelFolder(folder).encoder, threads=1, cache=tmp_path)
    made = loaded.run(*pad_rows(ROWS, padding=0), pad_rows(types, 0)[0])
    expected = [reference_logits(folder, ids, kinds) for ids, kinds in zip(ROWS, types, strict=True)]
    np.testing.assert_allclose(made, expected, atol=0.05)


# OpenVINO rounds activations to int8 where the processor has no bf16: docs/decisions/018.
@pytest.mark.parametrize(("runtime", "closeness"), [("openvino", 0.9995), ("onnxruntime", 0.9999)])
def test_granite_is_as_close_as_its_runtime_allows(model_cache: Path, runtime: str, closeness: float) -> None:
    pack = GranitePack(installed_file(*GRANITE, "granite-embedding-30m-english"))
    loaded = open_runtime(runtime, f"granite@{pack.revision}", pack.encoder, threads=0, cache=model_cache)
    made = loaded.run(*pad_rows([list(row) for row in GRANITE_ROWS], padding=1))
    for row, ids in zip(made, GRANITE_ROWS, strict=True):
        assert cosine(row, expected_granite_vector(pack.path, ids)) >= closeness


def test_plain_weights_meet_plain_activations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_tiny_model(tmp_path / "model", "bert", pooling="cls")
    made = []
    for group in (64, 0):
        monkeypatch.setattr(openvino_runtime, "ACTIVATION_GROUP", group)
        cache = tmp_path / str(group)
        loaded = open_runtime("openvino", "tiny", ModelFolder(folder).encoder, threads=1, cache=cache)
        made.append(loaded.run(*pad_rows(ROWS, padding=0)))
    np.testing.assert_allclose(made[0], made[1], atol=1e-6)


def test_a_model_compiled_with_other_options_is_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_tiny_model(tmp_path / "model", "bert")
    cache = tmp_path / "cache"
    usual = openvino_runtime._options
    for option in ({}, {"DYNAMIC_QUANTIZATION_GROUP_SIZE": 32}, {}):
        monkeypatch.setattr(openvino_runtime, "_options", lambda precision, option=option: usual(precision) | option)
        open_runtime("openvino", "tiny", ModelFolder(folder).encoder, threads=1, cache=cache)
    assert len(list(cache.glob("*.artefact"))) == 2
