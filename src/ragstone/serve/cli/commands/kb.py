"""`ragstone kb`: list, rename, delete, reindex and resync knowledge bases. `ragstone stats`: what one holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import NotFoundError
from ragstone.core.remedies import Action, Remedy
from ragstone.serve.cli.exits import FAILURE, NOTHING_FOUND, OK
from ragstone.serve.cli.render.output import pluralize, table, text
from ragstone.serve.cli.render.progress import fill_progress
from ragstone.serve.cli.render.receipts import documents_of, show_receipts
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from ragstone.core.collections import Collection
    from ragstone.core.types import KnowledgeBase, Stats

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the knowledge base.")]


async def list_kbs(session: CliSession) -> int:
    """List, rename, delete, reindex and resync knowledge bases."""
    from ragstone.schemas.knowledge_bases import KbListSchema, KbSchema

    async with session.workspace() as workspace:
        kbs = workspace.knowledge_bases
        found = [(kb, await kbs.stats(kb.name)) for kb in await kbs.list()]
    shape = KbListSchema.of(kbs=[KbSchema.of_kb(kb, stats) for kb, stats in found])
    session.show(shape, lambda out: _draw_kbs(out, found))
    return OK if found else NOTHING_FOUND


async def list_collections(session: CliSession) -> int:
    """List what a tenant has per type of source.

    Names look like `emails_default`.
    """
    async with session.workspace() as workspace:
        found = await workspace.knowledge_bases.source_types()
    from ragstone.schemas.knowledge_bases import CollectionListSchema

    session.show(CollectionListSchema.of(collections=found), lambda out: _draw_collections(out, found))
    return OK if found else NOTHING_FOUND


async def delete_kb(
    session: CliSession, name: Name, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False
) -> int:
    """Delete a knowledge base with everything in it. Asks first on a terminal."""
    async with session.workspace() as workspace:
        if name not in {kb.name for kb in await workspace.knowledge_bases.list()}:
            raise NotFoundError(f"there is no knowledge base '{name}'", remedy=Remedy(Action.LIST_KBS))
        holds = pluralize((await workspace.knowledge_bases.stats(kb=name)).documents, "document")
        if not session.confirms(f"Delete '{name}' with {holds}?", yes=yes):
            return FAILURE
        receipts = await workspace.erase("kb", name)
    documents = documents_of(receipts)
    from ragstone.schemas.erasure import DeletedKbSchema

    return show_receipts(
        session,
        DeletedKbSchema.of(deleted=name, documents=documents, receipts=receipts),
        f"Deleted '{name}' with {pluralize(documents, 'document')}.",
        receipts,
    )


async def rename_kb(
    session: CliSession, name: Name, new: Annotated[str, typer.Argument(metavar="NEW", help="The new name.")]
) -> None:
    """Rename a knowledge base. Its content and all ids stay the same."""
    async with session.workspace() as workspace:
        renamed = await workspace.knowledge_bases.rename(name, new)
    from ragstone.schemas.knowledge_bases import RenamedKbSchema

    shape = RenamedKbSchema.of(renamed=name, name=renamed.name)
    session.show(shape, lambda out: out.print(f"Renamed knowledge base '{name}' to '{new}'."))


async def reindex_kb(session: CliSession, name: Name) -> int:
    """Rebuild the indexes of a knowledge base.

    Searches are not interrupted. Only PostgreSQL's postings and approximate vector indexes need this; other stores
    maintain theirs.
    """
    async with session.workspace() as workspace, session.slow_notice("rebuilding the indexes …"):
        rebuilt = await workspace.knowledge_bases.reindex(kb=name)
    from ragstone.schemas.knowledge_bases import ReindexedKbSchema

    session.show(
        ReindexedKbSchema.of(kb=name, rebuilt=rebuilt),
        lambda out: out.print(f"Rebuilt: {' and '.join(rebuilt)}." if rebuilt else "There is nothing to rebuild."),
    )
    return OK


async def resync_kb(
    session: CliSession, name: Name, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False
) -> int:
    """Remove all vectors of a knowledge base and make them again.

    Asks first on a terminal. Use this after changing how documents are chunked or embedded. The text stays and is found
    by word in the meantime. Sources are read again by the next worker. After an interruption the same command
    continues.
    """
    async with session.workspace() as workspace:
        chunks = pluralize((await workspace.knowledge_bases.stats(kb=name)).chunks, "chunk")
        if not session.confirms(f"Remove the vectors of '{name}' and make them again for {chunks}?", yes=yes):
            return FAILURE
        with fill_progress(session) as on_progress:
            report = await workspace.embeddings.resync(on_progress=on_progress, kb=name)
    from ragstone.schemas.embeddings import ResyncSchema

    done = f"Made {pluralize(report.written, 'vector')} of '{name}' again with {report.model}."
    session.show(ResyncSchema.of(report), lambda out: out.print(text(done)))
    if report.sources:
        again = pluralize(report.sources, "source")
        session.remark("note", f"{again} will be read again: {session.options.command('worker', '--until-idle')}")
    return OK


async def stats(session: CliSession) -> None:
    """Show the size of a knowledge base."""
    from ragstone.schemas.knowledge_bases import StatsSchema

    settings = session.settings()
    async with session.workspace(settings) as workspace:
        counts = await workspace.knowledge_bases.stats()
    session.show(StatsSchema.of(counts, kb=settings.kb), lambda out: _draw_stats(out, settings.kb, counts))


def _draw_kbs(out: Console, found: Sequence[tuple[KnowledgeBase, Stats]]) -> None:
    if not found:
        out.print("No knowledge bases.")
        return
    rows = table("name", "documents", "chunks", "model", right=("documents", "chunks"))
    for kb, counts in found:
        model = kb.space.model if kb.space else "–"
        rows.add_row(kb.name, f"{counts.documents:,}", f"{counts.chunks:,}", text(model))
    out.print(rows)


def _draw_collections(out: Console, found: Sequence[Collection]) -> None:
    if not found:
        out.print("No documents yet.")
        return
    stored = any(collection.vectors is not None for collection in found)
    numbers = ("documents", "chunks", *(["vectors"] if stored else []))
    rows = table("collection", "source type", *numbers, right=numbers)
    for collection in found:
        counts = [f"{getattr(collection, name) or 0:,}" for name in numbers]
        rows.add_row(text(collection.name), text(collection.source_type), *counts)
    out.print(rows)


def _draw_stats(out: Console, kb: str, counts: Stats) -> None:
    found_by_word = ", found by word only until they have some" if counts.unembedded else ""
    facts = {
        "knowledge base": kb,
        "documents": f"{counts.documents:,}",
        "chunks": f"{counts.chunks:,}",
        "tokens": f"{counts.tokens:,}",
        "without vectors": pluralize(counts.unembedded, "document") + found_by_word,
        "model": counts.model or "–",
        "on disk": f"{counts.bytes / 1024 / 1024:.1f} MB",
        "changes so far": f"{counts.sequence:,}, in all knowledge bases of the tenant",
    }
    for name, value in facts.items():
        out.print(text(f"{name:<16}", "dim").append(value))
