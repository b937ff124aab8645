"""Sources are read from the folder that a test works in."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are shown from the folder that one works in."""
    monkeypatch.chdir(tmp_path)
