"""A process that moves a kb and says what it does: `reembed_process.py FOLDER MODEL`.

It prints a line whenever a model is asked, before and after the flip, and `done OUTCOME` at the end.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.unit.ingest.move_kit import MoveKit

from ragstone.core.model_types import Embeddings
from ragstone.core.types import Role
from ragstone.ingest import backfill as fill
from ragstone.stores.ledger.spaces import SqlTenantSpaces
from ragstone.testing.fakes import FakeEmbedder

BATCH = 4


class Telling(FakeEmbedder):
    """Says when it is asked."""

    async def embed(self, texts: Sequence[str], role: Role = "document") -> Embeddings:
        say(f"asked for a {role}")
        return await super().embed(texts, role)


def say(words: str) -> None:
    print(words, flush=True)


async def main(folder: Path, model: str) -> None:
    fill.BATCH = BATCH
    kit = MoveKit(folder)
    kit.models[model] = Telling(name=model)
    for one in await kit.spaces():
        name = one.space.model.partition("@")[0]
        kit.models.setdefault(name, FakeEmbedder(name=name))
    promote = SqlTenantSpaces.promote

    async def telling(*given: Any, **options: Any) -> bool:
        say("flipping")
        flipped = await promote(*given, **options)
        say("flipped")
        return flipped

    SqlTenantSpaces.promote = telling  # type: ignore[method-assign]
    report = await kit.reembed(model, force=True, grace_days=0)
    await kit.reembedder.clean("t", "default")
    say(f"done {report.outcome}")
    await kit.ledger.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
