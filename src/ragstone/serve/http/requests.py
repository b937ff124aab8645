"""The bodies of requests. A field that a route does not know is refused, so that a typing error is not ignored."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal

from fastapi import Depends, Query
from fastapi.params import File
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.requests import Request

from ragstone.core.agents.articles import GraphName
from ragstone.core.answers import Depth
from ragstone.core.errors import InputError
from ragstone.core.keys import MOST_PER_MINUTE
from ragstone.core.search import Arm, Exchange, Question, SearchQuery
from ragstone.core.types import Mode
from ragstone.settings.retrieval import Fusion
from ragstone.settings.tree import Settings

MOST_CHARS = 1_000_000
"""Longer texts are refused before anything looks at them; queries have a limit of their own in the settings."""
MOST_FIELDS = 100
"""Each further field that is not known would become an error with a place and a message of its own."""

Limit = Annotated[int, Query(ge=1, le=1000)]
"""The most entries of a list to return."""


def exact_form(*, several: str = "") -> Any:
    """Return what refuses a form with a field that the route does not read, or one that is given more than once.

    `several` is the field that may be: of any other, only the last would be read.
    """

    async def refuse_unread(request: Request) -> None:
        form = await request.form()
        given = Counter(name for name, _ in form.multi_items())
        fields = {field.alias: field.field_info for field in request.scope["route"].dependant.body_params}
        read = list(fields)
        unknown = next((name for name in given if name not in read), None)
        if unknown is not None:
            raise InputError(f"the form has no field {unknown!r:.80}", hint=f"its fields are: {', '.join(read)}")
        repeated = next((name for name, times in given.items() if times > 1 and name != several), None)
        if repeated is not None:
            raise InputError(f"the form gives {repeated!r:.80} more than once", hint="send a request for each")
        unnamed = next((name for name in given if isinstance(fields[name], File) and isinstance(form[name], str)), None)
        if unnamed is not None:
            raise InputError(f"{unnamed!r} has no file name, so it is not a file", hint=f"curl -F {unnamed}=@PATH")

    return Depends(refuse_unread)


class RequestBody(BaseModel):
    """The base of all bodies."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _limit_fields(cls, value: Any) -> Any:
        if isinstance(value, dict) and len(value) > MOST_FIELDS:
            raise ValueError(f"there are {len(value)} fields; at most {MOST_FIELDS} are read")
        return value


class KbBody(RequestBody):
    """A request about one knowledge base."""

    kb: str | None = Field(default=None, description="The knowledge base; by default that of the settings.")


class QuestionBody(KbBody):
    """A question or another text that passages are searched for."""

    k: int | None = Field(default=None, description="The number of passages.")
    mode: Mode | None = None
    where: dict[str, Any] | None = Field(default=None, description="A filter on metadata.")
    web: bool | None = Field(default=None, description="Search the web too, where that is set up.")
    conversation: str | None = Field(default=None, description="The name of a conversation to go on with.")


class SearchBody(QuestionBody):
    """A search."""

    query: str = Field(max_length=MOST_CHARS)
    arms: Arm | None = None
    fusion: Fusion | None = None
    min_score: float | None = None
    min_relevance: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Drop passages whose relevance is less; it means the same for every query.",
    )
    strategy: str | None = Field(
        default=None, description="The one transform to use: rewrite, expand, hyde …, or none."
    )

    def as_query(self) -> SearchQuery:
        """Return the search as the engine takes it."""
        values = self.model_dump()
        return SearchQuery(values.pop("query"), **values)


class ExchangeBody(RequestBody):
    """A question that was asked before, and its answer."""

    question: str = Field(max_length=MOST_CHARS)
    answer: str = Field(default="", max_length=MOST_CHARS)


class AskBody(QuestionBody):
    """A question."""

    question: str = Field(max_length=MOST_CHARS)
    earlier: list[ExchangeBody] = Field(
        default_factory=list,
        max_length=1000,
        description="What was said before, oldest first, where the caller keeps it and no conversation is named.",
    )

    def as_question(self) -> Question:
        """Return the question as the engine takes it."""
        values = self.model_dump(exclude={"question", "earlier"})
        earlier = [Exchange(one.question, one.answer) for one in self.earlier]
        return Question(self.question, earlier=earlier, **values)


class MessageBody(KbBody):
    """A customer's message."""

    message: str = Field(max_length=MOST_CHARS)
    conversation: str | None = Field(default=None, description="The conversation to go on with; a new one by default.")


class AgentBody(RequestBody):
    """Fields of the agent's configuration that are to change."""

    enable_document_retrieval: bool | None = None
    enable_database_retrieval: bool | None = None
    enable_internet_enrichment: bool | None = None
    enable_source_attribution: bool | None = None
    max_document_results: int | None = None
    max_database_results: int | None = None
    max_internet_results: int | None = None
    semantic_search_weight: float | None = None
    keyword_search_weight: float | None = None
    embedding_model: str | None = None
    agent_can_do: str | None = None
    agent_cannot_do: str | None = None
    citation_style: Literal["inline", "footnote", "endnote"] | None = None
    history_turns: int | None = None
    handover_message: str | None = None


class ExplainBody(SearchBody):
    """A search, and the document whose place in it is explained."""

    document_id: str


class VerifyBody(KbBody):
    """A claim to check."""

    claim: str = Field(max_length=MOST_CHARS)
    k: int = 10
    mode: Mode | None = None
    where: dict[str, Any] | None = None


class VerifyTextBody(KbBody):
    """A text whose sentences are to be checked."""

    text: str = Field(max_length=MOST_CHARS)
    k: int = 10
    mode: Mode | None = None
    where: dict[str, Any] | None = None
    most: int = Field(
        default=100, description="Maximum number of sentences to check; further ones are counted as unchecked."
    )


class ResearchBody(KbBody):
    """A topic to look into."""

    topic: str = Field(max_length=MOST_CHARS)
    depth: Depth = "medium"
    iterations: int = 1
    where: dict[str, Any] | None = None


class UrlsBody(KbBody):
    """Web pages to ingest."""

    urls: list[str] = Field(min_length=1, max_length=100)


class SourceBody(KbBody):
    """A source to set up."""

    kind: str
    name: str
    config: dict[str, Any] = Field(default_factory=dict, max_length=MOST_FIELDS)
    schedule: str | None = None


class RenameBody(RequestBody):
    """Another name."""

    name: str


class VoteBody(KbBody):
    """A vote on passages that a search has found."""

    query: str = Field(max_length=MOST_CHARS)
    chunk_ids: list[str] = Field(min_length=1, max_length=100)
    vote: Literal["up", "down", "used"] = "used"
    voter: str = Field(default="", description="The caller's name for the user who votes; by default the key votes.")


class KeyBody(RequestBody):
    """A key to be made."""

    scopes: list[Literal["read", "write", "admin"]] = Field(min_length=1, max_length=3)
    name: str = ""
    kbs: list[str] = Field(default_factory=list, max_length=1000)
    days: int | None = Field(default=None, ge=1, le=36_500)
    per_minute: int | None = Field(default=None, ge=1, le=MOST_PER_MINUTE, description="Requests a minute.")


class TenantBody(RequestBody):
    """A tenant to be made."""

    name: str


class ReceiptBody(RequestBody):
    """A receipt of an earlier answer."""

    receipt: dict[str, Any] = Field(max_length=MOST_FIELDS)


class GoldenBody(KbBody):
    """A question and the documents that answer it."""

    query: str = Field(max_length=MOST_CHARS)
    document_ids: list[str] = Field(min_length=1, max_length=100)


class MakeGoldenBody(KbBody):
    """Golden queries to be made from documents."""

    count: int = Field(default=50, ge=1, le=1000)


class ReembedBody(RequestBody):
    """Embeddings to be made again."""

    model: str | None = Field(default=None, max_length=200, description="Another model; the same one by default.")


class NoticesBody(RequestBody):
    """Notices that were read."""

    ids: list[int] = Field(min_length=1, max_length=1000)


class IngestBody(RequestBody):
    """A collection to be built; what is left out is as the settings say."""

    corpus_path: str | None = Field(default=None, max_length=4096, description="A file in the folder of corpora.")
    collection_name: str | None = None
    chunk_size: int | None = None
    chunk_overlap: int | None = None
    embedding_model: str | None = Field(default=None, max_length=200)
    overwrite: bool = False


class CollectionSearchBody(RequestBody):
    """A search in a collection; what is left out is as the settings say."""

    query: str = Field(max_length=MOST_CHARS)
    top_k: int | None = None
    use_hybrid: bool = Field(default=True, description="False searches by vector alone.")
    fusion_strategy: Literal["rrf", "weighted"] | None = None
    rewrite_query: bool = Field(default=True, description="False searches for the query as it is.")
    filters: dict[str, Any] | None = Field(default=None, description="`min_score`, and fields of the metadata.")
    collection_name: str | None = None

    def as_query(self, collection: str) -> SearchQuery:
        """Return the search as the engine takes it."""
        where = dict(self.filters or {})
        min_score = where.pop("min_score", None)
        return SearchQuery(
            self.query,
            k=self.top_k,
            where=where or None,
            arms="hybrid" if self.use_hybrid else "dense",
            fusion=self.fusion_strategy,
            min_score=None if min_score is None else _read_score(min_score),
            strategy=None if self.rewrite_query else "none",
            web=False,
            kb=collection,
        )


def _read_score(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InputError(f"filters.min_score is {value!r:.40}; it must be a number from 0 to 1")
    return float(value)


class ExportBody(RequestBody):
    """An archive to be written."""

    kbs: list[str] | None = Field(default=None, min_length=1, max_length=1000, description="All by default.")
    files: bool = Field(default=True, description="With the files that documents were made from.")


class LabelledBody(KbBody):
    """Something to be measured on labelled queries."""

    labels: Literal["golden", "feedback"] = Field(default="golden", description="Golden queries, or votes.")
    limit: int | None = Field(default=None, ge=1, le=10_000, description="Only the first queries.")


class EvaluationBody(LabelledBody):
    """Ways to search that are to be measured."""

    systems: list[str] = Field(default_factory=list, max_length=7, description="All by default.")


class TuningBody(LabelledBody):
    """A search for better settings."""

    budget_ms: float | None = Field(default=None, ge=1, le=600_000, description="The longest p95 that is allowed.")


class ArticleBody(KbBody):
    """An article to be written."""

    topic: str = Field(max_length=MOST_CHARS)
    graph: GraphName = Field(default="full", description="`writer` only researches, writes and edits.")


def refuse_unknown_model(field: str, name: str | None, settings: Settings) -> None:
    """Refuse a model that the service was not set up with: others would be loaded, or paid for with its keys."""
    from ragstone.models.weights.catalogue import MODELS, canonical_name

    if name is None:
        return
    configured = [model for model in (settings.embedding.model, settings.embedding.fallback) if model]
    allowed = {canonical_name(model) for model in configured}
    allowed |= {model for model, facts in MODELS.items() if facts.local}
    if canonical_name(name) not in allowed:
        raise InputError(f"{field} is {name!r:.80}; it must be one of: {', '.join(sorted(allowed))}")
