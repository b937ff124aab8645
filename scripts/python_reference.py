"""Writes docs/reference/python.md, the public API in one page, from the code."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from ragstone import blocking
from ragstone.client.activity import RemoteAudit, RemoteConversations, RemoteFeedback, RemoteReceipts
from ragstone.client.blocking import Client
from ragstone.client.client import AsyncClient
from ragstone.client.connection import Timeouts
from ragstone.client.documents import RemoteDocuments
from ragstone.client.management import RemoteEmbeddings, RemoteJobs, RemoteKnowledgeBases, RemoteSources
from ragstone.client.shop import RemoteShop
from ragstone.client.tasks import RemoteTasks
from ragstone.core.background import Blocking
from ragstone.core.search import Question, SearchQuery
from ragstone.engine.archive import Archive
from ragstone.engine.audit import Audit
from ragstone.engine.collections import Collections
from ragstone.engine.conversations import Conversations
from ragstone.engine.documents import Documents
from ragstone.engine.embeddings.embeddings import KbEmbeddings
from ragstone.engine.engine import Engine, open_engine
from ragstone.engine.feedback import Feedback
from ragstone.engine.jobs import Jobs
from ragstone.engine.knowledge_bases import KnowledgeBases
from ragstone.engine.receipts import Receipts
from ragstone.engine.shop.shop import TenantShop
from ragstone.engine.sources import Sources
from ragstone.engine.workspace import Workspace
from ragstone.query.session import SearchSession
from ragstone.settings.load import load_settings
from ragstone.stores.control.tenants import SqlTenantBook

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "python.md"
OPENING = """\
# Python

Made from the code by `python -m scripts.python_reference`; a test keeps it up to date.

Everything here is async, but for `Ragstone` and `Client`. A workspace is the engine as one tenant sees it: tenant,
actor and request id are bound once, and no method takes a tenant. A `kb` that is not named is that of the settings.

```python
import asyncio

from ragstone import Question, SearchQuery, load_settings, open_engine
from ragstone.samples import corpus_path


async def main() -> None:
    async with open_engine(load_settings(overrides={"data_dir": "kb"})) as engine:
        acme = engine.workspace("acme", actor="key:7f3a")
        await acme.documents.ingest(corpus_path())
        found = await acme.search(SearchQuery("porpoises", k=5, where={"media_type": "application/pdf"}))
        print([hit.title for hit in found.hits])
        answer = await acme.ask(Question("When does MV Tarrant go to dry dock?", conversation="c1"))
        print(answer.answer)


asyncio.run(main())
```
"""
PARTS: dict[str, type] = {
    "documents": Documents,
    "knowledge_bases": KnowledgeBases,
    "shop": TenantShop,
    "sources": Sources,
    "jobs": Jobs,
    "feedback": Feedback,
    "conversations": Conversations,
    "embeddings": KbEmbeddings,
    "collections": Collections,
    "receipts": Receipts,
    "archive": Archive,
    "audit": Audit,
}
REMOTE_PARTS: dict[str, type] = {
    "documents": RemoteDocuments,
    "knowledge_bases": RemoteKnowledgeBases,
    "shop": RemoteShop,
    "sources": RemoteSources,
    "jobs": RemoteJobs,
    "feedback": RemoteFeedback,
    "conversations": RemoteConversations,
    "embeddings": RemoteEmbeddings,
    "receipts": RemoteReceipts,
    "tasks": RemoteTasks,
    "audit": RemoteAudit,
}


def page() -> str:
    """Return the whole page."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield OPENING
    yield "## Open\n"
    yield from _functions({"load_settings": load_settings, "open_engine": open_engine})
    yield from _section("## Engine", Engine)
    yield "### engine.tenants\n\nA name that no tenant has is `NotFoundError`, unless it is said otherwise.\n"
    shown = vars(blocking.BlockingTenants)
    yield from _functions(
        {name: value for name, value in vars(SqlTenantBook).items() if name in shown and name[0] != "_"}
    )
    yield "## Values\n"
    for value in (SearchQuery, Question):
        shape = ", ".join(f"{field.name}: {_type(field.type)}" for field in fields(value))
        yield f"- `{value.__name__}({shape})`: {_first_line(value)}"
    yield ""
    yield from _section("## Workspace", Workspace)
    for name, kind in PARTS.items():
        yield from _section(f"### workspace.{name}", kind)
    yield from _section("### workspace.session()", SearchSession)
    yield from _ragstone()
    yield from _client()


def _section(heading: str, kind: type) -> Iterator[str]:
    yield f"{heading}\n\n{_doc(kind)}\n"
    own = {name: value for name, value in vars(kind).items() if not name.startswith("_")}
    for name, value in own.items():
        if isinstance(value, property):
            yield f"- `{name}`: {_first_line(value.fget)}"
    yield from _functions({name: value for name, value in own.items() if inspect.isfunction(value)})


def _functions(functions: dict[str, Any]) -> Iterator[str]:
    for name, function in functions.items():
        yield _item(name, function)
    yield ""


def _item(name: str, function: Any) -> str:
    said = _first_line(function)
    return f"- `{name}{_signature(function)}`" + (f": {said}" if said else "")


def _ragstone() -> Iterator[str]:
    yield f"## Ragstone\n\n{_doc(blocking.Ragstone)}\n"
    yield "The keywords of `search`, `ask` and `stream` are the fields of `SearchQuery` and `Question`.\n"
    for kind in (blocking.Ragstone, blocking.BlockingWorkspace):
        for name, value in vars(kind).items():
            if name.startswith("_"):
                continue
            if isinstance(value, Blocking):
                yield _item(name, value.method)
            elif inspect.isfunction(value):
                yield _item(name, value)
            elif isinstance(value, property):
                yield f"- `{name}`: {_first_line(value.fget)} {_names(value)}"
    yield ""


def _client() -> Iterator[str]:
    yield from _section("## AsyncClient", AsyncClient)
    for name, kind in REMOTE_PARTS.items():
        yield from _section(f"### client.{name}", kind)
    yield f"## Client\n\n{_doc(Client)}\n"
    yield "It has the methods of `AsyncClient`. Both take these keywords:\n"
    shape = ", ".join(f"{field.name}: {_type(field.type)} = {field.default}" for field in fields(Timeouts))
    yield f"- `timeouts: Timeouts`: `Timeouts({shape})`. {_first_line(Timeouts)}"
    yield "- `retries: int = 2`: The number of times that a request is repeated.\n"


def _names(part: property) -> str:
    kind: type = getattr(blocking, part.fget.__annotations__["return"])
    names = [name for name in vars(kind) if not name.startswith("_")]
    return f"Methods: {', '.join(f'`{name}`' for name in names)}."


def _signature(function: Any) -> str:
    signature = inspect.signature(function)
    shown = [one for one in signature.parameters.values() if one.name != "self"]
    returned = f" -> {_type(signature.return_annotation)}"
    return f"({', '.join(_parameters(shown))}){returned}"


def _parameters(parameters: list[inspect.Parameter]) -> Iterator[str]:
    starred = False
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        starred = starred or one.kind is one.VAR_POSITIONAL
        stars = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
        default = "" if one.default is one.empty else f" = {_value(one.default)}"
        yield f"{stars}{one.name}: {_type(one.annotation)}{default}"


def _value(default: object) -> str:
    if default is ...:
        return "…"
    return str(default) if type(default).__module__ != "builtins" else repr(default)


def _type(annotation: object) -> str:
    return str(annotation).strip("'\"")


def _doc(value: object) -> str:
    return inspect.cleandoc(value.__doc__ or "")


def _first_line(value: object) -> str:
    return _doc(value).split("\n")[0]


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
