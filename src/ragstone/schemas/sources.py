"""Sources, their kinds, and what a sync led to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from ragstone.core.jobs import SourceState
from ragstone.core.types import Json
from ragstone.schemas.documents import FailureSchema
from ragstone.schemas.schema import Moment, Schema
from ragstone.schemas.settings import mask_secrets


class SourceSchema(Schema):
    """A configured source; secrets in its configuration are masked."""

    id: str
    kb: str
    name: str
    kind: str
    config: dict[str, Json]
    schedule: str
    state: SourceState
    paused: bool
    last_run_at: Moment | None
    next_run_at: Moment | None
    last_error: str
    failures: int
    failed: list[FailureSchema]
    created_at: Moment

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a source."""
        failures = source.source_failures
        config = mask_secrets(dict(source.config))
        return super().of(source, config=config, failures=failures.count, failed=failures.first, **values)

    @classmethod
    def restore(cls, data: dict[str, Json]) -> Mapping[str, Json]:
        """Return the fields of a source, with its failures in one place."""
        total = data.get("state") == "failing"
        failures = {"count": data.get("failures", 0), "first": data.get("failed", []), "total": total}
        return {**data, "source_failures": failures}


class SourceListSchema(Schema):
    """The sources of a tenant."""

    sources: list[SourceSchema]


class SyncOutcomeSchema(Schema):
    """The outcome of a sync and of the documents that it queued."""

    source: str
    kb: str
    job_id: str
    state: str
    taken_in: int
    unchanged: int
    removed: int
    moved: int
    skipped: int
    unread: int
    failures: int
    failed: list[FailureSchema]
    message: str


class SyncSchema(Schema):
    """The outcomes of a sync of several sources."""

    sources: list[SyncOutcomeSchema]


class SourceSettingSchema(Schema):
    """One setting of a kind of source."""

    name: str
    type: str
    required: bool
    default: Json


class SourceKindSchema(Schema):
    """A kind of source and its settings."""

    kind: str
    about: str
    schedule: str
    settings: list[SourceSettingSchema]


class SourceKindsSchema(Schema):
    """All kinds of source."""

    kinds: list[SourceKindSchema]
