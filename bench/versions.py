"""`python -m bench.versions REVISION`: compare this checkout with another revision, in turns, as ratios of CPU time.

Cold start, ingest and search of both run in processes of their own, in turns that change sides from round to round.
What else a machine does only ever adds to CPU time, so the lowest of the rounds says best what a version needs; the
median stands beside it. A ratio below 1 means that this checkout needs less.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

from bench.data import load
from bench.report import machine
from bench.start import run_timed

ROOT = Path(__file__).resolve().parent.parent
QUERIES = 200
MEASURES = ("cold start", "ingest", "search")

WARM = """
import json, resource, sys, time
from pathlib import Path
from ragstone import Ragstone

def spent():
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime

documents, queries, data = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()), sys.argv[3]
warm = Path(data + "-warm.md")
warm.write_text("The first document and the first search load the model.")
with Ragstone(data_dir=data) as stone:
    stone.ingest(warm)
    stone.search("warm")
    before = spent()
    stone.ingest(documents)
    ingest = spent() - before
    for query in queries[:10]:
        stone.search(query, k=10)
    before = spent()
    for query in queries:
        stone.search(query, k=10)
    search = (spent() - before) / len(queries)
print(json.dumps({"ingest": ingest, "search": search}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.versions", description=__doc__)
    parser.add_argument("revision", help="a commit, tag or branch to compare with")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--data", type=Path, default=Path("../shared/data/scifact"), help="a BEIR-layout folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        sides = {"before": unpack(options.revision, place / "before"), "after": ROOT / "src"}
        queries = _write_collection(options.data, options.documents, place)
        seconds: dict[str, dict[str, list[float]]] = {side: {what: [] for what in MEASURES} for side in sides}
        for number in range(options.rounds):
            for side in sorted(sides, reverse=number % 2 == 0):
                source = sides[side]
                data = place / f"{side}-{number}"
                for what, value in _measure(source, place / "documents", queries, data).items():
                    seconds[side][what].append(value)
                print(f"round {number + 1} of {options.rounds}, {side}", file=sys.stderr)
    print(f"{machine()}\n\n| what, CPU time | {options.revision} | this checkout | ratio |\n|---|---|---|---|")
    for what in MEASURES:
        for name, of in (("lowest", min), ("median", statistics.median)):
            before, after = (of(seconds[side][what]) for side in ("before", "after"))
            print(f"| {what}, {name} | {before * 1000:,.1f} ms | {after * 1000:,.1f} ms | {after / before:.2f}× |")


def unpack(revision: str, folder: Path) -> Path:
    """Unpack the source of a revision and return the folder to put on the path."""
    archive = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder / "src"


def _write_collection(data: Path, count: int, place: Path) -> Path:
    collection = load(data)
    (place / "documents").mkdir()
    for name, text in zip(collection.ids[:count], collection.texts, strict=False):
        (place / "documents" / f"{name}.txt").write_text(text, encoding="utf-8")
    queries = place / "queries.json"
    queries.write_text(json.dumps([query.text for query in collection.dataset.queries][:QUERIES]))
    return queries


def _measure(source: Path, documents: Path, queries: Path, data: Path) -> dict[str, float]:
    """Return CPU seconds: to ingest, for a search in a warm process, and for a search in a new one."""
    # Both keep bytecode, as an installed package does: without it the cold start would be the time to compile.
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": ""}
    warm = subprocess.run(
        [sys.executable, "-c", WARM, str(documents), str(queries), str(data)],
        check=True,
        stdout=subprocess.PIPE,
        env=environment,
    )
    command = [sys.executable, "-m", "ragstone", "search", "statin", "--data-dir", str(data), "--json"]
    measured: dict[str, float] = json.loads(warm.stdout.splitlines()[-1])
    return {**measured, "cold start": run_timed(command, environment)[1]}


if __name__ == "__main__":
    main()
