"""Models, embeddings and chat completions as clients of the OpenAI API know them, with our citations as well."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ragstone.core.answers import AnswerStatus, Outcome
from ragstone.schemas.answers import CitationSchema, ContradictionSchema, SentenceSchema
from ragstone.schemas.schema import Schema


class ChatModelSchema(Schema):
    """Something to talk to, or the embedding model."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str


class ChatModelListSchema(Schema):
    """The models that a caller can talk to, and the embedding model."""

    object: Literal["list"] = "list"
    data: list[ChatModelSchema]


class EmbeddingSchema(Schema):
    """The vector of one text: numbers, or these as base64 of little-endian floats of four bytes."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class EmbeddingUsageSchema(Schema):
    """The tokens that were read."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingListSchema(Schema):
    """Vectors in the order of the texts."""

    object: Literal["list"] = "list"
    data: list[EmbeddingSchema]
    model: str
    usage: EmbeddingUsageSchema


class UrlCitationSchema(Schema):
    """A place in the text of a reply, and the page that it refers to."""

    start_index: int
    end_index: int
    url: str
    title: str


class AnnotationSchema(Schema):
    """A citation of a web page."""

    type: Literal["url_citation"] = "url_citation"
    url_citation: UrlCitationSchema


class ChatMessageSchema(Schema):
    """A reply."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None
    annotations: list[AnnotationSchema]


class ChatChoiceSchema(Schema):
    """The one reply."""

    index: int
    message: ChatMessageSchema
    logprobs: None = None
    finish_reason: Literal["stop"] = "stop"


class ChatUsageSchema(Schema):
    """Words and marks of the messages and of the reply."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletionSchema(Schema):
    """A reply, whole. `citations` are the passages behind its marks."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoiceSchema]
    usage: ChatUsageSchema
    status: AnswerStatus
    citations: list[CitationSchema]
    contradictions: list[ContradictionSchema]
    unanswered: list[str]
    degraded: list[str]
    outcome: Outcome
    nearest: list[SentenceSchema]
    missing: list[str]
    waiting: int


class ChatDeltaSchema(Schema):
    """The next bit of a reply."""

    role: Literal["assistant"] | None = Field(default=None, exclude_if=lambda role: role is None)
    content: str | None = Field(default=None, exclude_if=lambda content: content is None)
    annotations: list[AnnotationSchema] | None = Field(default=None, exclude_if=lambda found: found is None)


class ChunkChoiceSchema(Schema):
    """The next bit of the one reply."""

    index: int
    delta: ChatDeltaSchema
    logprobs: None = None
    finish_reason: Literal["stop"] | None = None


class ChatChunkSchema(Schema):
    """A part of a reply that is streamed. The one that ends it has the citations, as a whole reply has them."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChunkChoiceSchema]
    usage: ChatUsageSchema | None = Field(default=None, exclude_if=lambda usage: usage is None)
    status: AnswerStatus | None = Field(default=None, exclude_if=lambda status: status is None)
    citations: list[CitationSchema] | None = Field(default=None, exclude_if=lambda found: found is None)
    contradictions: list[ContradictionSchema] | None = Field(default=None, exclude_if=lambda found: found is None)
    unanswered: list[str] | None = Field(default=None, exclude_if=lambda found: found is None)
    degraded: list[str] | None = Field(default=None, exclude_if=lambda found: found is None)
    outcome: Outcome | None = Field(default=None, exclude_if=lambda outcome: outcome is None)
    nearest: list[SentenceSchema] | None = Field(default=None, exclude_if=lambda found: found is None)
    missing: list[str] | None = Field(default=None, exclude_if=lambda found: found is None)
    waiting: int | None = Field(default=None, exclude_if=lambda count: count is None)


class ApiErrorDetailSchema(Schema):
    """An error; `code` and `hint` are as in the problems of other routes, `param` is the field that is wrong."""

    message: str
    type: str
    param: str | None
    code: str
    hint: str
    request_id: str


class ApiErrorSchema(Schema):
    """An error as clients of the OpenAI API read it."""

    error: ApiErrorDetailSchema
