"""What the settings of Milvus may say, and what is refused before anything is opened."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from ragstone.core.errors import SettingsError
from ragstone.settings.tree import Adapter
from ragstone.stores.vectors.milvus.calls import MilvusOptions, read_options, without_credentials
from ragstone.stores.vectors.milvus.provider import MilvusProvider


def test_options_have_defaults_and_are_taken_as_given() -> None:
    assert read_options(Adapter(kind="milvus")) == MilvusOptions()
    given = {"timeout": 5, "database": "kb", "ef": 64, "strong_reads": True}
    assert read_options(Adapter(kind="milvus", options=given)) == MilvusOptions(5.0, "kb", 64, True)


@pytest.mark.parametrize(
    ("options", "named", "hint"),
    [
        ({"timout": 5}, "timout", "database, ef, strong_reads, timeout"),
        ({"timeout": 0}, "timeout", "above zero"),
        ({"timeout": "5"}, "timeout", "above zero"),
        ({"ef": 0}, "ef", "from 1 to 32768"),
        ({"ef": True}, "ef", "from 1 to 32768"),
        ({"ef": 10**9}, "ef", "from 1 to 32768"),
        ({"strong_reads": "yes"}, "strong_reads", "true or false"),
        ({"database": 3}, "database", "name of a database"),
    ],
)
def test_an_option_that_cannot_be_meant_is_named(options: dict[str, Any], named: str, hint: str) -> None:
    with pytest.raises(SettingsError, match=f"options.{named}") as caught:
        read_options(Adapter(kind="milvus", options=options))
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "url",
    [
        "localhost:19530",
        "./milvus.db",
        "file:///tmp/milvus.db",
        "http://",
        "http://user:pa55word@host/kb",
        "http://host:99999",
        "http://host/x.db",
        "unix:/tmp/socket",
        "",
    ],
)
def test_what_is_no_address_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match=r"store\.vectors\.url") as caught:
        read_options(Adapter(kind="milvus", url=url))
    assert "pa55word" not in str(caught.value)
    assert "http://host:19530" in caught.value.hint


@pytest.mark.parametrize(
    "adapter",
    [
        Adapter(kind="milvus", dsn=SecretStr("x")),
        Adapter(kind="milvus", url="http://host", path=Path("x")),
        Adapter(kind="milvus", api_key=SecretStr("x")),
    ],
)
def test_settings_that_nobody_would_read_are_refused(adapter: Adapter) -> None:
    with pytest.raises(SettingsError, match="milvus takes a url"):
        read_options(adapter)


def test_an_address_is_shown_without_credentials() -> None:
    assert without_credentials("https://user:pass@host:19530") == "https://host:19530"
    assert without_credentials("http://[::1]:19530/") == "http://[::1]:19530"


def test_an_isolation_that_milvus_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="'schema'") as caught:
        MilvusProvider(Adapter(kind="milvus"), tmp_path, "schema")  # type: ignore[arg-type]
    assert caught.value.hint == "choose one of: collection, filter, namespace"


@pytest.mark.parametrize("library", ["pymilvus", "milvus_lite"])
def test_a_library_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(SettingsError, match=f"needs {library}") as caught:
        MilvusProvider(Adapter(kind="milvus"), tmp_path, "collection")
    assert caught.value.hint == "pip install 'ragstone[milvus]'"
