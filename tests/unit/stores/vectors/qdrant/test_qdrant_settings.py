"""What the settings of Qdrant may say, and what they are told otherwise."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from ragstone.core.errors import InputError, SettingsError
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.qdrant.provider import QdrantProvider
from ragstone.testing.builders import unit_vectors
from ragstone.testing.suites.provider_cases import new_partition

URL = "http://localhost:6333"


def made(**settings: Any) -> QdrantProvider:
    return QdrantProvider(Adapter(kind="qdrant", **settings), Path("never-made"), "collection")


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"options": {"m": 3}}, "options.m"),
        ({"url": URL, "options": {"timeout": 0}}, "options.timeout"),
        ({"url": URL, "options": {"timeout": "soon"}}, "options.timeout"),
        ({"url": URL, "options": {"exact": 1}}, "options.exact"),
        ({"url": URL, "options": {"prefer_grpc": "yes"}}, "options.prefer_grpc"),
        ({"url": URL, "options": {"grpc_port": 0}}, "options.grpc_port"),
        ({"url": URL, "options": {"engine": "edge"}}, "both a Qdrant server and one in this process"),
        ({"url": URL, "path": Path("x")}, "both a Qdrant server and one in this process"),
        ({"options": {"engine": "fast"}}, "options.engine"),
        ({"options": {"timeout": 5}}, "options.timeout is for a Qdrant server"),
        ({"api_key": SecretStr("k")}, "api_key is for a Qdrant server"),
        ({"dsn": SecretStr("secret")}, "dsn means nothing"),
        ({"url": "localhost:6333"}, "url is not an address"),
        ({"url": "http://"}, "url is not an address"),
        ({"url": "http://host:port"}, "url is not an address"),
        ({"url": "http://me:secret@host"}, "no password"),
        ({"url": "http://host?api-key=secret"}, "no query"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused_by_name(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingsError) as refused:
        made(**settings)
    assert named in str(refused.value)
    assert refused.value.hint
    assert "secret" not in f"{refused.value} {refused.value.hint}"


def test_an_isolation_that_does_not_exist_is_refused() -> None:
    odd: Any = "database"
    with pytest.raises(SettingsError) as refused:
        QdrantProvider(Adapter(kind="qdrant"), Path("never-made"), odd)
    assert "collection, filter, namespace" in refused.value.hint


@pytest.mark.parametrize(
    ("settings", "library", "hint"),
    [
        ({}, "qdrant_client", "pip install 'ragstone[qdrant]'"),
        ({"url": URL}, "qdrant_client", "pip install 'ragstone[qdrant]'"),
        ({"options": {"engine": "edge"}}, "qdrant_edge", "pip install qdrant-edge-py"),
    ],
)
def test_a_library_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], library: str, hint: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == library else object())
    with pytest.raises(SettingsError) as refused:
        made(**settings)
    assert library in str(refused.value)
    assert refused.value.hint == hint


@pytest.mark.parametrize(
    ("settings", "exact"),
    [
        ({}, True),
        ({"options": {"engine": "edge"}}, True),
        ({"url": URL}, False),
        ({"url": URL, "options": {"exact": True}}, True),
    ],
)
def test_it_says_what_ragstone_has_to_do_itself(settings: dict[str, Any], exact: bool) -> None:
    capabilities = made(**settings).capabilities
    assert capabilities.exact == exact
    assert not capabilities.sparse
    assert not capabilities.hybrid
    assert not capabilities.reranking


def test_nothing_is_touched_before_the_first_call(tmp_path: Path) -> None:
    QdrantProvider(Adapter(kind="qdrant"), tmp_path / "qdrant", "collection")
    assert list(tmp_path.iterdir()) == []


async def test_a_question_that_is_no_vector_is_refused() -> None:
    place = new_partition(2)
    with pytest.raises(InputError):
        await made().search(place, unit_vectors(1, 2)[0] * float("nan"), 10)
