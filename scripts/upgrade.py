"""`python -m scripts.upgrade REVISION`: open data that another revision wrote, on SQLite and on PostgreSQL.

The revision ingests the sample corpus, answers in a conversation and takes a vote. This checkout must then find every
chunk, with its text, answer what was answered before, show conversation and vote, and delete a document for good.
How it ranks and words things may differ.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.versions import ROOT, unpack

SAMPLES = ROOT / "src" / "ragstone" / "samples" / "corpus"
SEARCHES = ("ferry timetable", "opening hours", "SKU-12345", "how are chairs repaired")
QUESTIONS = ("When does the ferry leave?", "Who repairs chairs?")


class Version:
    """The command line of one revision on one set of stores."""

    def __init__(self, source: Path, data: Path, dsn: str) -> None:
        self._data = data
        self._environment = {**os.environ, "PYTHONPATH": str(source), "NO_COLOR": "1"}
        if dsn:
            self._environment["RAGSTONE_STORE__LEDGER__DSN"] = dsn

    def run(self, *arguments: str, codes: Sequence[int] = (0,)) -> Any:
        """Run a command and return its JSON."""
        command = [sys.executable, "-m", "ragstone", *arguments, "--data-dir", str(self._data), "--json"]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        if done.returncode not in codes:
            raise SystemExit(f"{' '.join(arguments)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def chunks(self) -> dict[str, str]:
        """Return the text of every chunk by its id: the searches ask for more than there are."""
        found = (self.run("search", query, "-k", "100")["hits"] for query in SEARCHES)
        return {hit["chunk_id"]: hit["text"] for hits in found for hit in hits}

    def answered(self) -> set[str]:
        """Return the questions that are answered from the sources."""
        asked = {question: self.run("ask", question, codes=(0, 4)) for question in QUESTIONS}
        return {question for question, answer in asked.items() if answer["status"] != "no_evidence"}


def check(old: Version, new: Version) -> list[str]:
    """Return a line for each step that this checkout passed; end with a message at the first that it did not."""
    passed = []
    report = old.run("ingest", str(SAMPLES))
    old.run("ask", QUESTIONS[0], "--conversation", "c1")
    chunk = old.run("search", SEARCHES[0])["hits"][0]["chunk_id"]
    old.run("feedback", "add", SEARCHES[0], chunk, "--vote", "used")
    # All of the old version comes first: it must not open what the new one has upgraded.
    before, answered = old.chunks(), old.answered()
    after = new.chunks()
    _require(before == after, f"chunks differ: {sorted(before.items() ^ after.items())}")
    _require(answered <= new.answered(), f"not answered any more: {sorted(answered - new.answered())}")
    passed.append(
        f"{report['documents']} documents: all {len(before)} chunks are found, {len(answered)} questions answered"
    )
    turns = new.run("conversations", "show", "c1")
    _require(QUESTIONS[0] in json.dumps(turns), f"the conversation is gone: {turns}")
    votes = new.run("feedback", "list")
    _require(chunk in json.dumps(votes), f"the vote is gone: {votes}")
    passed.append("the conversation and the vote are there")
    document = new.run("search", SEARCHES[0])["hits"][0]["document_id"]
    new.run("documents", "delete", document)
    left = [hit["document_id"] for query in SEARCHES for hit in new.run("search", query, "-k", "50")["hits"]]
    _require(document not in left, f"{document} is still found")
    passed.append("a deleted document is found no more")
    again = new.run("ingest", str(SAMPLES))
    counts = again["added"], len(again["failed"]), again["documents"]
    _require(counts == (1, 0, report["documents"]), f"only the deleted document should come back: {again}")
    passed.append(f"a second ingest adds only what was deleted, and reads {again['updated']} others as it does now")
    return passed


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise SystemExit(message)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m scripts.upgrade", description=__doc__)
    parser.add_argument("revision", help="the commit, tag or branch that writes the data")
    options = parser.parse_args()
    from tests.conformance.postgres_server import EMPTY, INDEXED, server

    with tempfile.TemporaryDirectory() as folder:
        source = unpack(options.revision, Path(folder) / "before")
        postgres = server(INDEXED)
        for name, dsn in (("SQLite", ""), ("PostgreSQL", postgres.dsn(postgres.create(EMPTY)))):
            data = Path(folder) / name
            for line in check(Version(source, data, dsn), Version(ROOT / "src", data, dsn)):
                print(f"{name}: {line}", flush=True)


if __name__ == "__main__":
    main()
