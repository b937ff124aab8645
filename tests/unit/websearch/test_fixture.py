from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragstone.core.errors import SettingsError
from ragstone.settings.web import WebSettings
from ragstone.websearch import build_web_search

PAGE = {"title": "A page", "url": "https://a.example/", "snippet": "Words.", "date": "2026-01-31"}
OTHER = {"title": "Other", "url": "https://b.example/", "snippet": "More."}


async def test_results_by_query_and_for_every_other(tmp_path: Path) -> None:
    path = tmp_path / "web.json"
    path.write_text(json.dumps({"Ferry  Times": [PAGE, OTHER], "*": [OTHER]}), encoding="utf-8")
    searching = build_web_search(WebSettings(kind="fixture", path=path))
    assert [one.title for one in await searching.search("ferry times", 3)] == ["A page", "Other"]
    assert [one.date for one in await searching.search("ferry times", 1)] == ["2026-01-31"]
    assert [one.title for one in await searching.search("trains", 3)] == ["Other"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"q": [{"title": "A"}]}', '{"q": 3}', "[" * 100_000])
async def test_a_file_that_is_of_no_use_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "web.json"
    path.write_text(text, encoding="utf-8")
    searching = build_web_search(WebSettings(kind="fixture", path=path))
    with pytest.raises(SettingsError, match=r"web\.path cannot be used: .*web\.json"):
        await searching.search("x", 3)


async def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    searching = build_web_search(WebSettings(kind="fixture", path=tmp_path / "none.json"))
    with pytest.raises(SettingsError, match="FileNotFoundError"):
        await searching.search("x", 3)
