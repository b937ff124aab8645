"""`python -m scripts.upgrade REVISION`: open data that another revision wrote, on SQLite and on PostgreSQL.

The revision ingests the sample corpus, answers in a conversation and takes a vote. This checkout must then find the
same chunks with the same scores, give the same answers, show conversation and vote, and delete a document for good.
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

    def findings(self) -> dict[str, Any]:
        """Return what searches and questions give, without what differs from run to run."""
        searches = {query: self.run("search", query, "-k", "10")["hits"] for query in SEARCHES}
        answers = {question: self.run("ask", question, codes=(0, 4)) for question in QUESTIONS}
        return {
            "hits": {
                query: [(hit["chunk_id"], hit["score"], hit["text"]) for hit in hits]
                for query, hits in searches.items()
            },
            "answers": {
                question: (answer["status"], answer["answer"], [citation["quote"] for citation in answer["citations"]])
                for question, answer in answers.items()
            },
        }


def check(old: Version, new: Version) -> list[str]:
    """Return a line for each step that this checkout passed; end with a message at the first that it did not."""
    passed = []
    report = old.run("ingest", str(SAMPLES))
    old.run("ask", QUESTIONS[0], "--conversation", "c1")
    chunk = old.run("search", SEARCHES[0])["hits"][0]["chunk_id"]
    old.run("feedback", "add", SEARCHES[0], chunk, "--vote", "used")
    before = old.findings()
    after = new.findings()
    for what in ("hits", "answers"):
        _require(before[what] == after[what], f"{what} differ:\n{before[what]}\n{after[what]}")
    found = sum(map(len, before["hits"].values()))
    passed.append(f"{report['documents']} documents: {found} hits and {len(QUESTIONS)} answers are the same")
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
    _require((again["added"], again["updated"]) == (1, 0), f"only the deleted document should come back: {again}")
    passed.append("a second ingest takes in only what was deleted")
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
