"""The documents, targets and type hints that the project promises."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from ragstone.settings.designs import VARIABLES

ROOT = Path(__file__).parents[2]


@pytest.mark.req("R-CLI-29")
def test_setup_api_and_configuration_are_documented() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "pip install" in readme
    assert re.search(r"^make demo +# .*install", readme, re.MULTILINE)
    routes = (ROOT / "docs/howto/design-routes.md").read_text(encoding="utf-8")
    for route in ("POST /ingest", "POST /search", "GET /health", "GET /knowledge/{kbId}/search"):
        assert route in routes
    keys = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")
    for name in VARIABLES:
        assert f"`{name}`" in keys


@pytest.mark.req("R-CLI-28")
def test_the_makefile_has_a_target_for_each_operation() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = dict(re.findall(r"^([a-z-]+):[^#\n]*## (.+)$", makefile, re.MULTILINE))
    assert {"setup", "demo", "serve", "test", "check", "load", "faults", "profiles", "release"} <= set(targets)
    assert all(targets.values())


@pytest.mark.req("R-CLI-32")
def test_type_hints_are_checked_in_all_of_the_code() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    assert settings["strict"] is True  # a function without hints is an error
    assert "src" in settings["files"]
    assert not [own for own in settings.get("overrides", ()) if "ragstone" in str(own.get("module"))]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^check-types:\n\t.*mypy", makefile, re.MULTILINE)
    assert (ROOT / "src/ragstone/py.typed").is_file()
