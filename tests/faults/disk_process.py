"""A process on a disk that takes no writes: `disk_process.py FOLDER [nothing]` prints as JSON what it could do.

With `nothing` it may not write a byte to any file, which is as good as a full disk.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

from ragstone import Item, Ragstone
from ragstone.core.errors import RagstoneError
from ragstone.engine import components
from ragstone.testing.fakes import FakeEmbedder


def main(folder: Path, limited: bool) -> None:
    if limited:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    components.build_embedder = lambda _: FakeEmbedder()
    done: dict[str, Any] = {}
    with Ragstone(data_dir=folder) as stone:
        found = stone.search("ferry", conversation="c1")
        answer = stone.ask("When does the ferry to the island leave?")
        [document] = stone.documents()
        done["read"] = {
            "hits": [hit.text for hit in found.hits],
            "said": [note.partition(": ")[0] for note in found.degraded],
            "answer": answer.answer,
            "verdict": stone.verify("The ferry to the island leaves at nine.").status,
            "text": stone.text(document.id),
            "chunks": len(stone.chunks(document.id)),
            "documents": stone.stats().documents,
            "earlier": [turn.question for turn in stone.conversations.turns("c1")],
            "searches": [search.query for search in stone.activity.searches()],
            "failures": [finding.detail for finding in stone._run(stone.engine.health()) if finding.state == "fail"],
            "tenants": [tenant.name for tenant in stone.tenants.all()],
        }
        writes = {
            "ingest": lambda: stone.ingest_items([Item("notes", "2", "notes/2", "The ferry leaves at ten.")]),
            "delete": lambda: stone.delete(document.id),
            "tenant": lambda: stone.tenants.create("acme"),
            "vote": lambda: stone.feedback("ferry", [found.hits[0].chunk_id]),
        }
        done["written"] = {name: _refusal(write) for name, write in writes.items()}
        done["after"] = len(stone.search("ferry").hits)
    print(json.dumps(done))


def _refusal(write: Any) -> tuple[str, bool]:
    """Return the code of the error that a write raises, and whether it says what to do."""
    try:
        write()
    except RagstoneError as error:
        return error.code, bool(error.advice)
    return "", False


if __name__ == "__main__":
    main(Path(sys.argv[1]), "nothing" in sys.argv[2:])
