"""Embedding spaces, and how a kb is moved from model to model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field

from ragstone.core.types import Json, SpaceState
from ragstone.schemas.evaluation import interval_figures
from ragstone.schemas.jobs import JobSchema
from ragstone.schemas.schema import Moment, Schema


class SpaceSchema(Schema):
    """An embedding space of a kb."""

    model: str
    dimension: int
    generation: int
    state: SpaceState
    vectors: int
    chunks: int
    created_at: Moment
    retired_at: Moment | None
    keep_until: Moment | None

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a space record."""
        names = ("model", "dimension", "generation", "state")
        return super().of(source, **{name: getattr(source.space, name) for name in names}, **values)

    @classmethod
    def restore(cls, data: dict[str, Json]) -> Mapping[str, Json]:
        """Return the fields of a space record, with those of the space in one place."""
        return {**data, "space": data}


class SpaceListSchema(Schema):
    """The spaces of a kb."""

    kb: str
    spaces: list[SpaceSchema]


class AgreementSchema(Schema):
    """The number of first hits that two spaces share for one query."""

    query: str
    common: int = Field(alias="shared")
    before: int
    after: int

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of an agreement."""
        return super().of(source, before=len(source.before), after=len(source.after), **values)


class SpaceComparisonSchema(Schema):
    """The scores of the live space and its successor on the same queries."""

    dataset: str
    queries: int
    before: dict[str, float]
    after: dict[str, float]
    metric: str
    difference: float
    low: float
    high: float
    is_worse: bool = Field(alias="worse")
    agreements: list[AgreementSchema] = Field(alias="validation")
    problems: list[str]
    remarks: list[str]

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a comparison."""
        before, after = (
            {name: round(value, 6) for name, value in scores.items()} for scores in (source.before, source.after)
        )
        return super().of(source, before=before, after=after, **interval_figures(source.interval), **values)


class ReembedSchema(Schema):
    """The outcome for a space; `replaced` is the model that was live before."""

    kb: str
    mode: str
    outcome: str
    model: str
    generation: int
    replaced: str | None
    written: int
    refused: int
    chunks: int
    seconds: float
    comparison: SpaceComparisonSchema | None

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a report."""
        return super().of(source, replaced=source.replaced or None, **values)


class ResyncSchema(Schema):
    """The outcome of a truncation and the resync after it; `resumed` when an earlier one was not finished."""

    kb: str
    model: str
    generation: int
    removed: int
    written: int
    refused: int
    chunks: int
    sources: int
    resumed: bool
    seconds: float


class RefreshSchema(Schema):
    """The findings and the outcome of a refresh."""

    kb: str
    outcome: str
    model: str | None
    written: int
    refused: int
    sampled: int
    differing: int
    lowest_cosine: float | None
    anew: ReembedSchema | None = Field(alias="reembedded")

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a report."""
        looked = source.freshness
        lowest = None if looked.lowest is None else round(looked.lowest, 6)
        sample = {"sampled": looked.sampled, "differing": looked.differing, "lowest_cosine": lowest}
        return super().of(source, model=source.model or None, **sample, **values)


class RefreshStatusSchema(Schema):
    """When a kb's embeddings were refreshed and will be."""

    kb: str
    every: str
    when: list[str]
    next_at: Moment | None
    last: JobSchema | None

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a status."""
        return super().of(source, every=source.settings.every, when=source.settings.when, **values)
