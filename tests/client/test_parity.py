"""The client has the methods of a workspace that HTTP offers, with the same arguments and results."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, get_type_hints

import ragstone
from ragstone import AsyncClient, Client, Workspace
from ragstone.core.background import Blocking
from ragstone.engine import workspace as workspace_module

ROUTES = Path(ragstone.__file__).parent / "serve" / "http"
LOCAL = {
    "analytics.days": "dashboards read it over HTTP",
    "analytics.summary": "the same",
    "feedback.gaps": "the same",
    "collections.build": "only by the routes of the rpg design; corpus files lie beside the service",
    "collections.health": "only by the routes of the rpg design",
    "confidence": "takes a whole search result; the service gives it with an answer",
    "embed": "/v1/embeddings is for clients of the OpenAI API",
    "is_on": "flags are for the service to obey, not for its callers",
    "session": "keeps results in this process",
    "web": "only together with a search of documents",
    "documents.chunks": "chunk_records has the same under the names of the HTTP API",
    "documents.dry_run": "reads paths of the machine that it runs on",
    "documents.get": "status and list have the same",
    "documents.ingest": "reads paths of the machine that it runs on",
    "documents.ingest_items": "upload takes one document at a time",
    "documents.queue": "reads paths of the machine that it runs on",
    "knowledge_bases.get": "list has the same",
    "receipts.make": "the service makes a receipt together with its answer: receipts.ask",
    "verify_file": "reads paths of the machine that it runs on",
    "sources.overlaps": "advice for the command that adds a source",
    "sources.work_and_report": "runs a worker in this process",
}
"""Methods that no route offers under their own name, and why."""
ADDED = {"chat", "close", "jobs.follow", "receipts.ask", "stream_chat"}
WITHOUT = {
    "documents.upload": {"priority": "uploads over HTTP all have the same"},
    "documents.ingest_urls": {"on_progress": "a function cannot be called over HTTP"},
    "verify_text": {"on_progress": "the same"},
    "conversations.turns": {"limit": "the service sends all turns"},
    "audit.list": {"since": "not a parameter of the route"},
}
"""Parameters that the client does not have."""
OTHERWISE = {
    ("documents.upload", "content"): "also a path or an open file",
    ("documents.upload", "filename"): "a path has a name",
    ("tasks.import_archive", "content"): "also a path or an open file",
    ("embeddings.queue", "kb"): "the client does not know the kb of the service's settings",
    ("embeddings.spaces", "kb"): "the same",
    ("knowledge_bases.stats", "kb"): "the same",
}
"""Parameters that the client declares otherwise."""


def methods(kind: type, parts: dict[str, type]) -> Iterator[tuple[str, Any]]:
    """The public methods of a class and its parts, by dotted name."""
    for name, value in vars(kind).items():
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, Blocking)):
            yield name, value
    for part, inner in parts.items():
        for name, value in methods(inner, {}):
            yield f"{part}.{name}", value


def workspace_methods() -> dict[str, Any]:
    hints = vars(workspace_module) | _typed_only()
    parts = {
        name: hints[value.func.__annotations__["return"]]
        for name, value in vars(Workspace).items()
        if isinstance(value, cached_property) and not name.startswith("_")
    }
    return dict(methods(Workspace, parts))


def _typed_only() -> dict[str, Any]:
    """The classes that the module of the workspace imports for the type checker alone."""
    tree = ast.parse(Path(str(workspace_module.__file__)).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    found: dict[str, Any] = {}
    exec(compile(ast.Module(list(block.body), []), "imports", "exec"), found)
    return found


def client_methods(kind: type) -> dict[str, Any]:
    made = kind("http://127.0.0.1:9", "rgs_x")
    parts = {name: type(value) for name, value in vars(made).items() if not name.startswith("_") and name != "part"}
    if isinstance(made, Client):
        made.close()
    return dict(methods(kind, parts))


def called_by_routes() -> set[str]:
    """The methods of a workspace that the routes call."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in ROUTES.rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return {name.removeprefix("workspace.") for node in nodes if (name := ast.unparse(node)).startswith("workspace.")}


def test_the_client_offers_what_http_offers() -> None:
    offered, here = set(client_methods(AsyncClient)), set(workspace_methods())
    missing = here & called_by_routes() - offered - set(LOCAL)
    assert not missing, f"add these to ragstone/client, or to LOCAL with the reason: {sorted(missing)}"
    assert here - offered >= set(LOCAL)
    assert offered - here == ADDED


def test_the_parameters_and_results_are_those_of_the_workspace() -> None:
    ours, theirs = client_methods(AsyncClient), workspace_methods()
    for name in ours.keys() & theirs.keys():
        mine, its = inspect.signature(ours[name]), inspect.signature(theirs[name])
        assert mine.return_annotation == its.return_annotation, name
        assert set(its.parameters) - set(mine.parameters) == set(WITHOUT.get(name, ())), name
        kept = [parameter for parameter in its.parameters if parameter in mine.parameters]
        assert list(mine.parameters) == kept, name
        differing = {part for part in kept if mine.parameters[part] != its.parameters[part]}
        assert differing == {part for method, part in OTHERWISE if method == name}, name


def test_both_clients_have_the_same_methods() -> None:
    waiting, following = client_methods(Client), client_methods(AsyncClient)
    assert waiting.keys() == following.keys()
    for name, value in waiting.items():
        if isinstance(value, Blocking):
            assert value.method is following[name], name
        else:
            assert get_type_hints(value).keys() == get_type_hints(following[name]).keys(), name
