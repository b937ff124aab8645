"""Every reranker keeps to the suite."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest
from tests.unit.models.tiny import write_tiny_model

from ragstone.models.cross_encoder import CrossEncoder
from ragstone.testing.fakes import FakeReranker
from ragstone.testing.reranker_suite import RerankerSuite


class TestFakeReranker(RerankerSuite):
    def make_reranker(self) -> FakeReranker:
        return FakeReranker()


class CrossEncoderSuite(RerankerSuite):
    runtime: ClassVar[str]
    family: ClassVar[str]

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = write_tiny_model(tmp_path / "model", self.family, labels=1)

    def make_reranker(self) -> CrossEncoder:
        return CrossEncoder.open(
            "tiny", path=self.folder, runtime=self.runtime, cache_dir=self.folder.parent / "cache"
        )


class TestBertOnOpenVino(CrossEncoderSuite):
    family, runtime = "bert", "openvino"


class TestRobertaOnOnnxruntime(CrossEncoderSuite):
    family, runtime = "xlm-roberta", "onnxruntime"
