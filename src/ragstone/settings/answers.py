"""Settings of what is made of the passages: answers."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from ragstone.settings.base import SettingsModel

CitationStyle = Literal["index", "inline", "footnote", "endnote", "none"]
"""`[1]` after a sentence; `[Source: Title]` in it; `[1]` and a list below; only the list; neither."""


class AnswerSettings(SettingsModel):
    max_sentences: int = Field(default=4, ge=1, le=50)
    passages: int = Field(default=6, ge=1, le=100)
    max_context_tokens: int = Field(default=4000, ge=100)
    research_seconds: float = Field(default=30.0, gt=0)
    """Seconds that one research may take in all; its result is what it has found by then."""
    citation_format: str = "[{index}]"
    citation_style: CitationStyle = "index"
    """The style in which the text of an answer names its sources; the JSON form always has them in full."""
    confident: float | None = Field(default=None, gt=0, le=1)
    """The confidence that lets an LLM answer without looking anything up; by default it is never asked for it."""
    unsupported: Literal["drop", "flag"] = "drop"
    """The fate of a sentence that its source does not support: left out, or kept and labelled as unsupported."""


class EntailmentSettings(SettingsModel):
    """The judge of whether a passage supports a claim or a sentence."""

    kind: Literal["none", "nli", "llm"] = "none"
    """`none` leaves it to explicit checks, `nli` is a local model, `llm` asks the configured LLM."""
    model: str = "cross-encoder/nli-distilroberta-base"
    path: Path | None = None
