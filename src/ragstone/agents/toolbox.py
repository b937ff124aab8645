"""The tools that one agent holds: bound to a tenant and a kb, within a budget, and never raising."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ragstone.agents.arguments import Arguments
from ragstone.agents.budget import Budget, CallRefused, Invocation, Run
from ragstone.agents.results import add_degraded
from ragstone.agents.roles import ROLES
from ragstone.agents.tools import TOOLS, Outcome, Permission, Tool, ToolContext
from ragstone.blocking import BlockingWorkspace
from ragstone.core.errors import InputError, RagstoneError
from ragstone.core.ids import content_hash
from ragstone.core.types import Json, Mode
from ragstone.engine.workspace import Workspace
from ragstone.query.rollout import use_phase
from ragstone.schemas.errors import ErrorSchema

logger = logging.getLogger(__name__)
Callables = Mapping[str, Callable[..., Awaitable[str]]]
THOROUGHNESS: tuple[Mode, ...] = ("fast", "balanced", "thorough")
READ: frozenset[Permission] = frozenset({"read"})


class Toolbox:
    """Calls tools for one agent: `await box.call("search_knowledge", {"query": "…"})` gives JSON text.

    A box is for one invocation of an agent. `again()` makes one for the next invocation, of this agent or of
    another one in the same run, which then shares what was found so far.
    """

    def __init__(
        self,
        workspace: Workspace | BlockingWorkspace,
        tools: Sequence[str],
        *,
        kb: str | None = None,
        mode: Mode | None = None,
        permissions: Collection[Permission] = READ,
        budget: Budget | None = None,
        run: Run | None = None,
        invocation: Invocation | None = None,
    ) -> None:
        """`invocation` is one that goes on, such as after a restart, and has its own budget."""
        self._tools = {name: find_tool(name) for name in tools}
        self._loop = workspace.loop if isinstance(workspace, BlockingWorkspace) else None
        own = workspace.part if isinstance(workspace, BlockingWorkspace) else workspace
        self._context = ToolContext(own, kb, mode)
        self._session = own.session(kb=kb)
        self._permissions = frozenset(permissions)
        self._invocation = invocation or Invocation(budget or Budget())
        self._run = run or Run()

    @classmethod
    def for_role(cls, workspace: Workspace | BlockingWorkspace, role: str, **options: Any) -> Toolbox:
        """Return the toolbox of an agent of the article pipeline: `Toolbox.for_role(workspace, "Writer")`."""
        if role not in ROLES:
            raise InputError(f"there is no role '{role}'", hint=f"one of: {', '.join(ROLES)}")
        return cls(workspace, ROLES[role].tools, mode=ROLES[role].mode, **options)

    @property
    def tools(self) -> Sequence[Tool]:
        """Return the tools of this box."""
        return tuple(self._tools.values())

    @property
    def run(self) -> Run:
        """Return the results that this invocation shares with others."""
        return self._run

    @property
    def invocation(self) -> Invocation:
        """Return the calls of this invocation and what is left of its budget."""
        return self._invocation

    @property
    def calls(self) -> int:
        """Return the number of calls made in this invocation."""
        return self._invocation.calls

    def again(self, tools: Sequence[str] | None = None) -> Toolbox:
        """Return a box for the next invocation in the same run, with the same tools unless others are named."""
        box = object.__new__(Toolbox)
        box._tools = self._tools if tools is None else {name: find_tool(name) for name in tools}
        box._loop, box._context, box._permissions = self._loop, self._context, self._permissions
        box._session = self._session
        box._invocation = Invocation(self._invocation.budget)
        box._run = self._run
        return box

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> str:
        """Call a tool and return its answer as JSON text; an error is an object with an `error` field."""
        return json.dumps(await self.value(name, arguments), ensure_ascii=False)

    async def value(self, name: str, arguments: Mapping[str, Any] | None = None) -> Json:
        """Call a tool and return its answer as a JSON value."""
        work = self._call_safely(name, arguments or {})
        if self._loop is None or self._loop is asyncio.get_running_loop():
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def call_blocking(self, name: str, arguments: Mapping[str, Any] | None = None) -> str:
        """Call a tool from code without async; the box must stand on a `Ragstone`."""
        if self._loop is None:
            raise InputError("a Workspace has no loop of its own", hint="make the Toolbox of a Ragstone")
        work = self._call_safely(name, arguments or {})
        value = asyncio.run_coroutine_threadsafe(work, self._loop).result()
        return json.dumps(value, ensure_ascii=False)

    def callables(self) -> Callables:
        """Return each tool as an async function with its name, its description and a `schema`."""
        return {tool.name: _callable(self, tool) for tool in self.tools}

    async def _call_safely(self, name: str, arguments: Mapping[str, Any]) -> Json:
        try:
            return await self._call_tool(name, arguments)
        except RagstoneError as error:
            return ErrorSchema.of_error(error).as_json()
        except Exception:
            # A mistake of ours must not end the agent's work either. It is in the log, and the agent is told.
            logger.exception("tool '%s' failed", name)
            told = ErrorSchema.of_words("internal", f"{name} failed unexpectedly", "go on without it")
            return told.as_json()

    async def _call_tool(self, name: str, arguments: Mapping[str, Any]) -> Json:
        tool = self._permitted_tool(name)
        asked = _parse_arguments(tool, arguments)
        call = _call(tool, asked)
        query = _subject(asked)
        if not self._invocation.admit(call, query, retrieves=tool.retrieves):
            return await self._earlier(call, query)
        answered = False
        try:
            outcome = await self._outcome(tool, call, asked)
            answered = not outcome.degraded
        finally:
            if not answered:  # nobody knows yet what there is: it may be asked again
                self._invocation.forget(call)
        if answered:
            self._invocation.learn(query, outcome.confidence)
        return add_degraded(outcome.value, outcome.degraded)

    async def _earlier(self, call: str, query: str) -> Json:
        """Return the result of an equal earlier call; it is not made twice, even when that result is out of date."""
        if known := await self._find_known(call):
            return known[0]
        raise CallRefused(
            f"'{query[:80]}' was asked already, and its result is not known yet or no longer holds",
            hint="go on with what was found, or ask something else",
        )

    async def _outcome(self, tool: Tool, call: str, asked: Arguments) -> Outcome:
        """Return the result of a call, from the run where it is kept there; degraded results are not kept."""
        standing = await self._fingerprint()
        if known := await self._find_known(call):
            return Outcome(*known)
        with use_phase("tools"):
            outcome = await tool.run(self._context, asked)
        if not outcome.degraded:
            self._run.keep(standing, call, outcome.value, outcome.confidence)
        return outcome

    async def _find_known(self, call: str) -> tuple[Json, float | None] | None:
        """Return the result of an equal call of this run that was at least as thorough; None when there is none."""
        mode = self._context.mode
        for other in THOROUGHNESS[THOROUGHNESS.index(mode) :] if mode else (None,):
            if known := self._run.find(await self._fingerprint(other), call):
                return known
        return None

    async def _fingerprint(self, mode: Mode | None = None) -> str:
        """Return a hash of everything else an answer depends on; raises when the tenant may not search now."""
        return content_hash(repr((await self._session.snapshot(), mode or self._context.mode)))

    def _permitted_tool(self, name: str) -> Tool:
        tool = self._tools.get(name)
        if tool is None:
            raise CallRefused(f"no tool '{name:.60}' is bound to this agent", hint=f"it has: {', '.join(self._tools)}")
        if tool.permission not in self._permissions:
            raise CallRefused(f"{name} needs the permission '{tool.permission}'", hint="ask for it")
        return tool


def find_tool(name: str) -> Tool:
    """Return the tool of a name, or raise `InputError`."""
    if name not in TOOLS:
        raise InputError(f"there is no tool '{name}'", hint=f"one of: {', '.join(TOOLS)}")
    return TOOLS[name]


def _call(tool: Tool, asked: Arguments) -> str:
    """Return a key that equal calls share, ignoring white space and case."""
    given = asked.model_dump()
    given[next(iter(given))] = " ".join(_subject(asked).casefold().split())
    return json.dumps([tool.name, given], sort_keys=True)


def _subject(asked: Arguments) -> str:
    """Return the query, claim or topic: what every tool takes first."""
    return str(next(iter(asked.model_dump().values())))


def _parse_arguments(tool: Tool, arguments: Mapping[str, Any]) -> Arguments:
    try:
        return tool.arguments.model_validate(dict(arguments))
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}" for fault in error.errors()[:5]
        )
        raise InputError(f"{tool.name} cannot be called like this: {wrong}", hint="see the tool's schema") from error


def _callable(box: Toolbox, tool: Tool) -> Callable[..., Awaitable[str]]:
    async def call(*values: Any, **named: Any) -> str:
        names = tool.arguments.model_fields
        if len(values) > len(names):
            refused = InputError(f"{tool.name} takes at most {len(names)} arguments")
            return json.dumps(ErrorSchema.of_error(refused).as_json())
        return await box.call(tool.name, dict(zip(names, values, strict=False)) | named)

    call.__name__ = call.__qualname__ = tool.name
    call.__doc__ = tool.description
    call.schema = tool.schema  # type: ignore[attr-defined]  # what a framework reads
    return call


DocsTool = Callable[..., Awaitable[str]]


def create_search_docs_tool(
    workspace: Workspace | BlockingWorkspace, kb: str | None = None, **options: Any
) -> DocsTool:
    """`searchDocs(query, thoroughness?, limit?)` over one kb."""
    return _only("searchDocs", workspace, kb, **options)


def create_research_topic_tool(
    workspace: Workspace | BlockingWorkspace, kb: str | None = None, **options: Any
) -> DocsTool:
    """`researchTopic(topic, maxIterations?)` over one kb."""
    return _only("researchTopic", workspace, kb, **options)


def docs_toolbox(
    workspace: Workspace | BlockingWorkspace,
    kb: str | None = None,
    *,
    research: bool = False,
    run: Run | None = None,
    **options: Any,
) -> Toolbox:
    """Both tools under one budget; `researchTopic` only when it is asked for."""
    tools = ("searchDocs", "researchTopic") if research else ("searchDocs",)
    return Toolbox(workspace, tools, kb=kb, run=run, **options)


def _only(name: str, workspace: Workspace | BlockingWorkspace, kb: str | None, **options: Any) -> DocsTool:
    return Toolbox(workspace, [name], kb=kb, **options).callables()[name]


createSearchDocsTool = create_search_docs_tool  # noqa: N816  its name in the design of the agents
createResearchTopicTool = create_research_topic_tool  # noqa: N816  likewise
