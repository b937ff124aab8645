"""The examples of the guide run against a live service."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.client.conftest import LiveService

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "client.md"
ADDRESS = "http://127.0.0.1:8000"


def test_the_examples_of_the_guide_run(
    service: LiveService, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAGSTONE_CLIENT_KEY", key)
    printed = []
    for example in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        assert ADDRESS in example
        exec(compile(example.replace(ADDRESS, service.url), str(PAGE), "exec"), {"__name__": "__main__"})
        printed.append(capfd.readouterr().out)
    assert "completed 100 %" in printed[0]
    assert "Refunds take five working days. [1] Refunds" in printed[0]
    assert printed[1].splitlines() == ["Refunds take five working days. [1]", "1 sources"]
    assert printed[2].startswith("not_found ")
    assert printed[3] == "1\n"
