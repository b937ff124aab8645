"""What the tests of models share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for the session: real weights are built once."""
    return tmp_path_factory.mktemp("models")
