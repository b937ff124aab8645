"""Ragstone for LangChain and LangGraph: tools, a retriever, a tool node and a chat model.

Needs the `agents` extra: pip install "ragstone[agents]". Everything here also works without it, as plain
callables: see `ragstone.agents.toolbox`.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, convert_to_openai_messages
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import Runnable
    from langchain_core.tools import BaseTool, StructuredTool
    from langchain_core.utils.function_calling import convert_to_openai_tool
except ImportError as error:
    raise ImportError('LangChain is not installed: pip install "ragstone[agents]"') from error

from pydantic import ConfigDict, Field

from ragstone.agents.chat import OpenAIChat, Reply
from ragstone.agents.results import pack_value
from ragstone.agents.toolbox import Toolbox
from ragstone.agents.tools import Tool
from ragstone.blocking import Ragstone
from ragstone.core.background import LoopThread
from ragstone.core.errors import InputError, RagstoneError, SearchFailed
from ragstone.core.search import SearchQuery, SearchResult
from ragstone.core.types import Hit
from ragstone.schemas.errors import ErrorSchema
from ragstone.settings.tree import LLMSettings

if TYPE_CHECKING:
    from langgraph.prebuilt import ToolNode

logger = logging.getLogger(__name__)


def langchain_tools(box: Toolbox) -> list[BaseTool]:
    """Return the tools of a box. Without async they need a box that stands on a `Ragstone`."""
    return [_build_tool(box, tool) for tool in box.tools]


def tool_node(box: Toolbox) -> ToolNode:
    """Return a LangGraph node that runs the tools of a box; passages come in a `ToolMessage`, by packaged names."""
    from langgraph.prebuilt import ToolNode

    def execute(request: Any, run: Callable[[Any], Any]) -> Any:
        if request.tool is None:
            return _refusal(request.tool_call, box.call_blocking(*_read_call(request)))
        return _package(run(request))

    async def aexecute(request: Any, run: Callable[[Any], Awaitable[Any]]) -> Any:
        if request.tool is None:
            return _refusal(request.tool_call, await box.call(*_read_call(request)))
        return _package(await run(request))

    return ToolNode(
        langchain_tools(box), wrap_tool_call=execute, awrap_tool_call=aexecute, handle_tool_errors=_describe_error
    )


def _read_call(request: Any) -> tuple[str, dict[str, Any]]:
    return request.tool_call["name"], request.tool_call["args"]


def _refusal(call: Any, content: str) -> ToolMessage:
    """Return the toolbox's own answer to a call of a tool that it does not hold: the node would answer in words."""
    return ToolMessage(content, name=call["name"], tool_call_id=call["id"], status="error")


def _package(message: Any) -> Any:
    if not isinstance(message, ToolMessage) or not isinstance(message.content, str):
        return message
    value = json.loads(message.content)
    status = "error" if isinstance(value, dict) and "error" in value else message.status
    content = json.dumps(pack_value(value), ensure_ascii=False)
    return message.model_copy(update={"content": content, "status": status})


def _describe_error(error: Exception) -> str:
    """Return what the agent reads when a tool could not be run."""
    if isinstance(error, RagstoneError):
        return json.dumps(ErrorSchema.of_error(error).as_json(), ensure_ascii=False)
    logger.error("a tool failed", exc_info=error)
    told = ErrorSchema.of_words("internal", "the tool failed unexpectedly", "go on without it")
    return json.dumps(told.as_json())


def _build_tool(box: Toolbox, tool: Tool) -> StructuredTool:
    def call(**arguments: Any) -> str:
        return box.call_blocking(tool.name, arguments)

    async def acall(**arguments: Any) -> str:
        return await box.call(tool.name, arguments)

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.arguments,
        func=call,
        coroutine=acall,
        # Arguments that do not fit come back as data, too.
        handle_validation_error=lambda fault: _describe_error(_misfit(tool, fault)),
    )


def _misfit(tool: Tool, fault: Any) -> InputError:
    """Return the toolbox's words for a call that LangChain has refused, which the toolbox never sees."""
    wrong = "; ".join(
        f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg']}" for problem in fault.errors()[:5]
    )
    return InputError(f"{tool.name} cannot be called like this: {wrong}", hint="see the tool's schema")


class RagstoneRetriever(BaseRetriever):
    """Finds passages as LangChain documents; options of `Ragstone.search` go into `options`."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    stone: Ragstone
    k: int = 5
    options: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **given: Any
    ) -> list[Document]:
        return _documents(self.stone.search(query, **{"k": self.k, **self.options, **given}))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **given: Any
    ) -> list[Document]:
        work = self.stone.part.search(SearchQuery(query, **{"k": self.k, **self.options, **given}))
        return _documents(await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.stone.loop)))


def _documents(found: SearchResult) -> list[Document]:
    """Return the passages as documents; an empty list only when everything was searched and had nothing."""
    if found.degraded and not found.hits:
        raise SearchFailed(f"the search could not be completed: {'; '.join(found.degraded)}")
    return [_document(hit, found.degraded) for hit in found.hits]


def _document(hit: Hit, degraded: Sequence[str]) -> Document:
    where = {
        "chunk_id": hit.chunk_id,
        "document_id": hit.document_id,
        "title": hit.title,
        "uri": hit.uri,
        "section": hit.section,
        "page": hit.page,
        "score": hit.score,
        **({"degraded": list(degraded)} if degraded else {}),
    }
    return Document(page_content=hit.text, id=hit.chunk_id, metadata={**hit.metadata, **where})


class RagstoneChat(BaseChatModel):
    """The configured LLM as a LangChain chat model that can call tools. It does not stream."""

    settings: LLMSettings

    @property
    def _llm_type(self) -> str:
        return "ragstone"

    def bind_tools(self, tools: Sequence[Any], *, tool_choice: Any = None, **options: Any) -> Runnable[Any, AIMessage]:
        """Return the model with these tools at hand; `tool_choice` is `auto`, `none`, `any` or the name of one."""
        offered = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=offered, tool_choice=tool_choice, **options)

    def _generate(self, messages: list[BaseMessage], stop: Any = None, *_: Any, **options: Any) -> ChatResult:
        thread = LoopThread("chat model")
        try:
            return thread.run(self._agenerate(messages, stop, **options))
        finally:
            thread.stop()

    async def _agenerate(self, messages: list[BaseMessage], stop: Any = None, *_: Any, **options: Any) -> ChatResult:
        turns = convert_to_openai_messages(messages)
        chat = OpenAIChat(self.settings)  # a client belongs to the loop it was made in
        try:
            tools = options.pop("tools", ())
            choice = _read_choice(options.pop("tool_choice", None), tools)
            ends = [stop] if isinstance(stop, str) else stop or ()
            reply = await chat.reply(turns, tools, stop=ends, tool_choice=choice, options=options)
        finally:
            await chat.close()
        return ChatResult(generations=[ChatGeneration(message=_ai_message(reply))])


def _read_choice(choice: Any, tools: Sequence[Any]) -> Any:
    """Return a choice of LangChain as OpenAI-compatible services take it."""
    names = [tool["function"]["name"] for tool in tools if "function" in tool]
    if not choice:
        return None
    if choice in names:
        return {"type": "function", "function": {"name": choice}}
    if choice in ("any", True):
        return "required"
    if choice in ("auto", "none", "required") or isinstance(choice, dict):
        return choice
    raise InputError(
        f"there is no tool {choice!r:.80} to choose", hint=f"choose one of: auto, none, any, {', '.join(names)}"
    )


def _ai_message(reply: Reply) -> AIMessage:
    calls = [
        {"name": call.name, "args": dict(call.arguments or {}), "id": call.id, "type": "tool_call"}
        for call in reply.tool_calls
    ]
    return AIMessage(content=reply.text, tool_calls=calls)
