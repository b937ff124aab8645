"""Errors as programs get them."""

from __future__ import annotations

from math import ceil
from typing import Self

from pydantic import Field

from ragstone.core.errors import RagstoneError
from ragstone.schemas.schema import Schema


class ErrorDetailSchema(Schema):
    """An error and the remedy for it; `retry_after` is there only when waiting helps."""

    code: str
    message: str
    hint: str = ""
    retry_after: int | None = Field(default=None, exclude_if=lambda seconds: seconds is None)
    """Whole seconds."""


class ErrorSchema(Schema):
    """The shape of every error."""

    error: ErrorDetailSchema

    @classmethod
    def of_error(cls, error: RagstoneError) -> Self:
        """Build the shape of one of our errors."""
        return cls.of_words(error.code, str(error), error.advice, error.retry_after)

    @classmethod
    def of_words(cls, code: str, message: str, hint: str = "", retry_after: float | None = None) -> Self:
        """Build the shape of what is not a `RagstoneError`."""
        # Rounded up: a caller who waits exactly this long must not come too early.
        seconds = None if retry_after is None else ceil(retry_after)
        detail = ErrorDetailSchema.of(code=code, message=message, hint=hint, retry_after=seconds)
        return cls.of(error=detail)
