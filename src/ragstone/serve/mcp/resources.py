"""Resources for MCP clients: the list of knowledge bases, and documents by id or by address."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ragstone.core.errors import NotFoundError
from ragstone.schemas.knowledge_bases import KbListSchema, KbSchema

if TYPE_CHECKING:
    from ragstone.engine.workspace import Workspace

KBS = "ragstone://kbs"
DOCUMENTS = "ragstone://documents/"
BY_URI = "ragstone://documents?uri="
PAGE = 50


class ResourceCatalog:
    """Resources of a workspace and one kb, that of the settings unless another is named."""

    def __init__(self, workspace: Workspace, kb: str | None = None) -> None:
        self._workspace = workspace
        self._kb = kb

    async def list_page(self, cursor: str | None) -> Any:
        """Return the kb list and a page of documents; the cursor is the last document's id."""
        import mcp_types as types

        documents = await self._workspace.documents.list(after=cursor or "", limit=PAGE, kb=self._kb)
        resources = [
            types.Resource(
                uri=f"{DOCUMENTS}{document.id}",
                name=document.uri,
                title=document.title,
                mime_type="text/plain",
                description=f"{document.title} ({document.uri})",
            )
            for document in documents
        ]
        if not cursor:
            kbs = types.Resource(uri=KBS, name="kbs", title="Knowledge bases", mime_type="application/json")
            resources.insert(0, kbs)
        following = documents[-1].id if len(documents) == PAGE else None
        return types.ListResourcesResult(resources=resources, next_cursor=following)

    async def read(self, uri: str) -> Any:
        """Return the text behind an address, or raise `NotFoundError`."""
        import mcp_types as types

        if uri == KBS:
            text, kind = await self._kbs(), "application/json"
        else:
            text, kind = await self._workspace.documents.text(await self._document_id(uri)), "text/plain"
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=kind, text=text)])

    async def _document_id(self, uri: str) -> str:
        """Return the document that an address means, if it is in this kb."""
        if uri.startswith(BY_URI):
            wanted = {"uri": unquote(uri.removeprefix(BY_URI))}
            found = await self._workspace.documents.list(where=wanted, limit=1, kb=self._kb)
            if found:
                return found[0].id
        elif uri.startswith(DOCUMENTS):
            # A document of another kb must not be told from one that there is not.
            with suppress(NotFoundError):
                document = await self._workspace.documents.get(uri.removeprefix(DOCUMENTS))
                if document.kb == (await self._workspace.knowledge_bases.get(self._kb)).name:
                    return document.id
        raise NotFoundError(f"no resource {uri[:200]}", hint=f"list them, or read {DOCUMENTS}ID")

    async def _kbs(self) -> str:
        kbs = await self._workspace.knowledge_bases.list()
        rows = [KbSchema.of_kb(kb, await self._workspace.knowledge_bases.stats(kb=kb.name)) for kb in kbs]
        return json.dumps(KbListSchema.of(kbs=rows).as_json(), ensure_ascii=False)


def document_templates() -> list[Any]:
    """Return the templates for addresses of documents."""
    import mcp_types as types

    return [
        types.ResourceTemplate(
            uri_template=f"{DOCUMENTS}{{document_id}}",
            name="document",
            description="The text of a document; parent_doc_id of a search result is its id.",
            mime_type="text/plain",
        ),
        types.ResourceTemplate(
            uri_template=DOCUMENTS.rstrip("/") + "{?uri}",
            name="document_by_uri",
            description="The text of a document by the path or address it came from.",
            mime_type="text/plain",
        ),
    ]
