"""The configuration of the customer-service agent: one for each tenant, with the defaults of the design."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from ragstone.core.errors import InputError
from ragstone.core.types import Json
from ragstone.settings.answers import CitationStyle
from ragstone.settings.base import SettingsModel

AGENT = "service"
"""The name that the configuration is kept under."""
LONGEST = 4000
"""Characters of an instruction."""


class AgentConfiguration(SettingsModel):
    """The sources of the agent, how much it takes from each, what it may do, and how it names sources."""

    enable_document_retrieval: bool = True
    enable_database_retrieval: bool = True
    enable_internet_enrichment: bool = False
    enable_source_attribution: bool = True
    max_document_results: int = Field(default=3, ge=1, le=20)
    max_database_results: int = Field(default=5, ge=1, le=20)
    max_internet_results: int = Field(default=2, ge=1, le=3)
    semantic_search_weight: float = Field(default=0.7, ge=0, le=1)
    keyword_search_weight: float = Field(default=0.3, ge=0, le=1)
    embedding_model: str = Field(default="text-embedding-3-small", min_length=1, max_length=255)
    """The model that the agent was set up for; documents are searched by the model that embedded them."""
    agent_can_do: str = Field(default="", max_length=LONGEST)
    """The purpose of the agent in the shop's words; a language model is told."""
    agent_cannot_do: str = Field(default="", max_length=LONGEST)
    """The requests that the agent declines, a line or a sentence for each."""
    citation_style: Literal["inline", "footnote", "endnote"] = "inline"
    history_turns: int = Field(default=5, ge=0, le=20)
    """Earlier turns of the conversation that a reply takes into account."""
    handover_message: str = Field(default="", max_length=500)
    """Told to a customer whom a person has to answer; empty for a sentence of the agent's own."""

    @model_validator(mode="after")
    def _weighs_something(self) -> AgentConfiguration:
        if not self.semantic_search_weight + self.keyword_search_weight:
            raise ValueError("one of the two search weights must be above 0")
        return self

    @property
    def dense_weight(self) -> float:
        """The share of search by meaning in the ranking of passages."""
        return self.semantic_search_weight / (self.semantic_search_weight + self.keyword_search_weight)

    @property
    def style(self) -> CitationStyle:
        """The style in which sources are named in the text of a reply."""
        return self.citation_style if self.enable_source_attribution else "none"

    def change(self, values: Mapping[str, Json]) -> AgentConfiguration:
        """Return the configuration with other values, or raise `InputError` that names the field."""
        return read_configuration({**self.model_dump(), **values})


def read_configuration(values: Mapping[str, Any]) -> AgentConfiguration:
    """Return a configuration, or raise `InputError` that names the field that is wrong."""
    try:
        return AgentConfiguration.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"])) or "the configuration"
        known = ", ".join(AgentConfiguration.model_fields)
        hint = f"the fields are: {known}" if first["type"] == "extra_forbidden" else ""
        raise InputError(f"{name}: {first['msg'].removeprefix('Value error, ')}", hint=hint) from error


DEMO_CONFIGURATIONS: Mapping[str, AgentConfiguration] = {
    "full attribution": AgentConfiguration(enable_internet_enrichment=True),
    "no attribution": AgentConfiguration(enable_internet_enrichment=True, enable_source_attribution=False),
    "internet enrichment": AgentConfiguration(enable_internet_enrichment=True, citation_style="endnote"),
    "own data only": AgentConfiguration(citation_style="footnote"),
}
"""The configurations that `ragstone demo --shop` shows."""
