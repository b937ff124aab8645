"""An engine over a folder of pages, ingested once and kept for the next run."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import ragstone
from ragstone.core.protocols import LLM
from ragstone.engine.components import Components
from ragstone.engine.engine import Engine
from ragstone.settings.load import load_settings

SOURCE = Path(ragstone.__file__).parent
SHAPING = (
    "ingest/parsers",
    "ingest/chunkers",
    "ingest/enrich",
    "ingest/extract.py",
    "ingest/prepare.py",
    "ingest/store.py",
    "language/analyzer.py",
    "language/sentences.py",
    "stores/migrations",
)
"""Code that decides what is stored of a page."""
PATIENCE = 60
"""Seconds that a search may take: what is measured is what is said, whatever else the machine does."""


@asynccontextmanager
async def open_knowledge(data: Path, llm: LLM | None = None) -> AsyncIterator[Components]:
    """Open the engine of a data folder with default settings, and this language model."""
    settings = load_settings(overrides={"data_dir": str(data), "retrieval.timeout": PATIENCE}, environment={})
    components = Components(settings)
    components.llm = llm
    async with Engine(components):
        yield components


@asynccontextmanager
async def ingest_pages(pages: Path, kept: Path | None) -> AsyncIterator[Path]:
    """Give a data folder of its own with all pages; under `kept` a copy stays, and only what changed is read again."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        if kept is None:
            await _ingest(pages, data)
            yield data
            return
        store = kept / f"{pages.parent.name}-{pages.name}-{fingerprint(pages)}"
        with _locked(store):
            if store.exists():
                shutil.copytree(store, data)
            if await _ingest(pages, data) or not store.exists():
                shutil.rmtree(store, ignore_errors=True)
                shutil.copytree(data, store.with_suffix(".new"), dirs_exist_ok=True)
                store.with_suffix(".new").rename(store)
        yield data


async def _ingest(pages: Path, data: Path) -> int:
    """Take in the pages, and return how many of them are new or others than before."""
    async with open_knowledge(data) as components:
        report = await Engine(components).workspace("default").documents.ingest(pages)
    changed = report.added + report.updated + report.removed
    if changed:
        print(f"ingested {pages.name}: {report.added} new, {report.updated} changed", file=sys.stderr)
    for failure in report.failed:
        print(f"not ingested: {failure.code}: {Path(failure.uri).suffix}", file=sys.stderr)
    return changed


@contextmanager
def _locked(store: Path) -> Iterator[None]:
    store.parent.mkdir(parents=True, exist_ok=True)
    with store.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fingerprint(pages: Path) -> str:
    """Return a hash of where the pages are and of the code that decides what is stored of them."""
    hashed = hashlib.sha256(str(pages.resolve()).encode())
    for name in SHAPING:
        place = SOURCE / name
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            hashed.update(file.read_bytes())
    return hashed.hexdigest()[:12]
