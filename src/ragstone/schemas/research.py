"""Research: in full, and in the two shapes that agents know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, RootModel

from ragstone.core.answers import Finding, Research, Stopped
from ragstone.core.types import Json
from ragstone.schemas.schema import Schema


class FindingSchema(Schema):
    """A passage, where it stands and what found it."""

    chunk_id: str
    document_id: str
    title: str
    uri: str
    section: str
    page: int | None
    text: str
    source: str
    relevance: float
    about: bool
    queries: list[str]

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a finding from its passage."""
        own = {name: getattr(source, name) for name in ("source", "relevance", "about", "queries")}
        return super().of(source.hit, **own, **values)

    @classmethod
    def restore(cls, data: dict[str, Json]) -> Mapping[str, Json]:
        """Return the fields of a finding, with those of its passage in one place."""
        return {**data, "hit": {**data, "metadata": {"source": data.get("source", "")}}}


class RoundSchema(Schema):
    """One wave of sub-queries."""

    queries: list[str]
    found: int
    new: int


class SourcedFindingSchema(Schema):
    """A passage under its source; `date` and `url` are what its document says."""

    text: str
    date: Json
    url: Json
    relevance: float

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a finding from its passage."""
        said = source.hit.metadata
        return super().of(source.hit, date=said.get("date"), url=said.get("url"), relevance=source.relevance, **values)


class ResearchSchema(Schema):
    """Everything that was found and how; `sources` groups the findings by where they are from."""

    topic: str
    sources: dict[str, list[SourcedFindingSchema]]
    findings: list[FindingSchema]
    searches: int
    queries: list[str]
    rounds: list[RoundSchema]
    uncovered: list[str]
    stopped: Stopped
    degraded: list[str]
    took_ms: float

    @classmethod
    def of(cls, source: Any = None, /, **values: Any) -> Self:
        """Build the shape of a whole research."""
        return super().of(source, sources=source.by_source, searches=len(source.queries), **values)


class SourcedResearchSchema(Schema, RootModel[dict[str, list[SourcedFindingSchema]]]):
    """The answer of the tool `research_topic`: findings grouped by source."""

    @classmethod
    def of_research(cls, research: Research) -> Self:
        """Build the shape of a research."""
        return cls.of(root=research.by_source)


class DocsFindingSchema(Schema):
    """A passage of the documentation."""

    content: str
    source: str
    section: str

    @classmethod
    def of_finding(cls, finding: Finding) -> Self:
        """Build the shape of a finding."""
        return cls.of(content=finding.hit.text, source=finding.hit.uri, section=finding.hit.section)


class DocsResearchSchema(Schema):
    """The answer of the tool `researchTopic`: it has no field for relevance, so only what is surely about the topic."""

    topic: str
    searches: int = Field(alias="searchesPerformed")
    findings: list[DocsFindingSchema]

    @classmethod
    def of_research(cls, research: Research) -> Self:
        """Build the shape of a research."""
        about = [DocsFindingSchema.of_finding(finding) for finding in research.findings if finding.about]
        return cls.of(topic=research.topic, searches=len(research.queries), findings=about)
