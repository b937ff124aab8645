"""The guide for contributors says how the tests are laid out and run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
AREAS = ("unit/ingest", "unit/query", "unit/stores/vectors", "serve", "flow")
"""Ingestion, retrieval, vector stores, interfaces, and everything together."""


@pytest.mark.req("R-TST-53")
def test_tests_are_laid_out_by_area_with_data_and_fixtures_apart() -> None:
    for area in AREAS:
        assert list((TESTS / area).rglob("test_*.py")), area
    for beside in ("data", "doubles", "golden"):
        files = [path for path in (TESTS / beside).iterdir() if path.is_file()]
        assert files, beside
        assert not [path for path in files if path.name.startswith("test_")], beside
    assert list(TESTS.glob("test_*.py")) == []


@pytest.mark.req("R-TST-54")
def test_the_guide_names_every_folder_of_tests_and_how_to_run_them() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders = {path.relative_to(TESTS).parts[0] for path in TESTS.rglob("test_*.py")}
    (line,) = re.findall(r"^tests/ +(.+)$", guide, re.MULTILINE)
    assert set(line.replace("/", "").split()) >= folders
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    block = guide.split("```")[1]
    commands = set(re.findall(r"^make ([a-z]+)", block, re.MULTILINE))
    assert {"setup", "test", "check"} <= commands <= targets
