from __future__ import annotations

import inspect
import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path

import pytest
from pydantic import SecretStr
from tests.unit.ingest.sources.source_kit import context, items, pages, write

from ragstone.core.errors import SettingsError
from ragstone.core.registry import UnknownAdapter
from ragstone.ingest.sources import KINDS, SOURCES, build_source, check_without_variables
from ragstone.settings.base import SettingsModel


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_built_the_same_way(kind: str) -> None:
    made = SOURCES.load(kind)
    assert list(inspect.signature(made).parameters) == ["config", "name", "context"]
    with pytest.raises(SettingsError, match="source 'mine' has no setting 'nonsense'"):
        build_source(kind, "mine", {"nonsense": 1}, context())


async def test_a_source_is_built_from_plain_values(tmp_path: Path) -> None:
    write(tmp_path / "a.md")
    write(tmp_path / "b.txt")
    config = {"path": "${ROOT}/", "glob": ["*.${KIND:-md}"]}
    source = build_source("files", "mine", config, context(), {"ROOT": str(tmp_path)})
    assert list(items(await pages(source))) == ["a.md"]
    await source.close()


@pytest.mark.req("R-EXT-14")
async def test_files_and_rows_of_a_database_come_through_one_interface(tmp_path: Path) -> None:
    for name in ("a.pdf", "b.txt"):
        write(tmp_path / "docs" / name, "words")
    with closing(sqlite3.connect(tmp_path / "shop.db")) as shop:
        shop.executescript("CREATE TABLE faq (id, answer); INSERT INTO faq VALUES (1, 'words');")
    given = context(databases={"shop": SecretStr(f"sqlite:///{tmp_path / 'shop.db'}")})
    query = {"database": "shop", "query": "SELECT * FROM faq", "key": "id", "text": "{answer}"}
    found = [
        items(await pages(build_source(kind, "mine", config, given)))
        for kind, config in (("files", {"path": tmp_path / "docs"}), ("database", query))
    ]
    assert found == [{"a.pdf": b"words", "b.txt": b"words"}, {"[1]": "words"}]


async def test_variables_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDBOOK_ROOT", str(write(tmp_path / "a.md").parent))
    source = build_source("files", "mine", {"path": "${HANDBOOK_ROOT}"}, context())
    assert list(items(await pages(source))) == ["a.md"]


def test_a_variable_that_is_not_set_is_named_with_its_key() -> None:
    with pytest.raises(SettingsError) as caught:
        build_source("files", "mine", {"path": "/", "glob": ["${MISSING}"]}, context(), {})
    assert str(caught.value) == "source mine.glob refers to ${MISSING}, which is not set"
    assert caught.value.hint == "export MISSING=… or write ${MISSING:-default}"


@pytest.mark.parametrize(
    ("config", "message", "hint"),
    [
        ({}, "source 'mine' needs the setting 'path'", "it takes: path, glob, exclude"),
        ({"path": ".", "globb": "*"}, "source 'mine' has no setting 'globb'", "did you mean 'glob'?"),
        (
            {"path": ".", "glob": ["../*"]},
            "source 'mine', setting 'glob': the pattern '../*' must name paths under the root, such as '**/*.md'",
            "it takes: path, glob, exclude",
        ),
    ],
)
def test_a_wrong_setting_is_named(config: dict[str, object], message: str, hint: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build_source("files", "mine", config, context())
    assert (str(caught.value), caught.value.hint) == (message, hint)


@pytest.mark.parametrize(
    ("kind", "config", "message"),
    [
        ("crawl", {"url": "https://a.example", "max_pages": "many"}, "'max_pages': 'many' is not a whole number"),
        ("crawl", {"url": "https://a.example", "max_pages": "0"}, "'max_pages': '0' is not 1 or more"),
        ("crawl", {"url": "https://a.example", "max_pages": "${N}"}, "'max_pages': '${N}' is not 10,000 or less"),
        ("feeds", {"urls": ["https://a.example"], "full_text": "so"}, "'full_text': 'so' is not true or false"),
        ("hacker_news", {"stories": "old"}, "'stories': 'old' is not one of 'search', 'top', 'new' or 'best'"),
        ("imap", {"host": "h", "user": "u", "password": "p", "timeout": 0}, "'timeout': '0' is not more than 0"),
        ("semantic_scholar", {"query": ""}, "'query': '' is not text of 1 or more characters"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_expected(kind: str, config: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build_source(kind, "mine", config, context(), {"N": "10001"})
    assert str(caught.value) == f"source 'mine', setting {message}"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"url": "https://a.example/${MISSING_PATH}", "max_depth": "${MISSING_DEPTH}"}, ""),
        ({"url": "${MISSING_PATH}", "max_depht": 1}, "source 'mine' has no setting 'max_depht'"),
        ({"url": "${MISSING_PATH}", "max_depth": "x"}, "source 'mine', setting 'max_depth': 'x' is not a whole number"),
    ],
)
def test_what_is_wrong_whatever_variables_are_is_found_without_them(config: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError) if message else nullcontext() as caught:
        check_without_variables("crawl", "mine", config)
    assert not message or str(caught.value) == message


def test_a_password_in_a_wrong_setting_is_not_repeated() -> None:
    config = {"database": "postgresql://u:s3cret@host/db", "query": "SELECT 1", "key": "id", "text": "{id}"}
    with pytest.raises(SettingsError) as caught:
        build_source("database", "mine", config, context(databases={"shop": SecretStr("x")}))
    assert "s3cret" not in str(caught.value) + caught.value.hint
    assert "must be the name of a database, not its address" in str(caught.value)


def test_a_kind_that_is_none_is_refused() -> None:
    with pytest.raises(UnknownAdapter, match="there is no kind of source 'floppy'"):
        build_source("floppy", "mine", {}, context())


@pytest.mark.parametrize("kind", KINDS)
def test_every_configuration_refuses_keys_it_does_not_know(kind: str) -> None:
    module = inspect.getmodule(SOURCES.load(kind))
    config = getattr(module, inspect.signature(SOURCES.load(kind)).parameters["config"].annotation)
    assert issubclass(config, SettingsModel)
    assert config.model_config["extra"] == "forbid"
