"""The corpus of a collection build: where it may be read from, and the pipeline that cuts and embeds it."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from pydantic import ValidationError

from ragstone.core.collections import BuildRequest
from ragstone.core.errors import InputError, NotFoundError
from ragstone.core.ids import check_name
from ragstone.core.protocols import Embedder
from ragstone.core.remedies import Action, Remedy
from ragstone.core.types import Failure, Item
from ragstone.ingest.sources.files.walk import FoundFile, as_text, real
from ragstone.settings.tree import ChunkingSettings, LimitSettings, Settings
from ragstone.stores.corpus.files import DATA, USUAL

if TYPE_CHECKING:
    from ragstone.engine.components import Components
    from ragstone.ingest.pipeline import IngestPipeline

CORPUS, CORPORA = "corpus", "corpora"
"""Folders in the data folder: of the default tenant, and with one folder for each other tenant."""
PLACE = Remedy(Action.PLACE_CORPUS)
OPEN = Path("/dev/fd")
"""The folder through which a process reads its open files, whatever has become of their paths."""
SOURCE = "corpus"


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus that is open: what is read is what was looked at, even if its path leads elsewhere by now."""

    found: FoundFile
    descriptor: int

    def close(self) -> None:
        """Let go of it."""
        os.close(self.descriptor)


def find_corpus(settings: Settings, tenant: str, corpus_path: str) -> Corpus:
    """Return the corpus at a path, which is absolute or under the root and may begin with `data/` for the root.

    A path that leads out of the root is refused before anything is said about what is there.
    """
    given = _parse_path(corpus_path)
    root = real(_root(settings, tenant))
    inside = [path for path in _resolve_paths(root, given) if _may_be_read(settings, root, path)]
    if not inside:
        raise InputError(f"the corpus {corpus_path!r} is outside of the data root", remedy=PLACE)
    for path in inside:
        relative = path.relative_to(root)
        try:
            descriptor = _open_beneath(root, relative)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise InputError(f"the corpus {corpus_path!r:.200} cannot be looked at: {error.strerror}") from error
        if descriptor is not None:
            shown = as_text(relative.as_posix())
            return Corpus(FoundFile(OPEN / str(descriptor), shown, shown), descriptor)
    raise NotFoundError(f"there is no corpus {corpus_path!r} in the data root", remedy=PLACE)


def _parse_path(corpus_path: str) -> PurePath:
    given = PurePath(corpus_path)
    try:
        os.fsencode(corpus_path)
        if given.parts and "\0" not in corpus_path:
            return given
    except UnicodeEncodeError:
        pass  # no file can be called that
    raise InputError(f"{corpus_path!r:.200} is no corpus path", hint="name a text file")


def _open_beneath(root: Path, relative: Path) -> int | None:
    """Open a file beneath the root, following no link: a folder on the way may have become one. None if it is none."""
    *folders, name = relative.parts
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder in folders:
            below = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = below
        # A pipe that nobody writes to would be waited for.
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
    finally:
        os.close(at)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def _root(settings: Settings, tenant: str) -> Path:
    check_name(tenant, "tenant")
    if settings.ingestion.corpus_root is not None:
        return Path(settings.ingestion.corpus_root.replace("{tenant}", tenant)).expanduser()
    # Nobody may read what was put there for somebody else.
    return settings.data_dir if tenant == USUAL[0] else settings.data_dir / CORPORA / tenant


def _resolve_paths(root: Path, given: PurePath) -> list[Path]:
    """Return the files that a path may mean, links followed."""
    paths = [root / given]
    if given.parts[0] == DATA and len(given.parts) > 1:
        paths.append(root.joinpath(*given.parts[1:]))
    return [real(path) for path in paths]


def _may_be_read(settings: Settings, root: Path, path: Path) -> bool:
    """Return whether a path is under the root, and nothing that Ragstone itself keeps there."""
    if not path.is_relative_to(root):
        return False
    data = real(settings.data_dir)
    if not data.is_relative_to(root) or not path.is_relative_to(data):
        return True
    # The data folder has every tenant's documents in it: only what is surely a corpus is one.
    under = path.relative_to(data).parts
    if len(under) == 1:
        from ragstone.ingest.parsers.draft import KINDS

        return path.suffix.lower() in KINDS
    return bool(under) and under[0] == CORPUS


@asynccontextmanager
async def open_build_pipeline(
    components: Components, tenant: str, request: BuildRequest
) -> AsyncIterator[IngestPipeline]:
    """Open a pipeline that cuts and embeds as the request asks; what it leaves open is as in the settings."""
    from ragstone.ingest.embed import ModelChoice
    from ragstone.ingest.pipeline import IngestPipeline
    from ragstone.ingest.prepare import make_preparer
    from ragstone.models import tokenizer_of

    settings = _chunking(components.settings, request)
    name = request.embedding_model or (await components.access.settings_for(tenant)).embedding.model
    embedder, model = await _embedder(components, name)
    preparer, close = make_preparer(settings, embedder, tokenizer_of(embedder), components.llm, model)
    try:
        yield IngestPipeline(
            components.ledger,
            preparer,
            ModelChoice(model, embedder),
            components.verifier_of_writes,
            settings.limits,
            components.access,
            settings.extract.scan_command,
            on_report=components.metrics.record_ingest,
        )
    finally:
        await close()


async def _embedder(components: Components, name: str) -> tuple[Embedder, str]:
    embedders = components.embedders
    if name == components.settings.embedding.model:
        return embedders.default, embedders.default_id
    embedder = await embedders.get(name)
    return embedder, embedder.model.id


def read_corpus(found: FoundFile, limits: LimitSettings) -> Iterator[Item | Failure]:
    """Yield the documents of a corpus: most often one."""
    from ragstone.ingest.sources.files.read import read_documents

    origin = Item(SOURCE, found.relative, found.shown, b"", metadata={"source_type": SOURCE})
    return read_documents(found, origin, limits)


def _chunking(settings: Settings, request: BuildRequest) -> Settings:
    wanted = {"size": request.chunk_size, "overlap": request.chunk_overlap}
    asked = {name: value for name, value in wanted.items() if value is not None}
    present = settings.chunking_by_source.get(SOURCE, settings.chunking)
    try:
        chunking = ChunkingSettings.model_validate({**present.model_dump(), **asked})
    except ValidationError as error:
        first = error.errors()[0]
        what = f"chunk_{first['loc'][0]}: " if first["loc"] else "chunk_size and chunk_overlap: "
        raise InputError(f"{what}{first['msg'].removeprefix('Value error, ')}") from error
    return settings.model_copy(update={"chunking_by_source": {**settings.chunking_by_source, SOURCE: chunking}})
