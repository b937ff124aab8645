"""The installation: what `doctor` found, which models are here, and the demo."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ragstone.core.health import FindingState
from ragstone.schemas.answers import AnswerSchema
from ragstone.schemas.documents import IngestSchema
from ragstone.schemas.schema import Schema


class CheckSchema(Schema):
    """One thing that was looked at; `fix` is what to type."""

    name: str
    state: FindingState
    detail: str
    fix: str


class StoreFindingSchema(Schema):
    """One thing about one store."""

    store: str
    what: str
    state: FindingState
    detail: str
    advice: str = Field(alias="repair")
    repaired: bool


class DoctorSchema(Schema):
    """The checks of an installation, and whether all that it needs is there."""

    ok: bool
    checks: list[CheckSchema]
    stores: list[StoreFindingSchema]


class ModelSchema(Schema):
    """A model that Ragstone knows; `get` is what to type to have it."""

    name: str
    kind: Literal["embedding", "reader", "reranker"]
    state: Literal["installed", "missing", "remote"]
    dimension: int | None
    max_tokens: int | None
    get: str
    configured: bool


class ModelListSchema(Schema):
    """The models of the catalogue."""

    models: list[ModelSchema]


class PulledModelSchema(Schema):
    """A model that was downloaded, and where it is."""

    model: str
    path: str


class DemoSchema(Schema):
    """The demo: what was ingested, and the answers to its questions."""

    ingest: IngestSchema
    answers: list[AnswerSchema]


class ServingSchema(Schema):
    """The address of a service that is ready, and the keys that its first start made, by tenant."""

    url: str
    keys: dict[str, str]
