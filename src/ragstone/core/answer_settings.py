"""Settings of what is made of the passages: answers."""

from __future__ import annotations

from pydantic import Field

from ragstone.core.section import Section


class AnswerSettings(Section):
    max_sentences: int = Field(default=4, ge=1, le=50)
    passages: int = Field(default=6, ge=1, le=100)
    max_context_tokens: int = Field(default=4000, ge=100)
    citation_format: str = "[{index}]"
