"""A small kb with real parsers and the default model, made once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from tests import sharing

from ragstone import Ragstone

shared_models = sharing.shared_models
shared_parsers = sharing.shared_parsers
PAGES = {
    "hooks.md": "# Guide\n\n## Modules\n\n### Hooks\n\nHooks react to events of the game server. "
    "A hook has to finish within five seconds.\n",
    "cronjobs.md": "# Guide\n\n## Modules\n\n### Cronjobs\n\nCronjobs run a function of a module on a schedule. "
    "The shortest interval of a cronjob is one minute.\n",
    "bans.md": "# Moderation\n\n## Bans\n\nA player is banned with a reason and an end date. "
    "A ban without an end date is permanent.\n",
}


@pytest.fixture(scope="session")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of three short pages. Only read from it."""
    home = tmp_path_factory.mktemp("guide")
    pages = home / "pages"
    pages.mkdir()
    for name, text in PAGES.items():
        (pages / name).write_text(text)
    with chdir(home), Ragstone(data_dir=home / "data") as stone:
        stone.ingest(pages)
    return home / "data"


@pytest.fixture(scope="session", autouse=True)
def patient_agent() -> Iterator[None]:
    """No busy machine cuts off a source of the customer-service agent."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "ragstone.agents.service.agent.SECONDS", dict.fromkeys(("documents", "database", "internet"), 60.0)
        )
        yield
