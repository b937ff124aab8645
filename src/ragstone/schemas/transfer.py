"""Archives and moves between stores."""

from __future__ import annotations

from pydantic import Field

from ragstone.core.types import Json
from ragstone.schemas.schema import Schema


class ExportSchema(Schema):
    """The contents of an archive."""

    path: str
    tenant: str
    kbs: list[str]
    documents: int
    chunks: int
    vectors: int
    files: int
    sources: int
    bytes: int
    remarks: list[str]
    seconds: float


class ImportSchema(Schema):
    """Counts of the documents of an archive that were imported, and of those that were not."""

    path: str
    tenant: str
    kbs: list[str]
    added: int
    replaced: int
    unchanged: int
    differing: list[str]
    left: int
    chunks: int
    files: int
    sources: int
    remarks: list[str]
    seconds: float


class DifferencesSchema(Schema):
    """The differences between two stores: how many, and some of them in words."""

    count: int
    named: list[str]


class TenantMoveSchema(Schema):
    """The outcome of moving one tenant."""

    tenant: str
    kbs: int
    documents: int
    chunks: int
    vectors: int
    written: int
    searches: int
    agreement: float
    differences: DifferencesSchema
    remarks: list[str]


class MoveSchema(Schema):
    """The outcome of a move, and the settings that use what it made."""

    to: str
    tenants: list[TenantMoveSchema]
    settings: dict[str, Json]
    secrets: list[str]
    seconds: float
    is_equal: bool = Field(alias="equal")
