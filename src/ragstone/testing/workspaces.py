"""Workspaces for tests."""

from __future__ import annotations

from ragstone.engine.engine import Engine
from ragstone.engine.workspace import Workspace


def workspace_of(engine: Engine) -> Workspace:
    """Return the workspace of the tenant that the engine's settings name."""
    return engine.workspace(engine.settings.tenant)
