"""Arguments of each tool. Models read the descriptions: they are part of the interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ragstone.core.answers import Depth
from ragstone.core.types import Json, Mode

SourceType = Literal["all", "emails", "papers", "rss", "web", "files", "docs", "uploads", "corpus", "database"]
DOCUMENTATION = (
    "text/markdown", "text/html", "text/plain", "text/x-rst", "text/asciidoc", "text/troff", "text/org",
)  # fmt: skip
"""Media types of files of documentation."""
FILTERS: Mapping[SourceType, Mapping[str, Json] | None] = {
    "all": None,
    "emails": {"source_type": "email"},
    "papers": {"source_type": "paper"},
    "rss": {"source_type": {"in": ["rss", "hacker_news"]}},
    "web": {"source_type": "web"},
    "files": {"source_type": "files"},
    "docs": {
        "or": [
            {"source_type": {"in": ["git", "docs"]}},
            {"source_type": "files", "media_type": {"in": list(DOCUMENTATION)}},
        ]
    },
    "uploads": {"source_type": "upload"},
    "corpus": {"source_type": "corpus"},
    "database": {"source_type": "database"},
}
"""The documents of each source type, as a filter."""

Query = Annotated[str, Field(min_length=1, description="What to look for, in natural language.")]
SOURCE_TYPES = (
    "Search only one kind of source, or all: docs are Git repositories and files of documentation, "
    "rss are feeds and Hacker News."
)
Topic = Annotated[str, Field(min_length=1, description="The topic to research.")]
TopK = Annotated[int, Field(ge=1, le=20, description="How many passages to return.")]


class Arguments(BaseModel):
    """Arguments of a tool: names that it does not know are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SearchKnowledge(Arguments):
    query: Query
    source_type: Annotated[SourceType, Field(description=SOURCE_TYPES)] = "all"
    top_k: TopK = 5


class VerifyClaim(Arguments):
    claim: Annotated[str, Field(min_length=1, description="One factual claim, as a sentence.")]


class CheckText(Arguments):
    text: Annotated[
        str,
        Field(
            min_length=1, max_length=100_000, description="The text; each sentence that states something is checked."
        ),
    ]


class ResearchTopic(Arguments):
    topic: Topic
    depth: Annotated[Depth, Field(description="quick keeps 5 passages, medium 15, deep 30.")] = "medium"


class SearchDocs(Arguments):
    query: Query
    thoroughness: Annotated[
        Mode | None, Field(description="fast under 0.2 s, balanced under 0.5 s, thorough under 2 s.")
    ] = None
    limit: Annotated[int, Field(ge=1, le=20, description="How many results to return.")] = 5


class ResearchDocs(Arguments):
    topic: Topic
    maxIterations: Annotated[  # noqa: N815  # the name that agents know
        int, Field(ge=1, le=5, description="How many waves of sub-queries to make at most.")
    ] = 3


class FindExamples(Arguments):
    topic: Annotated[str, Field(min_length=1, description="What the examples should be about or like.")]
    top_k: TopK = 3


def schema_of(arguments: type[Arguments]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, without what only pydantic needs."""
    schema: dict[str, Any] = _drop_titles(arguments.model_json_schema())
    # What the class says about itself is for readers of the code; the tool has a description of its own.
    return {key: value for key, value in schema.items() if key != "description"}


def _drop_titles(schema: Any) -> Any:
    if isinstance(schema, dict):
        # A property may itself be called "title"; then its value is a schema, not a text.
        return {
            key: _drop_titles(value)
            for key, value in schema.items()
            if not (key == "title" and isinstance(value, str)) and key != "description"
        } | ({"description": schema["description"]} if isinstance(schema.get("description"), str) else {})
    if isinstance(schema, list):
        return [_drop_titles(part) for part in schema]
    return schema
