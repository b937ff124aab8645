"""Engines on the sample corpus and engines whose model is a fake."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from tests import sharing

from ragstone import Ragstone
from ragstone.samples import corpus_path
from ragstone.testing.fakes import FakeEmbedder

shared_models = sharing.shared_models
shared_parsers = sharing.shared_parsers


@pytest.fixture(autouse=True)
def _own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder without a `ragstone.yaml`."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def stone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ragstone]:
    """The sample corpus in the default kb, with real parsers and the default model. Write into other kbs only."""
    with Ragstone(data_dir=tmp_path_factory.mktemp("flow")) as stone:
        with chdir(corpus_path().parent):
            stone.ingest(corpus_path())
        yield stone


@pytest.fixture
def fake_model(monkeypatch: pytest.MonkeyPatch) -> FakeEmbedder:
    """The model of every engine that the test opens."""
    fake = FakeEmbedder()
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: fake)
    return fake
