"""When embeddings are looked after without being asked."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ragstone.settings.base import SettingsModel

RefreshTrigger = Literal["model", "quality"]


class RefreshSettings(SettingsModel):
    """Triggers by which a worker refreshes a kb. Changed content is always embedded again."""

    every: str = "manual"
    """`monthly`, `weekly`, another word or five cron fields, as for sources; each time everything is re-embedded."""
    when: tuple[RefreshTrigger, ...] = ()
    """Besides: `model`, when the settings name another one; `quality`, when people find too little."""
    sample: int = Field(default=256, ge=1, le=100_000)
    """Stored vectors that a refresh without a schedule compares with fresh ones; if one differs, all are made again."""
    sources: bool = True
    """Let a scheduled refresh also read the sources of the kb from their beginning."""
