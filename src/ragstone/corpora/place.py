"""Where a corpus may be read from: a path that a caller gives must not lead to anything else."""

from __future__ import annotations

from pathlib import Path, PurePath

from ragstone.core.errors import InputError, NotFoundError
from ragstone.core.ids import check_name
from ragstone.core.settings import Settings
from ragstone.ingest.sources.walk import Found, as_text, real
from ragstone.stores.corpus_files import DATA, USUAL

CORPUS, CORPORA = "corpus", "corpora"
"""Folders in the data folder: of the default tenant, and with one folder for each other tenant."""
HINT = "put it into the folder that ingestion.corpus_root names, by default the data folder; or give --root FOLDER"


def find_corpus(settings: Settings, tenant: str, corpus_path: str) -> Found:
    """The corpus at a path, which is absolute or under the root and may begin with `data/` for the root.

    A path that leads out of the root is refused before anything is said about what is there.
    """
    if not corpus_path or "\0" in corpus_path:
        raise InputError("there is no corpus path", hint="name a text file")
    root = real(_root(settings, tenant))
    inside = [path for path in _meant(root, PurePath(corpus_path)) if _may_be_read(settings, root, path)]
    if not inside:
        raise InputError(f"the corpus {corpus_path!r} is outside of the data root", hint=HINT)
    for path in inside:
        try:
            if path.is_file():
                shown = as_text(path.relative_to(root).as_posix())
                return Found(path, shown, shown)
        except OSError as error:
            raise InputError(
                f"the corpus {corpus_path!r:.200} cannot be looked at: {error.strerror}"
            ) from error
    raise NotFoundError(f"there is no corpus {corpus_path!r} in the data root", hint=HINT)


def _root(settings: Settings, tenant: str) -> Path:
    check_name(tenant, "tenant")
    if settings.ingestion.corpus_root is not None:
        return Path(settings.ingestion.corpus_root.replace("{tenant}", tenant)).expanduser()
    # Nobody may read what was put there for somebody else.
    return settings.data_dir if tenant == USUAL[0] else settings.data_dir / CORPORA / tenant


def _meant(root: Path, given: PurePath) -> list[Path]:
    """Where a path may lead, links followed."""
    paths = [root / given]
    if given.parts[0] == DATA and len(given.parts) > 1:
        paths.append(root.joinpath(*given.parts[1:]))
    return [real(path) for path in paths]


def _may_be_read(settings: Settings, root: Path, path: Path) -> bool:
    """Whether a path is under the root, and nothing that Ragstone itself keeps there."""
    if not path.is_relative_to(root):
        return False
    data = real(settings.data_dir)
    if not data.is_relative_to(root) or not path.is_relative_to(data):
        return True
    # The data folder has every tenant's documents in it: only what is surely a corpus is one.
    under = path.relative_to(data).parts
    if len(under) == 1:
        from ragstone.ingest.parsers.dispatch import KINDS

        return path.suffix.lower() in KINDS
    return bool(under) and under[0] == CORPUS
