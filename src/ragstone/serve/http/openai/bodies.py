"""The bodies of requests. Other than elsewhere, fields that nothing depends on are ignored: clients send many."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ragstone.core.search import Exchange
from ragstone.core.types import Role
from ragstone.serve.http.requests import MOST_CHARS

MOST_INPUTS = 2048
MOST_INPUT_CHARS = 500_000
"""Of all texts of one request together."""
MOST_MESSAGES = 2000
MOST_MESSAGE_CHARS = MOST_CHARS
"""Of all messages of one request together."""
Text = Annotated[str, Field(max_length=MOST_CHARS)]


class ClientBody(BaseModel):
    """The base of these bodies."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class EmbeddingBody(ClientBody):
    """Texts to embed."""

    model: str
    input: Text | Annotated[list[Text], Field(min_length=1, max_length=MOST_INPUTS)]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(default=None, ge=1, description="Only the dimension that the model has.")
    input_type: Role = Field(default="document", description="`query` for models that embed queries in another way.")

    @field_validator("input", mode="before")
    @classmethod
    def _refuse_tokens(cls, value: Any) -> Any:
        if isinstance(value, list) and any(isinstance(item, int | list) for item in value):
            raise ValueError("tokens are those of another model: send text")  # LangChain: check_embedding_ctx_length
        return value

    @field_validator("input")
    @classmethod
    def _limit(cls, value: str | list[str]) -> str | list[str]:
        texts = [value] if isinstance(value, str) else value
        if not all(text.strip() for text in texts):
            raise ValueError("an input is empty")
        if sum(map(len, texts)) > MOST_INPUT_CHARS:
            raise ValueError(f"all inputs together have at most {MOST_INPUT_CHARS} characters")
        return value

    @property
    def texts(self) -> list[str]:
        """The texts, also of a single one."""
        return [self.input] if isinstance(self.input, str) else self.input


class ChatMessage(ClientBody):
    """One message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Text | list[dict[str, Any]] | None = None

    @field_validator("content")
    @classmethod
    def _refuse_pictures(cls, value: str | list[dict[str, Any]] | None) -> str | list[dict[str, Any]] | None:
        for part in value if isinstance(value, list) else ():
            if part.get("type") not in ("text", "refusal") or not isinstance(part.get("text", ""), str):
                raise ValueError(f"only text is read here, not {str(part.get('type'))[:40]!r}")
        return value

    @property
    def text(self) -> str:
        """The text of the message, or of its parts."""
        if isinstance(self.content, list):
            return "\n".join(part.get("text", "") for part in self.content)
        return self.content or ""


class StreamOptions(ClientBody):
    """Options of a stream."""

    include_usage: bool | None = None


class ChatBody(ClientBody):
    """A conversation whose last message is to be answered."""

    model: str
    messages: list[ChatMessage] = Field(min_length=1, max_length=MOST_MESSAGES)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = None
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    response_format: dict[str, Any] | None = None
    logprobs: Literal[False] | None = None
    modalities: Annotated[list[str], Field(max_length=10)] | None = None

    @field_validator("messages")
    @classmethod
    def _ends_with_a_question(cls, value: list[ChatMessage]) -> list[ChatMessage]:
        if value[-1].role != "user" or not value[-1].text.strip():
            raise ValueError("the last message has to be one of the user, with a text")
        return value

    @field_validator("messages")
    @classmethod
    def _limit(cls, value: list[ChatMessage]) -> list[ChatMessage]:
        if sum(len(message.text) for message in value) > MOST_MESSAGE_CHARS:
            raise ValueError(f"all messages together have at most {MOST_MESSAGE_CHARS} characters")
        return value

    @field_validator("tools", "functions", "response_format", "modalities")
    @classmethod
    def _refuse_what_there_is_not(cls, value: Any) -> Any:
        if value not in (None, [], ["text"], {"type": "text"}):
            raise ValueError("this is not offered: a reply is one text, and no tools are called")
        return value

    @property
    def question(self) -> str:
        """The text that is to be answered."""
        return self.messages[-1].text

    @property
    def earlier(self) -> list[Exchange]:
        """The questions and answers before it. What has another role has no part in an answer from documents."""
        said: list[Exchange] = []
        for message in self.messages[:-1]:
            if message.role == "user":
                said.append(Exchange(message.text))
            elif message.role == "assistant" and said:
                said[-1] = Exchange(said[-1].question, message.text)
        return [one for one in said if one.question.strip()]
