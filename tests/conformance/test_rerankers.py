"""Every reranker keeps to the suite."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from tests.unit.models.tiny import write_tiny_model

from ragstone.core.model_types import Message
from ragstone.models.rerankers.cross_encoder import CrossEncoder
from ragstone.models.rerankers.llm import LLMReranker
from ragstone.testing.fakes import FakeReranker
from ragstone.testing.suites.rerankers import RerankerSuite


class TestFakeReranker(RerankerSuite):
    def make_reranker(self) -> FakeReranker:
        return FakeReranker()


class Counting:
    """A language model that gives points by the words a passage shares with the query."""

    name = "counting"

    async def complete(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> str:
        asked = json.loads(messages[1].content)
        words = set(asked["query"].split())
        return json.dumps(
            [{"id": one["id"], "points": len(words & set(one["text"].split()))} for one in asked["passages"]]
        )

    def stream(self, messages: Sequence[Message], *, max_tokens: int, seconds: float) -> AsyncIterator[str]:
        raise NotImplementedError

    async def close(self) -> None: ...


class TestLLMReranker(RerankerSuite):
    def make_reranker(self) -> LLMReranker:
        return LLMReranker(Counting(), seconds=1)


class CrossEncoderSuite(RerankerSuite):
    runtime: ClassVar[str]
    family: ClassVar[str]

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = write_tiny_model(tmp_path / "model", self.family, labels=1)

    def make_reranker(self) -> CrossEncoder:
        return CrossEncoder.open("tiny", path=self.folder, runtime=self.runtime, cache_dir=self.folder.parent / "cache")


class TestBertOnOpenVino(CrossEncoderSuite):
    family, runtime = "bert", "openvino"


class TestRobertaOnOnnxruntime(CrossEncoderSuite):
    family, runtime = "xlm-roberta", "onnxruntime"
