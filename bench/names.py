"""How often an identifier of a documentation tree is found first by its name."""

from __future__ import annotations

import asyncio
import random
import re
import tempfile
from pathlib import Path

from bench.report import Row
from ragstone import Settings, open_engine
from ragstone.core.search import SearchQuery
from ragstone.testing.workspaces import workspace_of

NAME = re.compile(r"\b[a-z]+(?:[A-Z][a-z]+){1,4}\b|\b[a-z]+(?:\.[a-z]+){2,}\b|\b[A-Z]{2,}_[A-Z_]+\b")
SAMPLE = 200


def run(folder: Path) -> list[Row]:
    pages = [file.read_text(encoding="utf-8") for file in sorted(folder.rglob("*.md*"))]
    names = sorted({name for page in pages for name in NAME.findall(page)})
    random.Random(1).shuffle(names)
    return asyncio.run(_measure(folder, names[:SAMPLE]))


async def _measure(folder: Path, names: list[str]) -> list[Row]:
    first = 0
    with tempfile.TemporaryDirectory() as place:
        async with open_engine(Settings(data_dir=Path(place))) as engine:
            await workspace_of(engine).documents.ingest(folder)
            for name in names:
                hits = (await workspace_of(engine).search(SearchQuery(name, k=1))).hits
                first += any(name.lower() in f"{hit.title} {hit.section} {hit.text}".lower() for hit in hits)
    return [Row("names", f"identifiers of {folder.name} found first by name", f"{first} of {len(names)}")]
