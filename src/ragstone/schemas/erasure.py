"""Deletions with their receipts."""

from __future__ import annotations

from pydantic import Field

from ragstone.core.audit import TargetKind
from ragstone.schemas.documents import DeletedDocumentsSchema
from ragstone.schemas.schema import Moment, Schema
from ragstone.schemas.tenants import TenantSchema


class ErasedTargetSchema(Schema):
    """The thing to erase; only a source names its kb."""

    kind: TargetKind
    name: str
    kb: str = Field(default="", exclude_if=lambda kb: not kb)


class ErasureReceiptSchema(Schema):
    """Counts of what was removed, and of what was found when every store was asked again at `moment`."""

    tenant: str
    target: ErasedTargetSchema
    removed: dict[str, dict[str, int]]
    remaining: dict[str, dict[str, int]]
    requery: int | None
    scrubbed: bool
    complete: bool
    unfinished: list[str]
    moment: Moment


class ErasedDocumentsSchema(DeletedDocumentsSchema):
    """Documents that were deleted, with receipts."""

    receipts: list[ErasureReceiptSchema]


class DeletedKbSchema(Schema):
    """A kb that was deleted with its documents."""

    deleted: str
    documents: int
    receipts: list[ErasureReceiptSchema]


class RemovedSourceSchema(Schema):
    """A source that was removed with its documents."""

    removed: str
    documents: int
    receipts: list[ErasureReceiptSchema]


class DeletedTenantSchema(Schema):
    """A tenant that was deleted, as it was."""

    deleted: str
    documents: int
    tenant: TenantSchema
    receipts: list[ErasureReceiptSchema]
