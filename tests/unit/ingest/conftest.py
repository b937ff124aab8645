from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.ingest.kit import Kit


@pytest.fixture
async def kit(data_dir: Path) -> AsyncIterator[Kit]:
    kit = Kit(data_dir)
    yield kit
    await kit.ledger.close()
