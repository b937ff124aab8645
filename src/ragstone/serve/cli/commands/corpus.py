"""`ragstone corpus`: build a collection from one corpus file, and show its state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragstone.core.errors import InputError, NotFoundError
from ragstone.serve.cli.exits import NOTHING_FOUND, OK
from ragstone.serve.cli.render.output import pluralize, text
from ragstone.serve.cli.render.progress import ingest_progress
from ragstone.serve.cli.session import CliSession

if TYPE_CHECKING:
    from rich.console import Console

    from ragstone.core.collections import BuildResult, CollectionHealth
    from ragstone.settings.tree import Settings


async def build_corpus(
    session: CliSession,
    path: Annotated[
        str | None,
        typer.Argument(metavar="PATH", help="The corpus: a file under the root; by default ingestion.corpus_path."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an existing collection once the new one is complete.")
    ] = False,
    chunk_size: Annotated[int | None, typer.Option("--chunk-size", help="Size of a chunk.")] = None,
    chunk_overlap: Annotated[
        int | None, typer.Option("--chunk-overlap", help="Overlap of neighbouring chunks.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="Embedding model of the collection.")] = None,
    root: Annotated[
        Path | None, typer.Option("--root", help="Folder to read from; by default ingestion.corpus_root.")
    ] = None,
) -> None:
    """Build a collection from one corpus file.

    Makes its chunks, BM25 index, vectors and metadata. The collection is the knowledge base that `--kb` names, by
    default `corpus_embeddings`. An existing one is replaced when the new one is complete.
    """
    from ragstone.core.collections import BuildRequest

    path = path or str(session.settings().ingestion.corpus_path)
    settings = _read_settings(session, Path(path), root)
    request = BuildRequest(_locate(path), session.options.kb, overwrite, chunk_size, chunk_overlap, model)
    async with session.workspace(settings, create=True) as workspace:
        with ingest_progress(session) as progress:
            progress.expect(1)
            result = await workspace.collections.build(request, on_progress=progress.show)
    from ragstone.schemas.knowledge_bases import CorpusBuildSchema

    session.show(CorpusBuildSchema.of(result), lambda out: _draw_result(out, result))
    where = replace(session.options, kb=result.vector_db_collection).as_typed()
    session.remark("next", f'ragstone search "…"{where}')


async def show_corpus(session: CliSession) -> int:
    """Show the state of a collection.

    Shows whether its files match the live content, too.
    """
    async with session.workspace() as workspace:
        health = await workspace.collections.health(session.options.kb)
    from ragstone.schemas.knowledge_bases import CollectionHealthSchema

    session.show(CollectionHealthSchema.of(health), lambda out: _draw_health(out, health))
    if not health.exists:
        session.remark("hint", session.options.command("corpus", "build", "PATH"))
    return OK if health.exists else NOTHING_FOUND


async def show_chunk(
    session: CliSession, chunk_id: Annotated[str, typer.Argument(metavar="ID", help="A chunk's id.")]
) -> None:
    """Show the metadata of one chunk of a collection."""
    async with session.workspace() as workspace:
        found = await workspace.collections.chunk(chunk_id, session.options.kb)
    if found is None:
        raise NotFoundError(
            f"no chunk {chunk_id!r:.80} in this collection", hint="ids are in what ragstone search --json shows"
        )
    from ragstone.schemas.knowledge_bases import ChunkMetadataSchema

    shape = ChunkMetadataSchema.of_chunk(found)
    session.show(shape, lambda out: _draw(out, {key: str(value) for key, value in shape.root.items()}))


def _read_settings(session: CliSession, path: Path, root: Path | None) -> Settings:
    """Return the settings with the folder that may be read from."""
    if root is not None and not root.is_dir():
        raise InputError(f"there is no folder {root}", hint="--root names the folder that the corpus is in")
    if path.is_dir():
        raise InputError(f"{path} is a folder", hint="name one file; ragstone ingest takes folders")
    settings = session.settings(**{"ingestion.corpus_root": root and str(root)})
    if settings.ingestion.corpus_root is None and path.is_file():
        # Somebody with a shell may read any path; the root is for callers that only send one.
        return session.settings(**{"ingestion.corpus_root": str(path.absolute().parent)})
    return settings


def _locate(path: str) -> str:
    """Return a path from the current folder if it leads somewhere, else as it was typed."""
    return str(Path(path).absolute()) if Path(path).exists() else path


def _draw_result(out: Console, result: BuildResult) -> None:
    name = result.vector_db_collection
    out.print(f"Built '{name}': {pluralize(result.total_chunks, 'chunk')} in {result.duration_seconds:.1f} s.")
    facts = {
        "model": f"{result.embedding_model}, {result.embedding_dimension} dimensions",
        "tokens": f"{result.statistics['total_tokens']:,}, {result.statistics['avg_chunk_size']} a chunk",
        "BM25 index": result.bm25_index_path,
        "metadata": result.metadata_path,
    }
    _draw(out, facts)


def _draw_health(out: Console, health: CollectionHealth) -> None:
    if not health.exists:
        out.print(f"There is no collection '{health.collection}' yet.")
        return
    facts = {
        "collection": health.collection,
        "documents": f"{health.total_documents:,}",
        "chunks": f"{health.total_chunks:,}",
        "BM25 index": health.bm25_index,
        "metadata": health.metadata,
    }
    _draw(out, facts)


def _draw(out: Console, facts: dict[str, str]) -> None:
    for name, value in facts.items():
        out.print(text(f"{name:<16}", "dim").append(value))
