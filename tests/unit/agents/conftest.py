from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests import sharing
from tests.stocks import fill_stock

from ragstone.core.types import Item
from ragstone.engine.engine import Engine, open_engine
from ragstone.settings.tree import Settings
from ragstone.testing.fakes import FakeEmbedder
from ragstone.testing.workspaces import workspace_of

shared_parsers = sharing.shared_parsers
ABOVE = "# Guide\n\n## Modules\n\n"
PAGES = {
    "docs/hooks.md": (
        f"{ABOVE}### Hooks\n\nHooks react to events of the game server. A hook runs within five seconds.\n",
        {},
    ),
    "docs/cronjobs.md": (f"{ABOVE}### Cronjobs\n\nCronjobs run hooks on a schedule of the server.\n", {}),
    "mail/1": (
        "The release of hooks moved to May.",
        {"source_type": "email", "date": "2026-01-02", "url": "https://mail.example/1"},
    ),
    "style.md": ("Write about hooks in short sentences.", {"use_for": "style_reference"}),
    "essay.md": ("Hooks, told well, are little stories.", {"use_for": "writing_example"}),
    "review.md": ("The piece on hooks lacked sources.", {"use_for": "critique"}),
}


async def ingest_pages(engine: Engine) -> None:
    await workspace_of(engine).documents.ingest_items(
        [Item("docs", uri, uri, text.encode(), metadata=facts) for uri, (text, facts) in PAGES.items()]
    )


@pytest.fixture(scope="session")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder of six short documents."""
    return fill_stock(Settings(data_dir=tmp_path_factory.mktemp("stock") / "data"), ingest_pages)


@pytest.fixture
async def engine(stock: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engine]:
    """Six short documents over a fake model."""
    monkeypatch.setattr("ragstone.engine.components.build_embedder", lambda _: FakeEmbedder())
    shutil.copytree(stock, data_dir)
    async with open_engine(Settings(data_dir=data_dir)) as engine:
        yield engine
