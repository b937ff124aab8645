"""Checkpoints of a run in the tenant's own ledger, whichever database that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

from ragstone.engine.articles import Articles


class RunSaver(BaseCheckpointSaver[int]):
    """Keeps the last checkpoint of one run, as JSON: what was kept is read, never executed.

    A checkpoint is written before the next node begins. The writes of a node that has not ended are not kept: the
    node runs again.
    """

    def __init__(self, articles: Articles, token: int) -> None:
        super().__init__()
        self._articles = articles
        self._token = token

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the last checkpoint of the run; None before the first."""
        run_id = _run_of(config)
        kept = await self._articles.checkpoint(run_id)
        if kept is None:
            return None
        checkpoint: Checkpoint = kept["checkpoint"]
        return CheckpointTuple(_config(run_id, checkpoint["id"]), checkpoint, kept["metadata"], None, [])

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Replace the checkpoint of the run."""
        run_id = _run_of(config)
        await self._articles.save(run_id, self._token, {"checkpoint": checkpoint, "metadata": metadata})
        return _config(run_id, checkpoint["id"])

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep nothing: one node runs at a time, and it runs again if it has not ended."""


def _run_of(config: RunnableConfig) -> str:
    return str(config["configurable"]["thread_id"])


def _config(run_id: str, checkpoint_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": run_id, "checkpoint_ns": "", "checkpoint_id": checkpoint_id}}
